"""Exact relations between eps-DP, (eps, delta)-DP and rho-zCDP (methods, section 1).

All of them are for replacement of one record and natural logarithms; none of them knows any data.
"""

from __future__ import annotations

import math

from dpmix.errors import PrivacyError


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


def laplace_rho(epsilon: float) -> float:
    """Return the zCDP of Laplace noise that is `epsilon`-DP: rho = eps - 1 + e^-eps, exactly.

    The supremum over alpha of D_alpha / alpha is its limit at alpha = 1, the Kullback-Leibler divergence.
    (The proof is in docs/privacy.md: (alpha - 1) D_alpha is concave in (alpha - 1/2)^2.)
    Relative error below 1e-15 for every epsilon.

    Parameters
    ----------
    epsilon : float
        Sensitivity over scale; positive.
    """
    positive("epsilon", epsilon)
    if epsilon > 0.5:
        return epsilon + math.expm1(-epsilon)
    term = total = 0.5 * epsilon * epsilon  # the difference cancels here, its series does not
    for k in range(3, 24):
        term *= -epsilon / k
        total += term
    return total


def laplace_epsilon(rho: float) -> float:
    """Return the epsilon at which Laplace noise is exactly `rho`-zCDP, the inverse of `laplace_rho`.

    At rho = 17.8 it is 18.8, where the general bound eps = sqrt(2 rho) gives 5.97.

    Parameters
    ----------
    rho : float
        Positive.

    Returns
    -------
    float
        Rounded towards more privacy: `laplace_rho` of it never exceeds `rho`.
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


def pure_to_rho(epsilon: float) -> float:
    """Return the zCDP of any `epsilon`-DP mechanism: eps^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
    return 0.5 * positive("epsilon", epsilon) ** 2


def response_rho(epsilon: float) -> float:
    """Return the zCDP of randomized response, hence of any `epsilon`-DP mechanism: rho = eps tanh(eps/2).

    The privacy loss is eps with probability p = e^eps/(1 + e^eps) and else -eps, its mean is rho, and
    log E exp(t (loss - rho)) <= rho t^2 is the inequality of Kearns and Saul (1998). Every eps-DP mechanism
    is a post-processing of randomized response for each pair of neighbours (Kairouz, Oh and Viswanath 2015).
    The sum over k answers of eps/k each is k times this at eps/k.

    Parameters
    ----------
    epsilon : float
        Positive.
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
    """Return the epsilon whose `pure_to_rho` is `rho`: sqrt(2 rho), the calibration of P1 section 6."""
    return math.sqrt(2 * positive("rho", rho))


def rho_to_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of (eps, delta)-DP that any `rho`-zCDP mechanism has.

    The smaller of rho + 2 sqrt(rho log(1/delta)) and the bound of Canonne, Kamath and Steinke (2020),
    Proposition 12, minimised over its order alpha: every alpha gives a valid bound, so that the minimisation
    need not be exact.

    Parameters
    ----------
    rho : float
        Positive.
    delta : float
        Strictly between 0 and 1.
    """
    positive("rho", rho)
    probability("delta", delta)
    log_inverse = -math.log(delta)

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        log_alpha = math.log1p(excess)
        return (1 + excess) * rho + (log_inverse - log_alpha) / excess + (log_excess - log_alpha)

    simple = rho + 2 * math.sqrt(rho) * math.sqrt(log_inverse)
    centre = 0.5 * (math.log(log_inverse) - math.log(rho))
    from scipy.optimize import minimize_scalar  # late: it takes a good part of what a fit takes to start

    best = minimize_scalar(bound, bounds=(centre - 5, centre + 5), method="bounded", options={"xatol": 1e-9})
    return max(0.0, min(simple, float(best.fun)))
