"""A public partition of the space of records into cells: equal bins of numbers, and categories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.mechanisms.one_column import checked_edges
from dpmix.release import cell_of
from dpmix.synthesis.records import Column, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ONE_COLUMN, SEVERAL_COLUMNS = 100, 10
"""Cells of a numeric column where the spec does not say: of the only one, and of each of several."""
MOST = 1_000_000
"""Cells at most: each of them takes noise."""


@dataclass(frozen=True)
class Cells:
    """The product of the columns' cells, numbered in C order: the first column varies slowest.

    Parameters
    ----------
    columns : tuple of Column
        Numeric, or of public categories.
    shape : tuple of int
        Number of cells of each.
    """

    columns: tuple[Column, ...]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column], bins: int | Sequence[int] | None) -> Cells:
        """Return the cells that a spec's `synthesis.bins` gives.

        Raises
        ------
        PrivacyError
            When cells are narrower than the numbers there.
        SpecError
            When a column has neither bounds nor categories, the bins are not one number per numeric column,
            or there are too many cells.
        """
        for column in columns:
            if column.free:
                raise SpecError(
                    f"data.domain: missing for {column.name}; a histogram needs public bounds or categories "
                    "of every column"
                )
        numeric = [i for i, column in enumerate(columns) if column.bounds is not None]
        if bins is None:
            bins = ONE_COLUMN if len(numeric) == 1 else SEVERAL_COLUMNS
        counts = [bins] * len(numeric) if isinstance(bins, int) else list(bins)
        if len(counts) != len(numeric):
            raise SpecError(
                f"synthesis.bins: has {len(counts)} entries for {len(numeric)} numeric columns; give one each"
            )
        shape = [len(column.categories or ()) for column in columns]
        for i, count in zip(numeric, counts, strict=True):
            shape[i] = count
        if math.prod(shape) > MOST:
            raise SpecError(
                f"synthesis.bins: make {math.prod(shape)} cells of all columns together, more than {MOST}; "
                "take fewer"
            )
        made = cls(tuple(columns), tuple(shape))
        for i in numeric:
            made.edges(i)
        return made

    @property
    def count(self) -> int:
        """Number of cells."""
        return math.prod(self.shape)

    def edges(self, index: int) -> Floats:
        """Return the edges of a numeric column's cells, shape (cells + 1,)."""
        bounds = self.columns[index].bounds
        assert bounds is not None  # numeric
        return checked_edges("a histogram", bounds, self.shape[index])

    def of_values(self, values: Floats) -> Ints:
        """Return the cell of each row of values and codes, shape (n,)."""
        found = np.zeros(len(values), dtype=np.int64)
        for i, column in enumerate(self.columns):
            part = values[:, i]
            place = part.astype(np.int64) if column.bounds is None else cell_of(part, self.edges(i))
            found = found * self.shape[i] + place
        return found

    def counts(self, records: Records) -> Ints:
        """Return the number of records in each cell, shape (cells,)."""
        return np.bincount(self.of_values(records.values), minlength=self.count).astype(np.int64)

    def draw_within(self, cells: Ints, rng: np.random.Generator) -> Floats:
        """Draw a record of each given cell: numbers uniform within it. Shape (m, d)."""
        places = np.unravel_index(cells, self.shape)
        drawn = np.empty((len(cells), len(self.columns)))
        for i, column in enumerate(self.columns):
            if column.bounds is None:
                drawn[:, i] = places[i]
                continue
            edges = self.edges(i)
            left, right = edges[places[i]], edges[places[i] + 1]
            inside = np.nextafter(right, -np.inf)
            drawn[:, i] = np.clip(left + rng.random(len(cells)) * (right - left), left, inside)
        return drawn
