"""How likely each cell of released values is, given that a record is uniform in a cell of the bounds.

From these estimates without a model are made, such as `dpmix.summary.ems`. A law makes its own
(`Law.transition`): a matrix, or what multiplies as one where that would be large.

How likely released records are given masses of cells, and what they tell of such masses.

Latent records are taken for their cells here, so that a fitted density is known by its masses of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from dpmix.mechanisms.laws.law_base import Floats, Ints

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


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


class WindowTransition:
    """Outputs of a square wave: (1 + (r - 1) A_j)/W, A_j the mass near output j (methods, section 13).

    A_j is a difference of the distribution function, which for records uniform in their cells is linear
    between the edges of these, so that nothing needs a matrix.

    Parameters
    ----------
    cells : int
        M' of the law, which may be another number than that of the estimate.
    reach : int
        Its k.
    odds : float
        Its r.
    count : int
        Number M of equal cells that records are uniform in.
    chosen : int64 array (B,)
        The outputs.
    """

    def __init__(self, cells: int, reach: int, odds: float, count: int, chosen: Ints) -> None:
        self._gain, self._total = odds - 1.0, (2 * reach + 1) * odds + cells - 1
        self._count, self._chosen = count, chosen
        self._own = np.linspace(0.0, 1.0, count + 1)
        self._edges = np.linspace(0.0, 1.0, cells + 1)
        self._first = np.maximum(chosen - 2 * reach, 0)  # cells of the law near an output, from .. to
        self._last = np.minimum(chosen, cells - 1) + 1

    def forward(self, masses: Floats) -> Floats:
        """Return probabilities; see `Transition`."""
        below = np.interp(self._edges, self._own, np.concatenate([[0.0], np.cumsum(masses)]))
        near = below[self._last] - below[self._first]
        return np.asarray((masses.sum() + self._gain * near) / self._total)

    def backward(self, weights: Floats) -> Floats:
        """Return expected weights; see `Transition`."""
        steps = np.bincount(self._first, weights, len(self._edges))
        steps -= np.bincount(self._last, weights, len(self._edges))
        near = np.cumsum(steps)[:-1]  # over the outputs near each cell of the law
        whole = np.concatenate([[0.0], np.cumsum(near)]) / len(near)
        mean = np.diff(np.interp(self._own, self._edges, whole)) * self._count
        return np.asarray((weights.sum() + self._gain * mean) / self._total)


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


def binomial_matrix(trials: int, weight: float, count: int, chosen: Ints) -> Floats:
    """Return the matrix (B, M) of binomial outputs `chosen` given `count` equal cells.

    The probability is averaged over a cell by five Gauss-Legendre nodes: p moves by weight/count there, and
    its logarithm by far less than 1.
    """
    from scipy.special import gammaln, xlog1py, xlogy  # late: laws start without SciPy

    y = (np.arange(count)[:, None] + 0.5 * (1.0 + _NODES)) / count
    p = 0.5 + weight * (y - 0.5)
    z = chosen.astype(np.float64)
    constant = gammaln(trials + 1.0) - gammaln(z + 1.0) - gammaln(trials - z + 1.0)
    found = np.zeros((len(z), count))
    for node, share in enumerate(0.5 * _WEIGHTS):
        at = p[None, :, node]
        found += share * np.exp(constant[:, None] + xlogy(z[:, None], at) + xlog1py(trials - z[:, None], -at))
    return found


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
