"""What tells two fits apart: used to refuse merging chains of different ones, naming the difference."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError

_GUARANTEE = ("epsilon", "delta", "rho", "adjacency", "private", "simulated")
_LONGEST = 120  # characters of a value in a message
_WHERE_FROM = {("data", "path"), ("release", "path"), ("summary", "at")}
"""Paths, which differ between machines: releases are compared by their values instead."""


@dataclass(frozen=True)
class Fit:
    """What chains of one fit must share.

    Parameters
    ----------
    name : str
        File, for messages.
    spec, attrs, constants : mapping
        Resolved spec, root attributes, `constant_data` scalars and arrays.
    draws : int
        Saved draws per chain.
    observed : float64 array
        The release.
    """

    name: str
    spec: Mapping[str, Any]
    attrs: Mapping[str, Any]
    constants: Mapping[str, Any]
    draws: int
    observed: NDArray[np.float64]


def check_same(first: Fit, other: Fit) -> None:
    """Refuse a fit that differs from the first in spec, release, seed or number of draws.

    Raises
    ------
    DataError
        Naming the first thing in which they differ, with both values.
    """
    mine, theirs = (json.loads(str(fit.attrs["mechanism"])) for fit in (first, other))
    checks = list(_differences(first.spec, other.spec))
    checks += _differences(mine, theirs, ("mechanism",))
    checks += [(name, first.attrs.get(name), other.attrs.get(name)) for name in ("seed", *_GUARANTEE)]
    checks += [(name, first.constants.get(name), other.constants.get(name)) for name in first.constants]
    checks.append(("draws per chain", first.draws, other.draws))
    for name, mine, theirs in checks:
        if not _equal(mine, theirs):
            raise DataError(
                f"{other.name} differs from {first.name} in {name} ({_show(theirs)} against {_show(mine)})"
            )
    if first.observed.shape != other.observed.shape or (first.observed != other.observed).any():
        raise DataError(
            f"{other.name} was fitted to another release than {first.name}: the released values differ"
        )


def first_difference(mine: Any, theirs: Any) -> tuple[str, Any, Any] | None:
    """Return the first leaf in which two nested mappings differ, as (dotted key, mine, theirs)."""
    found = next(_differences(mine, theirs), None)
    return None if found is None else (found[0], _show(found[1]), _show(found[2]))


def _differences(mine: Any, theirs: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Leaves in which two specs differ, in the order of the first."""
    if key in _WHERE_FROM:
        return
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for name in [*mine, *(name for name in theirs if name not in mine)]:
            yield from _differences(mine.get(name), theirs.get(name), (*key, str(name)))
    elif not _equal(mine, theirs):
        yield ".".join(key), mine, theirs


def _equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, float | np.floating) and isinstance(theirs, float | np.floating):
        return bool(mine == theirs) or bool(np.isnan(mine) and np.isnan(theirs))
    return bool(np.array_equal(np.asarray(mine, dtype=object), np.asarray(theirs, dtype=object)))


def _show(value: Any) -> str:
    if value is None:
        return "absent"
    text = f"{value:g}" if isinstance(value, float | np.floating) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}.."
