"""Masses that a component's law of z gives to cells, with their derivatives.

``rows[0]`` has the masses G_c(theta), ``rows[1]`` and ``rows[2]`` their derivatives by the coordinates of
`dpmix.models.counts_mixture.coordinates`, which serve for proposals alone. A mass is raised to the number of
records in its cell, so that its relative error has to be near 1e-12 (methods, section 12): differences of the
smaller tail, and where a component is so wide that these cancel, Gauss-Legendre sums of the density.

**Normal kernels** under additive noise have both in closed form. With F the distribution function of z and g
its density, dF/dmu = -g, and dF/dsigma2 = g'/2 (the heat equation), so that the derivatives are differences
of g and g' at the edges.

**Beta kernels**, and outputs where they are finite, have derivatives by differences. Under Laplace noise of
scale s, with f the beta density, L(z) and R(z) the integrals of f(y) exp(-|z - y|/s) over y below and above
z: g = (L + R) / (2 s), L' = f - L/s, R' = R/s - f, so that the mass between two edges is that of f plus the
difference of (R - L) / 2 (`dpmix.mechanisms.channels.additive_beta` has both). Under Gaussian noise a
Gauss-Legendre sum of g, which is smooth over a quarter of the noise's standard deviation.

**Sums over pieces.** Where noise hides what is narrow, the mass that a beta component gives to a released
cell need not come from tails of the beta distribution at each edge: with pieces of the bounds narrow beside
its standard deviation, the integrals of f and of f exp(-u/s), u the distance from either end of the piece,
are Gauss-Legendre sums at nodes that are laid out once and whose logarithms are known, an exponential each.
In the two end pieces f = y^(a-1) (1-y)^(b-1)/B(a, b) is not smooth. Its integral over [0, d] is the series

    d^a (1-d)^b / (a B(a, b)) sum_k d^k (a+b) .. (a+b+k-1) / ((a+1) .. (a+k))

of positive terms, and with (1-y)^(b-1) exp(r y) = sum_k c_k y^k,

    (k + 1) c_(k+1) = k c_k - (b - 1) c_k + r (c_k - c_(k-1)),    c_0 = 1,

that of f exp(r y) is sum_k c_k d^(a+k)/(a + k) over B(a, b), whose terms cancel where b d is large.

Errors are below 1e-12 of the whole for pieces of at most two thirds of a standard deviation (`can_sum`),
which is no more than what tails at edges have. From these sums come the outputs of a square wave and, in two
recursions from the ends, L(z) and R(z) of Laplace noise that is not small. Under wide Gaussian noise the
chance of a cell given y is smooth: a table has it at the nodes, and in the end pieces its polynomial in the
distance from the end, for the moments of f there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import fill_masses
from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.additive_beta import (
    LEFT,
    MOST_PANELS,
    RIGHT,
    fill_laplace,
    laplace_panels,
    log_one_sided,
)
from dpmix.mechanisms.channels.channel_functions import fill_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import SquareWaveNoise, window_sums
from dpmix.models.counts_mixture.coordinates import place, unit, walk
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.loops import LEAST, dot
from dpmix.numerics.special import erfcx, exp, log_beta

Floats = NDArray[np.float64]
_HALF = math.sqrt(0.5)
_TOP = 1.0 / math.sqrt(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_WIDE = 30.0  # noise scales, or widths of a cell, beyond which a component's sd makes differences cancel
_BEND = 0.3  # of a cell beside the component, up to which four nodes are exact
_STEP = 1e-4  # of a difference, in logarithms of the parameters or standard deviations
_RULE_ORDER = 5  # nodes of a piece
_PIECE = 4.0  # pieces to a standard deviation of the noise
_BEYOND = 14.0  # standard deviations beyond the domain after which nothing is left
_SMOOTH = 0.25  # standard deviation of Gaussian noise, as a share of the domain, for an exact table
_NOISY = 0.1  # scale of Laplace noise, as a share of the domain, from which on every cell has some mass
_WIDEST = 1.0 / 96.0  # of a piece, as a share of the interval
_ORDER, _NEAR_ORDER, _NEAR = 5, 8, 4  # nodes of a piece; of those at so few pieces of their width from an end
_NARROW = 1.5  # standard deviations to a piece are at least this
_STEEPEST = 2.0  # a parameter times the width of an end piece, for a series without cancellation
_TERMS = 60
_MOMENTS = 6
_NONE = np.zeros(0, dtype=np.int64)

# Cells, and their masses under a component


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


NO_PIECES = BetaPieces(
    np.zeros((2, 0)), np.zeros((3, 0)), _NONE, np.zeros(0), _NONE, math.inf, np.zeros((0, 0))
)


class MassCells(NamedTuple):
    """Cells of one chain, and its room to compute them.

    edges (E,): finite ones, E + 1 cells between them; outputs (B,): numbers of the cells where outputs are
    finite, which then have no edges; nodes, weights (m,), first (B + 1,): of a quadrature in each cell, where
    one is needed; tails (3, E), of a square wave (3, M + 1), spare (2, m): scratch; pieces: of the bounds,
    for beta kernels.
    """

    edges: Any
    outputs: Any
    nodes: Any
    weights: Any
    first: Any
    tails: Any
    spare: Any
    pieces: Any


def make_cells(
    edges: Floats,
    outputs: Floats,
    rule: tuple[Floats, Floats, NDArray[np.int64]] | None = None,
    pieces: BetaPieces = NO_PIECES,
    tails: int | None = None,
) -> MassCells:
    """Return cells between edges, or of outputs, with the nodes, weights and offsets of a quadrature.

    tails: number of places at which tails are wanted, where these are not the edges.
    """
    none = np.zeros(0)
    nodes, weights, first = (none, none, np.zeros(1, dtype=np.int64)) if rule is None else rule
    room = max(len(nodes), len(edges), len(outputs)) + 2
    scratch, spare = np.zeros((3, len(edges) if tails is None else tails)), np.zeros((2, room))
    return MassCells(edges, outputs, nodes, weights, first, scratch, spare, pieces)


def cells_for(channel: Any, kernel: Any, edges: Floats, outputs: Floats) -> MassCells:
    """Return cells between `edges`, or of `outputs`, as the channel and kernel need them."""
    if isinstance(channel, GaussianNoise) and isinstance(kernel, Beta):
        rule = _gaussian_rule(edges, channel.sd, kernel.lo, kernel.lo + kernel.width)
        return make_cells(edges, outputs, rule, _pieces_for(channel, kernel, edges))
    if isinstance(kernel, Beta):
        return make_cells(edges, outputs, pieces=_pieces_for(channel, kernel, edges))
    if isinstance(channel, SquareWaveNoise):
        return make_cells(edges, outputs, tails=len(channel.edges) + 2)
    return make_cells(edges, outputs)


@dispatch(on=2)
def fill_rows(channel, kernel, theta, h, cells, rows):
    """Set ``rows[0]`` to the masses of all cells under theta[:, h]; return whether derivatives are set."""


@dispatch(on=2)
def fill_slopes(channel, kernel, theta, h, cells, rows):
    """Set the derivatives ``rows[1]`` and ``rows[2]``, given the masses."""


# Normal kernels under additive noise


@njit
def _fill_differences(mean, variance, edges, tails, rows):
    """Set `rows` given the smaller tail, the density and its derivative at each edge, `tails` (3, E)."""
    last = len(edges)
    tail, density, slope = tails[0], tails[1], tails[2]
    masses, by_mean, by_log = rows[0], rows[1], rows[2]
    if last == 0:  # one cell, the whole line
        masses[0], by_mean[0], by_log[0] = 1.0, 0.0, 0.0
        return
    half = 0.5 * variance
    for c in range(1, last):
        left, right = tail[c - 1], tail[c]
        upper = left - right
        lower = right - left if edges[c] <= mean else 1.0 - right - left
        masses[c] = max(upper if edges[c - 1] >= mean else lower, LEAST)
        by_mean[c] = density[c - 1] - density[c]
        by_log[c] = half * (slope[c] - slope[c - 1])
    end = last - 1
    masses[0] = max(tail[0] if edges[0] <= mean else 1.0 - tail[0], LEAST)
    by_mean[0], by_log[0] = -density[0], half * slope[0]
    masses[last] = max(tail[end] if edges[end] >= mean else 1.0 - tail[end], LEAST)
    by_mean[last], by_log[last] = density[end], -half * slope[end]


@njit
def _laplace_density(gap, sd, scale):
    """Return the density of z `gap` from the mean: w_near + w_far over 2 s (methods, section 4)."""
    a, r = abs(gap) / sd, sd / scale
    bell = exp(-0.5 * a * a)
    near, far = bell * erfcx(_HALF * abs(r - a)), bell * erfcx(_HALF * (r + a))
    if a > r:
        near = 2.0 * exp(r * (0.5 * r - a)) - near
    return (near + far) * (0.25 / scale)


@fill_rows.register
def _fill_laplace(channel: LaplaceNoise, kernel: NormalNIG, theta, h, cells, rows):
    """Tails with t = |x - mu| / sd, r = sd / s: Phi(-t) + (w_near - w_far) / 2 (methods, section 12)."""
    mean, variance = theta[MEAN, h], theta[VARIANCE, h]
    sd, scale = math.sqrt(variance), channel.scale
    edges, tails = cells.edges, cells.tails
    inverse, r = 1.0 / sd, sd / scale
    height, bend, half_square = 0.25 / scale, 0.25 / (scale * scale), 0.5 * r * r
    tail, density, slope = tails[0], tails[1], tails[2]
    for i in range(len(edges)):
        t = (edges[i] - mean) * inverse
        a = abs(t)
        bell = exp(-0.5 * a * a)
        far = bell * erfcx(_HALF * (r + a))
        near = bell * erfcx(_HALF * abs(r - a))
        middle = bell * erfcx(_HALF * a)
        whole = 2.0 * exp(half_square - r * a)
        near = near if a <= r else whole - near
        tail[i] = 0.5 * middle + 0.25 * (near - far)
        density[i] = (near + far) * height
        fall = (far - near) * bend
        slope[i] = fall if t >= 0.0 else -fall
    _fill_differences(mean, variance, edges, tails, rows)
    if r > _WIDE:
        for c in range(1, len(edges)):
            width = edges[c] - edges[c - 1]
            middle = 0.5 * (edges[c] + edges[c - 1]) - mean
            if width * inverse * (1.0 + abs(middle) * inverse) < _BEND:
                total = 0.0
                for k in range(4):
                    gap = middle + 0.5 * width * _NODES[k]
                    total += _WEIGHTS[k] * _laplace_density(gap, sd, scale)
                rows[0, c] = max(0.5 * width * total, LEAST)
    return True


@njit
def _normal_tails(mean, inverse, edges, tail, density, slope):
    """Set the smaller tail of a normal law, its density and the derivative of this at each edge."""
    for i in range(len(edges)):
        t = (edges[i] - mean) * inverse
        a = abs(t)
        bell = exp(-0.5 * a * a)
        tail[i] = 0.5 * bell * erfcx(_HALF * a)
        density[i] = _TOP * inverse * bell
        slope[i] = -t * inverse * density[i]


@njit
def _mass_about(middle, half):
    """Return the standard normal mass of a narrow cell, of this middle and half-width."""
    total = 0.0
    for k in range(4):
        gap = middle + half * _NODES[k]
        total += _WEIGHTS[k] * exp(-0.5 * gap * gap)
    return half * _TOP * total


@njit
def _fill_normal(mean, variance, seen, cells, rows):
    """Set `rows` for z ~ N(mean, seen), of which `variance` is the component's."""
    sd = math.sqrt(seen)
    edges, tails = cells.edges, cells.tails
    inverse = 1.0 / sd
    _normal_tails(mean, inverse, edges, tails[0], tails[1], tails[2])
    _fill_differences(mean, variance, edges, tails, rows)
    for c in range(1, len(edges)):
        width = edges[c] - edges[c - 1]
        if width * _WIDE < sd:
            middle = (0.5 * (edges[c] + edges[c - 1]) - mean) * inverse
            half = 0.5 * width * inverse
            if 2.0 * half * (1.0 + abs(middle)) < _BEND:
                rows[0, c] = max(_mass_about(middle, half), LEAST)
    return True


