"""How likely each cell of released values is, given that a record is uniform in a cell of the bounds.

From these estimates without a model are made, such as `dpmix.summary.ems`. A law makes its own
(`Law.transition`): a matrix, or what multiplies as one where that would be large.

How likely released records are given masses of cells, and what they tell of such masses.

Latent records are taken for their cells here, so that a fitted density is known by its masses of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Transition(Protocol):
    """From masses of M cells of records to the probabilities of B cells of released values, and back."""

    def forward(self, masses: Floats) -> Floats:
        """Return the probabilities (B,) of the cells of released values, for masses (M,)."""
        ...

    def backward(self, weights: Floats) -> Floats:
        """Return for each cell of records (M,) the expected weight, for weights (B,) of released values."""
        ...


class MatrixTransition:
    """A transition that is held in full.

    Parameters
    ----------
    matrix : float64 array (B, M)
    """

    def __init__(self, matrix: Floats) -> None:
        self._matrix = np.ascontiguousarray(matrix)

    def forward(self, masses: Floats) -> Floats:
        """Return probabilities; see `Transition`."""
        return np.asarray(self._matrix @ masses)

    def backward(self, weights: Floats) -> Floats:
        """Return expected weights; see `Transition`."""
        return np.asarray(weights @ self._matrix)


def additive_matrix(tail: Callable[[Floats], Floats], cells: Floats, edges: Floats, chosen: Ints) -> Floats:
    """Return the matrix (B, M) of additive noise that is symmetric.

    With K(t) the integral of Pr(noise > u) over u > t, the probability of (x, x'] given a record uniform in
    (a, b) is (K(x - b) - K(x - a) - K(x' - b) + K(x' - a))/(b - a). Where a cell of released values lies
    below the record both are mirrored, so that what cancels is small.

    Parameters
    ----------
    tail : callable
        K, in the units of the data; 0 at infinity.
    cells : float64 array (M + 1,)
        Edges of the cells of records.
    edges : float64 array (C - 1,)
        Finite edges of all cells of released values, of which the first and the last are infinite.
    chosen : int64 array (B,)
        Which of these are wanted.
    """
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    low, high = ends[chosen][:, None], ends[chosen + 1][:, None]
    left, right = cells[:-1][None, :], cells[1:][None, :]
    mirrored = low + high < left + right  # of the middles; -inf is below everything
    x, further = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    a, b = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    found = tail(x - b) - tail(x - a) - tail(further - b) + tail(further - a)
    return np.asarray(np.maximum(found, 0.0) / (right - left))


# How likely released records are given masses of cells, and what they tell of such masses


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
