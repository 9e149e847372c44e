"""Masses that normal and beta kernels give to intervals, and draws within an interval.

Where the density varies little over a cell its mass is an 8-point Gauss-Legendre sum, which neither cancels
nor calls a special function per edge; elsewhere it is a difference of the smaller tails.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.kernel_functions import draw_within, fill_masses
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.numerics.betainc import (
    expit,
    log_beta_tails,
    log_constant,
    log_difference,
    log_mix,
    log_normal_tail,
    log_power,
)
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.special import exp

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_SHORT = 0.2  # half-width of a cell beside its distance from an end of the interval, at most
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17 = (1.0 / k for k in range(3, 18, 2))
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_UNDERFLOW = -745.0


@dispatch()
def fill_log_masses(kernel, theta, h, edges, out):
    """Set ``out[c]`` to the logarithm of what `fill_masses` gives; finite where that underflows."""


@njit
def _log1p_short(e):
    """Return log(1 + e) for abs(e) <= 0.2, without branches."""
    s = e / (2.0 + e)
    t = s * s
    high = _S11 + t * (_S13 + t * (_S15 + t * _S17))
    return 2.0 * s * (1.0 + t * (_S3 + t * (_S5 + t * (_S7 + t * (_S9 + t * high)))))


@njit
def _sum_beta(a, b, left, right):
    """Return the mean of (x/c)^a ((1-x)/(1-c))^b over c (1 - left s), c (1 + right s), s in [-1, 1], doubled.

    `left` is half the cell's width beside c, `right` beside 1 - c.
    """
    total = 0.0
    for k in range(8):
        node = _NODES[k]
        total += _WEIGHTS[k] * exp(a * _log1p_short(left * node) + b * _log1p_short(-right * node))
    return total


@njit
def _logit_place(edge, lo, width):
    """Return the logit of the place of `edge` in [lo, lo + width], infinite outside."""
    below = edge - lo
    above = (lo + width) - edge
    if below <= 0.0:
        return -math.inf
    if above <= 0.0:
        return math.inf
    return math.log(below / above)


@njit
def _fill_beta(kernel, a, b, edges, out, logs):
    """Set `out` to masses, or to their logarithms when `logs`."""
    cells = len(out)
    lo, width = kernel.lo, kernel.width
    constant = log_constant(a, b)
    known = True  # whether the tails at the cell's left edge are
    lower0, upper0 = -math.inf, 0.0
    for c in range(cells):
        if c > 0 and c < cells - 1 and edges[c - 1] > lo and edges[c] < lo + width:
            half = 0.5 * (edges[c] - edges[c - 1]) / width
            below = (0.5 * (edges[c - 1] + edges[c]) - lo) / width
            above = ((lo + width) - 0.5 * (edges[c - 1] + edges[c])) / width
            left, right = half / below, half / above
            slope = abs((a - 1.0) * left - (b - 1.0) * right)
            bend = abs(a - 1.0) * left * left + abs(b - 1.0) * right * right
            if max(left, right) <= _SHORT and slope <= 1.0 and bend <= 1.0:
                peak = log_power(a, b, math.log(below / above), constant)
                if logs:
                    share = half / (below * above) * _sum_beta(a - 1.0, b - 1.0, left, right)
                    out[c] = peak + math.log(share)
                elif peak < _UNDERFLOW:
                    out[c] = 0.0
                else:
                    share = half / (below * above) * _sum_beta(a - 1.0, b - 1.0, left, right)
                    out[c] = math.exp(peak) * share
                known = False
                continue
        if not known:
            lower0, upper0 = log_beta_tails(a, b, _logit_place(edges[c - 1], lo, width), constant)
        lower1, upper1 = 0.0, -math.inf
        if c < cells - 1:
            lower1, upper1 = log_beta_tails(a, b, _logit_place(edges[c], lo, width), constant)
        mass = log_difference(lower0, upper0, lower1, upper1)
        out[c] = mass if logs else math.exp(mass)
        lower0, upper0, known = lower1, upper1, True


@fill_masses.register
def _fill_masses_beta(kernel: Beta, theta, h, edges, out):
    _fill_beta(kernel, theta[A, h], theta[B, h], edges, out, False)


@fill_log_masses.register
def _fill_log_masses_beta(kernel: Beta, theta, h, edges, out):
    _fill_beta(kernel, theta[A, h], theta[B, h], edges, out, True)


@njit
def _sum_normal(slope, half):
    """Return the integral over s in [-1, 1] of exp(-slope s - half^2 s^2 / 2)."""
    total = 0.0
    for k in range(8):
        node = _NODES[k]
        total += _WEIGHTS[k] * exp(-node * (slope + 0.5 * half * half * node))
    return total


@njit
def _fill_normal(mean, sd, edges, out, logs):
    """Set `out` to masses, or to their logarithms when `logs`."""
    cells = len(out)
    known = True
    t0 = -math.inf
    lower0, upper0 = -math.inf, 0.0
    for c in range(cells):
        t1 = (edges[c] - mean) / sd if c < cells - 1 else math.inf
        if c > 0 and c < cells - 1:
            half = 0.5 * (edges[c] - edges[c - 1]) / sd
            middle = (0.5 * (edges[c] + edges[c - 1]) - mean) / sd
            if half <= 0.7 and half * abs(middle) <= 1.5:
                peak = -0.5 * middle * middle - _LOG_SQRT_2PI
                if logs:
                    out[c] = peak + math.log(half * _sum_normal(half * middle, half))
                elif peak < _UNDERFLOW:
                    out[c] = 0.0
                else:
                    out[c] = math.exp(peak) * half * _sum_normal(half * middle, half)
                known = False
                t0 = t1
                continue
        if not known:
            lower0, upper0 = log_normal_tail(-t0), log_normal_tail(t0)
        lower1, upper1 = log_normal_tail(-t1), log_normal_tail(t1)
        mass = log_difference(lower0, upper0, lower1, upper1)
        out[c] = mass if logs else math.exp(mass)
        t0, lower0, upper0, known = t1, lower1, upper1, True


@fill_masses.register
def _fill_masses_normal(kernel: NormalNIG, theta, h, edges, out):
    _fill_normal(theta[MEAN, h], math.sqrt(theta[VARIANCE, h]), edges, out, False)


@fill_log_masses.register
def _fill_log_masses_normal(kernel: NormalNIG, theta, h, edges, out):
    _fill_normal(theta[MEAN, h], math.sqrt(theta[VARIANCE, h]), edges, out, True)


@njit
def _exponential_within(rng, rate, length):
    """Draw from the density proportional to exp(-rate d) on [0, length]; one of both may be 0 or infinite."""
    if rate * length < 1e-300:
        return rng.random() * length
    return min(-math.log1p(rng.random() * math.expm1(-rate * length)) / rate, length)


@njit
def _exponential_mass(rate, length):
    """Return the integral of exp(-rate d) over [0, length]."""
    if rate * length < 1e-300:
        return length
    return -math.expm1(-rate * length) / rate


@njit
def draw_normal_within(rng, low, high):
    """Draw a standard normal truncated to [low, high].

    Rejection from the normal or the uniform where 0 is inside; else from an exponential tail (Robert 1995),
    cut at the far end, its rate the tangent's at the near end where the interval is short.
    """
    sign = 1.0
    if high < 0.0:
        low, high, sign = -high, -low, -1.0
    if low <= 0.0:
        if high - low > 2.5:
            while True:
                x = rng.standard_normal()
                if low <= x <= high:
                    return sign * x
        while True:
            x = min(low + (high - low) * rng.random(), high)
            if rng.standard_exponential() > 0.5 * x * x:
                return sign * x
    rate = 0.5 * (low + math.sqrt(low * low + 4.0))
    if rate > high:
        rate = low
    while True:
        step = _exponential_within(rng, rate, high - low)
        gap = low + step - rate
        if rng.standard_exponential() > 0.5 * gap * gap:
            return sign * min(low + step, high)


@draw_within.register
def _draw_within_normal(kernel: NormalNIG, rng, theta, h, low, high):
    mean, sd = theta[MEAN, h], math.sqrt(theta[VARIANCE, h])
    y = mean + sd * draw_normal_within(rng, (low - mean) / sd, (high - mean) / sd)
    return min(max(y, low), high)


@njit
def _drop(decay, total, p, q, d):
    """Return the fall of the log density of a logit at distance d >= 0 from a point.

    On the side where it falls at last at rate `decay`; p and q = 1 - p are the share beyond the point and
    the rest: p = 1 - u towards +infinity, where decay = b.
    """
    return decay * d + total * log_mix(p, q, -d)


@njit
def _rate(decay, total, p, q, d):
    """Return the derivative of `_drop`."""
    e = math.exp(-d)
    return decay - total * (p * e / (q + p * e))


@njit
def _side(decay, total, p, q, flat, length):
    """Return the envelope of one side: (first rate, meeting point, second rate, first mass, second mass).

    Two tangents of the log density, at the starting point and near where it has fallen by 1.
    """
    if length <= 0.0:
        return 0.0, 0.0, 1.0, 0.0, 0.0
    first = 0.0 if flat else max(_rate(decay, total, p, q, 0.0), 0.0)
    d = 2.0 / (first + math.sqrt(first * first + 2.0 * total * p * q))
    for _ in range(3):
        slope = _rate(decay, total, p, q, d)
        if slope <= 0.0:
            break
        d -= (_drop(decay, total, p, q, d) - 1.0) / slope
    d = min(d, length)
    second = _rate(decay, total, p, q, d)
    meeting = length
    if second > first:
        meeting = min(max((second * d - _drop(decay, total, p, q, d)) / (second - first), 0.0), d)
    mass = _exponential_mass(first, meeting)
    rest = 0.0
    if meeting < length:
        rest = math.exp(-first * meeting) * _exponential_mass(second, length - meeting)
    return first, meeting, second, mass, rest


@njit
def draw_logit_within(rng, a, b, low, high):
    """Draw the logit of a Beta(a, b) variable truncated to logits in [low, high].

    The density of the logit is log-concave whatever a and b: rejection from tangents around its mode.
    """
    total = a + b
    peak = math.log(a / b)
    mode = min(max(peak, low), high)
    flat = mode == peak
    x, y = expit(mode), expit(-mode)
    rate_right, meet_right, rest_right, mass_right, tail_right = _side(b, total, y, x, flat, high - mode)
    rate_left, meet_left, rest_left, mass_left, tail_left = _side(a, total, x, y, flat, mode - low)
    right = mass_right + tail_right
    span = right + (mass_left + tail_left)
    if not span > 0.0:
        return mode
    while True:
        u = rng.random() * span
        rightwards = u < right
        if rightwards:
            first, meeting, second, mass, length = rate_right, meet_right, rest_right, mass_right, high - mode
        else:
            u -= right
            first, meeting, second, mass, length = rate_left, meet_left, rest_left, mass_left, mode - low
        if u < mass:
            d = _exponential_within(rng, first, meeting)
            envelope = first * d
        else:
            beyond = _exponential_within(rng, second, length - meeting)
            d = meeting + beyond
            envelope = first * meeting + second * beyond
        drop = _drop(b, total, y, x, d) if rightwards else _drop(a, total, x, y, d)
        if rng.standard_exponential() > drop - envelope:
            return min(max(mode + d if rightwards else mode - d, low), high)


@draw_within.register
def _draw_within_beta(kernel: Beta, rng, theta, h, low, high):
    low_logit = _logit_place(low, kernel.lo, kernel.width)
    high_logit = _logit_place(high, kernel.lo, kernel.width)
    return draw_logit_within(rng, theta[A, h], theta[B, h], low_logit, high_logit)
