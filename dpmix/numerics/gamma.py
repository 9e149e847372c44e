"""Log of the beta function, derivatives of log Gamma, which compiled code lacks, and log-gamma draws.

Arguments are positive. All are tested against SciPy and mpmath.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit

__all__ = ["digamma", "log_beta", "log_gamma_draw", "stirling", "trigamma"]

_LARGE = 12.0  # from here on the asymptotic series are good to the last digits
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@njit
def digamma(x: float) -> float:
    """Return the derivative of log Gamma at `x` > 0, error below 1e-13 max(1, |value|).

    Recurrence up to 12, then the asymptotic series (Abramowitz and Stegun 6.3.18).
    """
    total = 0.0
    while x < _LARGE:
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
    while x < _LARGE:
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
            _HALF_LOG_2PI
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
