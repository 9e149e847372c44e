"""The regularised lower incomplete gamma function in logarithms, and draws of truncated gamma variables."""

from __future__ import annotations

import math

from dpmix._jit import njit

__all__ = ["draw_gamma_below", "log_gamma_p"]

_LARGE = 10.0  # shapes from which Stirling's series is exact to rounding
_LOG_2PI = math.log(2.0 * math.pi)


@njit
def _log_power(a, x):
    """Return log(x^a e^-x / Gamma(a + 1)), without cancellation at large a."""
    if a < _LARGE:
        return a * math.log(x) - x - math.lgamma(a + 1.0)
    gap = (x - a) / a
    near = a * (math.log1p(gap) - gap) if abs(gap) < 0.5 else a * math.log(x / a) - (x - a)
    r = 1.0 / a
    r2 = r * r
    series = r * (1 / 12 - r2 * (1 / 360 - r2 * (1 / 1260 - r2 * (1 / 1680 - r2 * (1 / 1188)))))
    return near - 0.5 * (_LOG_2PI + math.log(a)) - series


@njit
def _series(a, x):
    """Return 1 + x / (a + 1) + x^2 / ((a + 1)(a + 2)) + ..."""
    term = 1.0
    total = 1.0
    n = a
    while term > 1e-17 * total:
        n += 1.0
        term *= x / n
        total += term
    return total


@njit
def _fraction(a, x):
    """Return Q(a, x) Gamma(a) / (x^a e^-x) by the continued fraction, evaluated forwards (Lentz)."""
    b = x + 1.0 - a
    c = 1e300
    d = 1.0 / b
    h = d
    i = 0.0
    while True:
        i += 1.0
        step = -i * (i - a)
        b += 2.0
        d = 1.0 / (step * d + b)
        c = b + step / c
        delta = c * d
        h *= delta
        if abs(delta - 1.0) < 1e-16:
            return h


@njit
def log_gamma_p(a: float, x: float) -> float:
    """Log of P(a, x), the probability that a Gamma(a, 1) variable is below `x` > 0; exact far in the tail.

    Series below a + 1, continued fraction above (Abramowitz and Stegun, 6.5.29 and 6.5.31).
    """
    if x < a + 1.0:
        return _log_power(a, x) + math.log(_series(a, x))
    if x > a + 40.0 + 12.0 * math.sqrt(a):
        return 0.0
    return math.log1p(-a * math.exp(_log_power(a, x)) * _fraction(a, x))


@njit
def draw_gamma_below(rng, a, x):
    """Draw from Gamma(a, 1) given that it is below `x` > 0, however unlikely that is.

    With t = x e^-v the density in the tail is proportional to exp(-a v - x e^-v), which lies below an
    exponential density of rate a - x.
    """
    if x > a - math.sqrt(a):
        while True:
            t = rng.standard_gamma(a)
            if t < x:
                return t
    while True:
        v = rng.standard_exponential() / (a - x)
        if rng.standard_exponential() > x * (math.expm1(-v) + v):
            return x * math.exp(-v)
