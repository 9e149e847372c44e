"""Masses of cells under beta kernels, and of outputs where they are finite, with derivatives by differences.

Under Laplace noise of scale s, with f the beta density, L(z) and R(z) the integrals of f(y) exp(-|z - y|/s)
over y below and above z: g = (L + R) / (2 s), L' = f - L/s, R' = R/s - f, so that the mass between two edges
is that of f plus the difference of (R - L) / 2 (`dpmix.mechanisms.channels.additive_beta` has both). Under
Gaussian noise a Gauss-Legendre sum of g, which is smooth over a quarter of the noise's standard deviation.

Components that are not narrow beside pieces of the bounds have the sums of
`dpmix.models.counts_mixture.masses` under a square wave and under noise that is not small.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.beta import A, B, Beta
from dpmix.kernels.kernel_functions import fill_masses
from dpmix.kernels.normal import NormalNIG
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.additive_beta import MOST_PANELS, fill_laplace, laplace_panels
from dpmix.mechanisms.channels.beta_quadrature import LEFT, RIGHT, log_one_sided
from dpmix.mechanisms.channels.channel_functions import fill_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import SquareWaveNoise, window_sums
from dpmix.models.counts_mixture.coordinates import place, unit, walk
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.models.counts_mixture.masses import (
    NO_PIECES,
    BetaPieces,
    can_sum,
    cut_between,
    fill_rows,
    fill_slopes,
    pieces_of,
    sum_pieces,
    sum_sides,
    sum_table,
    tabulated,
)
from dpmix.numerics.gamma import log_beta
from dpmix.numerics.jit import njit

__all__ = ["gaussian_rule", "pieces_for"]

_STEP = 1e-4  # of a difference, in logarithms of the parameters or standard deviations
_ORDER = 5  # nodes of a piece
_PIECE = 4.0  # pieces to a standard deviation of the noise
_BEYOND = 14.0  # standard deviations beyond the domain after which nothing is left
_SMOOTH = 0.25  # standard deviation of Gaussian noise, as a share of the domain, for an exact table
_NOISY = 0.1  # scale of Laplace noise, as a share of the domain, from which on every cell has some mass

Floats = NDArray[np.float64]


def gaussian_rule(edges: Floats, sd: float, lo: float, hi: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return nodes, weights and offsets of a quadrature of a smooth density in each cell between `edges`.

    The end cells are cut 14 standard deviations of the noise beyond the domain.
    """
    node, weight = np.polynomial.legendre.leggauss(_ORDER)
    ends = np.concatenate(
        [
            [min(edges[0] - sd, lo - _BEYOND * sd)],
            edges,
            [max(edges[-1] + sd, hi + _BEYOND * sd)],
        ]
    )
    nodes, weights, first = [], [], [0]
    for left, right in zip(ends[:-1], ends[1:], strict=True):
        cuts = np.linspace(left, right, math.ceil(_PIECE * (right - left) / sd) + 1)
        half = 0.5 * np.diff(cuts)
        nodes.append((0.5 * (cuts[:-1] + cuts[1:])[:, None] + half[:, None] * node).ravel())
        weights.append((half[:, None] * weight).ravel())
        first.append(first[-1] + nodes[-1].size)
    return np.concatenate(nodes), np.concatenate(weights), np.array(first, dtype=np.int64)


def pieces_for(channel: Any, kernel: Beta, edges: Floats) -> BetaPieces:
    """Return the pieces that a channel's masses are sums over; none where it has no such sums.

    Under additive noise these are for noise that is not small; Laplace, for edges within the bounds.
    """
    if isinstance(channel, SquareWaveNoise):
        return pieces_of(np.linspace(0.0, 1.0, len(channel.edges) + 2), np.zeros(0))
    places = (edges - kernel.lo) / kernel.width
    if isinstance(channel, GaussianNoise):
        return _gaussian_pieces(places, channel.sd / kernel.width)
    inside = len(places) > 0 and places[0] >= -1e-12 and places[-1] <= 1.0 + 1e-12
    if not (isinstance(channel, LaplaceNoise) and inside and channel.scale >= _NOISY * kernel.width):
        return NO_PIECES
    places = np.clip(places, 0.0, 1.0)
    return pieces_of(cut_between(places), places, channel.scale / kernel.width)


def _gaussian_pieces(places: Floats, sd: float) -> BetaPieces:
    """Return pieces with a table of the chance of each cell, where the noise is wide."""
    from scipy.special import ndtr  # late: chains under other noise start without SciPy

    if sd < _SMOOTH:
        return NO_PIECES
    low, high = np.append(-np.inf, places)[:, None], np.append(places, np.inf)[:, None]

    def chance(y: Floats) -> Floats:
        above = low + high > 2.0 * y  # the smaller tails
        one, other = np.where(above, y - low, high - y), np.where(above, y - high, low - y)
        return np.asarray(ndtr(one / sd) - ndtr(other / sd))

    return tabulated(pieces_of(cut_between(np.zeros(0)), np.zeros(0)), chance)


@njit
def _half_difference(a, b, below, above, scale):
    """Return (R - L) / 2 at a place `below` from lo and `above` from hi, in units of the interval."""
    constant = log_beta(a, b)
    left = math.exp(log_one_sided(LEFT, a, b, below, above, scale) - constant) if below > 0.0 else 0.0
    right = math.exp(log_one_sided(RIGHT, a, b, below, above, scale) - constant) if above > 0.0 else 0.0
    return 0.5 * (right - left)


