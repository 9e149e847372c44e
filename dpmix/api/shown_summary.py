"""What is shown of a summary, or of a comparison of two fits: its main table, and which others there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpmix.api.file_kinds import tree_kind
from dpmix.api.shown_release import fact
from dpmix.errors import DataError
from dpmix.results.nodes import Each, Items, ResultSection, Table, TableColumn
from dpmix.results.read_back import tables_in
from dpmix.store.frames import Frame
from dpmix.store.tree import Node

__all__ = ["sections_of_summary"]

_HIDDEN = ("mcse", "ess_tail", "ess_per_second", "note", "quantiles[0.5]")  # in text


def sections_of_summary(path: Path, root: Node) -> list[ResultSection]:
    """Return what is said of the HDF5 file of a summary.

    Raises
    ------
    DataError
        When it has no table.
    """
    tables = tables_in(root)
    if not tables:
        raise DataError(f"{path} is damaged: it is a summary without tables")
    first = "parameters" if "parameters" in tables else next(iter(tables))
    what = "a comparison of two fits" if tree_kind(root.groups) == "contrast" else "a summary"
    attrs = {key: value for key, value in root.attrs.items() if isinstance(value, str)}
    level = _figure(root.attrs.get("level"))
    model = attrs.get("model")
    guarantee = attrs.get("guarantee", "")
    names = ", ".join(tables)
    found = [
        ResultSection("about", what, brief=[f"{path}: {what}{f' of a fit of {model}' if model else ''}"]),
        fact("guarantee", guarantee or None, guarantee),
        fact("level", level, "" if level is None else f"{level:g} of the posterior in each interval"),
        fact("tables", list(tables), f"{names} (dpmix export --table)"),
        _table_section(first, tables[first]),
    ]
    warnings = tables.get("warnings")
    texts = [str(text) for text in (warnings.columns.get("text", ()) if warnings is not None else ()) if text]
    found.append(ResultSection("warnings", texts, text=[["Warnings:", Items(texts)]] if texts else []))
    made = attrs.get("dpmix_version")
    found.append(fact("dpmix_version", made, ""))
    return found


def _figure(value: Any) -> float | None:
    return (
        float(value)
        if value is not None and np.asarray(value).dtype.kind in "iuf" and np.ndim(value) == 0
        else None
    )


def _table_section(key: str, frame: Frame) -> ResultSection:
    """Return a table as JSON has it, a list of rows, and as a terminal shows it."""
    names = list(frame.columns)
    head = names[0]
    rows = ["" if name is None else str(name) for name in frame.first(len(frame)).cells()[0]]
    columns = [
        TableColumn(name, _values(frame.columns[name]), _label(name), _write, where="text page")
        for name in names[1:]
        if name not in _HIDDEN
    ]
    return ResultSection(key, Each(frame.rows()), key, text=[[Table(head, rows, columns)]])


def _label(name: str) -> str:
    """Return a column's head: "2.5%" for quantiles[0.025]."""
    inner = name.removeprefix("quantiles[").removesuffix("]")
    try:
        return f"{100 * float(inner):g}%" if name.startswith("quantiles[") else name
    except ValueError:
        return name


def _values(column: Any) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return [None if value is None or value != value else value for value in values]


def _write(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
