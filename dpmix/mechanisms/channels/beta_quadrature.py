"""Integrals of a beta density against Laplace or Gaussian noise, one at a time and in logarithms.

In the logit l of u the density of Beta(a, b) is u^a (1 - u)^b / B(a, b), smooth and with exponential tails
whatever a and b are. Its product with a one-sided exponential in u has a single mode there, with a bell
curve at most two. An integral is a march from a mode outwards by panels of 16 Gauss-Legendre nodes, each so
long that the logarithm of the integrand varies by about ten, until the integrand is e^-38 of its top.
Everything is in units of the interval, of which `below` is the distance of the release from the lower end
and `above` that from the upper one.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit

__all__ = [
    "BELL",
    "FARTHEST",
    "LEFT",
    "RIGHT",
    "advance",
    "bell_modes",
    "exponent",
    "log_integral",
    "mode",
    "reach",
    "sides",
]

# the noise's logarithm: -(z - u)/scale, -(u - z)/scale, or -(z - u)^2 / (2 scale^2)
LEFT, RIGHT, BELL = 1, -1, 0
DROP = 38.0
VARIATION = 10.0
FARTHEST = 745.0
_POLES = 4.0  # the logarithms have poles at +-i pi: panels near 0 are no longer than this
_X, _W = np.polynomial.legendre.leggauss(16)


@njit
def sides(y):
    """Return u, 1 - u, log u, log(1 - u) at logit y."""
    odds = math.exp(-abs(y))
    rest = math.log1p(odds)
    small = odds / (1.0 + odds)
    large = 1.0 / (1.0 + odds)
    if y < 0.0:
        return small, large, y - rest, -rest
    return large, small, -rest, -y - rest


@njit
def _gap(below, above, u, v):
    """Return z - u without cancellation near either end."""
    return below - u if u < 0.5 else v - above


@njit
def exponent(kind, a, b, below, above, scale, y):
    """Return the log of u^a (1 - u)^b times the noise at logit y, its slope and its curvature."""
    u, v, log_u, log_v = sides(y)
    gap = _gap(below, above, u, v)
    if kind == BELL:
        t = gap / scale
        noise = -0.5 * t * t
        pull = t / scale
        bend = -1.0 / (scale * scale)
    else:
        noise = -kind * gap / scale
        pull = kind / scale
        bend = 0.0
    uv = u * v
    slope = a * v - b * u + uv * pull
    curvature = uv * (-(a + b) + (v - u) * pull + uv * bend)
    return a * log_u + b * log_v + noise, slope, curvature


@njit
def advance(kind, a, b, below, above, scale, y, end, variation, poles):
    """Return the end of a panel that starts at y towards `end`, in which the exponent varies little."""
    start, slope, curvature = exponent(kind, a, b, below, above, scale, y)
    direction = 1.0 if end > y else -1.0
    length = poles + 0.125 * poles * abs(y) if y * direction >= 0.0 else max(poles, 0.5 * abs(y))
    length = min(length, abs(end - y))
    steep = max(abs(slope) / variation, math.sqrt(0.5 * abs(curvature) / variation))
    if steep * length > 1.0:
        length = 1.0 / steep
    while True:
        stop = end if length >= abs(end - y) else y + direction * length
        if stop == y:
            stop = np.nextafter(y, end)
        value, slope, _ = exponent(kind, a, b, below, above, scale, stop)
        if abs(value - start) <= variation and abs(slope) * length <= 2.0 * variation:
            return stop, value
        if length < 1e-13 * (1.0 + abs(y)):
            return stop, value
        length *= 0.5


@njit
def mode(kind, a, b, below, above, scale, low, high):
    """Return where the slope changes sign between logits `low` and `high`, within 1e-6 or so."""
    _, first, _ = exponent(kind, a, b, below, above, scale, low)
    rising = first > 0.0
    for _ in range(32):
        middle = 0.5 * (low + high)
        _, slope, _ = exponent(kind, a, b, below, above, scale, middle)
        if (slope > 0.0) == rising:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit
def reach(kind, a, b, below, above, scale, y, end, drop):
    """Return where, from y towards `end`, the integrand has fallen to e^-drop of what it is at y."""
    top, _, _ = exponent(kind, a, b, below, above, scale, y)
    while True:
        y, value = advance(kind, a, b, below, above, scale, y, end, 0.25 * VARIATION, _POLES)
        if value < top - drop:
            return y


@njit
def _march(kind, a, b, below, above, scale, y, end, top):
    """Return the integral of exp(exponent - top) from y towards `end`."""
    total = 0.0
    while y != end:
        stop, value = advance(kind, a, b, below, above, scale, y, end, VARIATION, _POLES)
        centre = 0.5 * (y + stop)
        half = 0.5 * abs(stop - y)
        panel = 0.0
        for j in range(len(_X)):
            height, _, _ = exponent(kind, a, b, below, above, scale, centre + half * _X[j])
            panel += _W[j] * math.exp(height - top)
        total += half * panel
        if value < top - DROP:
            break
        y = stop
    return total


@njit
def _log_one_sided(kind, a, b, below, above, scale):
    """Return the log integral over u < z (LEFT) or u > z (RIGHT), of u in (0, 1)."""
    low, high = -math.inf, math.inf
    peak = mode(kind, a, b, below, above, scale, -FARTHEST, FARTHEST)
    if below > 0.0 and above > 0.0:
        at = math.log(below) - math.log(above)
        if kind == LEFT:
            high = at
            peak = min(peak, at)
        else:
            low = at
            peak = max(peak, at)
    top, _, _ = exponent(kind, a, b, below, above, scale, peak)
    total = _march(kind, a, b, below, above, scale, peak, low, top)
    return top + math.log(total + _march(kind, a, b, below, above, scale, peak, high, top))


@njit
def _turns(a, b, below, scale):
    """Return the places (logits) in which the slope under a bell curve, over u (1 - u), has an extremum."""
    # slope(u) = a - (a + b) u + u (1 - u)(z - u) / scale^2, a cubic in u; its derivative times scale^2
    one = -2.0 * (1.0 + below)
    zero = below - (a + b) * scale * scale
    inside = one * one - 12.0 * zero
    if inside <= 0.0:
        return -FARTHEST, FARTHEST
    larger = (-one + math.copysign(math.sqrt(inside), -one)) / 6.0
    smaller = zero / (3.0 * larger) if larger != 0.0 else 0.0
    first, second = min(larger, smaller), max(larger, smaller)
    left = math.log(first) - math.log1p(-first) if 0.0 < first < 1.0 else -FARTHEST
    right = math.log(second) - math.log1p(-second) if 0.0 < second < 1.0 else FARTHEST
    return left, max(left, right)


@njit
def bell_modes(a, b, below, above, scale):
    """Return the first mode (logit), the trough and the second mode; the latter two infinite where absent."""
    left, right = _turns(a, b, below, scale)
    _, slope_left, _ = exponent(BELL, a, b, below, above, scale, left)
    _, slope_right, _ = exponent(BELL, a, b, below, above, scale, right)
    if left > -FARTHEST and right < FARTHEST and slope_left < 0.0 < slope_right:
        return (
            mode(BELL, a, b, below, above, scale, -FARTHEST, left),
            mode(BELL, a, b, below, above, scale, left, right),
            mode(BELL, a, b, below, above, scale, right, FARTHEST),
        )
    return mode(BELL, a, b, below, above, scale, -FARTHEST, FARTHEST), math.inf, math.inf


@njit
def _log_bell(a, b, below, above, scale):
    """Return the log integral against the bell curve: from each mode to the trough between, and outwards."""
    first, trough, last = bell_modes(a, b, below, above, scale)
    top, _, _ = exponent(BELL, a, b, below, above, scale, first)
    if last < math.inf:
        other, _, _ = exponent(BELL, a, b, below, above, scale, last)
        top = max(top, other)
    total = _march(BELL, a, b, below, above, scale, first, -math.inf, top)
    total += _march(BELL, a, b, below, above, scale, first, trough, top)
    if last < math.inf:
        total += _march(BELL, a, b, below, above, scale, last, trough, top)
        total += _march(BELL, a, b, below, above, scale, last, math.inf, top)
    return top + math.log(total)


@njit
def log_integral(laplace, a, b, below, above, scale):
    """Return the log of the integral over (0, 1) of u^(a-1) (1-u)^(b-1) times the noise at z - u.

    The noise is exp(-|z - u| / scale) where `laplace`, else exp(-(z - u)^2 / (2 scale^2)).
    """
    if not laplace:
        return _log_bell(a, b, below, above, scale)
    if below <= 0.0:
        return _log_one_sided(RIGHT, a, b, below, above, scale)
    if above <= 0.0:
        return _log_one_sided(LEFT, a, b, below, above, scale)
    left = _log_one_sided(LEFT, a, b, below, above, scale)
    right = _log_one_sided(RIGHT, a, b, below, above, scale)
    high = max(left, right)
    return high + math.log1p(math.exp(min(left, right) - high))
