"""Whole records looked up among others, whatever their number of columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "count_distinct"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rows:
    """Records to look others up in, in O(log n) a record and column.

    A record is numbered column by column: its number by the columns so far, with the place of its next value
    among that column's values, is looked up among the pairs that occur.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
    """

    def __init__(self, values: Floats) -> None:
        self._known: list[tuple[Floats, Ints]] = []
        numbers = np.zeros(len(values), dtype=np.int64)
        for column in values.T:
            kept, places = np.unique(column, return_inverse=True)
            pairs, numbers = np.unique(numbers * len(kept) + places, return_inverse=True)
            self._known.append((kept, pairs))
        self.distinct = int(numbers.max()) + 1

    def holds(self, values: Floats) -> NDArray[np.bool_]:
        """Return whether each of other records is equal to one of these, shape (m,)."""
        found = np.ones(len(values), dtype=np.bool_)
        numbers = np.zeros(len(values), dtype=np.int64)
        for column, (kept, pairs) in zip(values.T, self._known, strict=True):
            places, there = _among(column, kept)
            numbers, paired = _among(numbers * len(kept) + places, pairs)
            found &= there & paired
        return found


def count_distinct(values: Floats) -> int:
    """Return the number of distinct records, shape (m, d)."""
    return Rows(values).distinct


def _among(wanted: Floats | Ints, known: Floats | Ints) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each among sorted values, and whether it is there at all."""
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int64)
    return places, np.asarray(known[places] == wanted)
