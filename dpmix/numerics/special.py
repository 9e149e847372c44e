"""Special functions for compiled code: exp, log and erfcx that vectorise, gamma functions, and gamma draws.

The library versions of logarithm, exponential and scaled complementary error function are called one value at
a time; these are short branch-free expressions that the compiler turns into vector instructions inside a
loop.

The gamma function and its regularised lower incomplete integral P(a, x) are in logarithms; their arguments
are positive. All is tested against SciPy and mpmath.

Where P is needed for the same shapes again and again, a table per shape makes it several times faster: with
eta^2 / 2 = x/a - 1 - log(x/a), eta of the sign of x - a, Temme (1979) writes P(a, x) as ``erfc(-eta
sqrt(a/2)) / 2 - exp(-a eta^2 / 2) S_a(eta) / sqrt(2 pi a)``, where S_a is analytic within |eta| < 2 sqrt(pi):
16 Chebyshev coefficients give it to rounding on [-1, 1]. S_a has an expansion in powers of 1/a: for shapes
from 64 on, polynomials of degree 5 in 1/a give each coefficient to rounding, one small table for all of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit

# Functions that vectorise

_ONE_LESS = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)  # of 1 and of sqrt(1/2), as integers
_HALF = np.uint64(0x3FE6A09E667F3BCD)
_FRACTION = np.uint64(0x000FFFFFFFFFFFFF)
_PLACES = np.uint64(52)
_TWO_52 = np.uint64(0x4330000000000000)
_BIAS = 4503599627370496.0 + 1023.0
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10


@njit
def log(x: float) -> float:
    """Return the logarithm of a positive normal number `x`, relative error below 1e-15 (fdlibm's series)."""
    bits = np.float64(x).view(np.uint64) + _ONE_LESS
    k = np.uint64((bits >> _PLACES) | _TWO_52).view(np.float64) - _BIAS
    f = np.uint64((bits & _FRACTION) + _HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (0.3999999999940941908 + w * (0.2222219843214978396 + w * 0.1531383769920937332))
    odd = w * (0.2857142874366239149 + w * (0.1818357216161805012 + w * 0.1479819860511658591))
    half = 0.5 * f * f
    rest = z * 0.6666666666666735130 + even + z * odd
    return k * _LN2_HIGH - ((half - (s * (half + rest) + k * _LN2_LOW)) - f)


_LOG2_E = 1.0 / math.log(2.0)
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits


@njit
def exp(x: float) -> float:
    """Exponential of `x`, relative error below 5e-16 on [-708, 709]; held at the ends outside.

    Reduction by multiples of log 2, then the Taylor polynomial of degree 12 in Estrin's order.
    """
    x = min(max(x, -708.0), 709.0)
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = ((1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))) + r4 * (
        (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    )
    high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    high += r4 * (1.0 / 479001600.0)
    power = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
    return (low + (r4 * r4) * high) * power


# erfcx: power series in u = 2t - 1 of erfcx(x)/t, where t = 4/(4 + x) maps [0, inf) to (0, 1], through the
# zeros of the Chebyshev polynomial of degree 19; written out, so that nothing is computed at import.
_C0 = 0.27399891525012365
_C1 = 0.2441371822701896
_C2 = 0.1933021755660457
_C3 = 0.13521345783023023
_C4 = 0.08271289698182839
_C5 = 0.04350273427496759
_C6 = 0.019095378525507904
_C7 = 0.006592513620499107
_C8 = 0.0015280154881329288
_C9 = 7.023847436462077e-05
_C10 = -0.00011376996482886169
_C11 = -4.4200077573688125e-05
_C12 = -8.913073935417247e-07
_C13 = 4.710560135781732e-06
_C14 = 1.14596110032472e-06
_C15 = -3.520639794575191e-07
_C16 = -1.8495871315031145e-07
_C17 = 1.7167698900062102e-08
_C18 = 1.640167369647735e-08


@njit
def erfcx(x: float) -> float:
    """Scaled complementary error function exp(x^2) erfc(x) for x >= 0, relative error below 5e-14."""
    t = 4.0 / (4.0 + x)
    u = 2.0 * t - 1.0
    u2 = u * u
    u4 = u2 * u2
    a = (_C0 + u * _C1) + u2 * (_C2 + u * _C3)
    b = (_C4 + u * _C5) + u2 * (_C6 + u * _C7)
    c = (_C8 + u * _C9) + u2 * (_C10 + u * _C11)
    d = (_C12 + u * _C13) + u2 * (_C14 + u * _C15)
    e = (_C16 + u * _C17) + u2 * _C18
    return t * ((a + u4 * b) + (u4 * u4) * ((c + u4 * d) + (u4 * u4) * e))


# The gamma function, and a draw

_ASYMPTOTIC = 12.0  # from here on the series of digamma and trigamma are good to the last digits
_LOG_2PI = math.log(2.0 * math.pi)


@njit
def digamma(x: float) -> float:
    """Return the derivative of log Gamma at `x` > 0, error below 1e-13 max(1, |value|).

    Recurrence up to 12, then the asymptotic series (Abramowitz and Stegun 6.3.18).
    """
    total = 0.0
    while x < _ASYMPTOTIC:
        total -= 1.0 / x
        x += 1.0
    w = 1.0 / (x * x)
    tail = w * (
        1.0 / 12.0
        - w
        * (1.0 / 120.0 - w * (1.0 / 252.0 - w * (1.0 / 240.0 - w * (1.0 / 132.0 - w * (691.0 / 32760.0)))))
    )
    return total + (math.log(x) - 0.5 / x - tail)


@njit
def trigamma(x: float) -> float:
    """Return the second derivative of log Gamma at `x` > 0 to 1e-13 (Abramowitz and Stegun 6.4.12)."""
    total = 0.0
    while x < _ASYMPTOTIC:
        total += 1.0 / (x * x)
        x += 1.0
    w = 1.0 / (x * x)
    tail = w * (
        1.0 / 6.0
        - w * (1.0 / 30.0 - w * (1.0 / 42.0 - w * (1.0 / 30.0 - w * (5.0 / 66.0 - w * 691.0 / 2730.0))))
    )
    return total + (1.0 + 0.5 / x + tail) / x


@njit
def stirling(x: float) -> float:
    """Return log Gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2 for x >= 10, to 1e-15.

    It is also log Gamma(x + 1) less (x + 1/2) log x - x + log(2 pi) / 2.
    """
    r = 1.0 / x
    s = r * r
    tail = 1.0 / 1188.0 - s * (691.0 / 360360.0)
    return r * (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s * tail))))


