"""Masses that a component's law of z gives to cells, with their derivatives.

``rows[0]`` has the masses G_c(theta), ``rows[1]`` and ``rows[2]`` their derivatives by the coordinates of
`dpmix.models.counts_mixture.coordinates`, which serve for proposals alone. A mass is raised to the number of
records in its cell, so that its relative error has to be near 1e-12 (methods, section 12): differences of the
smaller tail, and where a component is so wide that these cancel, Gauss-Legendre sums of the density.

Normal kernels under additive noise have both in closed form. With F the distribution function of z and g its
density, dF/dmu = -g, and dF/dsigma2 = g'/2 (the heat equation), so that the derivatives are differences of g
and g' at the edges.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.normal import MEAN, VARIANCE, NormalNIG
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.models.counts_mixture.beta_pieces import NO_PIECES, BetaPieces
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.special import erfcx, exp

__all__ = ["MassCells", "fill_rows", "fill_slopes", "make_cells"]

_HALF = math.sqrt(0.5)
_TOP = 1.0 / math.sqrt(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_WIDE = 30.0  # noise scales, or widths of a cell, beyond which a component's sd makes differences cancel
_BEND = 0.3  # of a cell beside the component, up to which four nodes are exact

Floats = NDArray[np.float64]


class MassCells(NamedTuple):
    """Cells of one chain, and its room to compute them.

    edges (E,): finite ones, E + 1 cells between them; outputs (B,): numbers of the cells where outputs are
    finite, which then have no edges; nodes, weights (m,), first (B + 1,): of a quadrature in each cell, where
    one is needed; tails (3, E), spare (2, m): scratch; pieces: of the bounds, of
    `dpmix.models.counts_mixture.beta_pieces`.
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
) -> MassCells:
    """Return cells between edges, or of outputs, with the nodes, weights and offsets of a quadrature."""
    none = np.zeros(0)
    nodes, weights, first = (none, none, np.zeros(1, dtype=np.int64)) if rule is None else rule
    room = max(len(nodes), len(edges), len(outputs)) + 2
    tails, spare = np.zeros((3, len(edges))), np.zeros((2, room))
    return MassCells(edges, outputs, nodes, weights, first, tails, spare, pieces)


@dispatch(on=2)
def fill_rows(channel, kernel, theta, h, cells, rows):
    """Set ``rows[0]`` to the masses of all cells under theta[:, h]; return whether derivatives are set."""


@dispatch(on=2)
def fill_slopes(channel, kernel, theta, h, cells, rows):
    """Set the derivatives ``rows[1]`` and ``rows[2]``, given the masses."""


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
def _fill_normal(mean, variance, seen, cells, rows):
    """Set `rows` for z ~ N(mean, seen), of which `variance` is the component's."""
    sd = math.sqrt(seen)
    edges, tails = cells.edges, cells.tails
    inverse = 1.0 / sd
    tail, density, slope = tails[0], tails[1], tails[2]
    for i in range(len(edges)):
        t = (edges[i] - mean) * inverse
        a = abs(t)
        bell = exp(-0.5 * a * a)
        tail[i] = 0.5 * bell * erfcx(_HALF * a)
        density[i] = _TOP * inverse * bell
        slope[i] = -t * inverse * density[i]
    _fill_differences(mean, variance, edges, tails, rows)
    for c in range(1, len(edges)):
        width = edges[c] - edges[c - 1]
        if width * _WIDE < sd:
            middle = (0.5 * (edges[c] + edges[c - 1]) - mean) * inverse
            half = 0.5 * width * inverse
            if 2.0 * half * (1.0 + abs(middle)) < _BEND:
                total = 0.0
                for k in range(4):
                    gap = middle + half * _NODES[k]
                    total += _WEIGHTS[k] * exp(-0.5 * gap * gap)
                rows[0, c] = max(half * _TOP * total, LEAST)
    return True


@fill_rows.register
def _fill_gaussian(channel: GaussianNoise, kernel: NormalNIG, theta, h, cells, rows):
    variance = theta[VARIANCE, h]
    return _fill_normal(theta[MEAN, h], variance, variance + channel.sd * channel.sd, cells, rows)


@fill_rows.register
def _fill_none(channel: NoNoise, kernel: NormalNIG, theta, h, cells, rows):
    return _fill_normal(theta[MEAN, h], theta[VARIANCE, h], theta[VARIANCE, h], cells, rows)


def _no_slopes(channel, kernel, theta, h, cells, rows):
    """Leave the derivatives: they came with the masses."""


for _channel in (LaplaceNoise, GaussianNoise, NoNoise):
    fill_slopes.register(_no_slopes, _channel, NormalNIG)
