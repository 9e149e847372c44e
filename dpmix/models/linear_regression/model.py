"""Linear regression given noisy clamped moments: the posterior on the original scale, and predictions.

Data augmentation over records of predictors and response (`dpmix.models.linear_regression.latent_records`),
conjugate draws of the parameters given these (`dpmix.models.linear_regression.conjugate_draws`), and joint
moves of both (`dpmix.models.linear_regression.joint`, and along a ridge,
`dpmix.models.linear_regression.ridge`), on variables rescaled to [-1, 1]
(`dpmix.models.linear_regression.conjugate_draws`). Where errors are truncated, parameters move as in
`dpmix.models.linear_regression.truncated`; where the line is in clamped predictors, all is as in
`dpmix.models.linear_regression.clamped_predictors`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.kernels.multivariate_normal.section import niw_from_bounds
from dpmix.laws.every import expect
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.models.linear_regression.clamped_predictors import ClampedPredictorMoments, start_within
from dpmix.models.linear_regression.conjugate_draws import Units, draw_line
from dpmix.models.linear_regression.joint import ACTIVE, LEARNING
from dpmix.models.linear_regression.latent_records import (
    COV,
    MEAN,
    SD,
    Line,
    Moments,
    make_room,
    size_of,
)
from dpmix.models.linear_regression.truncated import TruncatedClampedMoments, TruncatedMoments, make_learnt
from dpmix.models.sum_augmentation import AugmentedChain, draw_records, make_tally
from dpmix.numerics.bounded_normal import clamped_means, truncated, truncated_means
from dpmix.run.model_protocols import Parameter, ParametricChain, ParametricModel
from dpmix.spec.days import Day, alike
from dpmix.spec.model_section import ERRORS_SCALE, coefficients_in_words, line_in_words

if TYPE_CHECKING:
    from dpmix.models.linear_regression.section import LinearRegressionModel
    from dpmix.release.sanitized import Release

Floats = NDArray[np.float64]


def check_widths(model: LinearRegressionModel, p: int) -> None:
    """Refuse vectors and matrices that do not go with the number of predictors.

    Raises
    ------
    SpecError
        Naming the first.
    """
    problem = model.widths_problem(p)
    if problem is not None:
        raise SpecError(": ".join(problem))


_KINDS = {
    ("clamped", "unclamped"): Moments,
    ("clamped", "clamped"): ClampedPredictorMoments,
    ("truncated", "unclamped"): TruncatedMoments,
    ("truncated", "clamped"): TruncatedClampedMoments,
}
"""By what happens to responses and predictors beyond their bounds."""


def moments_law(model: LinearRegressionModel, release: Release) -> Moments:
    """Return release and prior as compiled functions take them, on the rescaled variables.

    What is stated of errors and predictors is in the units of the data; what is left out is the default on
    [-1, 1] (methods, section 15): coefficients Cauchy(0, 1), errors' variance IG(3, b), b ~ Gamma(1/2) of
    mean 1/4, predictors as clusters of multivariate normal mixtures with scales that are learned, whose means
    psi has.
    """
    units = Units.of(expect(release.mechanism, ClampedMomentsLaw).bounds)
    q = len(units.half)
    p = q - 1
    prior, default = model.x_prior, niw_from_bounds([(-1.0, 1.0)] * p)
    freedom = prior.nu if prior.nu is not None else default.nu
    centre = np.array(default.mu0) if prior.mu0 is None else units.rescaled(np.array(prior.mu0))
    psi = np.diag(default.psi) if prior.Psi == "learned" else np.array(prior.Psi) / units.covariance()
    stated = model.sigma2_prior.b
    scale = ERRORS_SCALE if stated == "learned" else stated / units.variance(1.0)
    mean, sd = model.coefficients(q)
    kind = _KINDS[model.response, model.predictors]
    return kind(
        columns=(0.0,) * q,
        released=np.ascontiguousarray(release.values[:, 0]),
        bounds=np.concatenate([np.full(q, -1.0), np.ones(q)]),
        rate=1.0 / release.scales[-1],  # of groups, those of sizes stand before it
        beta_mean=_floats(mean),
        beta_precision=_floats(np.array(sd) ** -2.0),
        beta_learned=model.prior_sd == "learned",
        shape=float(model.sigma2_prior.a),
        scale=float(scale),
        learned=stated == "learned",
        centre=_floats(centre),
        weight=float(prior.lambda_),
        freedom=float(freedom),
        psi=_floats(np.ravel(psi)),
        psi_learned=prior.Psi == "learned" and model.x_cov is None,
        known=(model.sigma2 is not None, model.x_mean is not None, model.x_cov is not None),
    )


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def start_values(model: LinearRegressionModel, units: Units) -> Floats:
    """Return `Line.values` with what is known, on the rescaled variables, and zeros."""
    p = len(units.half) - 1
    values = np.zeros(p + 2 + p + p * p)
    if model.sigma2 is not None:
        values[p + 1] = math.sqrt(model.sigma2 / units.variance(1.0))
    if model.x_mean is not None:
        values[p + 2 : p + 2 + p] = units.rescaled(np.array(model.x_mean))
    if model.x_cov is not None:
        values[p + 2 + p :] = np.linalg.cholesky(np.array(model.x_cov) / units.covariance()).ravel()
    return values


class LinearRegression(ParametricModel):
    """A linear regression given noisy clamped moments.

    Parameters
    ----------
    release : Release
    law : Moments
        Release and prior, on the rescaled variables.
    start : ndarray of float64
        `Line.values` with what is known, rescaled, and zeros.
    rows : ndarray of float64, shape (rows, p)
        Predictors of new rows, rescaled.
    offers : int
        Offers of one record to all in a sweep; 0 offers each record one of its own.
    joint : bool
        Whether parameters and records are also moved together.
    """

    kind = "linear_regression"

    def __init__(
        self, release: Release, law: Moments, start: Floats, rows: Floats, offers: int, joint: bool
    ) -> None:
        self.law, self.start, self.rows, self.offers, self.joint = law, start, rows, offers, joint
        self.n = release.n
        stated = expect(release.mechanism, ClampedMomentsLaw)
        self.units = Units.of(stated.bounds)
        predictors = list(stated.predictors)
        found = [Parameter("beta", ("coefficient",))]
        if not law.known[SD]:
            found.append(Parameter("sigma2"))
        if not law.known[MEAN]:
            found.append(Parameter("x_mean", ("predictor",)))
        if not law.known[COV]:
            found.append(Parameter("x_cov", ("predictor", "predictor_other")))
        if len(rows):
            found += [
                Parameter(name, ("row",)) for name in ("prediction", "prediction_clamped", "predictive")
            ]
        self.parameters = tuple(found)
        self.coords = {
            "coefficient": np.array(["intercept", *predictors]),
            "predictor": np.array(predictors),
            "predictor_other": np.array(predictors),
            "row": np.arange(len(rows)),
        }
        used = {dim for parameter in found for dim in parameter.dims}
        self.coords = {dim: place for dim, place in self.coords.items() if dim in used}
        self.constants = {
            "n": release.n,
            "sigma2_a": law.shape,
            "sigma2_b": float(self.units.variance(law.scale)),
        }
        self.attrs = {
            "prior": _prior_in_words(law, _dated(stated, release.dates), predictors),
            "response": "truncated" if isinstance(law, TruncatedMoments) else "clamped",
            "predictors": "clamped" if isinstance(law, ClampedPredictorMoments) else "unclamped",
            "prior_of": "rescaled variables",
            "beta_scale": "learned" if law.beta_learned else "fixed",
            "sigma2_scale": "learned" if law.learned else "fixed",
            "x_cov_scale": "learned" if law.psi_learned else "fixed",
        }
        if len(rows):
            self.attrs["row_labels"] = json.dumps(
                _labels(self.units, predictors, rows, _dated(stated, release.dates))
            )
        if release.epsilon is not None and not release.delta:
            self.acceptance_bound = math.exp(-release.epsilon)

    def make_chain(self, rng: Generator, pool: Executor | None = None) -> ParametricChain:
        """Return a chain at a draw of parameters and records from the prior."""
        return RegressionChain(self, rng)

    def write(self, where: Any, out: Mapping[str, Floats], saved: Floats) -> None:
        """Write parameters (draws, ..), with normals for predictions after them, in the units of the data.

        `where` indexes the first dimensions of the arrays in `out`: draws, and a group where there are any.
        """
        q = len(self.law.columns)
        p = q - 1
        beta, sd = saved[:, :q], saved[:, q]
        end = q + 1 + p + p * p
        units = self.units
        out["beta"][where] = units.coefficients(beta)
        if "sigma2" in out:
            out["sigma2"][where] = units.variance(sd**2)
        if "x_mean" in out:
            out["x_mean"][where] = units.centre[:-1] + units.half[:-1] * saved[:, q + 1 : q + 1 + p]
        if "x_cov" in out:
            root = saved[:, q + 1 + p : end].reshape(-1, p, p)
            out["x_cov"][where] = units.covariance() * (root @ root.transpose(0, 2, 1))
        if "prediction" in out:
            rows = self.rows
            if isinstance(self.law, ClampedPredictorMoments):
                rows = np.clip(rows, -1.0, 1.0)
            mean = np.repeat(beta[:, :1], len(rows), axis=1)
            for j in range(p):  # one by one: the same for any number of draws at once
                mean += beta[:, 1 + j, None] * rows[:, j]
            spread = np.repeat(sd[:, None], len(rows), axis=1)
            if isinstance(self.law, TruncatedMoments):  # what lies within the bounds is not clamped
                response = truncated(mean, spread, -1.0, 1.0, saved[:, end:])
                mean = recorded = truncated_means(mean, spread, -1.0, 1.0)
            else:
                response = mean + sd[:, None] * saved[:, end:]
                recorded = clamped_means(mean, spread, -1.0, 1.0)
            out["prediction"][where] = units.response(mean)
            out["prediction_clamped"][where] = units.response(recorded)
            out["predictive"][where] = units.response(response)

    def prior_draws(self, rng: Generator, draws: int) -> dict[str, Floats]:
        """Draw what is not known from the prior, and the mean response of the new rows."""
        saved = np.zeros((draws, len(self.start) + len(self.rows)))
        for row in range(draws):
            values = self.start.copy()
            draw_prior(self.law, rng, values)
            saved[row, : len(values)] = values
        out = {p.name: np.empty((draws, *self.shape(p))) for p in self.parameters if p.name != "predictive"}
        self.write(slice(None), out | {"predictive": np.empty((draws, len(self.rows)))}, saved)
        return out


def _dated(law: ClampedMomentsLaw, dates: Sequence[str]) -> list[tuple[float, float]]:
    """Return the bounds, those of columns that are dates as such."""
    names = law.columns or [""] * len(law.bounds)
    return [
        (Day(lo), Day(hi)) if name in dates else (lo, hi)
        for name, (lo, hi) in zip(names, law.bounds, strict=True)
    ]


def _labels(
    units: Units, predictors: Sequence[str], rows: Floats, bounds: Sequence[tuple[float, float]]
) -> list[str]:
    """Return what new rows are of, such as "age = 30, schooling = 16"."""
    values = units.centre[:-1] + units.half[:-1] * rows
    return [
        ", ".join(
            f"{name} = {alike(x, pair[0]):.6g}"
            for name, x, pair in zip(predictors, row.tolist(), bounds[:-1], strict=True)
        )
        for row in values
    ]


def _prior_in_words(law: Moments, bounds: Any, predictors: Sequence[str]) -> str:
    """Say what the prior of the coefficients means in the units of the data."""
    sd = [precision**-0.5 for precision in law.beta_precision]
    truncated = isinstance(law, TruncatedMoments)
    words = coefficients_in_words(
        bounds, law.beta_mean, sd, predictors, truncated=truncated, learned=law.beta_learned
    )
    meant = line_in_words(truncated=truncated, clamped=isinstance(law, ClampedPredictorMoments))
    return f"{words[0].upper()}{words[1:]}.{meant and ' '}{meant}"


class RegressionChain(AugmentedChain):
    """A chain over parameters and records."""

    model: LinearRegression

    def __init__(self, model: LinearRegression, rng: Generator) -> None:
        law = model.law
        q = len(law.columns)
        learnt = make_learnt(law)
        learnt[ACTIVE] = float(model.joint)
        theta = Line(model.start.copy(), learnt)
        draw_prior(law, rng, theta.values)
        start_within(law, theta.values)
        records = np.zeros((model.n, 2 * q))
        draw_records(law, rng, theta, records)
        tally = make_tally(size_of(q))
        super().__init__(model, rng, law, theta, records, tally, model.offers, make_room(q))

    def sweep(self, count: int) -> None:
        """Sweep over records and parameters; the joint move learns in burn-in alone."""
        self.theta.learnt[LEARNING] = float(self.burning_in)
        super().sweep(count)

    def sweep_and_save(self, draws: int, thin: int, first: int, out: Mapping[str, Floats]) -> None:
        """Sweep, and save the parameters, in one call."""
        self.theta.learnt[LEARNING] = 0.0
        saved = np.zeros((draws, len(self.theta.values) + len(self.model.rows)))
        self.run_sweeps(draws, thin, saved, out["acceptance_rate"][first : first + draws])
        self.model.write(slice(first, first + draws), out, saved)

    def record(self, row: int, out: Mapping[str, Floats]) -> None:
        """Write the parameters, and draw the predictions."""
        noise = self.rng.standard_normal(len(self.model.rows))
        self.model.write(slice(row, row + 1), out, np.concatenate([self.theta.values, noise])[None])


def draw_prior(law: Moments, rng: Generator, values: Floats) -> None:
    """Draw what is not known of `Line.values` from the prior."""
    q = len(law.columns)
    if law.beta_learned:  # variances are drawn anew given these, and these given variances
        values[:q] = law.beta_mean + rng.standard_cauchy(q) / np.sqrt(law.beta_precision)
    if not law.known[SD]:
        scale = law.scale * 2.0 * rng.standard_gamma(0.5) if law.learned else law.scale
        values[q] = math.sqrt(scale / rng.standard_gamma(law.shape))
    if law.psi_learned:
        # scales are drawn anew given precisions, which given scales are theirs times chi-squares, independent
        means = np.asarray(law.psi).reshape(q - 1, q - 1).diagonal()
        ratios = rng.standard_gamma(0.5, q - 1) / rng.standard_gamma(0.5 * law.freedom, q - 1)
        values[2 * q :] = np.diag(np.sqrt(means * ratios)).ravel()
    draw_line(law, rng, values, np.zeros((q + 1, q + 1)))  # given no records
