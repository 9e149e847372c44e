"""A normal approximation of the statistic's law, whose cost does not depend on the number of records.

The means S0 of log max(x, a) over n records are taken to be N(mu, C / n), mu and C the moments given alpha of
the logarithms as they are censored (`dpmix.models.dirichlet.censored`; Guo, Barrientos and Pena take those of
uncensored ones). The Laplace noise of scale b is normal given its variances, which are exponential with mean
2 b^2 (Park and Casella 2008; Bernstein and Sheldon 2018). A sweep moves alpha given the variances, S0 being
integrated out, by slice sampling (Neal 2003, Figure 8); draws S0 given both; and the variances given S0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.models.base import ParametricChain
from dpmix.models.dirichlet.alpha import FARTHEST, WIDTH, log_prior, whiten
from dpmix.models.dirichlet.censored import CensoredMoments, censored_moments, make_moments
from dpmix.models.dirichlet.frame import Composition, Part, used_parts
from dpmix.models.dirichlet.joint import Learnt, learn, make_learnt
from dpmix.models.dirichlet.priors import AlphaPrior, prior_of
from dpmix.models.dirichlet.start import start_alpha
from dpmix.models.factors import cholesky
from dpmix.release import Release
from dpmix.spec.run import RunSpec

__all__ = ["NormalApproximation", "build"]

Floats = NDArray[np.float64]

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
    """Return the model of a spec given a release; see `dpmix.models.registry.build`."""
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

    def __init__(self, release: Release, parts: list[Part], prior: AlphaPrior) -> None:
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
def _solve(factor, rest):
    """Turn `rest` (d,) into the solution of factor z = rest, factor (d, d) lower."""
    for j in range(len(rest)):
        for k in range(j):
            rest[j] -= factor[j, k] * rest[k]
        rest[j] /= factor[j, j]


@njit
def _solve_back(factor, rest):
    """Turn `rest` (d,) into the solution of factor' z = rest, factor (d, d) lower."""
    for back in range(len(rest)):
        j = len(rest) - 1 - back
        for k in range(j + 1, len(rest)):
            rest[j] -= factor[k, j] * rest[k]
        rest[j] /= factor[j, j]


@njit
def _factorize(law, part, variances):
    """Factorize the covariance of what was released of a part, given the variances of its noise."""
    covariance = law.moments.covariance
    for j in range(len(covariance)):
        for k in range(len(covariance)):
            law.spread[j, k] = covariance[j, k] / law.sizes[part]
        law.spread[j, j] += variances[part, j]
    cholesky(law.spread, law.factor)


@njit
def _level(law, point, alpha, variances, rest):
    """Return the log density of `point` = log alpha given the variances (P, d), and set alpha."""
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
        _factorize(law, part, variances)
        for j in range(d):
            rest[j] = law.released[part, j] - law.moments.mean[j]
        _solve(law.factor, rest)
        for j in range(d):
            total -= 0.5 * rest[j] * rest[j] + math.log(law.factor[j, j])
    return total if total == total else -math.inf


@njit
def _slice(law, rng, alpha, variances, root, repeats):
    """Move alpha (d,) given the variances (P, d), within boxes along the columns of `root` (d, d)."""
    d = len(alpha)
    point, offered, trial, rest = np.log(alpha), np.empty(d), np.empty(d), np.empty(d)
    low, high, step = np.empty(d), np.empty(d), np.empty(d)
    now = _level(law, point, trial, variances, rest)
    for _ in range(repeats):
        bar = now - rng.standard_exponential()
        for j in range(d):
            low[j] = -WIDTH * rng.random()
            high[j] = low[j] + WIDTH
        while True:
            widest = 0.0
            for j in range(d):
                step[j] = low[j] + (high[j] - low[j]) * rng.random()
                widest = max(widest, high[j] - low[j])
            for j in range(d):
                offered[j] = point[j]
                for k in range(j + 1):
                    offered[j] += root[j, k] * step[k]
            found = _level(law, offered, trial, variances, rest)
            if found >= bar:
                point[:] = offered
                now = found
                break
            if widest < 1e-14:
                break
            for j in range(d):
                if step[j] < 0.0:
                    low[j] = step[j]
                else:
                    high[j] = step[j]
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
    _solve(law.factor, rest)
    _solve_back(law.factor, rest)
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
