"""Tails of the beta and the normal distribution, in logarithms and without cancellation.

The beta distribution is taken in the logit coordinate l = log(x / (1 - x)), where both ends of [0, 1] keep
their precision. Tails come from the continued fraction DLMF 8.17.22, always the one of the smaller side;
its factor x^a (1 - x)^b / B(a, b) from Loader's saddle point form (2000) where both parameters are large,
for there sums of log gammas cancel.
"""

from __future__ import annotations

import math

from dpmix.numerics.jit import njit
from dpmix.numerics.special import erfcx, stirling

_LOG_2PI = math.log(2.0 * math.pi)
_LARGE = 10.0  # from here on Stirling's series is good to 1e-15
_HALF = math.sqrt(0.5)


@njit
def expit(t: float) -> float:
    """Return 1 / (1 + exp(-t)), with full relative precision in the lower tail."""
    if t >= 0.0:
        return 1.0 / (1.0 + math.exp(-t))
    e = math.exp(t)
    return e / (1.0 + e)


@njit
def softplus(t: float) -> float:
    """Return log(1 + exp(t)); -softplus(-l) and -softplus(l) are log x and log(1 - x) at the logit l."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


@njit
def log_mix(p: float, q: float, d: float) -> float:
    """Return log(q + p exp(d)) for p + q = 1 and d <= 0."""
    change = p * math.expm1(d)
    if change > -0.5:
        return math.log1p(change)
    if q > 0.0:
        return math.log(q + p * math.exp(d))
    return d


@njit
def _log_swell(p: float, d: float) -> float:
    """Return log(1 - p + p exp(d)) for p <= 1/2 and any d."""
    if d > 700.0:
        return d + math.log(p)
    return math.log1p(p * math.expm1(d))


@njit
def log_gamma_ratio(a: float, b: float) -> float:
    """Return log(Gamma(b) / Gamma(a + b)) for b >= a."""
    if b < _LARGE:
        return math.lgamma(b) - math.lgamma(a + b)
    total = a + b
    return stirling(b) - stirling(total) - (total - 0.5) * math.log1p(a / b) - a * (math.log(b) - 1.0)


@njit
def log_constant(a: float, b: float) -> float:
    """Return the part of `log_power` that does not depend on the point."""
    if min(a, b) >= _LARGE:
        correction = stirling(a + b) - stirling(a) - stirling(b)
        return 0.5 * (math.log(a) + math.log(b / (a + b)) - _LOG_2PI) + correction
    small = min(a, b)
    return -(math.lgamma(small) + log_gamma_ratio(small, max(a, b)))


@njit
def log_power(a: float, b: float, point: float, constant: float) -> float:
    """Return log(x^a (1 - x)^b / B(a, b)) at the logit `point`: the log density of the logit.

    `constant` is ``log_constant(a, b)``.
    """
    if min(a, b) >= _LARGE:
        total = a + b
        d = point - math.log(a / b)
        if a < b:
            return constant + (a * d - total * _log_swell(a / total, d))
        return constant - (b * d + total * _log_swell(b / total, -d))
    return constant - a * softplus(-point) - b * softplus(point)


@njit
def _fraction(a: float, b: float, x: float) -> float:
    """Return I_x(a, b) a B(a, b) / (x^a (1 - x)^b) for x < (a + 1) / (a + b + 2), by Lentz's method."""
    c = 1.0
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 20_000):
        even = a + 2.0 * m
        term = m * (b - m) * x / ((even - 1.0) * even)
        d = 1.0 / (1.0 + term * d)
        c = 1.0 + term / c
        value *= d * c
        term = -(a + m) * (a + b + m) * x / (even * (even + 1.0))
        d = 1.0 / (1.0 + term * d)
        c = 1.0 + term / c
        change = d * c
        value *= change
        if abs(change - 1.0) < 2e-16:
            break
    return value


@njit
def log_beta_tails(a: float, b: float, point: float, constant: float) -> tuple[float, float]:
    """Return logs of I_x(a, b) and 1 - I_x(a, b), x at the logit `point`, which may be infinite.

    For a and b from 0.01 to 1e5 both are good to 1e-11, relative to the tail where it is above 1e-300 and
    relative to its logarithm below. `constant` is ``log_constant(a, b)``.
    """
    if point == -math.inf:
        return -math.inf, 0.0
    if point == math.inf:
        return 0.0, -math.inf
    x = expit(point)
    power = log_power(a, b, point, constant)
    if x * (a + b + 2.0) < a + 1.0:
        near = power + math.log(_fraction(a, b, x) / a)
        return near, _log_complement(near)
    near = power + math.log(_fraction(b, a, expit(-point)) / b)
    return _log_complement(near), near


@njit
def _log_complement(log_p: float) -> float:
    """Return log(1 - exp(log_p)), -inf where rounding leaves nothing."""
    if log_p >= 0.0:
        return -math.inf
    if log_p > -0.7:
        return math.log(-math.expm1(log_p))
    return math.log1p(-math.exp(log_p))


@njit
def log_normal_tail(t: float) -> float:
    """Return log Pr(N(0, 1) > t), t possibly infinite, good to 1e-13."""
    if t > 5.0:
        if t == math.inf:
            return -math.inf
        return math.log(0.5 * erfcx(_HALF * t)) - 0.5 * t * t
    if t < 0.0:
        return math.log1p(-0.5 * math.erfc(-_HALF * t))
    return math.log(0.5 * math.erfc(_HALF * t))


@njit
def log_difference(lower0: float, upper0: float, lower1: float, upper1: float) -> float:
    """Return the log mass between two points from the logs of the lower and upper tails at each.

    Differences are taken between the smaller tails; good unless the mass is small beside both of them.
    """
    half = -0.6931471805599453
    if lower1 <= half:
        return lower1 + _log_complement(lower0 - lower1) if lower1 > -math.inf else -math.inf
    if upper0 <= half:
        return upper0 + _log_complement(upper1 - upper0) if upper0 > -math.inf else -math.inf
    rest = 1.0 - (math.exp(lower0) + math.exp(upper1))
    return math.log(rest) if rest > 0.0 else -math.inf
