"""The data of a result as lists, dicts, numbers and words that strict JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmix.results.nodes import ABSENT, Array, Attr, Each, Table, Tree

__all__ = ["plain", "to_json"]


def to_json(tree: Tree) -> dict[str, Any]:
    """Return the data of a result by section; None for no value."""
    return dict(plain({section.key: section.data for section in tree if _held(section.data)}))


def plain(data: Any) -> Any:
    """Return a node as JSON has it, at any depth."""
    match data:
        case Each(json=value) | Attr(value=value):
            return plain(value)
        case Array(values=None):
            return None
        case Array(values=values):
            return np.asarray(values).tolist()
        case Table():
            return _table(data)
        case Mapping():
            return {key: plain(value) for key, value in data.items() if _held(value)}
        case list() | tuple():
            return [plain(value) for value in data]
        case np.ndarray() | np.generic():
            return data.tolist()
        case float() if not math.isfinite(data):
            return None
        case float():
            return float(data)  # also of a kind that writes itself in another way
        case _:
            return data


def _held(data: Any) -> bool:
    return data is not ABSENT and not (isinstance(data, Each) and data.json is ABSENT)


def _table(table: Table) -> Any:
    rows = [{key: plain(value) for key, value in row.items()} for row in table]
    names = [row.pop(table.dim) for row in rows]
    if table.layout == "list":
        return [{"name": name} | row for name, row in zip(names, rows, strict=True)]
    if table.layout == "values":
        return {name: value for name, row in zip(names, rows, strict=True) for value in row.values()}
    return dict(zip(names, rows, strict=True))