@fill_rows.register
def _fill_gaussian(channel: GaussianNoise, kernel: NormalNIG, theta, h, cells, rows):
    variance = theta[VARIANCE, h]
    return _fill_normal(theta[MEAN, h], variance, variance + channel.sd * channel.sd, cells, rows)


@fill_rows.register
def _fill_none(channel: NoNoise, kernel: NormalNIG, theta, h, cells, rows):
    return _fill_normal(theta[MEAN, h], theta[VARIANCE, h], theta[VARIANCE, h], cells, rows)


@fill_rows.register
def _fill_square_wave(channel: SquareWaveNoise, kernel: NormalNIG, theta, h, cells, rows):
    """Differences of tails at the ends of what is near each output; of wide components, as of cells."""
    mean, variance = theta[MEAN, h], theta[VARIANCE, h]
    inverse, edges, tails = 1.0 / math.sqrt(variance), channel.edges, cells.tails
    last, reach = len(edges), int(channel.reach)
    tail, density, slope = tails[0], tails[1], tails[2]
    # the ends of cell c are at c and c + 1; those of the outer cells, infinite, have nothing beyond them
    _normal_tails(mean, inverse, edges, tail[1 : last + 1], density[1 : last + 1], slope[1 : last + 1])
    tail[0] = tail[last + 1] = density[0] = density[last + 1] = slope[0] = slope[last + 1] = 0.0
    above = 1  # the first end that is not below the mean
    while above <= last and edges[above - 1] < mean:
        above += 1
    gain = (channel.odds - 1.0) / channel.total
    least, half = 1.0 / channel.total, 0.5 * variance * gain
    masses, by_mean, by_log = rows[0], rows[1], rows[2]
    for c in range(len(masses)):
        j = int(cells.outputs[c])
        low, high = max(j - 2 * reach, 0), min(j, last) + 1
        left, right = tail[low], tail[high]
        near = left - right if low >= above else (right - left if high < above else 1.0 - right - left)
        masses[c] = least + gain * near
        by_mean[c] = gain * (density[low] - density[high])
        by_log[c] = half * (slope[high] - slope[low])
    width = (2.0 * reach + 1.0) * (channel.hi - channel.lo) / (last + 1)
    if width * _WIDE * inverse < 1.0:
        for c in range(len(masses)):
            j = int(cells.outputs[c])
            if j > 2 * reach and j < last:
                left, right = edges[j - 2 * reach - 1], edges[j]
                middle, span = (0.5 * (left + right) - mean) * inverse, 0.5 * (right - left) * inverse
                if 2.0 * span * (1.0 + abs(middle)) < _BEND:
                    masses[c] = least + gain * _mass_about(middle, span)
    return True


