"""Confidential records of numbers and labels, as the generators of synthetic records take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmix.data.loading import coded, missing_of
from dpmix.data.simulations import generators, simulate_records
from dpmix.data.tables import load_mixed
from dpmix.errors import SpecError
from dpmix.release.columns import Column
from dpmix.spec import RunSpec
from dpmix.spec.data_section import ColumnsSection

__all__ = ["Column", "Records", "columns_of", "load_records"]

Floats = NDArray[np.float64]


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
    rng : Generator or None
        For simulated records, the generator that synthesis draws from; None for real ones.
    table : mapping of str to float64 array (n,), or tuple of n str
        What was read, by column, before it was clamped and coded; by it the ledger knows the table again.
    """

    columns: tuple[Column, ...]
    values: Floats
    labels: tuple[tuple[str, ...] | None, ...]
    clamped: tuple[int, ...]
    rng: np.random.Generator | None = None
    table: Mapping[str, Floats | Sequence[str]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.values)

    def __repr__(self) -> str:
        """Show the shape, and no values."""
        return f"Records(n={self.n}, columns={tuple(c.name for c in self.columns)})"


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
    found = []
    for i, name in enumerate(names):
        categories = section.categories_of(i)
        texts = None if categories is None else tuple(str(c) for c in categories)
        found.append(Column(name, section.bounds_of(i), texts, name in section.dates))
    return tuple(found)


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
        bounded, clamped = _clamped(values[:, 0], section.bounds_of(0))
        return Records((Column(name, section.bounds_of(0)),), bounded[:, None], (None,), (clamped,), noise)
    columns = columns_of(section)
    numeric = [column.name for column in columns if column.bounds is not None]
    textual = [column.name for column in columns if column.bounds is None]
    missing = missing_of(section)
    numbers, texts = load_mixed(section.source, numeric, textual, least=2, missing=missing)
    missing.tell()
    parts: list[Floats] = []
    labels: list[tuple[str, ...] | None] = []
    outside: list[int] = []
    for column in columns:
        if column.bounds is not None:
            bounded, clamped = _clamped(numbers[column.name], column.bounds)
            parts.append(bounded)
            labels.append(None)
            outside.append(clamped)
            continue
        codes, known = _coded(texts[column.name], column)
        parts.append(codes)
        labels.append(known)
        outside.append(0)
    table = missing.as_read({**numbers, **texts})
    return Records(columns, np.column_stack(parts), tuple(labels), tuple(outside), table=table)


def _clamped(values: Floats, bounds: tuple[float, float] | None) -> tuple[Floats, int]:
    assert bounds is not None
    low, high = bounds
    outside = int(((values < low) | (values > high)).sum())
    return np.clip(values, low, high) + 0.0, outside  # + 0.0 makes one zero of two


def _coded(texts: tuple[str, ...], column: Column) -> tuple[Floats, tuple[str, ...]]:
    """Return codes, and the labels that they stand for."""
    if column.categories is None:
        known, codes = np.unique(np.array(texts, dtype=object), return_inverse=True)
        return codes.astype(np.float64), tuple(str(label) for label in known)
    return coded(texts, column.name, column.categories), column.categories
