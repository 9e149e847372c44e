"""A normal approximation of the statistic's law, whose cost does not depend on the number of records.

The means S0 of log max(x, a) over n records are taken to be N(mu, C / n), mu and C the moments given alpha of
the logarithms as they are censored (Guo, Barrientos and Pena take those of uncensored ones). The Laplace
noise of scale b is normal given its variances, which are exponential with mean 2 b^2 (Park and Casella 2008;
Bernstein and Sheldon 2018). A sweep moves alpha given the variances, S0 being integrated out, by slice
sampling (Neal 2003, Figure 8); draws S0 given both; and the variances given S0.

It is given the means alone: scores that the threshold was chosen by are left out, and it is taken for fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.models.dirichlet.alpha import FARTHEST, AlphaPrior, log_prior, prior_of, start_alpha, whiten
from dpmix.models.dirichlet.joint import Learnt, learn, make_learnt
from dpmix.models.dirichlet.model import Composition, CompositionPart, used_parts
from dpmix.numerics.factors import cholesky, solve_lower, solve_transposed
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_in_box, log_height
from dpmix.numerics.special import digamma, log_beta, trigamma
from dpmix.run.model_protocols import ParametricChain

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

# Mean and covariance of log max(x, a) where x has a Dirichlet distribution.
#
# With B_j = max(log a - log x_j, 0), log max(x_j, a) = log x_j + B_j: what is known of log x, digammas and
# trigammas, is put right by integrals over x_j < a alone, in one dimension. Given x_j the other parts are 1 -
# x_j times a Dirichlet vector independent of it, whence Cov(log x_i, B_j) = Cov(log(1 - x_j), B_j). Where
# both x_i and x_j are below a, their density is the product of the margins times a smooth function of the
# two, interpolated between a few points. At a >= 1/2 at most one part is above a, and the covariances follow
# from the means.

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
def _both(moments, alpha, whole, i, j):
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
                        value += _both(moments, alpha, whole, i, j)
            most = 0.9999 * math.sqrt(covariance[i, i] * covariance[j, j])
            covariance[i, j] = covariance[j, i] = min(max(value, -most), most)


REPEATS = 2  # slice updates of alpha in a sweep


class Approximation(NamedTuple):
    """What is known of P parts, and room.

    released (P, d); sizes (P,) of parts; scales (P,) of noise; threshold a; prior; factor, spread (d, d).
    """

    released: Any
    sizes: Any
    scales: Any
    threshold: float
    prior: AlphaPrior
    moments: CensoredMoments
    factor: Any
    spread: Any


def build(spec: RunSpec, release: Release) -> NormalApproximation:
    """Return the model of a spec given a release; see `dpmix.api.task.build`."""
    return NormalApproximation(release, used_parts(spec, release), prior_of(spec, release))


class NormalApproximation(Composition):
    """Compositions given noisy log moments, the statistic before noise taken to be normal.

    Parameters
    ----------
    release : Release
    parts : list of Part
        Those that the likelihood is of.
    prior : AlphaPrior
    """

    def __init__(self, release: Release, parts: list[CompositionPart], prior: AlphaPrior) -> None:
        super().__init__(release)
        self.parts, self.prior = parts, prior

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> NormalChain:
        """Return a chain at a start drawn about the release."""
        return NormalChain(self, rng)


class NormalChain(ParametricChain):
    """A chain over alpha and the variances of the noise."""

    model: NormalApproximation

    def __init__(self, model: NormalApproximation, rng: Generator) -> None:
        parts, d = model.parts, model.components
        self._law = Approximation(
            np.array([part.released for part in parts]),
            np.array([float(part.size) for part in parts]),
            np.array([part.scale for part in parts]),
            parts[0].threshold,
            model.prior,
            make_moments(d),
            np.empty((d, d)),
            np.empty((d, d)),
        )
        self.alpha = start_alpha(rng, parts)[0]
        self.variances = 2.0 * self._law.scales[:, None] ** 2 * rng.standard_exponential((len(parts), d))
        root = np.empty((d, d))
        whiten(self.alpha, sum(part.size for part in parts), model.prior, root)
        self.learnt = make_learnt(self.alpha, root)
        state = {"alpha": self.alpha, "variances": self.variances}
        state |= {f"learnt_{name}": getattr(self.learnt, name) for name in Learnt._fields}
        super().__init__(model, rng, state)

    def sweep(self, count: int) -> None:
        """Sweep over alpha and the variances; the moves of alpha learn in burn-in alone."""
        _sweeps(self._law, self.rng, self.alpha, self.variances, self.learnt, self.burning_in, count)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write alpha, and draw a record."""
        self.model.write(row, out, self.alpha, self.rng)


