"""Gaussian noise under (eps, delta)-DP, exactly (Balle and Wang 2018, Theorem 8; methods, section 1).

Everything depends on mu = D / eta, sensitivity over standard deviation: the noise is (eps, delta)-DP iff
`Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) <= delta`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.privacy.conversions import positive, probability

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@functools.cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss and Legendre on [-1, 1]: late, for they take a while at import."""
    return np.polynomial.legendre.leggauss(120)


def gaussian_log_delta(epsilon: float, mu: float) -> float:
    """Return the logarithm of the smallest delta at which Gaussian noise is (epsilon, delta)-DP.

    Its absolute error is below 1e-12, in the far tail too, where delta itself underflows.

    Parameters
    ----------
    epsilon : float
        Not negative.
    mu : float
        Sensitivity over standard deviation, positive.

    Raises
    ------
    PrivacyError
        For a negative epsilon or a mu that is not positive.
    """
    positive("mu", mu)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise PrivacyError(f"epsilon must be finite and not negative, not {epsilon:g}")
    x = epsilon / mu - 0.5 * mu
    if x < -1:  # most outputs exceed epsilon: the two terms of the theorem differ by far
        from scipy.special import erfcx, log_ndtr  # late: it takes a good part of what a fit takes to start

        other = math.log(0.5 * erfcx((x + mu) / math.sqrt(2))) - 0.5 * x * x
        first = float(log_ndtr(-x))
        return first + math.log(-math.expm1(other - first))
    # delta = int_0^inf (1 - e^(-mu u)) phi(x + u) du: nothing cancels
    end = 90 / (x + math.sqrt(x * x + 90))
    nodes, weights = _rule()
    u = 0.5 * end * (nodes + 1)
    total = 0.5 * end * float(weights @ (-np.expm1(-mu * u) * np.exp(-x * u - 0.5 * u * u)))
    return math.log(total) - 0.5 * x * x - _LOG_SQRT_2PI


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the smallest delta at which Gaussian noise is (epsilon, delta)-DP; see `gaussian_log_delta`."""
    return math.exp(gaussian_log_delta(epsilon, mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which Gaussian noise is (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    mu : float
        Sensitivity over standard deviation, positive.
    delta : float
        Strictly between 0 and 1.
    """
    target = math.log(probability("delta", delta))
    if gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    high = max(1.0, 0.5 * mu * mu)
    while gaussian_log_delta(high, mu) > target:
        high *= 2
    return _boundary(lambda e: gaussian_log_delta(e, mu) <= target, 0.0, high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu = sensitivity / standard deviation that is (epsilon, delta)-DP, rounded down.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Strictly between 0 and 1.
    """
    positive("epsilon", epsilon)
    target = math.log(probability("delta", delta))
    low = high = 1.0
    while gaussian_log_delta(epsilon, low) > target:
        low /= 2
        if low < 1e-150:
            raise PrivacyError(f"no Gaussian noise can be had at epsilon = {epsilon:g}, delta = {delta:g}")
    while gaussian_log_delta(epsilon, high) <= target:
        high *= 2
    return _boundary(lambda m: gaussian_log_delta(epsilon, m) <= target, high, low)


def classical_mu(epsilon: float, delta: float) -> float:
    """Return sensitivity / standard deviation of the classical calibration: eps / sqrt(2 log(1.25/delta)).

    Raises
    ------
    PrivacyError
        When epsilon exceeds 1, beyond which the calibration is not proved, and fails: asked for (10, 0.1) its
        actual delta is 0.41.
    """
    positive("epsilon", epsilon)
    probability("delta", delta)
    mu = epsilon / math.sqrt(2 * math.log(1.25 / delta))
    if epsilon > 1:
        raise PrivacyError(
            f"the classical Gaussian calibration is proved for epsilon <= 1 only: asked for epsilon = "
            f"{epsilon:g}, delta = {delta:g}, its actual delta is {gaussian_delta(epsilon, mu):.3g}; "
            "use calibration: analytic"
        )
    return mu


def _boundary(holds: Callable[[float], bool], fails_at: float, holds_at: float) -> float:
    """Return the end of the interval where a monotone condition holds, to the last few units."""
    for _ in range(200):
        middle = 0.5 * (fails_at + holds_at)
        if middle in (fails_at, holds_at) or abs(fails_at - holds_at) <= 2e-16 * abs(holds_at):
            break
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return holds_at
