"""Sums over cells: written so that they become vector instructions, with the same result either way."""

from __future__ import annotations

import numpy as np

from dpmix.numerics.jit import njit

LEAST = 1e-300  # of a mass: where it underflows, its logarithm must not
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_HALF_ROOT = 0x3FE6A09E667F3BCD  # bits of sqrt(1/2)
_A3, _A5, _A7, _A9, _A11, _A13, _A15, _A17, _A19 = (1.0 / k for k in range(3, 20, 2))


@njit
def log(x: float) -> float:
    """Logarithm of a normal `x` > 0, relative error below 1e-15: 2 artanh((m - 1)/(m + 1)) + k log 2.

    The mantissa m lies within [sqrt(1/2), sqrt 2), so that nothing cancels near 1.
    """
    bits = np.float64(x).view(np.int64)
    k = (bits - np.int64(_HALF_ROOT)) >> np.int64(52)
    m = np.int64(bits - (k << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    high = _A13 + z * (_A15 + z * (_A17 + z * _A19))
    rest = z * (_A3 + z * (_A5 + z * (_A7 + z * (_A9 + z * (_A11 + z * high)))))
    power = np.float64(k)
    return power * _LN2_HIGH + (2.0 * s + (2.0 * s * rest + power * _LN2_LOW))


@njit
def _sum(terms):
    """Return the sum: eight sums of their own, in a fixed order."""
    size = len(terms)
    whole = size - size % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for c in range(0, whole, 8):
        s0 += terms[c]
        s1 += terms[c + 1]
        s2 += terms[c + 2]
        s3 += terms[c + 3]
        s4 += terms[c + 4]
        s5 += terms[c + 5]
        s6 += terms[c + 6]
        s7 += terms[c + 7]
    for c in range(whole, size):
        s0 += terms[c]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@njit
def dot(x, y):
    """Return the dot product."""
    size = len(x)
    whole = size - size % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for c in range(0, whole, 8):
        s0 += x[c] * y[c]
        s1 += x[c + 1] * y[c + 1]
        s2 += x[c + 2] * y[c + 2]
        s3 += x[c + 3] * y[c + 3]
        s4 += x[c + 4] * y[c + 4]
        s5 += x[c + 5] * y[c + 5]
        s6 += x[c + 6] * y[c + 6]
        s7 += x[c + 7] * y[c + 7]
    for c in range(whole, size):
        s0 += x[c] * y[c]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@njit
def log_ratio(counts, mixed, proposed, terms):
    """Return the log of prod_c (proposed_c / mixed_c)^counts_c; `terms` is scratch."""
    for c in range(len(counts)):
        terms[c] = counts[c] * log(proposed[c] / mixed[c])
    return _sum(terms)


@njit
def mix(weights, rows, atoms, out):
    """Set ``out[c]`` to sum_h w_h G_hc, of the first so many atoms, and to no less than `LEAST`."""
    for c in range(len(out)):
        out[c] = 0.0
    for h in range(atoms):
        weight, masses = weights[h], rows[h, 0]
        for c in range(len(out)):
            out[c] += weight * masses[c]
    for c in range(len(out)):
        out[c] = max(out[c], LEAST)
