"""How likely released records are given masses of cells, and what they tell of such masses.

Latent records are taken for their cells here, so that a fitted density is known by its masses of these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from dpmix.mechanisms.laws.law_base import Floats, Ints

__all__ = ["FINE", "CellLikelihood", "TableLikelihood", "information_of_outputs"]

FINE = 16.0  # cells of released numbers to a noise scale


class CellLikelihood(Protocol):
    """Log likelihoods of the released records of one release.

    Attributes
    ----------
    edges : ndarray of float64, shape (C - 1,)
        Inner edges of the cells, in the units of the data; the end cells are open.
    """

    edges: Floats

    def logs(self, masses: Iterable[Floats]) -> Floats:
        """Return log likelihoods (S, n) of the records, given S times the masses (1, C) of the cells."""
        ...


class TableLikelihood:
    """A density by cells that is held in full.

    Parameters
    ----------
    edges : float64 array (C - 1,)
    table : float64 array (R, C)
        Densities of R different releases given each cell, divided by something.
    offset : float64 array (n,)
        Logarithm of what those of each record are divided by.
    rows : int64 array (n,)
        Which of the R each record released.
    """

    def __init__(self, edges: Floats, table: Floats, offset: Floats, rows: Ints) -> None:
        self.edges = edges
        self._table, self._offset, self._rows = table, offset, rows

    @classmethod
    def of_logs(cls, edges: Floats, logs: Floats) -> TableLikelihood:
        """Return that of log densities (n, C), a row for each record."""
        top = logs.max(axis=1)
        return cls(edges, np.exp(logs - top[:, None]), top, np.arange(len(logs)))

    def logs(self, masses: Iterable[Floats]) -> Floats:
        """Return log likelihoods; see `CellLikelihood`."""
        together = np.concatenate(list(masses))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(together @ self._table.T)[:, self._rows] + self._offset)


def information_of_outputs(table: Floats, shares: Floats, n: int) -> Floats:
    """Return the information (B, B) of outputs with probabilities `table` (outputs, B) given each cell.

    It is n T' diag(1/g) T with g = T p; where less than a record is expected, its absence tells as much as
    its presence would.
    """
    return np.asarray(n * ((table / np.maximum(table @ shares, 1.0 / (FINE * n))[:, None]).T @ table))
