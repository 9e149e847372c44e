"""What parametric models will tell given a statistic: normal approximations in closed form or by simulation.

With t the mean over records of f(x), J = dE f/dphi and V = cov f / n + noise, the information about phi is
J'V^-1 J, to which the prior's precision is added (methods, section 13). The reference is the model at the
means of its priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.mechanisms.laws.additive import noise_variance

if TYPE_CHECKING:
    from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
    from dpmix.mechanisms.log_moments.law import LogMomentsLaw
    from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
    from dpmix.mechanisms.randomized_response.law import RandomizedResponseLaw

Floats = NDArray[np.float64]
Expected = dict[str, tuple[float, float]]
"""Posterior and prior standard deviations by quantity; the latter infinite where there is no prior."""

_DRAWS = 40_000
_STEP = 1e-3
_SEED = 22
_KNOWN = 1e-12  # relative variance of what is known


def naive_bayes(law: NoisyCountsLaw, n: int, prior: float, names: Sequence[str]) -> Expected:
    """Return those of classes and levels: noisy counts of classes and levels that are all as likely.

    Each of the K features counts every record of a class, in L_k noisy numbers of variance v: together they
    tell its size with variance v / sum_k (1 / L_k). A level's share q within a class of n_i records has
    q (1 - q) / n_i + v ((1 - q)^2 + q^2 (L - 1)) / n_i^2. Shares have the variance of their Dirichlet priors.
    """
    classes, v = law.classes, noise_variance(law.noise, law.scale[0])
    groups = law.group_names or ("",)
    size = n / len(groups)
    found: Expected = {}
    for group in groups:
        head = f"{group}," if group else ""
        p = 1.0 / classes
        told = v / sum(1.0 / levels for levels in law.levels)
        if classes > 1:
            both = _told(p * (1 - p) / size + told / size**2, p * (1 - p) / (classes * prior + 1.0))
            found |= {f"p[{head}{i + 1}]": both for i in range(classes)}
        for k, levels in enumerate(law.levels):
            q, own = 1.0 / levels, size / classes
            cells = v * ((1 - q) ** 2 + q * q * (levels - 1)) / own**2
            both = _told(q * (1 - q) / own + cells, q * (1 - q) / (levels * prior + 1.0))
            found[f"p_feature_{k + 1}[{group}]" if group else f"p_feature_{k + 1}"] = both
    return found


def randomized_bayes(law: RandomizedResponseLaw, n: int, prior: float) -> Expected:
    """Return those of classes and levels given randomized response to each column, the class last.

    Of a feature with L levels and I classes the pairs that are answered have chances (A_L x A_I) p, where
    A_K = 1 / (r + K - 1) + (r - 1) / (r + K - 1) 1[same]. There are as many of them as of p, so that its
    estimate is by the inverse; a quantity with gradient d has variance w'(diag g - g g')w / n, w = A^-T d.
    """
    classes = law.sizes[-1]
    found: Expected = {}
    p = 1.0 / classes
    for k, levels in enumerate(law.sizes[:-1]):
        q = 1.0 / levels
        g = np.full((levels, classes), q * p)  # even shares stay even
        own = np.zeros((levels, classes))
        own[:, 0] = -q / p
        own[0, 0] += 1.0 / p
        both = _told(_of_pairs(law, own, g) / n, q * (1 - q) / (levels * prior + 1.0))
        found[f"p_feature_{k + 1}"] = both
    shares = np.zeros((1, classes))
    shares[0, 0] = 1.0
    told = _of_pairs(law, shares, np.full((1, classes), p)) / n
    both = _told(told, p * (1 - p) / (classes * prior + 1.0))
    return {f"p[{name}]": both for name in law.categories[-1]} | found


def _of_pairs(law: RandomizedResponseLaw, gradient: Floats, g: Floats) -> float:
    """Return w'(diag g - g g')w for a gradient by pairs of levels and classes."""
    w = gradient
    for axis, size in enumerate(gradient.shape):
        if size > 1:
            slope = (law.odds - 1.0) / (law.odds + size - 1.0)
            total = w.sum(axis=axis, keepdims=True) / (law.odds + size - 1.0)
            w = (w - total) / slope
    return float((g * w * w).sum() - (g * w).sum() ** 2)


def multinomial(law: RandomizedResponseLaw, n: int, prior: Floats) -> Expected:
    """Return those of the shares of categories, at the means of their prior.

    Answers have chances g = (1 + (r - 1) p) / (r + K - 1): information n ((r - 1) / (r + K - 1))^2 diag(1/g)
    about p, of sum 1, plus that of a normal prior with the Dirichlet's covariance.
    """
    total = float(prior.sum())
    p, k = prior / total, len(prior)
    before = (np.diag(p) - np.outer(p, p)) / (total + 1.0)
    slope = (law.odds - 1.0) / (law.odds + k - 1.0)
    told = n * slope**2 * np.diag(1.0 / law.chances(p))
    basis = np.vstack([np.eye(k - 1), -np.ones(k - 1)])
    precision = basis.T @ told @ basis + np.linalg.inv(before[:-1, :-1])
    after = basis @ np.linalg.inv(precision) @ basis.T
    return {
        f"p[{name}]": (float(after[i, i] ** 0.5), float(before[i, i] ** 0.5))
        for i, name in enumerate(law.categories[0])
    }


def dirichlet(law: LogMomentsLaw, n: int, shape: float, rate: float, names: Sequence[str]) -> Expected:
    """Return those of alpha and of mean shares, at the prior mean of alpha.

    Derivatives of E log max(x, a) by alpha are its covariances with the scores log x_j - E log x_j.
    """
    d = law.components
    alpha = np.full(d, shape / rate)
    rng = np.random.default_rng(_SEED)
    logs = _log_dirichlet(alpha, rng)
    seen = np.maximum(logs, np.log(law.threshold))
    score = logs - (special.digamma(alpha) - special.digamma(alpha.sum()))
    centred = seen - seen.mean(axis=0)
    slopes, spread = centred.T @ score / len(logs), centred.T @ centred / len(logs)
    groups = law.group_names
    precision = np.eye(d) * (rate**2 / shape)
    if groups:
        size = n / len(groups)
        off = seen.mean(axis=0) - float(law.centre)
        noise = 2.0 * law.scale[1] ** 2 * np.eye(d) + 2.0 * law.scale[0] ** 2 * np.outer(off, off)
        told = slopes.T @ np.linalg.solve(spread / size + noise / size**2, slopes)
    else:
        told = np.zeros((d, d))
        for size, scale in zip(law.parts, law.scale, strict=True):
            told += slopes.T @ np.linalg.solve(spread / size + 2.0 * scale**2 * np.eye(d), slopes)
    after: Floats = np.asarray(np.linalg.inv(told + precision), dtype=np.float64)
    before: Floats = np.eye(d) * (shape / rate**2)
    share = alpha / alpha.sum()
    turn = (np.eye(d) - share[:, None]) / alpha.sum()
    found: Expected = {}
    for group in groups or ("",):
        head = f"{group}," if group else ""
        for what, matrix in (("alpha", np.eye(d)), ("mean", turn)):
            pairs = zip(_sds(matrix, after), _sds(matrix, before), strict=True)
            found |= {f"{what}[{head}{name}]": pair for name, pair in zip(names, pairs, strict=True)}
    return found


@dataclass(frozen=True)
class Predictors:
    """Predictors of a regression by their prior, of variables rescaled to [-1, 1].

    Parameters
    ----------
    mean : float64 array (p,)
    covariance : float64 array (p, p)
        What it is expected to be.
    weight : float
        The mean varies by the covariance over this; infinite where it is known.
    freedom : float
        Degrees of freedom of the covariance, p - 1 and more; infinite where it is known.
    """

    mean: Floats
    covariance: Floats
    weight: float
    freedom: float

    def of_covariance(self) -> Floats:
        """Return the prior covariance of the lower triangle's entries, row by row.

        With M the mean and m = freedom - p - 1 it is
        (2 M_ij M_kl + m (M_ik M_jl + M_il M_jk)) / ((m + 1)(m - 2)).
        Where there is none, up to m = 2, that of m = 4 stands for it, as wide as the default's.
        """
        i, j = np.tril_indices(len(self.mean))
        if math.isinf(self.freedom):
            return np.zeros((len(i), len(i)))
        own, m = self.covariance, self.freedom - len(self.mean) - 1.0
        m = m if m > 2.0 else 4.0
        both = own[np.ix_(i, i)] * own[np.ix_(j, j)] + own[np.ix_(i, j)] * own[np.ix_(j, i)]
        return np.asarray((2.0 * np.outer(own[i, j], own[i, j]) + m * both) / ((m + 1.0) * (m - 2.0)))


def regression(
    law: ClampedMomentsLaw,
    n: int,
    beta: Floats,
    beta_sd: Floats,
    errors: tuple[float, float],
    x: Predictors,
    turn: Floats,
    names: Sequence[str],
    *,
    clamped: bool = False,
    truncated: bool = False,
) -> Expected:
    """Return those of the coefficients, in the units of the data.

    Parameters
    ----------
    law : ClampedMomentsLaw
    n : int
    beta, beta_sd : float64 arrays (q,)
        Prior means and standard deviations, of variables rescaled to [-1, 1].
    errors : (float, float)
        Mean and variance of the prior of the errors' variance; 0 where it is known.
    x : Predictors
    turn : float64 array (q, q)
        From these coefficients to those of the data's units.
    names : sequence of str
        Of the coefficients.
    clamped : bool
        Whether the line is in clamped predictors.
    truncated : bool
        Whether errors are truncated so that responses lie within their bounds.
    """
    p = len(beta) - 1
    rng = np.random.default_rng(_SEED)
    z = rng.standard_normal((_DRAWS, p + 1))
    z = (z - z.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(z.T))).T
    rows, columns = np.tril_indices(p)

    def entries(phi: Floats) -> Floats:
        b, spread, centre = phi[: p + 1], phi[p + 1], phi[p + 2 : 2 * p + 2]
        matrix = np.zeros((p, p))
        matrix[rows, columns] = phi[2 * p + 2 :]
        matrix = matrix + np.tril(matrix, -1).T
        predictors = centre + z[:, :p] @ np.linalg.cholesky(matrix).T
        inside = np.clip(predictors, -1.0, 1.0)
        line = b[0] + (inside if clamped else predictors) @ b[1:]
        sd = np.sqrt(spread)
        if truncated:
            side, far = np.where(line < 0.0, -1.0, 1.0), abs(line)  # by the tail that is told exactly
            low, high = special.ndtr((-1.0 - far) / sd), special.ndtr((1.0 - far) / sd)
            y = side * (far + sd * special.ndtri(low + special.ndtr(side * z[:, p]) * (high - low)))
        else:
            y = line + sd * z[:, p]
        y = np.clip(y, -1.0, 1.0)
        ones = np.column_stack([np.ones(len(y)), inside])
        upper = [ones[:, i] * ones[:, j] for i in range(p + 1) for j in range(i, p + 1) if j]
        return np.column_stack([ones * y[:, None], y * y, *upper])

    phi = np.concatenate([beta, [errors[0]], x.mean, x.covariance[rows, columns]])
    unit = np.where(phi == 0.0, 1.0, np.abs(phi))
    wide = np.sqrt(np.diag(x.covariance))
    unit[2 * p + 2 :] = wide[rows] * wide[columns]
    slopes = _slopes(entries, phi, unit)
    there = entries(phi)
    spread = np.cov(there.T)
    scale, groups = law.scale[-1], law.group_names
    size = n / max(1, len(groups))
    v = noise_variance(law.noise, scale)
    noise = v * np.eye(len(spread))
    if groups:
        off = there.mean(axis=0) - np.asarray(law.centre, dtype=np.float64)
        noise += noise_variance(law.noise, law.scale[0]) * np.outer(off, off)
    told = slopes.T @ np.linalg.solve(spread / size + noise / size**2, slopes)
    before = np.diag(_KNOWN * unit**2)
    place = 0
    for part in (np.diag(beta_sd**2), [[errors[1]]], x.covariance / x.weight, x.of_covariance()):
        end = place + len(part)
        before[place:end, place:end] += part
        place = end
    after = np.linalg.inv(told + np.linalg.inv(before))[: p + 1, : p + 1]
    pairs = list(zip(_sds(turn, after), _sds(turn, np.diag(beta_sd**2)), strict=True))
    found: Expected = {}
    for group in groups or ("",):
        head = f"{group}," if group else ""
        found |= {f"beta[{head}{name}]": pair for name, pair in zip(names, pairs, strict=True)}
    return found


def _told(variance: float, before: float) -> tuple[float, float]:
    return float((1.0 / (1.0 / variance + 1.0 / before)) ** 0.5), float(before**0.5)


def _sds(matrix: Floats, covariance: Floats) -> list[float]:
    return [float(v**0.5) for v in np.einsum("ij,jk,ik->i", matrix, covariance, matrix)]


def _log_dirichlet(alpha: Floats, rng: np.random.Generator) -> Floats:
    """Draw logarithms of shares: of gammas of shape a + 1 times U^(1/a), so that none is log 0."""
    shape = (_DRAWS, len(alpha))
    logs = np.log(rng.standard_gamma(np.broadcast_to(alpha + 1.0, shape)))
    logs += np.log(1.0 - rng.random(shape)) / alpha
    return np.asarray(logs - special.logsumexp(logs, axis=1, keepdims=True))


def _slopes(entries: Callable[[Floats], Floats], phi: Floats, unit: Floats) -> Floats:
    """Return derivatives (entries, phi) of means over the same draws, by central differences."""
    found = []
    for i, width in enumerate(unit):
        step = np.zeros(len(phi))
        step[i] = _STEP * width
        found.append((entries(phi + step).mean(axis=0) - entries(phi - step).mean(axis=0)) / (2.0 * step[i]))
    return np.stack(found, axis=1)
