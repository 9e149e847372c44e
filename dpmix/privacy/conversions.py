"""What noise costs, in eps-DP, (eps, delta)-DP and rho-zCDP, and how these convert (methods, section 1).

All of it is for replacement of one record and natural logarithms; none of it knows any data.

**Gaussian noise**, continuous or on whole numbers, depends on mu = D / eta, sensitivity over standard
deviation: it is (eps, delta)-DP iff `Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) <= delta`.

**Discrete Gaussian noise on counts.** A replaced record moves `moved` counts by one each. With independent
noise of parameter sigma on every count the privacy loss is (2 S + moved) / (2 sigma^2), S the sum of the
noise of those counts; moves of either sign give the same. It is `moved` / (2 sigma^2)-zCDP, exactly as
Gaussian noise is (Canonne, Kamath and Steinke 2020), and (eps, delta)-DP with

    delta(eps) = sum_s Pr(S = s) max(0, 1 - exp(eps - (2 s + moved) / (2 sigma^2))),

which is not what Gaussian noise has: it may be larger. A record that moves fewer counts has less of both,
since leaving counts out is post-processing.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.numerics.discrete_gaussian import WIDE, log_pmf

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_LOG_ERROR = 1e-12  # of log delta of Gaussian noise, where -700 <= log delta: see `gaussian_log_delta`
_UP = 1 + 1e-11  # covers what the sums of discrete Gaussian noise lose in floating point
_LOST = 16 * 2.0**-52  # of terms of a bound: more than an exponential, a logarithm and a quotient lose
_MOST_TERMS = 2_000_000
_FAR, _BEYOND = 14.0, 1e-42  # standard deviations of S, and more than the chance of more


def positive(name: str, value: float) -> float:
    """Return `value` if it is a positive finite number.

    Raises
    ------
    PrivacyError
        When it is not.
    """
    if not (math.isfinite(value) and value > 0):
        raise PrivacyError(f"{name} must be positive and finite, not {value:g}")
    return float(value)


def probability(name: str, value: float) -> float:
    """Return `value` if it lies strictly between 0 and 1.

    Raises
    ------
    PrivacyError
        When it does not.
    """
    if not 0 < value < 1:
        raise PrivacyError(f"{name} must lie strictly between 0 and 1, not {value:g}")
    return float(value)


# Laplace noise, randomized response, and any mechanism


def laplace_rho(epsilon: float) -> float:
    """Return the zCDP of Laplace noise that is `epsilon`-DP: rho = eps - 1 + e^-eps, exactly.

    The supremum over alpha of D_alpha / alpha is its limit at alpha = 1, the Kullback-Leibler divergence.
    (The proof is in docs/privacy.md: (alpha - 1) D_alpha is concave in (alpha - 1/2)^2.) Relative error below
    1e-15 for every epsilon > 0.
    """
    positive("epsilon", epsilon)
    if epsilon > 0.5:
        return epsilon + math.expm1(-epsilon)
    term = total = 0.5 * epsilon * epsilon  # the difference cancels here, its series does not
    for k in range(3, 24):
        term *= -epsilon / k
        total += term
    return total


def laplace_rho_of_several(most: Iterable[float], together: float) -> float:
    """Return the zCDP of Laplace noise on several numbers of which a record moves each, and all, by so much.

    Renyi divergences of independent noises add, so that moves of d_j scales have at most the sum of
    `laplace_rho` of d_j. That is convex and grows faster than d_j: of all d with d_j <= most_j and
    sum d_j <= together the largest d_j, filled first, have the most (they majorize any others).

    Parameters
    ----------
    most : iterable of float
        Largest move of each number over the scale of its noise.
    together : float
        Largest sum of the moves over the scale; positive.
    """
    left, rho = together, 0.0
    for each in sorted(most, reverse=True):
        move = min(each, left)
        if move <= 0.0:
            break
        rho += laplace_rho(move)
        left -= move
    return rho


def laplace_epsilon(rho: float) -> float:
    """Return the epsilon at which Laplace noise is exactly `rho`-zCDP, rounded such that it never exceeds it.

    At rho = 17.8 it is 18.8, where the general bound eps = sqrt(2 rho) gives 5.97.
    """
    positive("rho", rho)
    epsilon = max(math.sqrt(2 * rho), rho)
    for _ in range(60):  # Newton on a convex increasing function: monotone after the first step
        step = (laplace_rho(epsilon) - rho) / -math.expm1(-epsilon)
        epsilon -= step
        if abs(step) <= 4e-16 * epsilon:
            break
    while laplace_rho(epsilon) > rho:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def response_rho(epsilon: float) -> float:
    """Return the zCDP of randomized response, hence of any `epsilon`-DP mechanism: rho = eps tanh(eps/2).

    The privacy loss is eps with probability p = e^eps/(1 + e^eps) and else -eps, its mean is rho, and log E
    exp(t (loss - rho)) <= rho t^2 is the inequality of Kearns and Saul (1998). Every eps-DP mechanism is a
    post-processing of randomized response for each pair of neighbours (Kairouz, Oh and Viswanath 2015). The
    sum over k answers of eps/k each is k times this at eps/k.
    """
    positive("epsilon", epsilon)
    return epsilon * math.tanh(0.5 * epsilon)


def response_epsilon(rho: float) -> float:
    """Return the epsilon at which `response_rho` is `rho`, rounded so that it never exceeds it."""
    positive("rho", rho)
    low, high = 0.0, rho + math.sqrt(2 * rho) + 1
    while (middle := 0.5 * (low + high)) not in (low, high):
        if response_rho(middle) <= rho:
            low = middle
        else:
            high = middle
    if not low:
        raise PrivacyError(f"rho = {rho:g} is too small to be had")
    return low


def rho_to_pure_bound(rho: float) -> float:
    """Return sqrt(2 rho), the calibration of P1 section 6: any eps-DP mechanism is eps^2/2-zCDP."""
    return math.sqrt(2 * positive("rho", rho))


def rho_to_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of (eps, delta)-DP, 0 < delta < 1, that any `rho`-zCDP mechanism has.

    The smaller of rho + 2 sqrt(rho log(1/delta)) and the bound of Canonne, Kamath and Steinke (2020),
    Proposition 12, minimised over its order alpha: every alpha gives a valid bound, so that the minimisation
    need not be exact. Each is rounded up: its terms nearly cancel where epsilon is tiny beside delta.
    """
    positive("rho", rho)
    probability("delta", delta)
    log_inverse = -math.log(delta)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        log_alpha = math.log1p(excess)
        terms = (1 + excess) * rho, log_inverse / excess, -log_alpha / excess, -math.log1p(1 / excess)
        return math.fsum(terms) + _LOST * math.fsum(map(abs, terms))

    simple = rho + 2 * math.sqrt(rho) * math.sqrt(log_inverse)
    centre = 0.5 * (math.log(log_inverse) - math.log(rho))
    from scipy.optimize import minimize_scalar  # late: it takes a good part of what a fit takes to start

    best = minimize_scalar(bound, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-9})
    return max(0.0, min(simple, float(best.fun)))


