"""Base measures of the columns of a discrete model, and draws of them within cells.

Columns are independent under the base measure P0. That of a column is a density that is constant between
points (the uniform distribution, a public histogram), a beta distribution stretched over the bounds, or a
finite number of atoms (codes of labels, the points of a public grid).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.intervals import draw_logit_within
from dpmix.numerics.betainc import expit
from dpmix.numerics.jit import njit

PIECES, ATOMS, BETA = 0, 1, 2
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ColumnBase:
    """The base measure of one column.

    Parameters
    ----------
    kind : int
        PIECES, ATOMS or BETA.
    points : (E,) array
        PIECES: the ends of the pieces; ATOMS: the atoms; BETA: the ends of the interval. Increasing.
    cumulative : (E,) array
        Probability up to each point, the last 1.
    a, b : float
        Parameters of the beta distribution.
    """

    kind: int
    points: Floats
    cumulative: Floats
    a: float = 1.0
    b: float = 1.0

    def below(self, values: Floats) -> Floats:
        """Return P0(X < value), shape of `values`."""
        values = np.asarray(values, dtype=np.float64)
        if self.kind == ATOMS:
            return np.append(0.0, self.cumulative)[np.searchsorted(self.points, values, side="left")]
        if self.kind == PIECES:
            return np.asarray(np.interp(values, self.points, self.cumulative))
        low, high = self.points
        from scipy.special import betainc  # late, as it is slow to import

        return np.asarray(betainc(self.a, self.b, np.clip((values - low) / (high - low), 0.0, 1.0)))

    def masses(self, edges: Floats | None) -> Floats:
        """Return the probability of each cell between `edges` (C + 1,), the end ones open; atoms if None."""
        if edges is None:
            if self.kind != ATOMS:
                raise ValueError("a column of numbers needs edges of its cells")
            return np.diff(self.cumulative, prepend=0.0)
        inner = self.below(edges[1:-1])
        return np.diff(np.concatenate([[0.0], inner, [1.0]]))


def uniform(low: float, high: float) -> ColumnBase:
    """Return the uniform distribution on [low, high]."""
    return ColumnBase(PIECES, np.array([low, high], dtype=np.float64), np.array([0.0, 1.0]))


def histogram(edges: Sequence[float], weights: Sequence[float]) -> ColumnBase:
    """Return a density constant between `edges` (E + 1,), with probabilities proportional to `weights`."""
    masses = np.asarray(weights, dtype=np.float64)
    cumulative = np.append(0.0, np.cumsum(masses) / masses.sum())
    cumulative[-1] = 1.0
    return ColumnBase(PIECES, np.asarray(edges, dtype=np.float64), cumulative)


def beta(a: float, b: float, low: float, high: float) -> ColumnBase:
    """Return Beta(a, b) stretched over [low, high]."""
    return ColumnBase(BETA, np.array([low, high], dtype=np.float64), np.array([0.0, 1.0]), float(a), float(b))


def atoms(values: Sequence[float] | Floats, probabilities: Sequence[float] | Floats) -> ColumnBase:
    """Return atoms at increasing `values` with probabilities proportional to `probabilities`."""
    masses = np.asarray(probabilities, dtype=np.float64)
    cumulative = np.cumsum(masses) / masses.sum()
    cumulative[-1] = 1.0
    return ColumnBase(ATOMS, np.asarray(values, dtype=np.float64), cumulative)


def snapped(base: ColumnBase, grid: Floats, edges: Floats) -> ColumnBase:
    """Return the law of a draw of `base` moved to the grid point of its cell.

    Parameters
    ----------
    base : ColumnBase
    grid : (G,) array
        Public grid, increasing.
    edges : (G - 1,) array
        What lies at or above ``edges[i]`` and below ``edges[i + 1]`` moves to ``grid[i + 1]``.
    """
    outer = np.concatenate([[-math.inf], np.asarray(edges, dtype=np.float64), [math.inf]])
    return atoms(grid, base.masses(outer))


def cell_probabilities(bases: Sequence[ColumnBase], edges: Sequence[Floats | None]) -> Floats:
    """Return P0 of the cells, products of the columns' cells in C order, shape (J,).

    `edges` are those of each column's cells, None where its cells are its atoms.
    """
    found = np.ones(1)
    for base, ends in zip(bases, edges, strict=True):
        found = np.multiply.outer(found, base.masses(ends)).ravel()
    return found


class Locations(NamedTuple):
    """Base measures of D columns in arrays: see `ColumnBase`.

    kind (D,); first (D + 1,) offsets in points and cumulative (sum of E,); shapes (D, 2) of the betas;
    cells (D,) numbers of cells; start (D + 1,) offsets in low and high, the ends of each cell: probabilities
    below them, of betas logits. A column whose cells are its atoms has none there.
    """

    kind: Any
    first: Any
    points: Any
    cumulative: Any
    shapes: Any
    cells: Any
    start: Any
    low: Any
    high: Any


def locations(bases: Sequence[ColumnBase], edges: Sequence[Floats | None]) -> Locations:
    """Return the base measures in arrays.

    Parameters
    ----------
    bases : sequence of ColumnBase
    edges : sequence of arrays or None
        Edges of each column's cells; None where there is one cell, or they are the atoms.
    """
    low, high, cells = [], [], []
    for base, ends in zip(bases, edges, strict=True):
        if base.kind == ATOMS:
            low.append(np.zeros(0))
            high.append(np.zeros(0))
            cells.append(len(base.points))
            continue
        inner = np.zeros(0) if ends is None else np.asarray(ends[1:-1], dtype=np.float64)
        if base.kind == BETA:
            left, right = base.points
            with np.errstate(divide="ignore"):
                cuts = np.log(np.maximum(inner - left, 0.0)) - np.log(np.maximum(right - inner, 0.0))
            below, above = -math.inf, math.inf
        else:
            cuts, below, above = base.below(inner), 0.0, 1.0
        low.append(np.append(below, cuts))
        high.append(np.append(cuts, above))
        cells.append(len(inner) + 1)
    return Locations(
        np.array([base.kind for base in bases], dtype=np.int64),
        offsets([len(base.points) for base in bases]),
        np.concatenate([base.points for base in bases]),
        np.concatenate([base.cumulative for base in bases]),
        np.array([[base.a, base.b] for base in bases]),
        np.array(cells, dtype=np.int64),
        offsets([len(part) for part in low]),
        np.concatenate(low),
        np.concatenate(high),
    )


def offsets(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Return where each of several arrays of these lengths starts among them all, and their end."""
    return np.append(0, np.cumsum(lengths)).astype(np.int64)


