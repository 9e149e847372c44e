"""Regressions whose errors, or predictors, vary little beside their bounds: against weighed sums."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from dpmix.models.linear_regression.build import build
from dpmix.spec import load_spec
from tests.oracles import databases, noisy_moments
from tests.oracles.mc import batch_means
from tests.unit.models.test_models_regression import LIMIT, SAMPLERS, released

N, SLOPE, SD = 1000, 0.8, 0.02
LINE = databases.Line(np.array([[-1.0, 1.0]] * 2), 16.0 / 3.0, 1.0)
"""Two columns on [-1, 1], and the noise of epsilon = 1."""
PRIORS: dict[str, tuple[dict[str, Any], noisy_moments.Prior]] = {
    "default": ({}, noisy_moments.log_learned(3.0, 0.25)),
    "stated": ({"sigma2_prior": {"a": 3.0, "b": 0.25}}, noisy_moments.log_fixed(3.0, 0.25)),
}


def sums(seed: int) -> np.ndarray:
    """Return the sums of a table: x within the bounds, y on a line but for small errors."""
    rng = np.random.default_rng(seed)
    x = 0.25 * rng.standard_normal(N)
    return databases.moments(LINE.units(np.column_stack([x, 0.1 + SLOPE * x + SD * rng.standard_normal(N)])))


@pytest.fixture(scope="module")
def posteriors() -> dict[str, tuple[np.ndarray, dict[str, tuple[float, float]]]]:
    """Return a release, and by prior means of slope and sd with their standard errors."""
    rng, found = np.random.default_rng(7), {}
    values = sums(5) + rng.laplace(0.0, LINE.scale, 5)
    for name, (_, log_prior) in PRIORS.items():
        slope, log_s2, w = noisy_moments.slopes(values, N, LINE.scale, log_prior, rng, 150_000)
        means = {}
        for key, column in (("slope", slope), ("slope^2", slope**2), ("sd", np.exp(0.5 * log_s2))):
            mean = float(w @ column)
            means[key] = mean, float(np.sqrt(((w * (column - mean)) ** 2).sum()))
        found[name] = values, means
    return found


@pytest.mark.parametrize("predictors", ["unclamped", "clamped"])
@pytest.mark.parametrize("sampler", ["joint", "soma, joint"])
@pytest.mark.parametrize("prior", PRIORS)
def test_posterior_is_that_of_weighed_sums(
    prior: str, sampler: str, predictors: str, posteriors: Any
) -> None:
    (values, means), (joint, offers) = posteriors[prior], SAMPLERS[sampler]
    settings = {"kind": "linear_regression", "predictors": predictors, **PRIORS[prior][0]}
    own = {"kind": "soma", "offers": 400} if offers else {}
    spec = load_spec({"model": settings, "sampler": own | {"joint": joint}})
    chain = build(spec, released(LINE, values, N)).make_chain(np.random.default_rng(len(sampler)))
    draws = chain.run(12_000, thin=1, skip=2000)
    slope = draws["beta"][:, 1]
    for name, column in (("slope", slope), ("slope^2", slope**2), ("sd", np.sqrt(draws["sigma2"]))):
        mean, error = batch_means(column)
        wanted, slack = means[name]
        assert slack < 0.01 and error < 0.01, name
        assert abs(mean - wanted) < LIMIT * np.hypot(error, slack), name


NARROW = 0.1
"""Standard deviation of a predictor that its default prior holds up: a twentieth of its bounds' width."""


def of_narrow(seed: int) -> np.ndarray:
    """Return the sums of a table whose predictor varies little."""
    rng = np.random.default_rng(seed)
    x = 0.13 + NARROW * rng.standard_normal(N)
    y = 0.05 + 0.9 * x + 0.08 * rng.standard_normal(N)
    return databases.moments(LINE.units(np.column_stack([x, y])))


@pytest.fixture(scope="module")
def of_learned_scales() -> tuple[np.ndarray, dict[str, tuple[float, float]]]:
    """Return a release of the noise of epsilon = 4, and prior means with their standard errors."""
    rng, scale = np.random.default_rng(9), LINE.scale / 4.0
    values = of_narrow(6) + rng.laplace(0.0, scale, 5)
    log_prior = noisy_moments.log_learned(3.0, 0.25)
    slope, log_s2, w = noisy_moments.slopes(
        values, N, scale, log_prior, rng, 150_000, noisy_moments.log_scale_learned
    )
    means = {}
    for key, column in (("slope", slope), ("slope^2", slope**2), ("sd", np.exp(0.5 * log_s2))):
        mean = float(w @ column)
        means[key] = mean, float(np.sqrt(((w * (column - mean)) ** 2).sum()))
    return values, means


@pytest.mark.parametrize("predictors", ["unclamped", "clamped"])
@pytest.mark.parametrize("sampler", ["joint", pytest.param("soma, joint", marks=pytest.mark.matrix)])
def test_posterior_under_learned_scales_is_that_of_weighed_sums(
    sampler: str, predictors: str, of_learned_scales: Any
) -> None:
    (values, means), (joint, offers) = of_learned_scales, SAMPLERS[sampler]
    prior = {"Psi": "learned"}
    settings = {"kind": "linear_regression", "predictors": predictors, "x_prior": prior}
    own = {"kind": "soma", "offers": 400} if offers else {}
    spec = load_spec({"model": settings, "sampler": own | {"joint": joint}})
    line = dataclasses.replace(LINE, scale=LINE.scale / 4.0)
    chain = build(spec, released(line, values, N)).make_chain(np.random.default_rng(len(sampler)))
    draws = chain.run(12_000, thin=1, skip=2000)
    slope = draws["beta"][:, 1]
    for name, column in (("slope", slope), ("slope^2", slope**2), ("sd", np.sqrt(draws["sigma2"]))):
        mean, error = batch_means(column)
        wanted, slack = means[name]
        assert slack < 0.02 and error < 0.03, name
        assert abs(mean - wanted) < LIMIT * np.hypot(error, slack), name


def test_under_the_default_the_slope_is_that_of_the_table() -> None:
    """Of 40 releases: a prior that rules small errors out takes a part of the slope for errors."""
    rng, found = np.random.default_rng(8), {}
    for name, (_, log_prior) in PRIORS.items():
        held, means = [], []
        for seed in range(40):
            values = sums(seed) + rng.laplace(0.0, LINE.scale, 5)
            slope, _, w = noisy_moments.slopes(values, N, LINE.scale, log_prior, rng, 10_000)
            order = np.argsort(slope)
            low, high = np.interp([0.025, 0.975], w[order].cumsum(), slope[order])
            held.append(low < SLOPE < high)
            means.append(w @ slope)
        found[name] = np.mean(held), np.mean(means)
    assert found["default"][0] > 0.85 and found["stated"][0] < 0.75
    assert abs(found["default"][1] - SLOPE) < 0.05 and found["stated"][1] < 0.7
