"""Parameters alpha of a Dirichlet distribution: priors, moves given a database, and where chains start.

**Priors** are stated or taken from the first part of a release. p1: independent gammas, stated. From refits
of the bootstrap to the first part (Guo, Barrientos and Pena, section 3.3.1): p3, independent gammas fitted to
them by maximum likelihood, and p4, the same joined by a Gaussian copula with the correlation of their normal
scores. p2, the refits themselves, and p5, the posterior given the first part, are draws without a density,
for `dpmix.models.dirichlet.abc`.

**Moves** are given a database, that is n and sum_i log x_ij, under gamma priors joined by a Gaussian copula.

**Ties.** How much less of alpha a release tells than the records says where joint moves pay. With x the
records and T the sums of max(log x, log a), both draws of a plain sweep are those of a Gibbs sampler: alpha
given x, x given alpha and the release. Its slowest direction has an autocorrelation of 1 - I_r / I_x, the
least over directions (Liu 1994), where I_x and I_r are the information on alpha in the records and in the
release, and the prior's in both:

    I_x = n V,    I_r = n C (W + 2 s^2 / n)^-1 C'    (a sum over parts),

V the covariance of log x, C that of log x with max(log x, log a), W of the latter, and s the scale of the
noise on T. Scores of thresholds add what the numbers of records say given T. They are taken at an alpha that
the release tells, so that the same release gives the same number.

**Scores and offers.** Joint moves are offered by the means alone. Where these leave the numbers that the
scores are of the covariance S = G I^-1 G', I the information in the means and G the numbers' slopes in alpha,
and the scores' noise has the variance N, about (|N| / |N + S|)^(1/2) of the offers pass: next to none where
thresholds were chosen at a large epsilon2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.models.dirichlet.bootstrap import draw_refits, make_refits
from dpmix.models.dirichlet.latent_records import Scores, no_scores
from dpmix.models.dirichlet.mean_logarithms import dirichlet_mle, gamma_mle, in_range, release_generator
from dpmix.models.dirichlet.model import CompositionPart, parts_of, settings_of
from dpmix.numerics.bounded_normal import NEAR, quantile_beyond, quantile_near
from dpmix.numerics.factors import cholesky, invert_lower, product
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_in_box, log_height
from dpmix.numerics.special import log_gamma_p, trigamma
from dpmix.spec.model_section import GammaPrior

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]
FARTHEST = 690.0  # |log alpha| beyond which there is no mass
PAYS = 9.0  # ties from which joint moves pay, as measured: docs/compositions.md
_DRAWN = 4000  # records that covariances are taken of
_FEWEST, _MOST = 1000, 4000  # refits that a prior is fitted to
_RECORDS = 20_000_000  # that these may simulate, beyond the fewest
_TRIES_A_REFIT = 100  # times as many refits are tried
_RIDGE = 1e-6  # of a correlation
_TRIES = 100  # of noise to take away
_STEPS = 40  # of Newton's method
_BIGGEST = 1e6  # alpha to start from

# Priors, stated or taken from the first part of a release


class AlphaPrior(NamedTuple):
    """Gamma margins of the entries of alpha, joined by a Gaussian copula.

    Parameters
    ----------
    shape, rate : ndarray, shape (d,)
        Of the gamma margins.
    precision : ndarray, shape (d, d)
        The inverse R^-1 of the copula's correlation matrix, less the identity; zeros where the entries are
        independent. With z_j = Phi^-1(F_j(alpha_j)), the log density is the sum of the gammas' and of
        -z' precision z / 2, up to a constant.
    root : ndarray, shape (d, d)
        The lower Cholesky factor L of R, so that z = L u has correlation R for standard normal u.
    """

    shape: Floats
    rate: Floats
    precision: Floats
    root: Floats


def prior_of(spec: RunSpec, release: Release) -> AlphaPrior:
    """Return the prior of a spec that has a density: gamma, p3 or p4; p3 and p4 from the first of two parts.

    Refits are drawn by a generator that the release alone seeds: all chains have the same prior.

    Raises
    ------
    DataError
        When hardly any refit has an estimate.
    """
    prior = settings_of(spec).prior
    parts = parts_of(release)
    if isinstance(prior, GammaPrior):
        return gamma_prior(prior.shape, prior.rate, len(parts[0].released))
    assert prior in ("p3", "p4") and len(parts) == 2  # the spec and `used_parts` look
    refits = make_refits(parts[:1])
    alphas = np.empty((max(_FEWEST, min(_MOST, _RECORDS // refits.size)), len(refits.means)))
    drawn, tries = draw_refits(
        refits, release_generator(release, "prior"), alphas, _TRIES_A_REFIT * len(alphas)
    )
    if drawn < len(alphas):
        raise DataError(
            f"model.prior: {prior} is fitted to refits of simulated databases, and of {tries} only {drawn} "
            f"had a maximum likelihood estimate at the threshold {parts[0].threshold:g}; use a gamma "
            "{shape, rate}, or release with a smaller threshold"
        )
    return elicited(alphas, prior == "p4")


def gamma_prior(shape: float, rate: float, parts: int) -> AlphaPrior:
    """Return independent gamma priors, the same for each of `parts` entries (p1)."""
    return AlphaPrior(
        np.full(parts, float(shape)), np.full(parts, float(rate)), np.zeros((parts, parts)), np.eye(parts)
    )


def elicited(alphas: Floats, joined: bool) -> AlphaPrior:
    """Fit gamma margins to draws of alpha (m, d), and a Gaussian copula where they are `joined` (p4)."""
    m, d = alphas.shape
    fits = np.array([gamma_mle(column) for column in alphas.T])
    correlation = np.eye(d)
    if joined:
        from scipy.special import ndtri  # late: importing them takes longer than all else that a fit imports
        from scipy.stats import rankdata

        scores = ndtri(rankdata(alphas, axis=0) / (m + 1))
        correlation = (1.0 - _RIDGE) * np.corrcoef(scores, rowvar=False) + _RIDGE * np.eye(d)
    precision = np.linalg.inv(correlation) - np.eye(d) if joined else np.zeros((d, d))
    return AlphaPrior(
        fits[:, 0].copy(),
        fits[:, 1].copy(),
        precision,
        np.asarray(np.linalg.cholesky(correlation), dtype=np.float64),
    )


# Densities of alpha, and its moves given a database


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
def _score(shape, x):
    """Return Phi^-1 of the cdf of Gamma(shape, 1) at `x`, held within 8 above."""
    log_p = log_gamma_p(shape, x)
    if log_p <= -math.log(2.0):
        return normal_score(log_p)
    rest = -math.expm1(log_p)
    return 8.0 if rest < 6.3e-16 else -normal_score(math.log(rest))


@njit
def normal_score(log_p):
    """Return z with log Phi(z) = `log_p` <= log(1/2), to 1e-15 or so."""
    q = math.exp(log_p) - 0.5
    return quantile_near(q) if q >= -NEAR else -quantile_beyond(log_p)


@njit
def log_likelihood(alpha, n, sums):
    """Return the log density of n compositions given alpha (d,), sums (d,) those of log x_j."""
    whole, total = 0.0, 0.0
    for j in range(len(alpha)):
        whole += alpha[j]
        total += (alpha[j] - 1.0) * sums[j] - n * math.lgamma(alpha[j])
    return total + n * math.lgamma(whole)


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


# How much less a release tells of alpha than the records


def joint_pays(parts: list[CompositionPart], prior: AlphaPrior, scores: Scores | None = None) -> bool:
    """Return whether joint moves of alpha and the records give more effective draws for their time."""
    found, passed = tie(parts, prior, scores)
    return found * passed > PAYS


def tie(parts: list[CompositionPart], prior: AlphaPrior, scores: Scores | None = None) -> tuple[float, float]:
    """Return the largest ratio of I_x to I_r over directions, less one: 0 where the release tells it all.

    Beside it stands about what share of offers the scores let pass, 1 where there are none.
    """
    scores = no_scores() if scores is None else scores
    means = [possible(part.released, np.log(part.threshold)) for part in parts]
    alpha = np.clip(_estimate(parts, means), 1e-2, 1e4)
    d, rng = len(alpha), np.random.default_rng(0)
    logs = (
        np.log(rng.standard_gamma(alpha + 1.0, (_DRAWN, d))) - rng.standard_exponential((_DRAWN, d)) / alpha
    )
    logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
    kept = np.maximum(logs, np.log(parts[0].threshold))
    enough = logs.min(axis=1)[:, None] >= scores.levels
    first = np.diff(enough, axis=1, prepend=False)
    both = np.cov(np.hstack([logs, kept, first]).T)
    x, k, m = slice(d), slice(d, 2 * d), slice(2 * d, None)
    told = whole = np.diag(prior.rate**2 / prior.shape)
    spread = 0.5 / np.sinh(0.5 * np.clip(scores.rate, 1e-6, 30.0)) ** 2 * np.eye(len(scores.noisy))
    along, given = np.zeros((d, len(spread))), spread.copy()
    for part in parts:
        noise = 2.0 * part.size * part.scale**2
        cross, linked = both[x, k], both[m, k]
        inverse = np.linalg.inv(both[k, k] + noise * np.eye(d))
        told = told + part.size * cross @ inverse @ cross.T
        whole = whole + part.size * both[x, x]
        along += part.size * (both[x, m] - cross @ inverse @ linked.T)
        given += part.size * (both[m, m] - linked @ inverse @ linked.T)
    slopes = sum(part.size for part in parts) * both[m, x]
    offered = spread + slopes @ np.linalg.solve(told, slopes.T)
    passed = math.exp(0.5 * (np.linalg.slogdet(spread)[1] - np.linalg.slogdet(offered)[1]))
    told = told + along @ np.linalg.solve(given, along.T)
    return float(np.linalg.eigvals(np.linalg.solve(told, whole)).real.max() - 1.0), passed


# Where chains over alpha and a latent database start: about what the release says


def start_alpha(rng: Generator, parts: list[CompositionPart]) -> tuple[Floats, list[Floats]]:
    """Return an alpha (d,), and for each part means of log max(x, a), (d,), for a database to have.

    The means are the released ones less noise, and alpha their maximum likelihood estimate, where noise is
    found that leaves them possible; else both are drawn about what is possible.
    """
    means = [_possible(rng, part) for part in parts]
    return np.clip(_estimate(parts, means), 1e-3, _BIGGEST), means


def _estimate(parts: list[CompositionPart], means: list[Floats]) -> Floats:
    """Return the maximum likelihood estimate of alpha given means (d,) of parts; ones where there is none."""
    alpha = np.ones(len(means[0]))
    dirichlet_mle(np.average(means, axis=0, weights=[float(part.size) for part in parts]), alpha)
    return alpha


def _possible(rng: Generator, part: CompositionPart) -> Floats:
    """Return released means less noise, made possible by taking more noise away, or else by force."""
    low = np.log(part.threshold)
    for _ in range(_TRIES):
        means = part.released - rng.laplace(0.0, part.scale, len(part.released))
        if (means > low).all() and in_range(means):
            return means
    return possible(part.released, low)


def possible(released: Floats, low: float) -> Floats:
    """Return means (d,) of log max(x, a) close to those released that compositions can have; low: log a."""
    if (released > low).all() and in_range(released):
        return released
    means = np.clip(released, 0.9 * low, -1e-3)
    while not in_range(means):
        means = np.maximum(means - 0.1, low + np.log1p(-0.5 / len(means)))
        if (means <= low + 1e-9).any():
            break
    excess = np.log(np.exp(means).sum())
    return means if in_range(means) else means - excess - 0.05


def matched(logs: Floats, means: Floats, floor: float) -> Floats:
    """Return log compositions (d, n) turned so that means of max(log x, floor) are `means`, or come close.

    Records x become x_j^b e^(c_j), made to sum to one, by Newton's method: where there is hardly any noise,
    no sweep of the records would get there.
    """
    d = len(means)
    turn = np.zeros(d)
    gap = _censored_means(logs, floor, turn) - means
    slope = np.empty((d, d))
    for _ in range(_STEPS):
        if np.abs(gap).max() <= 1e-15 * np.abs(means).max():
            break
        for k in range(d):
            ahead = turn.copy()
            ahead[k] += 1e-6
            slope[:, k] = (_censored_means(logs, floor, ahead) - gap - means) / 1e-6
        try:
            step = np.linalg.solve(slope, gap)
        except np.linalg.LinAlgError:
            break
        scale = min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        for _ in range(20):
            trial = turn - scale * step
            found = _censored_means(logs, floor, trial) - means
            if np.abs(found).sum() < np.abs(gap).sum():
                break
            scale *= 0.5
        else:
            break
        turn, gap = trial, found
    return _turned(logs, turn)


def _turned(logs: Floats, turn: Floats) -> Floats:
    """Return the logs (d, n) of x_j^b e^(c_j), made to sum to one; turn (d,): c_1, .., c_(d-1), log b."""
    moved = np.exp(turn[-1]) * logs
    moved[:-1] += turn[:-1, None]
    return np.asarray(moved - np.logaddexp.reduce(moved, axis=0))


def _censored_means(logs: Floats, floor: float, turn: Floats) -> Floats:
    """Return the means (d,) of max(log x, floor) over the records that `turn` makes."""
    return np.asarray(np.maximum(_turned(logs, turn), floor).mean(axis=1))