def _no_slopes(channel, kernel, theta, h, cells, rows):
    """Leave the derivatives: they came with the masses."""


for _channel in (LaplaceNoise, GaussianNoise, NoNoise, SquareWaveNoise):
    fill_slopes.register(_no_slopes, _channel, NormalNIG)

# Beta kernels, and outputs


def _gaussian_rule(
    edges: Floats, sd: float, lo: float, hi: float
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return nodes, weights and offsets of a quadrature of a smooth density in each cell between `edges`.

    The end cells are cut 14 standard deviations of the noise beyond the domain.
    """
    node, weight = np.polynomial.legendre.leggauss(_RULE_ORDER)
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


def _pieces_for(channel: Any, kernel: Beta, edges: Floats) -> BetaPieces:
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


@fill_rows.register
def _fill_laplace_beta(channel: LaplaceNoise, kernel: Beta, theta, h, cells, rows):
    a, b, edges, last = theta[A, h], theta[B, h], cells.edges, len(cells.edges)
    scale = channel.scale / kernel.width
    sides, masses = cells.spare[0, :last], rows[0]
    if can_sum_sides(a, b, cells.pieces):
        _sum_laplace(a, b, scale, cells.pieces, masses)
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
    if can_sum(theta[A, h], theta[B, h], cells.pieces):
        _sum_cells(theta[A, h], theta[B, h], cells.pieces, rows[0])
        return False
    fill_masses(kernel, theta, h, cells.edges, rows[0])
    for c in range(rows.shape[1]):
        rows[0, c] = max(rows[0, c], LEAST)
    return False


@njit
def _sum_cells(a, b, pieces, masses):
    """Set the masses of cells by sums over pieces, between whose cuts the edges are."""
    size, at = len(pieces.cuts), pieces.at
    within = np.empty(size - 1)
    sum_pieces(a, b, pieces, within)
    k = 0
    for c in range(len(masses)):
        end = at[c] if c < len(at) else size - 1
        total = 0.0
        while k < end:
            total += within[k]
            k += 1
        masses[c] = max(total, LEAST)


@njit
def _fill_outputs(channel, kernel, theta, h, cells, rows):
    fill_marginal(channel, kernel, theta, h, cells.outputs, 0, len(cells.outputs), rows[0])
    for c in range(rows.shape[1]):
        rows[0, c] = max(rows[0, c], LEAST)
    return False


@fill_rows.register
def _fill_square_wave_beta(channel: SquareWaveNoise, kernel: Beta, theta, h, cells, rows):
    a, b = theta[A, h], theta[B, h]
    if not can_sum(a, b, cells.pieces):
        return _fill_outputs(channel, kernel, theta, h, cells, rows)
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


for _kernel in (NormalNIG, Beta):
    fill_rows.register(_fill_outputs, BinomialNoise, _kernel)
    fill_slopes.register(_differences, BinomialNoise, _kernel)


for _channel in (LaplaceNoise, GaussianNoise, NoNoise, SquareWaveNoise):
    fill_slopes.register(_differences, _channel, Beta)

# Integrals of a beta density over pieces of its interval


def cut_between(places: Floats) -> Floats:
    """Return cuts of [0, 1] at all places (E,) within it, increasing, and enough more between them."""
    ends = np.unique(np.concatenate([[0.0], places, [1.0]]))
    parts = [
        np.linspace(a, b, math.ceil((b - a) / _WIDEST * (1.0 - 1e-9)) + 1)
        for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]
    return np.unique(np.concatenate(parts))


def pieces_between(places: Floats) -> BetaPieces:
    """Return pieces for the masses of cells between places of (0, 1), increasing, however near its ends.

    None but the end pieces is wider than it is far from an end, near which densities are not smooth.
    """
    if not len(places):
        return NO_PIECES
    steps = 2.0 ** np.arange(64)
    near, far = (d * steps[d * steps < _WIDEST] for d in (places[0], 1.0 - places[-1]))
    cuts = np.unique(np.concatenate([places, near, 1.0 - far]))
    return pieces_of(cut_between(cuts[(cuts >= places[0]) & (cuts <= places[-1])]), places)


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
    wide = _NARROW * pieces.widest
    return variance >= wide * wide


@njit
def can_sum_sides(a, b, pieces):
    """Return whether sums with exponentials over these pieces are exact."""
    if not can_sum(a, b, pieces):
        return False
    cuts = pieces.cuts
    return max(a, b) * max(cuts[1], 1.0 - cuts[len(cuts) - 2]) <= _STEEPEST


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
def _tail_piece(a, b, width, constant):
    """Return the integral over [0, width] of y^(a-1) (1-y)^(b-1), times exp(-constant); no term cancels."""
    term = value = 1.0
    for k in range(_TERMS):
        term *= (a + b + k) / (a + 1.0 + k) * width
        value += term
        if term < 1e-17 * value:
            break
    return value / a * math.exp(a * math.log(width) + b * math.log1p(-width) - constant)


@njit
def _heights(a, b, nodes, constant, out):
    """Set ``out[q]`` to y f(y) (1 - y) at the nodes."""
    left, right = nodes[0], nodes[1]
    for q in range(nodes.shape[1]):
        out[q] = exp(a * left[q] + b * right[q] - constant)


@njit
def sum_pieces(a, b, pieces, masses):
    """Set the masses of the pieces (C - 1,)."""
    weights, first, cuts = pieces.weights[0], pieces.first, pieces.cuts
    last, constant = len(first) - 2, log_beta(a, b)
    values = np.empty(len(weights))
    _heights(a, b, pieces.nodes, constant, values)
    for k in range(1, last):
        total = 0.0
        for q in range(first[k], first[k + 1]):
            total += weights[q] * values[q]
        masses[k] = total
    masses[0] = _tail_piece(a, b, cuts[1], constant)
    masses[last] = _tail_piece(b, a, 1.0 - cuts[last], constant)


@njit
def sum_table(a, b, pieces, masses):
    """Set the masses of the cells (B,) that the pieces have a table of."""
    nodes, cuts, table = pieces.nodes, pieces.cuts, pieces.table
    size, constant = nodes.shape[1], log_beta(a, b)
    values = np.empty(table.shape[1])
    _heights(a, b, nodes, constant, values)
    low, high = cuts[1], 1.0 - cuts[len(cuts) - 2]
    for j in range(_MOMENTS):
        values[size + j] = _tail_piece(a + j, b, low, constant)
        values[size + _MOMENTS + j] = _tail_piece(b + j, a, high, constant)
    for c in range(len(table)):
        masses[c] = dot(table[c], values)


@njit
def sum_sides(a, b, pieces, scale, masses, left, right):
    """Set the masses of the pieces (C - 1,), and L and R at the cuts (C,).

    L(z) is the integral of f(y) exp(-(z - y)/s) over y < z, R(z) that of f(y) exp(-(y - z)/s) over y > z.
    """
    weights, first, cuts = pieces.weights, pieces.first, pieces.cuts
    end, rate, constant = len(first) - 1, 1.0 / scale, log_beta(a, b)
    last = end - 1
    values = np.empty(weights.shape[1])
    _heights(a, b, pieces.nodes, constant, values)
    for k in range(1, last):
        mass = by_right = by_left = 0.0
        for q in range(first[k], first[k + 1]):
            height = values[q]
            mass += weights[0, q] * height
            by_right += weights[1, q] * height
            by_left += weights[2, q] * height
        masses[k], left[k + 1], right[k] = mass, by_right, by_left
    low, high = cuts[1], 1.0 - cuts[last]
    masses[0] = _tail_piece(a, b, low, constant)
    masses[last] = _tail_piece(b, a, high, constant)
    left[0] = right[end] = 0.0
    left[1] = math.exp(-low * rate) * _end_piece(a, b, low, rate, constant)
    right[0] = _end_piece(a, b, low, -rate, constant)
    left[end] = _end_piece(b, a, high, -rate, constant)
    right[last] = math.exp(-high * rate) * _end_piece(b, a, high, rate, constant)
    for k in range(end):
        left[k + 1] += left[k] * math.exp((cuts[k] - cuts[k + 1]) * rate)
    for k in range(last, -1, -1):
        right[k] += right[k + 1] * math.exp((cuts[k] - cuts[k + 1]) * rate)