@njit
def _sum_laplace(a, b, scale, pieces, masses):
    """Set the masses of cells by sums over pieces, between whose cuts the edges are."""
    size, at = len(pieces.cuts), pieces.at
    within, left, right = np.empty(size - 1), np.empty(size), np.empty(size)
    sum_sides(a, b, pieces, scale, within, left, right)
    k, before = 0, 0.0
    for c in range(len(at)):
        total = 0.0
        while k < at[c]:
            total += within[k]
            k += 1
        side = 0.5 * (right[k] - left[k])
        masses[c] = max(total + (side - before), LEAST)
        before = side
    total = 0.0
    while k < size - 1:
        total += within[k]
        k += 1
    masses[len(at)] = max(total - before, LEAST)


@fill_rows.register
def _fill_laplace_beta(channel: LaplaceNoise, kernel: Beta, theta, h, cells, rows):
    a, b, edges, last = theta[A, h], theta[B, h], cells.edges, len(cells.edges)
    scale = channel.scale / kernel.width
    sides, masses = cells.spare[0, :last], rows[0]
    if can_sum(a, b, cells.pieces):
        _sum_laplace(a, b, channel.scale / kernel.width, cells.pieces, masses)
        return False
    panels = laplace_panels(a, b, scale)
    if 1 < len(panels) <= MOST_PANELS:
        fill_laplace(a, b, kernel.lo, kernel.width, scale, panels, edges, 0, last, sides, -1.0)
        for i in range(last):
            sides[i] *= channel.scale
    else:
        for i in range(last):
            below = (edges[i] - kernel.lo) / kernel.width
            above = (kernel.lo + kernel.width - edges[i]) / kernel.width
            sides[i] = _half_difference(a, b, below, above, scale)
    fill_masses(kernel, theta, h, edges, masses)
    masses[0] = max(masses[0] + sides[0], LEAST)
    for c in range(1, last):
        masses[c] = max(masses[c] + (sides[c] - sides[c - 1]), LEAST)
    masses[last] = max(masses[last] - sides[last - 1], LEAST)
    return False


@fill_rows.register
def _fill_gaussian_beta(channel: GaussianNoise, kernel: Beta, theta, h, cells, rows):
    if can_sum(theta[A, h], theta[B, h], cells.pieces):
        sum_table(theta[A, h], theta[B, h], cells.pieces, rows[0])
        for c in range(rows.shape[1]):
            rows[0, c] = max(rows[0, c], LEAST)
        return False
    size = len(cells.nodes)
    density = cells.spare[0, :size]
    fill_marginal(channel, kernel, theta, h, cells.nodes, 0, size, density)
    for c in range(rows.shape[1]):
        total = 0.0
        for k in range(cells.first[c], cells.first[c + 1]):
            total += cells.weights[k] * density[k]
        rows[0, c] = max(total, LEAST)
    return False


@fill_rows.register
def _fill_none_beta(channel: NoNoise, kernel: Beta, theta, h, cells, rows):
    fill_masses(kernel, theta, h, cells.edges, rows[0])
    for c in range(rows.shape[1]):
        rows[0, c] = max(rows[0, c], LEAST)
    return False


@njit
def _fill_any_outputs(channel, kernel, theta, h, cells, rows):
    fill_marginal(channel, kernel, theta, h, cells.outputs, 0, len(cells.outputs), rows[0])
    for c in range(rows.shape[1]):
        rows[0, c] = max(rows[0, c], LEAST)
    return False


@fill_rows.register
def _fill_square_wave_beta(channel: SquareWaveNoise, kernel: Beta, theta, h, cells, rows):
    a, b = theta[A, h], theta[B, h]
    if not can_sum(a, b, cells.pieces):
        return _fill_any_outputs(channel, kernel, theta, h, cells, rows)
    inner, reach = len(channel.edges) + 1, int(channel.reach)
    masses, near = np.empty(inner), np.empty(inner + 2 * reach)
    sum_pieces(a, b, cells.pieces, masses)
    window_sums(masses, reach, near)
    for c in range(rows.shape[1]):
        rows[0, c] = (1.0 + (channel.odds - 1.0) * near[int(cells.outputs[c])]) / channel.total
    return False


def _differences(channel, kernel, theta, h, cells, rows):
    """Set the derivatives by forward differences."""
    first, second = walk(kernel, theta, h)
    moved = np.empty((len(theta), 1))
    other = np.empty((1, rows.shape[1]))
    for k in range(2):
        step = _STEP * unit(kernel, theta, h) if k == 0 else _STEP
        place(kernel, first + (step if k == 0 else 0.0), second + (step if k == 1 else 0.0), moved, 0)
        fill_rows(channel, kernel, moved, 0, cells, other)
        for c in range(rows.shape[1]):
            rows[1 + k, c] = (other[0, c] - rows[0, c]) / step


def _fill_outputs(channel, kernel, theta, h, cells, rows):
    return _fill_any_outputs(channel, kernel, theta, h, cells, rows)


for _kernel in (NormalNIG, Beta):
    fill_rows.register(_fill_outputs, BinomialNoise, _kernel)
    for _outputs in (BinomialNoise, SquareWaveNoise):
        fill_slopes.register(_differences, _outputs, _kernel)
fill_rows.register(_fill_outputs, SquareWaveNoise, NormalNIG)
for _channel in (LaplaceNoise, GaussianNoise, NoNoise):
    fill_slopes.register(_differences, _channel, Beta)
