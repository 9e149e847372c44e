"""What the root attributes of a chains file must say, whoever changed them since."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.errors import DataError
from dpmix.laws import LawError, law_of
from dpmix.release import neighbours_in_words
from dpmix.store.h5 import Attribute

__all__ = ["check_attributes"]

_GUARANTEE = ("epsilon", "delta", "rho")
_FLAGS = ("private", "simulated")


def check_attributes(path: Path, attrs: Mapping[str, Attribute]) -> None:
    """Check the attributes that summaries and further fits go by.

    Parameters
    ----------
    path : Path
        The file, for messages.
    attrs : mapping
        Its root attributes, among them ``spec``, ``seed``, ``mechanism`` and ``dpmix_version``.

    Raises
    ------
    DataError
        Naming the first that does not say what `dpmix fit` writes.
    """
    mechanism = _json(path, attrs, "mechanism")
    try:
        law_of(mechanism)
    except LawError as error:
        raise _bad(path, "mechanism", str(error)) from None
    if "versions" in attrs:
        _json(path, attrs, "versions")
    for name in _GUARANTEE:
        if name in attrs and not _at_least(attrs[name], 0.0, nan=True):
            raise _bad(path, name, "is no number from 0")
    for holder, name in ((attrs, "n"), (mechanism, "mechanism")):
        if holder.get("n") is not None and not _is_count(holder["n"]):
            raise _bad(path, name, "states no number of records")
    for name in _FLAGS:
        if name in attrs and not (_at_least(attrs[name], 0.0) and float(attrs[name]) in (0.0, 1.0)):
            raise _bad(path, name, "is neither 0 nor 1")
    if attrs.get("trust", "local") not in ("local", "global"):
        raise _bad(path, "trust", "is neither local nor global")
    try:
        neighbours_in_words(str(attrs.get("adjacency", "replacement")))
    except KeyError:
        raise _bad(path, "adjacency", "names no neighbouring relation") from None


def _json(path: Path, attrs: Mapping[str, Attribute], name: str) -> dict[str, Any]:
    try:
        found = json.loads(str(attrs[name]))
    except (ValueError, RecursionError) as error:
        raise _bad(path, name, "is no JSON") from error
    if not isinstance(found, dict):
        raise _bad(path, name, "is no JSON object")
    return found


def _at_least(value: Attribute, least: float, *, nan: bool = False) -> bool:
    if isinstance(value, str) or np.ndim(value) != 0 or np.asarray(value).dtype.kind not in "biuf":
        return False
    number = float(value)
    return math.isnan(number) if nan and math.isnan(number) else number >= least


def _is_count(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "iuf" and _at_least(value, 1.0) and math.isfinite(value)


def _bad(path: Path, name: str, problem: str) -> DataError:
    return DataError(
        f"{path} is not a chains file of dpmix as it was written: its attribute {name!r} {problem}"
    )
