"""Integrals of a beta density over pieces of its interval, by sums over nodes that are laid out once.

Where noise hides what is narrow, the mass that a component gives to a released cell need not come from tails
of the beta distribution at each edge: with f the density, and pieces narrow beside its standard deviation,
the integrals of f and of f exp(-u/s), u the distance from either end of the piece, are Gauss-Legendre sums at
nodes whose logarithms are known, an exponential each. In the two end pieces f = y^(a-1) (1-y)^(b-1)/B(a, b)
is not smooth; there (1-y)^(b-1) exp(r y) = sum_k c_k y^k, with

    (k + 1) c_(k+1) = k c_k - (b - 1) c_k + r (c_k - c_(k-1)),    c_0 = 1,

and the integral over [0, d] is sum_k c_k d^(a+k)/(a + k) over B(a, b).

Errors are below 1e-12 of the whole for pieces of at most two thirds of a standard deviation (`can_sum`),
which is no more than what tails at edges have. From these sums come the outputs of a square wave and, in two
recursions from the ends, L(z) and R(z) of Laplace noise (`dpmix.models.counts_mixture.quadrature`). Under
Gaussian noise the chance of a cell given y is smooth: a table has it at the nodes, and in the end pieces its
polynomial in the distance from the end, for the moments of f there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.counts_mixture.loops import dot
from dpmix.numerics.gamma import log_beta
from dpmix.numerics.jit import njit

__all__ = [
    "NO_PIECES",
    "BetaPieces",
    "can_sum",
    "cut_between",
    "pieces_of",
    "sum_pieces",
    "sum_sides",
    "sum_table",
    "tabulated",
]

_WIDEST = 1.0 / 96.0  # of a piece, as a share of the interval
_ORDER, _NEAR_ORDER, _NEAR = 5, 8, 4  # nodes of a piece; of those at so few pieces of their width from an end
_NARROW = 1.5  # standard deviations to a piece are at least this
_MOST = 2.0  # a parameter times the width of an end piece, for a series without cancellation
_TERMS = 60
_MOMENTS = 6

Floats = NDArray[np.float64]


class BetaPieces(NamedTuple):
    """Pieces of [0, 1], C - 1 of them, and the nodes of the inner ones, Q in all.

    nodes (2, Q): log y and log(1 - y); weights (3, Q): w/(y (1 - y)), w of the quadrature; that times
    exp(-u/s), u the distance from the piece's right end; and from its left; first (C,): where the nodes of
    each piece start; cuts (C,): from 0 to 1; at (E,): which of these are wanted; widest: of the pieces; table
    (B, Q + 2 D): what makes the masses of B cells of the values at the nodes and the D moments of either end
    piece, where there is one.
    """

    nodes: Any
    weights: Any
    first: Any
    cuts: Any
    at: Any
    widest: float
    table: Any


_NONE = np.zeros(0, dtype=np.int64)
NO_PIECES = BetaPieces(
    np.zeros((2, 0)), np.zeros((3, 0)), _NONE, np.zeros(0), _NONE, math.inf, np.zeros((0, 0))
)


def cut_between(places: Floats) -> Floats:
    """Return cuts of [0, 1] at all places (E,) within it, increasing, and enough more between them."""
    ends = np.unique(np.concatenate([[0.0], places, [1.0]]))
    parts = [
        np.linspace(a, b, math.ceil((b - a) / _WIDEST * (1.0 - 1e-9)) + 1)
        for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]
    return np.unique(np.concatenate(parts))


def pieces_of(cuts: Floats, wanted: Floats, scale: float = math.inf) -> BetaPieces:
    """Return the pieces between cuts.

    Parameters
    ----------
    cuts : float64 array (C,)
        Increasing, from 0 to 1.
    wanted : float64 array (E,)
        Those of the cuts at which something is asked for.
    scale : float
        s; infinite where exponentials are not needed.
    """
    places, weights, right, left, first = [], [], [], [], [0]
    for k, (low, high) in enumerate(zip(cuts[:-1], cuts[1:], strict=True)):
        if 0 < k < len(cuts) - 2:
            near = min(low, 1.0 - high) < (_NEAR - 0.5) * (high - low)
            node, weight = np.polynomial.legendre.leggauss(_NEAR_ORDER if near else _ORDER)
            y = 0.5 * (low + high) + 0.5 * (high - low) * node
            places.append(y)
            weights.append(0.5 * (high - low) * weight / (y * (1.0 - y)))
            right.append(np.exp((y - high) / scale))
            left.append(np.exp((low - y) / scale))
        first.append(sum(map(len, places)))
    if not places:
        return NO_PIECES
    y, w = np.concatenate(places), np.concatenate(weights)
    return BetaPieces(
        np.stack([np.log(y), np.log1p(-y)]),
        np.stack([w, w * np.concatenate(right), w * np.concatenate(left)]),
        np.array(first, dtype=np.int64),
        cuts,
        np.searchsorted(cuts, wanted).astype(np.int64),
        float(np.diff(cuts).max()),
        np.zeros((0, 0)),
    )


def tabulated(pieces: BetaPieces, chance: Callable[[Floats], Floats]) -> BetaPieces:
    """Return the pieces with a table.

    Parameters
    ----------
    pieces : BetaPieces
    chance : callable
        From places y of [0, 1] (Q,) to the probabilities of the cells given each (B, Q): smooth in y.
    """
    widths = (pieces.cuts[1], 1.0 - pieces.cuts[-2])
    u = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_MOMENTS) + 0.5) / _MOMENTS)
    solve = np.linalg.inv(np.vander(u, increasing=True))
    powers = np.arange(_MOMENTS)
    ends = [
        (chance(y) @ solve.T) / width**powers
        for y, width in ((widths[0] * u, widths[0]), (1.0 - widths[1] * u, widths[1]))
    ]
    inner = chance(np.exp(pieces.nodes[0])) * pieces.weights[0]
    return pieces._replace(table=np.ascontiguousarray(np.concatenate([inner, *ends], axis=1)))


@njit
def can_sum(a, b, pieces):
    """Return whether sums over these pieces are exact."""
    cuts = pieces.cuts
    if len(cuts) == 0:
        return False
    total = a + b
    variance = a * b / (total * total * (total + 1.0))
    wide, end = _NARROW * pieces.widest, max(cuts[1], 1.0 - cuts[len(cuts) - 2])
    return variance >= wide * wide and max(a, b) * end <= _MOST


@njit
def _end_piece(a, b, width, rate, constant):
    """Return the integral over [0, width] of y^(a-1) (1-y)^(b-1) exp(rate y), times exp(-constant)."""
    before, now, power, value = 0.0, 1.0, 1.0, 1.0 / a
    for k in range(_TERMS):
        after = (k * now - (b - 1.0) * now + rate * (now - before)) / (k + 1.0)
        before, now = now, after
        power *= width
        term = now * power / (a + k + 1.0)
        value += term
        if abs(term) < 1e-17 * abs(value):
            break
    return value * math.exp(a * math.log(width) - constant)


@njit
def sum_pieces(a, b, pieces, masses):
    """Set the masses of the pieces (C - 1,)."""
    nodes, weights, first, cuts = pieces.nodes, pieces.weights, pieces.first, pieces.cuts
    last, constant = len(first) - 2, log_beta(a, b)
    for k in range(1, last):
        total = 0.0
        for q in range(first[k], first[k + 1]):
            total += weights[0, q] * math.exp(a * nodes[0, q] + b * nodes[1, q] - constant)
        masses[k] = total
    masses[0] = _end_piece(a, b, cuts[1], 0.0, constant)
    masses[last] = _end_piece(b, a, 1.0 - cuts[last], 0.0, constant)


@njit
def sum_table(a, b, pieces, masses):
    """Set the masses of the cells (B,) that the pieces have a table of."""
    nodes, cuts, table = pieces.nodes, pieces.cuts, pieces.table
    size, constant = nodes.shape[1], log_beta(a, b)
    values = np.empty(table.shape[1])
    for q in range(size):
        values[q] = math.exp(a * nodes[0, q] + b * nodes[1, q] - constant)
    low, high = cuts[1], 1.0 - cuts[len(cuts) - 2]
    for j in range(_MOMENTS):
        values[size + j] = _end_piece(a + j, b, low, 0.0, constant)
        values[size + _MOMENTS + j] = _end_piece(b + j, a, high, 0.0, constant)
    for c in range(len(table)):
        masses[c] = dot(table[c], values)


@njit
def sum_sides(a, b, pieces, scale, masses, left, right):
    """Set the masses of the pieces (C - 1,), and L and R at the cuts (C,).

    L(z) is the integral of f(y) exp(-(z - y)/s) over y < z, R(z) that of f(y) exp(-(y - z)/s) over y > z.
    """
    nodes, weights, first, cuts = pieces.nodes, pieces.weights, pieces.first, pieces.cuts
    end, rate, constant = len(first) - 1, 1.0 / scale, log_beta(a, b)
    last = end - 1
    for k in range(1, last):
        mass = by_right = by_left = 0.0
        for q in range(first[k], first[k + 1]):
            height = math.exp(a * nodes[0, q] + b * nodes[1, q] - constant)
            mass += weights[0, q] * height
            by_right += weights[1, q] * height
            by_left += weights[2, q] * height
        masses[k], left[k + 1], right[k] = mass, by_right, by_left
    low, high = cuts[1], 1.0 - cuts[last]
    masses[0] = _end_piece(a, b, low, 0.0, constant)
    masses[last] = _end_piece(b, a, high, 0.0, constant)
    left[0] = right[end] = 0.0
    left[1] = math.exp(-low * rate) * _end_piece(a, b, low, rate, constant)
    right[0] = _end_piece(a, b, low, -rate, constant)
    left[end] = _end_piece(b, a, high, -rate, constant)
    right[last] = math.exp(-high * rate) * _end_piece(b, a, high, rate, constant)
    for k in range(end):
        left[k + 1] += left[k] * math.exp((cuts[k] - cuts[k + 1]) * rate)
    for k in range(last, -1, -1):
        right[k] += right[k + 1] * math.exp((cuts[k] - cuts[k + 1]) * rate)
