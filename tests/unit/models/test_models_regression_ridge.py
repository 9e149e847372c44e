"""The move along the ridge of slopes and errors: its density, the joint law, and how far it goes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.conjugate_draws import second_moments
from dpmix.models.linear_regression.joint import HEAD
from dpmix.models.linear_regression.model import RegressionChain
from dpmix.models.linear_regression.ridge import _log_density, _SumsLine, move_along_ridge
from dpmix.spec import load_spec
from tests.oracles import databases
from tests.oracles.databases import Line
from tests.oracles.mc import batch_means
from tests.unit.models.test_models_regression import (
    CAUCHY,
    FREE,
    LEARNED,
    LEVEL,
    joint_p_values,
    make,
    released,
)

KINDS = {
    "clamped": LEARNED,
    "clamped predictors": dataclasses.replace(LEARNED, clamped_predictors=True),
    "truncated": dataclasses.replace(LEARNED, truncated=True),
    "both": dataclasses.replace(LEARNED, truncated=True, clamped_predictors=True),
    "stated": FREE,
    "coefficients learned": CAUCHY,
    "coefficients learned, both": dataclasses.replace(CAUCHY, truncated=True, clamped_predictors=True),
}
BY_DAY = ("stated", "coefficients learned")


def move_alone(chain: RegressionChain) -> None:
    """Move along the ridge, and do nothing else; the point at which clamping is taken is off the mean."""
    q = len(chain.law.columns)
    chain.theta.learnt[HEAD : HEAD + q + 1] = 0.3, -0.4, 0.5, -0.5
    first = q if chain.model.attrs["predictors"] == "clamped" else 0
    for _ in range(4):
        columns = np.column_stack([chain.records[:, first : first + q - 1], chain.records[:, q - 1]])
        moments = np.empty((q + 1, q + 1))
        second_moments(chain.law, columns, moments)
        before = moments.copy()
        move_along_ridge(chain.law, chain.rng, chain.theta, chain.records, chain.tally, moments, first)
        columns[:, -1] = chain.records[:, q - 1]
        after = np.empty_like(moments)
        second_moments(chain.law, columns, after)
        np.testing.assert_allclose(moments, after, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(after).max()))
        np.testing.assert_array_equal(moments[:-1, :-1], before[:-1, :-1])


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in BY_DAY else pytest.mark.matrix) for kind in KINDS]
)
def test_joint_law_is_invariant_under_the_move_alone(kind: str) -> None:
    values = joint_p_values(KINDS[kind], True, 0, 8, 700, alone=move_alone)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


def test_density_is_that_of_responses_with_beta_integrated_out() -> None:
    rng, n, q = np.random.default_rng(3), 9, 3
    law = make(LEARNED, rng.normal(0.0, 3.0, 9), n, True, 0).law
    x = np.column_stack([np.ones(n), rng.normal(0.0, 0.5, (n, 2))])
    y = x @ [0.2, -0.5, 0.8] + 0.3 * rng.standard_normal(n)
    second, b = x.T @ x, np.linalg.lstsq(x, y, rcond=None)[0]
    rest = float(((y - x @ b) ** 2).sum())
    ratio = 0.3 / rest
    sums, step = np.append(x.T @ y, y @ y), rng.normal(0.0, 0.3, q + 1)
    target = np.asarray(law.released)[: q + 1].copy()
    room, prior = (np.empty(q + 1), np.empty((2, q)), np.empty((q, q))), np.array([0.7, 3.0, 0.1])
    line = _SumsLine(law, target, second, np.linalg.cholesky(second), sums, step, *room, prior, ratio)
    gaps = []
    for at in (-0.2, 0.0, 0.1, 0.2):
        to = sums + at * step
        new = np.linalg.solve(second, to[:q])
        left = float(to[q] - to[:q] @ new)
        moved = x @ new + math.sqrt(left / rest) * (y - x @ b)
        s2 = ratio * left
        spread = s2 * np.eye(n) + x @ np.diag(1.0 / prior) @ x.T
        wanted = stats.multivariate_normal.logpdf(moved, x @ law.beta_mean, spread)
        wanted += 0.5 * (n - q - 2) * math.log(left)
        wanted += stats.betaprime.logpdf(s2, 0.5, law.shape, scale=2.0 * law.scale) + math.log(s2)
        wanted -= law.rate * np.abs(target - to).sum()
        gaps.append(_log_density(line, at) - wanted)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)
    assert _log_density(line, -1e6) == -math.inf  # no rest


@pytest.mark.parametrize("predictors", ["unclamped", pytest.param("clamped", marks=pytest.mark.matrix)])
@pytest.mark.parametrize(
    ("name", "scale", "sds"), [("sigma2", 0.3, (0.25, 0.02)), ("x_cov", 5.0, (0.05, 0.08))]
)
def test_variances_that_the_release_does_not_tell_mix(
    name: str, scale: float, sds: tuple[float, float], predictors: str
) -> None:
    """Without ridge and lines in the moments a sd below the noise creeps: of 1,000 draws 23 are effective.

    Of a predictor's, without lines in the moments and along one scale, 42.
    """
    n, rng = 500, np.random.default_rng(5)
    line = Line(np.array([[-1.0, 1.0]] * 2), scale, 1.0)
    x = sds[0] * rng.standard_normal(n)
    values = databases.moments(line.units(np.column_stack([x, 0.8 * x + sds[1] * rng.standard_normal(n)])))
    values = values + rng.laplace(0.0, line.scale, 5)
    spec = load_spec({"model": {"kind": "linear_regression", "predictors": predictors}})
    draws = build(spec, released(line, values, n)).make_chain(rng).run(1000, thin=1, skip=500)
    column = np.log(draws[name].ravel())
    _, error = batch_means(column, 20)
    assert column.var() / error**2 > 100.0


def test_errors_of_a_stated_scale_mix() -> None:
    """Without the move a sd that a known prior wants larger creeps: of 1,000 draws 140 are effective."""
    n, rng = 4000, np.random.default_rng(6)
    line = Line(np.array([[-1.0, 1.0]] * 2), 0.3, 1.0)
    x = 0.25 * rng.standard_normal(n)
    values = databases.moments(line.units(np.column_stack([x, 0.8 * x + 0.02 * rng.standard_normal(n)])))
    values = values + rng.laplace(0.0, line.scale, 5)
    spec = load_spec({"model": {"kind": "linear_regression", "sigma2_prior": {"a": 3.0, "b": 0.25}}})
    draws = build(spec, released(line, values, n)).make_chain(rng).run(1000, thin=1, skip=500)
    column = np.log(draws["sigma2"])
    _, error = batch_means(column, 20)
    assert column.var() / error**2 > 300.0