@njit
def _factorize(law, part, variances):
    """Factorize the covariance of what was released of a part, given the variances of its noise."""
    covariance = law.moments.covariance
    for j in range(len(covariance)):
        for k in range(len(covariance)):
            law.spread[j, k] = covariance[j, k] / law.sizes[part]
        law.spread[j, j] += variances[part, j]
    cholesky(law.spread, law.factor)


class _Given(NamedTuple):
    """What log alpha is drawn given: the variances (P, d); `alpha` (d,) and `rest` (d,) are set."""

    law: Any
    variances: Any
    alpha: Any
    rest: Any


@log_height.register
def _level(curve: _Given, point):
    law, alpha, rest = curve.law, curve.alpha, curve.rest
    d = len(point)
    total = 0.0
    for j in range(d):
        if not abs(point[j]) < FARTHEST:
            return -math.inf
        alpha[j] = math.exp(point[j])
        total += point[j]
    total += log_prior(alpha, law.prior)
    if not total > -math.inf:
        return -math.inf
    censored_moments(alpha, law.threshold, law.moments)
    for part in range(len(law.sizes)):
        _factorize(law, part, curve.variances)
        for j in range(d):
            rest[j] = law.released[part, j] - law.moments.mean[j]
        solve_lower(law.factor, rest)
        for j in range(d):
            total -= 0.5 * rest[j] * rest[j] + math.log(law.factor[j, j])
    return total if total == total else -math.inf


@njit
def _slice(law, rng, alpha, variances, root, repeats):
    """Move alpha (d,) given the variances (P, d), within boxes along the columns of `root` (d, d)."""
    d = len(alpha)
    point = np.log(alpha)
    draw_in_box(rng, _Given(law, variances, np.empty(d), np.empty(d)), point, root, repeats)
    for j in range(d):
        alpha[j] = math.exp(point[j])


@njit
def _draw_variance(rng, noise, scale):
    """Draw the variance of a Laplace variable given its value: scale^2 over an inverse Gaussian variable.

    That has mean scale / |noise| and shape 1; of its two roots (Michael, Schucany and Haas 1976) the smaller
    is told from the larger, without cancellation.
    """
    mean = scale / max(abs(noise), 1e-100 * scale)
    v = rng.standard_normal() ** 2
    larger = mean * (1.0 + 0.5 * mean * v + 0.5 * math.sqrt(mean * v * (4.0 + mean * v)))
    smaller = mean * (mean / larger)
    drawn = smaller if rng.random() * (mean + smaller) <= mean else larger
    return scale * scale / drawn


@njit
def _draw_noise(law, rng, variances, part, own, rest, root):
    """Draw the noise of a part, given alpha and the variances, into `own` (d,)."""
    d = len(own)
    covariance, mean = law.moments.covariance, law.moments.mean
    _factorize(law, part, variances)
    cholesky(covariance, root)
    size = math.sqrt(law.sizes[part])
    for j in range(d):
        rest[j] = rng.standard_normal()
    for j in range(d):
        own[j] = math.sqrt(variances[part, j]) * rng.standard_normal()
    # a draw of the statistic and one of the noise, moved to add up to what was released
    for back in range(d):
        j = d - 1 - back
        value = 0.0
        for k in range(j + 1):
            value += root[j, k] * rest[k]
        rest[j] = law.released[part, j] - mean[j] - value / size - own[j]
    solve_lower(law.factor, rest)
    solve_transposed(law.factor, rest)
    for j in range(d):
        own[j] += variances[part, j] * rest[j]


@njit
def _sweeps(law, rng, alpha, variances, learnt, learning, count):
    """Do `count` sweeps."""
    d = len(alpha)
    own, rest, root = np.empty(d), np.empty(d), np.empty((d, d))
    for _ in range(count):
        _slice(law, rng, alpha, variances, learnt.root, REPEATS)
        if learning:
            learn(learnt, alpha)
        censored_moments(alpha, law.threshold, law.moments)
        for part in range(len(law.sizes)):
            _draw_noise(law, rng, variances, part, own, rest, root)
            for j in range(d):
                variances[part, j] = _draw_variance(rng, own[j], law.scales[part])
