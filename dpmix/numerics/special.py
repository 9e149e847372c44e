"""Exponential and scaled complementary error function, written so that loops over them vectorise.

The library versions are called one value at a time; these are short branch-free expressions that the
compiler turns into vector instructions inside a loop. Both are tested against SciPy.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit

__all__ = ["erfcx", "exp", "log"]


# The natural logarithm, written so that loops over them vectorise.

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


# Power series in u = 2t - 1 of erfcx(x)/t, where t = 4/(4 + x) maps [0, inf) to (0, 1], through the zeros of
# the Chebyshev polynomial of degree 19; written out, so that nothing is computed at import.
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
