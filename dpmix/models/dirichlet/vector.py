"""The natural logarithm, written so that loops over them vectorise."""

from __future__ import annotations

import numpy as np

from dpmix._jit import njit

__all__ = ["log"]

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
