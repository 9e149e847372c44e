"""Confidential records of numbers and labels, as the generators of synthetic records take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.cells import Column
from dpmix.data.loading import coded, missing_of
from dpmix.data.simulations import generators, simulate_records
from dpmix.data.tables import load_mixed
from dpmix.errors import SpecError
from dpmix.spec.data_section import ColumnsSection, digits_of

if TYPE_CHECKING:
    from dpmix.spec import RunSpec

__all__ = ["Column", "Records", "column_of", "columns_of", "load_records"]

Floats = NDArray[np.float64]
_MOST_CATEGORIES = 1000


@dataclass(frozen=True, eq=False)
class Records:
    """Confidential records, or simulated ones.

    Parameters
    ----------
    columns : tuple of Column
        The d columns.
    values : ndarray of float64, shape (n, d)
        Numbers within the bounds; codes of public categories, or of `labels`.
    labels : tuple
        For each column the text that its codes stand for, None for numbers. Those of free labels are
        confidential.
    clamped : tuple of int
        How many numbers of each column were outside the bounds; the curator's to see.
    rounded : tuple of int
        How many were then rounded to the digits of their column's type, likewise; empty where none has one.
    rng : Generator or None
        For simulated records, the generator that synthesis draws from; None for real ones.
    table : mapping of str to float64 array (n,), or tuple of n str
        What was read, by column, before it was clamped and coded; by it the ledger knows the table again.
    """

    columns: tuple[Column, ...]
    values: Floats
    labels: tuple[tuple[str, ...] | None, ...]
    clamped: tuple[int, ...]
    rounded: tuple[int, ...] = field(default=(), kw_only=True)
    rng: np.random.Generator | None = None
    table: Mapping[str, Floats | Sequence[str]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def simulated(self) -> bool:
        """Whether the records were simulated."""
        return self.rng is not None

    def __repr__(self) -> str:
        """Show the shape, and no values."""
        return f"Records(n={self.n}, columns={self.names})"


def columns_of(section: ColumnsSection | None) -> tuple[Column, ...]:
    """Return what a spec's section says of its columns.

    Raises
    ------
    SpecError
        When the section names no columns.
    """
    names: tuple[str, ...] = () if section is None or section.columns is None else section.columns
    if section is None or not names:
        raise SpecError("data.columns: missing; name the columns to synthesize")
    return tuple(column_of(section, i, name) for i, name in enumerate(names))


def column_of(section: ColumnsSection, index: int, name: str) -> Column:
    """Return what is public of a column: dates are whole days, whole numbers may be categories."""
    stated = section.categories_of(index)
    categories = None if stated is None else tuple(str(c) for c in stated)
    bounds, kind = section.bounds_of(index), (section.types or {}).get(name)
    if bounds is None:
        if kind not in (None, "category"):
            raise SpecError(f"data.domain: missing for {name}, whose type is of numbers; give public bounds")
        return Column(name, None, categories)
    if name in section.dates:
        if kind not in (None, "integer"):
            raise SpecError(f"data.types.{name}: must be integer, as dates are whole days; or leave it out")
        return Column(name, bounds, None, True, 0)
    if kind == "category":
        low, high = bounds
        if low != int(low) or high != int(high) or high - low >= _MOST_CATEGORIES:
            raise SpecError(
                f"data.types.{name}: category is for whole bounds, at most {_MOST_CATEGORIES} categories; "
                f"list those of {name} under data.categories"
            )
        return Column(name, None, tuple(str(code) for code in range(int(low), int(high) + 1)))
    return Column(name, bounds, None, False, digits_of(kind))


def load_records(spec: RunSpec) -> Records:
    """Read, or simulate, the records of the section ``data``, numbers clamped to their public bounds.

    Raises
    ------
    SpecError
        When there is no such section, or it names no columns.
    DataError
        For what `load_table` refuses, fewer than two records, and labels that are not among the categories.
    """
    section = spec.data
    if section is None:
        raise SpecError("data: missing; name the confidential file, its columns and their public domain")
    if section.simulate is not None:
        assert section.n is not None  # the spec requires it
        if section.n < 2:
            raise SpecError("data.n: at least 2 records are needed")
        name = (section.columns or ("value",))[0]
        if len(section.columns or (name,)) != 1 or section.categories is not None:
            raise SpecError(f"data.simulate: {section.simulate} must have one column, of numbers")
        if section.domain is None:
            raise SpecError("data.domain: missing; give the public bounds (none are read off the data)")
        draws, noise = generators(section.seed)
        assert not isinstance(section.alpha, dict)  # that is by group, and refused
        values = simulate_records(section.simulate, section.n, draws, section.alpha)
        column = column_of(section, 0, name)
        if column.bounds is None:
            raise SpecError(f"data.types.{name}: simulated records are of numbers; give integer or digits")
        bounded, clamped, rounded = taken(values[:, 0], column)
        return Records((column,), bounded[:, None], (None,), (clamped,), noise, rounded=(rounded,))
    columns = columns_of(section)
    numeric = [column.name for column in columns if column.bounds is not None]
    textual = [column.name for column in columns if column.bounds is None]
    missing = missing_of(section)
    numbers, texts = load_mixed(section.source, numeric, textual, least=2, missing=missing)
    missing.tell()
    read = (_read(column, numbers, texts) for column in columns)
    parts, labels, outside, moved = zip(*read, strict=True)
    table = missing.as_read({**numbers, **texts})
    return Records(columns, np.column_stack(parts), labels, outside, table=table, rounded=moved)


def _read(
    column: Column, numbers: Mapping[str, Floats], texts: Mapping[str, tuple[str, ...]]
) -> tuple[Floats, tuple[str, ...] | None, int, int]:
    """Return numbers or codes of a column, what codes stand for, and how many were clamped and rounded."""
    if column.bounds is None:
        return *_coded(texts[column.name], column), 0, 0
    found, clamped, rounded = taken(numbers[column.name], column)
    return found, None, clamped, rounded


def taken(values: Floats, column: Column) -> tuple[Floats, int, int]:
    """Return numbers within the bounds and at the digits of their column, and how many were moved by either.

    A record is moved by itself, so that guarantees do not change.
    """
    assert column.bounds is not None  # numbers
    bounded, outside = _clamped(values, column.bounds)
    if column.lattice is None:
        return bounded, outside, 0
    found = column.lattice.nearest(bounded)
    return found, outside, int((found != bounded).sum())


def _clamped(values: Floats, bounds: tuple[float, float]) -> tuple[Floats, int]:
    low, high = bounds
    outside = int(((values < low) | (values > high)).sum())
    return np.clip(values, low, high) + 0.0, outside  # + 0.0 makes one zero of two


def _coded(texts: tuple[str, ...], column: Column) -> tuple[Floats, tuple[str, ...]]:
    """Return codes, and the labels that they stand for."""
    if column.categories is None:
        known, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        return codes.astype(np.float64), tuple(str(label) for label in known)
    return coded(texts, column.name, column.categories), column.categories
