"""The parameters given a database, n and sum_i log x_ij, under gamma priors joined by a Gaussian copula."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.factors import cholesky, invert_lower, product
from dpmix.numerics.gamma import log_gamma_p, trigamma
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_in_box, log_height

__all__ = ["log_likelihood", "log_prior", "normal_score", "slice_alpha", "whiten"]

FARTHEST = 690.0  # |log alpha| beyond which there is no mass


@njit
def normal_score(log_p):
    """Return z with log Phi(z) = `log_p` <= log(1/2) (Wichura 1988, AS 241), to 1e-15 or so."""
    p = math.exp(log_p)
    q = p - 0.5
    if q >= -0.425:
        r = 0.180625 - q * q
        above = (
            ((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
            + 45921.953931549871457
        ) * r
        above = ((above + 13731.693765509461125) * r + 1971.5909503065514427) * r
        above = (above + 133.14166789178437745) * r + 3.387132872796366608
        below = (
            ((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
            + 21213.794301586595867
        ) * r
        below = ((below + 5394.1960214247511077) * r + 687.1870074920579083) * r
        below = (below + 42.313330701600911252) * r + 1.0
        return q * above / below
    r = math.sqrt(-log_p)
    if r <= 5.0:
        r -= 1.6
        above = (
            ((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
            + 1.27045825245236838258
        ) * r
        above = ((above + 3.64784832476320460504) * r + 5.7694972214606914055) * r
        above = (above + 4.6303378461565452959) * r + 1.42343711074968357734
        below = (
            ((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r
            + 0.14810397642748007459
        ) * r
        below = ((below + 0.68976733498510000455) * r + 1.6763848301838038494) * r
        below = (below + 2.05319162663775882187) * r + 1.0
        return -above / below
    r -= 5.0
    above = (
        ((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
        + 0.026532189526576123093
    ) * r
    above = ((above + 0.29656057182850489123) * r + 1.7848265399172913358) * r
    above = (above + 5.4637849111641143699) * r + 6.6579046435011037772
    below = (
        ((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r + 1.8463183175100546818e-5) * r
        + 7.868691311456132591e-4
    ) * r
    below = ((below + 0.0148753612908506148525) * r + 0.13692988092273580531) * r
    below = (below + 0.59983220655588793769) * r + 1.0
    return -above / below


@njit
def _score(shape, x):
    """Return Phi^-1 of the cdf of Gamma(shape, 1) at `x`, held within 8 above."""
    log_p = log_gamma_p(shape, x)
    if log_p <= -math.log(2.0):
        return normal_score(log_p)
    rest = -math.expm1(log_p)
    return 8.0 if rest < 6.3e-16 else -normal_score(math.log(rest))


@njit
def log_prior(alpha, prior):
    """Return the log density of alpha (d,) under an `AlphaPrior`, up to a constant; -inf outside (0, inf)."""
    d = len(alpha)
    total, joined = 0.0, False
    for j in range(d):
        if not 0.0 < alpha[j] < math.inf:
            return -math.inf
        total += (prior.shape[j] - 1.0) * math.log(alpha[j]) - prior.rate[j] * alpha[j]
        for k in range(d):
            joined = joined or prior.precision[j, k] != 0.0
    if joined:
        scores = np.empty(d)
        for j in range(d):
            scores[j] = _score(prior.shape[j], prior.rate[j] * alpha[j])
        for j in range(d):
            for k in range(d):
                total -= 0.5 * scores[j] * prior.precision[j, k] * scores[k]
    return total


@njit
def log_likelihood(alpha, n, sums):
    """Return the log density of n compositions given alpha (d,), sums (d,) those of log x_j."""
    whole, total = 0.0, 0.0
    for j in range(len(alpha)):
        whole += alpha[j]
        total += (alpha[j] - 1.0) * sums[j] - n * math.lgamma(alpha[j])
    return total + n * math.lgamma(whole)


@njit
def whiten(alpha, n, prior, root):
    """Set `root` (d, d) to a lower factor of about the covariance of log alpha given n compositions.

    It is the inverse of the information at alpha, the prior's approximated by that of its gamma margins.
    """
    d = len(alpha)
    whole = 0.0
    for j in range(d):
        whole += alpha[j]
    shared = trigamma(whole)
    information, factor, inverse = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
    for j in range(d):
        for k in range(d):
            entry = trigamma(alpha[j]) - shared if j == k else -shared
            information[j, k] = n * alpha[j] * alpha[k] * entry
        information[j, j] += prior.shape[j]
    cholesky(information, factor)
    invert_lower(factor, inverse)
    covariance = product(inverse.T, inverse)
    cholesky(covariance, root)


class _Compositions(NamedTuple):
    """What log alpha is drawn given: n compositions with sums (d,) of log x_j; `alpha` (d,) is set."""

    n: float
    sums: Any
    prior: Any
    alpha: Any


@log_height.register
def _level(curve: _Compositions, point):
    alpha, jacobian = curve.alpha, 0.0
    for j in range(len(point)):
        if not abs(point[j]) < FARTHEST:
            return -math.inf
        alpha[j] = math.exp(point[j])
        jacobian += point[j]
    return log_prior(alpha, curve.prior) + log_likelihood(alpha, curve.n, curve.sums) + jacobian


@njit
def slice_alpha(rng, alpha, n, sums, prior, root, repeats):
    """Move alpha (d,) given n compositions with sums (d,) of log x_j, by slices within boxes.

    Their edges are along the columns of `root` (d, d), in log alpha.
    """
    d = len(alpha)
    point = np.empty(d)
    for j in range(d):
        point[j] = math.log(alpha[j])
    draw_in_box(rng, _Compositions(n, sums, prior, np.empty(d)), point, root, repeats)
    for j in range(d):
        alpha[j] = math.exp(point[j])