@njit
def log_beta(a: float, b: float) -> float:
    """Return log B(a, b) without the cancellation of large log Gammas (Didonato and Morris 1992)."""
    low = min(a, b)
    high = max(a, b)
    share = low / (low + high)
    if low >= 10.0:
        rest = stirling(low) + stirling(high) - stirling(low + high)
        return (
            0.5 * _LOG_2PI
            - 0.5 * math.log(high)
            + rest
            + (low - 0.5) * math.log(share)
            + high * math.log1p(-share)
        )
    if high >= 10.0:
        rest = stirling(high) - stirling(low + high)
        slope = low - low * math.log(low + high) + (high - 0.5) * math.log1p(-share)
        return math.lgamma(low) + rest + slope
    return math.lgamma(low) + (math.lgamma(high) - math.lgamma(low + high))


@njit
def log_gamma_draw(rng: np.random.Generator, shape: float) -> float:
    """Draw the logarithm of a Gamma(shape, 1) variable, which itself may be too small for a double.

    Gamma(shape) is Gamma(shape + 1) times an independent U^(1/shape).
    """
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


# The incomplete gamma function, and draws from below

COEFFICIENTS = 16  # of S_a
LARGE = 64.0  # shapes from which one table serves all
_TERMS = 6  # powers of 1/a in it

_STIRLING_FROM = 10.0  # shapes from which Stirling's series is exact to rounding


@njit
def log_power(a, x):
    """Return log(x^a e^-x / Gamma(a + 1)), without cancellation at large a."""
    if a < _STIRLING_FROM:
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
    factor = math.exp(-stirling(a)) if a >= _STIRLING_FROM else math.exp(log_power(a, x) + z * z) * root
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