# Gaussian noise


@functools.cache
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of Gauss and Legendre on [-1, 1]: late, for they take a while at import."""
    return np.polynomial.legendre.leggauss(120)


def gaussian_log_delta(epsilon: float, mu: float) -> float:
    """Return the logarithm of the smallest delta at which Gaussian noise is (epsilon, delta)-DP.

    `mu` is sensitivity over standard deviation. The absolute error is below `_LOG_ERROR`, in the far tail
    too, where delta itself underflows.

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
    # total underflows where mu u does: delta is then less than any that is asked for
    return (math.log(total) if total > 0.0 else -math.inf) - 0.5 * x * x - _LOG_SQRT_2PI


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the smallest delta at which Gaussian noise is (epsilon, delta)-DP; see `gaussian_log_delta`."""
    return math.exp(gaussian_log_delta(epsilon, mu))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which Gaussian noise is (epsilon, delta)-DP, rounded up."""
    target = math.log(probability("delta", delta)) - _LOG_ERROR
    if gaussian_log_delta(0.0, mu) <= target:
        return 0.0
    high = max(1.0, 0.5 * mu * mu)
    while gaussian_log_delta(high, mu) > target:
        high *= 2
    return _boundary(lambda e: gaussian_log_delta(e, mu) <= target, 0.0, high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu = sensitivity / standard deviation that is (epsilon, delta)-DP, rounded down."""
    positive("epsilon", epsilon)
    target = math.log(probability("delta", delta)) - _LOG_ERROR
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


# Discrete Gaussian noise on counts


@functools.lru_cache(maxsize=32)
def _small_sums(sigma: float, moved: int) -> NDArray[np.float64]:
    """Return the probabilities of S = -m, .., m for a small sigma, in which no terms cancel."""
    most = math.ceil(40.0 * sigma)
    one = np.exp(log_pmf(np.arange(-most, most + 1, dtype=np.float64), sigma))
    total = np.ones(1)
    for _ in range(moved):
        total = np.convolve(total, one)
    return total


def discrete_gaussian_delta(epsilon: float, sigma: float, moved: int) -> float | None:
    """Return the smallest delta at which noise of parameter sigma is (epsilon, delta)-DP, rounded up.

    None where the sum would be too long: sigma sqrt(moved) above 7e4. From sigma = 3 on the probability of S
    = s is the density of N(0, moved sigma^2), up to a relative 2 moved exp(-pi^2 sigma^2) < 1e-36 (Poisson
    summation over the lattice of noise with a given sum).
    """
    positive("sigma", sigma)
    spread = sigma * math.sqrt(moved)
    least = epsilon * sigma * sigma - 0.5 * moved  # the loss exceeds epsilon for S above it
    if sigma < WIDE:
        sums = _small_sums(sigma, moved)
        s = np.arange(len(sums), dtype=np.float64) - (len(sums) - 1) // 2
        above = s > least
        s, chances = s[above], sums[above]
    else:
        first = math.floor(least) + 1.0
        last = float(math.ceil(_FAR * spread))
        first = min(max(first, -last), last)
        if last - first > _MOST_TERMS:
            return None
        s = np.arange(first, last)
        chances = np.exp(-0.5 * (s / spread) ** 2) / (math.sqrt(2 * math.pi) * spread)
    lost = -np.expm1(epsilon - (2 * s + moved) / (2 * sigma * sigma))
    return min(1.0, float(chances @ np.maximum(lost, 0.0)) * _UP + _BEYOND)


@functools.lru_cache(maxsize=1024)
def discrete_gaussian_epsilon(sigma: float, moved: int, delta: float) -> float:
    """Return an epsilon at which the noise is (epsilon, delta)-DP: the smallest, or zCDP's.

    The latter for sums that are too long, and deltas below what they leave out.
    """
    probability("delta", delta)
    high = rho_to_epsilon(moved / (2 * sigma * sigma) * (1 + 2.0**-40), delta)
    if delta < _BEYOND or discrete_gaussian_delta(high, sigma, moved) is None:
        return high
    if _holds(0.0, sigma, moved, delta):
        return 0.0
    return _boundary(lambda epsilon: _holds(epsilon, sigma, moved, delta), 0.0, high, 1e-13)


@functools.lru_cache(maxsize=64)
def discrete_gaussian_sigma(epsilon: float, delta: float, moved: int) -> float:
    """Return a sigma at which the noise is (epsilon, delta)-DP, at the end of the range where that holds.

    Raises
    ------
    PrivacyError
        When there is none below 1e12.
    """
    positive("epsilon", epsilon)
    probability("delta", delta)
    high = 1.0
    while not _meets(epsilon, delta, high, moved):
        high *= 2
        if high > 1e12:
            raise PrivacyError(f"no discrete Gaussian noise meets epsilon = {epsilon:g}, delta = {delta:g}")
    low = 0.5 * high
    while _meets(epsilon, delta, low, moved) and low > 1e-3:
        high, low = low, 0.5 * low
    return _boundary(lambda sigma: _meets(epsilon, delta, sigma, moved), low, high, 1e-12)


def _meets(epsilon: float, delta: float, sigma: float, moved: int) -> bool:
    """Whether the epsilon that would be stated of the noise is not above the one asked for."""
    if delta < _BEYOND or discrete_gaussian_delta(epsilon, sigma, moved) is None:
        return rho_to_epsilon(moved / (2 * sigma * sigma) * (1 + 2.0**-40), delta) <= epsilon
    return _holds(epsilon, sigma, moved, delta)


def _holds(epsilon: float, sigma: float, moved: int, delta: float) -> bool:
    found = discrete_gaussian_delta(epsilon, sigma, moved)
    return found is not None and found <= delta


def _boundary(
    holds: Callable[[float], bool], fails_at: float, holds_at: float, tolerance: float = 2e-16
) -> float:
    """Return the end of the interval where a monotone condition holds, to a relative tolerance."""
    for _ in range(200):
        middle = 0.5 * (fails_at + holds_at)
        if middle in (fails_at, holds_at) or abs(fails_at - holds_at) <= tolerance * abs(holds_at):
            break
        if holds(middle):
            holds_at = middle
        else:
            fails_at = middle
    return holds_at
