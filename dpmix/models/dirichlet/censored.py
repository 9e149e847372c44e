"""Mean and covariance of log max(x, a) where x has a Dirichlet distribution.

With B_j = max(log a - log x_j, 0), log max(x_j, a) = log x_j + B_j: what is known of log x, digammas and
trigammas, is put right by integrals over x_j < a alone, in one dimension. Given x_j the other parts are 1 -
x_j times a Dirichlet vector independent of it, whence Cov(log x_i, B_j) = Cov(log(1 - x_j), B_j). Where both
x_i and x_j are below a, their density is the product of the margins times a smooth function of the two,
interpolated between a few points. At a >= 1/2 at most one part is above a, and the covariances follow from
the means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.gamma import digamma, log_beta, trigamma

__all__ = ["CensoredMoments", "censored_moments", "make_moments"]

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_POINTS = 8  # of interpolation
_PLACES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)  # of the way
_SIDES = np.sin(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS) * (-1.0) ** np.arange(_POINTS)
_DEEP = 40.0  # log density below its maximum that counts for nothing
_NONE = 1e-8  # of the variances, below which a covariance of censoring counts for nothing
_LEAST = 1e-10  # variance, where nearly all records are below a


class CensoredMoments(NamedTuple):
    """Mean (d,) and covariance (d, d) of log max(x, a); share (d,) of records below a; and bias (d,).

    The bias E B_j is by how much the mean exceeds that of log x. square: E B^2; with_rest: Cov(log(1 - x_j),
    B_j); edges (d, 2): where there is any mass below a; basis (d, points): expectations of B_j times the
    polynomials of x_j that are 1 at one of the points between these and 0 at the others.
    """

    mean: Floats
    covariance: Floats
    share: Floats
    bias: Floats
    square: Floats
    with_rest: Floats
    edges: Floats
    basis: Floats


def make_moments(d: int) -> CensoredMoments:
    """Return room for the moments of `d` parts."""
    return CensoredMoments(
        np.zeros(d),
        np.zeros((d, d)),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
        np.zeros((d, 2)),
        np.zeros((d, _POINTS)),
    )


@njit
def _height(alpha, beta, threshold, v):
    """Return the log density, up to a constant, of v = log(a / x) > 0 where x has a beta distribution."""
    return (beta - 1.0) * math.log1p(-threshold * math.exp(-v)) - alpha * v


@njit
def _far(alpha, beta, threshold, start, sign, step):
    """Return where the log density has fallen by _DEEP from `start`, or 0, in the direction of `sign`."""
    top = _height(alpha, beta, threshold, start)
    while start + sign * step > 0.0 and _height(alpha, beta, threshold, start + sign * step) > top - _DEEP:
        step *= 1.4
    return max(start + sign * step, 0.0)


@njit
def _add(moments, j, alpha, beta, threshold, constant, low, high):
    """Add the integrals over v from `low` to `high`; return that of log(1 - x)."""
    half = 0.5 * (high - low)
    least, width = moments.edges[j, 0], moments.edges[j, 1] - moments.edges[j, 0]
    logs = 0.0
    for k in range(len(_NODES)):
        v = low + half * (1.0 + _NODES[k])
        ratio = math.exp(-v)
        log_rest = math.log1p(-threshold * ratio)
        mass = half * _WEIGHTS[k] * math.exp(constant + (beta - 1.0) * log_rest - alpha * v)
        moments.share[j] += mass
        moments.bias[j] += mass * v
        moments.square[j] += mass * v * v
        logs += mass * v * log_rest
        place, total = (threshold * ratio - least) / width, 0.0
        for i in range(_POINTS):
            total += _SIDES[i] / (place - _PLACES[i])
        for i in range(_POINTS):
            moments.basis[j, i] += mass * v * _SIDES[i] / (place - _PLACES[i]) / total
    return logs


@njit
def _below(moments, j, alpha, beta, threshold):
    """Set what is integrated over x_j < a."""
    moments.share[j] = moments.bias[j] = moments.square[j] = moments.with_rest[j] = 0.0
    moments.basis[j, :] = 0.0
    constant = alpha * math.log(threshold) - log_beta(alpha, beta)
    mode = 0.0
    if beta > 1.0 and alpha < threshold * (alpha + beta - 1.0):
        mode = math.log(threshold * (alpha + beta - 1.0) / alpha)
    elif constant + _height(alpha, beta, threshold, 0.0) < -_DEEP:
        return
    low = _far(alpha, beta, threshold, mode, -1.0, 0.1 / math.sqrt(alpha + 1.0)) if mode > 0.0 else 0.0
    high = _far(alpha, beta, threshold, mode, 1.0, min(_DEEP / alpha, 1.0 / math.sqrt(alpha)))
    moments.edges[j, 0], moments.edges[j, 1] = threshold * math.exp(-high), threshold * math.exp(-low)
    # from here on x counts for nothing in 1 - x
    middle = low + 12.0 + math.log(max(1.0, beta * threshold))
    logs = _add(moments, j, alpha, beta, threshold, constant, low, min(middle, high))
    if middle < high:
        logs += _add(moments, j, alpha, beta, threshold, constant, middle, high)
    moments.with_rest[j] = logs - moments.bias[j] * (digamma(beta) - digamma(alpha + beta))


@njit
def _both(moments, alpha, whole, threshold, i, j):
    """Return E B_i B_j, for more than two parts and a < 1/2."""
    first, second = whole - alpha[i], whole - alpha[j]
    rest = whole - alpha[i] - alpha[j]
    constant = math.lgamma(first) - math.lgamma(whole) + math.lgamma(second) - math.lgamma(rest)
    least, width = moments.edges[i, 0], moments.edges[i, 1] - moments.edges[i, 0]
    lowest, height = moments.edges[j, 0], moments.edges[j, 1] - moments.edges[j, 0]
    total = 0.0
    for k in range(_POINTS):
        x = least + width * _PLACES[k]
        own = constant - (first - 1.0) * math.log1p(-x)
        for m in range(_POINTS):
            y = lowest + height * _PLACES[m]
            factor = own - (second - 1.0) * math.log1p(-y) + (rest - 1.0) * math.log1p(-x - y)
            total += moments.basis[i, k] * moments.basis[j, m] * math.exp(factor)
    return total


@njit
def censored_moments(alpha, threshold, moments):
    """Set the moments of log max(x, a), x Dirichlet of parameters `alpha` (d,), a = `threshold` in (0, 1)."""
    d = len(alpha)
    whole = 0.0
    for j in range(d):
        whole += alpha[j]
    shift, shared, floor = digamma(whole), trigamma(whole), math.log(threshold)
    mean, covariance = moments.mean, moments.covariance
    for j in range(d):
        _below(moments, j, alpha[j], whole - alpha[j], threshold)
        plain = digamma(alpha[j]) - shift
        mean[j] = plain + moments.bias[j]
        variance = trigamma(alpha[j]) - shared
        if moments.bias[j] > 0.0:
            above = mean[j] - floor
            variance += (plain - floor) ** 2 - moments.square[j] - above * above
        covariance[j, j] = max(variance, _LEAST)
    for j in range(d):
        for i in range(j):
            if threshold >= 0.5:
                value = -(mean[i] - floor) * (mean[j] - floor)
            else:
                value = moments.with_rest[i] + moments.with_rest[j] - shared
                size = moments.square[i] * moments.square[j]
                if size > (_NONE * shared) ** 2:
                    value -= moments.bias[i] * moments.bias[j]
                    if d > 2:
                        value += _both(moments, alpha, whole, threshold, i, j)
            most = 0.9999 * math.sqrt(covariance[i, i] * covariance[j, j])
            covariance[i, j] = covariance[j, i] = min(max(value, -most), most)
