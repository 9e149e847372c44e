"""The regularised lower incomplete gamma function in logarithms, and draws of truncated gamma variables.

Where it is needed for the same shapes again and again, a table per shape makes it several times faster: with
eta^2 / 2 = x/a - 1 - log(x/a), eta of the sign of x - a, Temme (1979) writes P(a, x) as ``erfc(-eta
sqrt(a/2)) / 2 - exp(-a eta^2 / 2) S_a(eta) / sqrt(2 pi a)``, where S_a is analytic within |eta| < 2 sqrt(pi):
16 Chebyshev coefficients give it to rounding on [-1, 1]. S_a has an expansion in powers of 1/a: for shapes
from 64 on, polynomials of degree 5 in 1/a give each coefficient to rounding, one small table for all of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.gamma import stirling
from dpmix.numerics.jit import njit
from dpmix.numerics.special import erfcx, exp

__all__ = [
    "draw_gamma_below",
    "log_gamma_p",
    "log_gamma_p_tabulated",
    "log_power",
    "log_ratio_large",
    "series",
    "tabulate",
    "tabulate_large",
]

COEFFICIENTS = 16
LARGE = 64.0  # shapes from which one table serves all
_TERMS = 6  # powers of 1/a in it

_LARGE = 10.0  # shapes from which Stirling's series is exact to rounding
_LOG_2PI = math.log(2.0 * math.pi)


@njit
def log_power(a, x):
    """Return log(x^a e^-x / Gamma(a + 1)), without cancellation at large a."""
    if a < _LARGE:
        return a * math.log(x) - x - math.lgamma(a + 1.0)
    gap = (x - a) / a
    near = a * (math.log1p(gap) - gap) if abs(gap) < 0.5 else a * math.log(x / a) - (x - a)
    return near - 0.5 * (_LOG_2PI + math.log(a)) - stirling(a)


@njit
def series(a, x):
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
def log_gamma_p(a, x):
    """Log of P(a, x), the probability that a Gamma(a, 1) variable is below `x` > 0; exact far in the tail.

    Series below a + 1, continued fraction above (Abramowitz and Stegun, 6.5.29 and 6.5.31).
    """
    if x < a + 1.0:
        return log_power(a, x) + math.log(series(a, x))
    if x > a + 40.0 + 12.0 * math.sqrt(a):
        return 0.0
    return math.log1p(-a * math.exp(log_power(a, x)) * _fraction(a, x))


@njit
def _eta(gap):
    """Return eta for x = a (1 + gap), without cancellation at small `gap`."""
    if abs(gap) < 0.02:
        series = 1.0 - gap * (1 / 3 - gap * (7 / 36 - gap * (73 / 540 - gap * (1331 / 12960))))
        return gap * (series - gap**5 * (22409 / 272160 - gap * (15823 / 230400)))
    return math.copysign(math.sqrt(2.0 * (gap - math.log1p(gap))), gap)


@njit
def _remainder(a, eta, gap):
    """Return S_a(eta) by its definition, for x = a (1 + gap)."""
    z = eta * math.sqrt(0.5 * a)
    x = a * (1.0 + gap)
    root = math.sqrt(2.0 * math.pi * a)
    # x^a e^-x / Gamma(a + 1) over exp(-z^2) / root
    factor = math.exp(-stirling(a)) if a >= _LARGE else math.exp(log_power(a, x) + z * z) * root
    if eta <= 0.0:
        return 0.5 * root * erfcx(-z) - factor * series(a, x)
    return factor * a * _fraction(a, x) - 0.5 * root * erfcx(z)


@njit
def _gap_of(eta):
    """Return x/a - 1 for an eta in [-1, 1], by Newton's method."""
    gap = eta + eta * eta / 3.0
    for _ in range(40):
        step = (gap - math.log1p(gap) - 0.5 * eta * eta) * (1.0 + gap) / gap if gap != 0.0 else 0.0
        gap = max(gap - step, 0.5 * (gap - 1.0))
        if abs(step) < 1e-16:
            break
    return gap


@njit
def tabulate(first, count):
    """Return the coefficients (count, 16) of S_a for the shapes a = first, first + 1/2, ..."""
    m = COEFFICIENTS
    table = np.zeros((count, m))
    values = np.empty(m)
    for c in range(count):
        a = first + 0.5 * c
        for i in range(m):
            eta = math.cos(math.pi * (i + 0.5) / m)
            values[i] = _remainder(a, eta, _gap_of(eta))
        for j in range(m):
            total = 0.0
            for i in range(m):
                total += values[i] * math.cos(math.pi * j * (i + 0.5) / m)
            table[c, j] = total * (1.0 if j == 0 else 2.0) / m
    return table


@njit
def log_gamma_p_tabulated(table, row, a, x):
    """Log of P(a, x) as `log_gamma_p`, from row `row` of a table made for shape `a`."""
    gap = (x - a) / a
    if gap < -0.69 or gap > 1.3:
        return log_gamma_p(a, x)
    eta = _eta(gap)
    one, two = 0.0, 0.0
    for j in range(COEFFICIENTS - 1, 0, -1):
        one, two = 2.0 * eta * one - two + table[row, j], one
    rest = (eta * one - two + table[row, 0]) / math.sqrt(2.0 * math.pi * a)
    z = eta * math.sqrt(0.5 * a)
    tail = 0.5 * erfcx(abs(z))
    if eta <= 0.0:
        return math.log(tail - rest) - z * z
    return math.log1p(-exp(-z * z) * (tail + rest))


def tabulate_large() -> NDArray[np.float64]:
    """Return, for each of 16 coefficients of S_a, those of the powers of LARGE / a; shape (16, 6)."""
    places = 0.5 + 0.5 * np.cos(np.pi * (np.arange(_TERMS) + 0.5) / _TERMS)
    values = np.concatenate([tabulate(LARGE / place, 1) for place in places])
    return np.ascontiguousarray(np.linalg.solve(np.vander(places, increasing=True), values).T)


@njit
def log_ratio_large(table, first, a, x):
    """Return log of P(a, x) Gamma(a + 1) / x^a for a >= LARGE, at a cost that does not depend on `a`.

    Rows from `first` on of `table` are those of `tabulate_large`.
    """
    gap = (x - a) / a
    if gap < -0.68:
        return math.log(series(a, x)) - x
    scale = 0.5 * (_LOG_2PI + math.log(a)) + stirling(a)
    if x > a + 40.0 + 12.0 * math.sqrt(a):
        return scale - a * math.log1p(gap) - a
    r = LARGE / a
    eta = _eta(gap)
    one, two = 0.0, 0.0
    for j in range(COEFFICIENTS - 1, -1, -1):
        row = first + j
        low = table[row, 0] + r * (table[row, 1] + r * table[row, 2])
        value = low + r * r * r * (table[row, 3] + r * (table[row, 4] + r * table[row, 5]))
        one, two = (2.0 if j > 0 else 1.0) * eta * one - two + value, one
    rest = one / math.sqrt(2.0 * math.pi * a)
    z = eta * math.sqrt(0.5 * a)
    tail = 0.5 * erfcx(abs(z))
    if eta <= 0.0:
        return math.log(tail - rest) + scale - x
    return math.log1p(-exp(-z * z) * (tail + rest)) + scale - a * math.log1p(gap) - a


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
