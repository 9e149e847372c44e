"""What a release of clamped moments will tell of a regression, before there is one: a normal approximation.

With t the mean over records of f(x), J = dE f/dphi and V = cov f / n + noise, the information about phi is
J'V^-1 J, to which the prior's precision is added (methods, section 13), at the means of the priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpmix.kernels.multivariate_normal.section import niw_from_bounds
from dpmix.laws.additive import noise_variance
from dpmix.laws.every import Law, expect
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.models.meaning_base import Expected, sds_of
from dpmix.spec.describe import bounds_of_two, predictors_of_two
from dpmix.spec.model_section import ERRORS_SCALE, ERRORS_SHAPE

if TYPE_CHECKING:
    from dpmix.models.linear_regression.conjugate_draws import Units
    from dpmix.spec import RunSpec

Floats = NDArray[np.float64]

_DRAWS = 40_000
_STEP = 1e-3
_SEED = 22
_KNOWN = 1e-12  # relative variance of what is known
_OF_CAUCHY = 1.4826
"""Standard deviation of the normal law with the quartiles of the Cauchy law of scale 1."""
_OF_TWO = 25.0
"""Variance, on [-1, 1], of a latent predictor of which nearly all lies at its bounds."""


def expected_of_line(law: Law, model: Any, n: int, spec: RunSpec) -> Expected:
    """Return what is expected of a regression whose priors are those of the model, rescaled."""
    from dpmix.models.linear_regression.conjugate_draws import Units  # late: compiled code
    from dpmix.models.linear_regression.model import check_widths

    law = expect(law, ClampedMomentsLaw)
    units, p = Units.of(law.bounds), len(law.bounds) - 1
    check_widths(model, p)
    beta, sd = map(np.array, model.coefficients(p + 1))
    if model.prior_sd == "learned":
        sd = _OF_CAUCHY * sd
    square = float(units.half[-1]) ** 2
    a, b = model.sigma2_prior.a, model.sigma2_prior.b
    scale = ERRORS_SCALE if b == "learned" else float(b) / square
    mean = scale / (a - 1.0) if a > 1.0 else scale / ERRORS_SHAPE
    errors = (mean, mean**2 / (a - 2.0) if a > 2.0 else mean**2)
    if b == "learned":  # the scale: its square is three times that of its mean
        errors = (mean, mean**2 * (3.0 * (a - 1.0) / (a - 2.0) - 1.0) if a > 2.0 else 3.0 * mean**2)
    if model.sigma2 is not None:
        errors = (float(model.sigma2) / square, 0.0)
    origin = units.coefficients(np.zeros((1, p + 1)))[0]
    turn = units.coefficients(np.eye(p + 1)).T - origin[:, None]
    own = [str(name) for name in law.columns]
    places = own[:p] if len(set(own[:p])) == p and len(own) == p + 1 else [str(i + 1) for i in range(p)]
    return _approximated(
        law,
        n,
        beta,
        sd,
        errors,
        _predictors(model, units, bounds_of_two(spec)),
        turn,
        ["intercept", *places],
        clamped=model.predictors == "clamped",
        truncated=model.response == "truncated",
    )


def predictors_taken(spec: RunSpec, model: Any) -> list[str]:
    """Say what a regression's predictors are taken to be where nobody states how they vary."""
    from dpmix.models.linear_regression.conjugate_draws import Units  # late: compiled code

    assert spec.mechanism is not None  # the caller looked
    found = [text.removeprefix("note: ") for text in predictors_of_two(spec)]
    if model.x_cov is not None or isinstance(model.x_prior.Psi, tuple):
        return found
    pairs = getattr(spec.mechanism, "bounds", None) or spec.mechanism.domain or ()
    units, two = Units.of(pairs), bounds_of_two(spec)
    named = () if spec.data is None else spec.data.columns or ()
    found_of = _predictors(model, units, two).covariance * units.covariance()
    names = named if len(named) == len(pairs) else [f"predictor {i + 1}" for i in range(len(pairs))]
    taken = [
        f"{name} to be {pairs[i][0]:g} or {pairs[i][1]:g}, half of the records each"
        if i in two and model.predictors == "clamped"
        else f"{name} to have a standard deviation of {found_of[i, i] ** 0.5:.3g}"
        for i, name in enumerate(names[:-1])
    ]
    return [
        *found,
        f"model.x_prior.Psi: learned, so that advice takes {', '.join(taken)}; slopes are told the better "
        "the more a predictor varies: state Psi, or model.x_cov, by what is public of it",
    ]


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
    learned : bool
        Whether its scales are learned: given these the covariance is as expected times them over their means.
    """

    mean: Floats
    covariance: Floats
    weight: float
    freedom: float
    learned: bool = False

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
        found = np.asarray((2.0 * np.outer(own[i, j], own[i, j]) + m * both) / ((m + 1.0) * (m - 2.0)))
        if self.learned:  # the mean square of a gamma of shape 1/2 is three times that of its mean
            at = np.flatnonzero(i == j)
            found[at, at] += 2.0 * (found[at, at] + np.diagonal(own) ** 2)
        return found


def _predictors(model: Any, units: Units, two: Container[int]) -> Predictors:
    """Return predictors at the means of their priors, rescaled; those of `two` values at their bounds.

    These are of a line in clamped predictors whose covariance nobody states, half of the records at each.
    """
    prior, p = model.x_prior, len(units.half) - 1
    default = niw_from_bounds([(-1.0, 1.0)] * p)
    freedom = default.nu if prior.nu is None else float(prior.nu)
    known = model.x_mean if model.x_mean is not None else prior.mu0
    mean = np.array(default.mu0) if known is None else units.rescaled(np.array(known))
    weight = math.inf if model.x_mean is not None else float(prior.lambda_)
    if model.x_cov is not None:
        return Predictors(mean, np.array(model.x_cov) / units.covariance(), weight, math.inf)
    stated = isinstance(prior.Psi, tuple)
    psi = np.array(prior.Psi) / units.covariance() if stated else np.diag(default.psi)
    spare = freedom - p - 1.0
    covariance = psi / (spare if spare > 0.0 else freedom)  # the harmonic mean where there is no other
    if not stated and model.predictors == "clamped":
        own = np.sqrt([_OF_TWO / covariance[i, i] if i in two else 1.0 for i in range(p)])
        covariance = covariance * np.outer(own, own)
    return Predictors(mean, covariance, weight, freedom, prior.Psi == "learned")


def _approximated(
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
    pairs = list(zip(sds_of(turn, after), sds_of(turn, np.diag(beta_sd**2)), strict=True))
    found: Expected = {}
    for group in groups or ("",):
        head = f"{group}," if group else ""
        found |= {f"beta[{head}{name}]": pair for name, pair in zip(names, pairs, strict=True)}
    return found


def _slopes(entries: Callable[[Floats], Floats], phi: Floats, unit: Floats) -> Floats:
    """Return derivatives (entries, phi) of means over the same draws, by central differences."""
    found = []
    for i, width in enumerate(unit):
        step = np.zeros(len(phi))
        step[i] = _STEP * width
        found.append((entries(phi + step).mean(axis=0) - entries(phi - step).mean(axis=0)) / (2.0 * step[i]))
    return np.stack(found, axis=1)