@njit
def _first_above(values, start, stop, u):
    """Return the first index from `start` whose value exceeds u, at most stop - 1."""
    return min(start + np.searchsorted(values[start:stop], u, side="right"), stop - 1)


@njit
def draw_location(base: Locations, rng, column, cell):
    """Draw the value of a column from its base measure given the cell; any cell where `cell` is -1."""
    kind = base.kind[column]
    first, stop = base.first[column], base.first[column + 1]
    if kind == ATOMS:
        if cell >= 0:
            return base.points[first + cell]
        return base.points[_first_above(base.cumulative, first, stop, rng.random())]
    if kind == BETA:
        left, right = base.points[first], base.points[first + 1]
        a, b = base.shapes[column, 0], base.shapes[column, 1]
        if cell < 0:
            return left + (right - left) * rng.beta(a, b)
        here = base.start[column] + cell
        return left + (right - left) * expit(draw_logit_within(rng, a, b, base.low[here], base.high[here]))
    low, high = 0.0, 1.0
    if cell >= 0:
        here = base.start[column] + cell
        low, high = base.low[here], base.high[here]
    u = low + (high - low) * rng.random()
    i = _first_above(base.cumulative, first + 1, stop, u)
    below, above = base.cumulative[i - 1], base.cumulative[i]
    share = (u - below) / (above - below) if above > below else 0.0
    return base.points[i - 1] + share * (base.points[i] - base.points[i - 1])
