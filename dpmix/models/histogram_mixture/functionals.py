"""What is kept of a drawn mixture: mean, sd, quantiles, distribution function and density of a record."""

from __future__ import annotations

import math

import numpy as np

from dpmix._jit import dispatch, njit
from dpmix.gamma import log_beta
from dpmix.kernels.base import fill_masses
from dpmix.kernels.beta import A, B, Beta
from dpmix.kernels.normal import MEAN, VARIANCE, NormalNIG

__all__ = ["fill_density", "moments", "write_functionals"]

MEAN_AT, SD_AT, FIRST = 0, 1, 2  # places in a row of results
_HALVINGS = 100
_EXACT = 1e-12


@dispatch()
def moments(kernel, theta, h):
    """Return mean and variance of f(. | theta[:, h])."""


@dispatch()
def fill_density(kernel, theta, h, points, out):
    """Set ``out[i]`` to the density f(points[i] | theta[:, h]), in the data's units."""


@dispatch()
def support(kernel):
    """Return where the kernel lives: lowest and highest value, which may be infinite."""


@moments.register
def _moments_normal(kernel: NormalNIG, theta, h):
    return theta[MEAN, h], theta[VARIANCE, h]


@moments.register
def _moments_beta(kernel: Beta, theta, h):
    a, b = theta[A, h], theta[B, h]
    share = a / (a + b)
    rest = b / (a + b)
    return kernel.lo + kernel.width * share, kernel.width * kernel.width * share * rest / (a + b + 1.0)


@fill_density.register
def _fill_density_normal(kernel: NormalNIG, theta, h, points, out):
    mean, sd = theta[MEAN, h], math.sqrt(theta[VARIANCE, h])
    top = 1.0 / (sd * math.sqrt(2.0 * math.pi))
    for i in range(len(points)):
        gap = (points[i] - mean) / sd
        out[i] = top * math.exp(-0.5 * gap * gap)


@fill_density.register
def _fill_density_beta(kernel: Beta, theta, h, points, out):
    a, b = theta[A, h], theta[B, h]
    constant = log_beta(a, b) + math.log(kernel.width)
    for i in range(len(points)):
        u = (points[i] - kernel.lo) / kernel.width
        out[i] = 0.0
        if 0.0 < u < 1.0:
            out[i] = math.exp((a - 1.0) * math.log(u) + (b - 1.0) * math.log1p(-u) - constant)


@support.register
def _support_normal(kernel: NormalNIG):
    return -math.inf, math.inf


@support.register
def _support_beta(kernel: Beta):
    return kernel.lo, kernel.lo + kernel.width


@njit
def _cdf(kernel, theta, weights, atoms, y, edge, both):
    """Return the mass below y."""
    edge[0] = y
    total = 0.0
    for h in range(atoms):
        fill_masses(kernel, theta, h, edge, both)
        total += weights[h] * both[0]
    return total


@njit
def _quantile(kernel, theta, weights, atoms, q, low, high, edge, both):
    """Return y with mass q below it, from a bracket that is widened where it does not hold y.

    By false position, the end that stays weighed down (the Illinois rule), and halvings where that is slow.
    """
    least, most = support(kernel)
    while low > least and _cdf(kernel, theta, weights, atoms, low, edge, both) > q:
        low = max(low - 2.0 * (high - low), least)
    while high < most and _cdf(kernel, theta, weights, atoms, high, edge, both) < q:
        high = min(high + 2.0 * (high - low), most)
    under = _cdf(kernel, theta, weights, atoms, low, edge, both) - q
    over = _cdf(kernel, theta, weights, atoms, high, edge, both) - q
    middle = 0.5 * (low + high)
    side = 0
    for step in range(_HALVINGS):
        if step % 3 < 2 and under < 0.0 < over:
            middle = low - under * (high - low) / (over - under)
        else:
            middle = 0.5 * (low + high)
        found = _cdf(kernel, theta, weights, atoms, middle, edge, both) - q
        if abs(found) <= _EXACT or high - low <= _EXACT * (1.0 + abs(middle)):
            break
        if found < 0.0:
            low, under = middle, found
            over *= 0.5 if side == -1 else 1.0
            side = -1
        else:
            high, over = middle, found
            under *= 0.5 if side == 1 else 1.0
            side = 1
    return middle


@njit
def write_functionals(kernel, theta, weights, atoms, points, quantiles, marks, row, cdf, density):
    """Write mean, sd, quantiles and masses below `marks` to `row`, and cdf and density at `points`."""
    size = len(points)
    part, both, edge = np.empty(size + 1), np.empty(2), np.empty(1)
    cdf[:] = 0.0
    density[:] = 0.0
    first = second = whole = 0.0
    for h in range(atoms):
        whole += weights[h]
    centre = 0.5 * (points[0] + points[size - 1])
    for h in range(atoms):
        w = weights[h] / whole
        mean, variance = moments(kernel, theta, h)
        first += w * (mean - centre)
        second += w * (variance + (mean - centre) * (mean - centre))
        fill_masses(kernel, theta, h, points, part)
        below = 0.0
        for i in range(size):
            below += part[i]
            cdf[i] += w * below
        fill_density(kernel, theta, h, points, part[:size])
        for i in range(size):
            density[i] += w * part[i]
    for i in range(size):
        cdf[i] = min(cdf[i], 1.0)
    row[MEAN_AT] = centre + first
    row[SD_AT] = math.sqrt(max(second - first * first, 0.0))
    for i in range(len(quantiles)):
        q = quantiles[i]
        place = np.searchsorted(cdf, q)
        low = points[max(place - 1, 0)]
        high = points[min(place, size - 1)]
        if not low < high:
            low, high = points[0], points[size - 1]
        row[FIRST + i] = _quantile(kernel, theta, weights, atoms, q, low, high, edge, both)
    for i in range(len(marks)):
        below = _cdf(kernel, theta, weights, atoms, marks[i], edge, both) / whole
        row[FIRST + len(quantiles) + i] = min(below, 1.0)
