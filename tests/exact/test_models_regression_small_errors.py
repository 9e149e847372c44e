"""Regressions whose errors, or predictors, vary little beside their bounds: against weighed sums."""

from __future__ import annotations

import dataclasses
import functools
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
LEARNED = noisy_moments.log_learned(3.0, 0.25), noisy_moments.log_scale_learned, True
FIXED = noisy_moments.log_fixed(3.0, 0.25), noisy_moments.log_scale_fixed, False
PRIORS: dict[str, tuple[dict[str, Any], Any]] = {
    "default": ({}, LEARNED),
    "stated": (
        {"prior_sd": 1.0, "sigma2_prior": {"a": 3.0, "b": 0.25}, "x_prior": {"Psi": [[0.16]]}},
        FIXED,
    ),
}


Means = dict[str, tuple[float, float]]
"""What posteriors are compared in, each with its standard error."""


def compared(slope: np.ndarray, sd: np.ndarray) -> dict[str, np.ndarray]:
    return {"slope": slope, "slope^2": slope**2, "sd": sd}


def weighed(slope: np.ndarray, sd: np.ndarray, weights: np.ndarray) -> Means:
    found = {}
    for name, column in compared(slope, sd).items():
        mean = float(weights @ column)
        found[name] = mean, float(np.sqrt(((weights * (column - mean)) ** 2).sum()))
    return found


def check(
    model: dict[str, Any], sampler: str, release: tuple[databases.Line, np.ndarray], means: Means
) -> None:
    """Hold a chain to the means."""
    joint, offers = SAMPLERS[sampler]
    own = {"kind": "soma", "offers": 400} if offers else {}
    spec = load_spec({"model": {"kind": "linear_regression", **model}, "sampler": own | {"joint": joint}})
    chain = build(spec, released(*release, N)).make_chain(np.random.default_rng(len(sampler)))
    draws = chain.run(12_000, thin=1, skip=2000)
    for name, column in compared(draws["beta"][:, 1], np.sqrt(draws["sigma2"])).items():
        mean, error = batch_means(column)
        wanted, slack = means[name]
        assert slack < 0.02 and error < 0.02, name
        assert abs(mean - wanted) < LIMIT * np.hypot(error, slack), name


def sums(seed: int) -> np.ndarray:
    """Return the sums of a table: x within the bounds, y on a line but for small errors."""
    rng = np.random.default_rng(seed)
    x = 0.25 * rng.standard_normal(N)
    return databases.moments(LINE.units(np.column_stack([x, 0.1 + SLOPE * x + SD * rng.standard_normal(N)])))


NARROW = 0.1
"""Standard deviation of a predictor that a fixed scale holds up: a twentieth of its bounds' width."""


def of_narrow(seed: int) -> np.ndarray:
    """Return the sums of a table whose predictor varies little."""
    rng = np.random.default_rng(seed)
    x = 0.13 + NARROW * rng.standard_normal(N)
    y = 0.05 + 0.9 * x + 0.08 * rng.standard_normal(N)
    return databases.moments(LINE.units(np.column_stack([x, y])))


RELEASES = {
    "small errors": (sums(5), LINE),
    "narrow": (of_narrow(6), dataclasses.replace(LINE, scale=4.0 / 3.0)),
}
"""Sums, and the noise on them: that of epsilon = 4 where the predictor is narrow."""


@functools.cache
def posterior(table: str, prior: str) -> tuple[tuple[databases.Line, np.ndarray], Means]:
    """Return a release, and means of slope and sd with their standard errors."""
    true, line = RELEASES[table]
    values = true + np.random.default_rng([7, len(table)]).laplace(0.0, line.scale, 5)
    rng = np.random.default_rng([7, len(table), len(prior)])
    # weights are far from even under what is stated
    size = 150_000 if prior == "stated" else 50_000
    slope, log_s2, w = noisy_moments.slopes(values, N, line.scale, rng, size, *PRIORS[prior][1])
    return (line, values), weighed(slope, np.exp(0.5 * log_s2), w)


@pytest.mark.parametrize("predictors", ["unclamped", pytest.param("clamped", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("sampler", ["joint", pytest.param("soma, joint", marks=pytest.mark.matrix)])
@pytest.mark.parametrize(
    ("table", "prior"),
    [
        ("small errors", "default"),
        ("small errors", "stated"),
        ("narrow", "default"),
        pytest.param("narrow", "stated", marks=pytest.mark.matrix),
    ],
)
def test_posterior_is_that_of_weighed_sums(table: str, prior: str, sampler: str, predictors: str) -> None:
    release, means = posterior(table, prior)
    check({"predictors": predictors, **PRIORS[prior][0]}, sampler, release, means)


def test_under_the_default_the_slope_is_that_of_the_table() -> None:
    """Of 40 releases: a prior that rules small errors out takes a part of the slope for errors."""
    rng, found = np.random.default_rng(8), {}
    for name, (_, laws) in PRIORS.items():
        held, means = [], []
        for seed in range(40):
            values = sums(seed) + rng.laplace(0.0, LINE.scale, 5)
            slope, _, w = noisy_moments.slopes(values, N, LINE.scale, rng, 10_000, *laws)
            order = np.argsort(slope)
            low, high = np.interp([0.025, 0.975], w[order].cumsum(), slope[order])
            held.append(low < SLOPE < high)
            means.append(w @ slope)
        found[name] = np.mean(held), np.mean(means)
    assert found["default"][0] > 0.85 and found["stated"][0] < 0.75
    assert abs(found["default"][1] - SLOPE) < 0.08 and found["stated"][1] < 0.7
