"""Regression with errors truncated to the bounds: against quadrature, weighed draws and the joint law.

Limits are those of `tests.unit.models.test_models_regression`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpmix.models.linear_regression.truncated import LENGTH, POINTS, TruncatedMoments
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles import databases
from tests.oracles.mc import batch_means
from tests.unit.models.test_models_regression import (
    CAUCHY,
    FREE,
    KNOWN,
    LEVEL,
    LIMIT,
    SAMPLERS,
    compare,
    joint_p_values,
    make,
)

CUT = dataclasses.replace(FREE, truncated=True)
CUT_CAUCHY = dataclasses.replace(CAUCHY, truncated=True)
CUT_KNOWN = dataclasses.replace(KNOWN, truncated=True)


def quadrature(values: np.ndarray, scale: float, a: float, b: float, sd: float) -> dict[str, float]:
    """Return posterior means of one record's line, with a slope on x_1 alone, on the rescaled variables.

    Predictors are independent standard normals. The density of the release given the parameters is a sum
    over a grid of x_1, x_2 (midpoints in probability) and y (midpoints of the bounds).
    """
    x = special.ndtri((np.arange(60) + 0.5) / 60)
    y = (2.0 * np.arange(60) + 1.0) / 60 - 1.0
    record = np.stack(np.meshgrid(x, x, y, indexing="ij"), axis=-1)
    sums = databases.moments(np.clip(record, -1.0, 1.0)[..., None, :])
    weight = np.exp(-np.abs(values - sums).sum(axis=-1) / scale).mean(axis=1)  # over x_2, (x_1, y)
    nodes, masses = np.polynomial.hermite_e.hermegauss(30)
    intercept, slope = sd * nodes[:, None], sd * nodes[None, :]
    found = np.zeros(5)
    for variance in stats.invgamma.ppf((np.arange(40) + 0.5) / 40, a, scale=b):
        mean = intercept[:, :, None] + slope[:, :, None] * x
        root = np.sqrt(variance)
        gaps = (y - mean[..., None]) / root
        density = np.exp(-0.5 * (gaps**2 - (gaps**2).min(axis=-1, keepdims=True)))
        density /= density.sum(axis=-1, keepdims=True)  # whatever is cut off
        likelihood = np.einsum("abxy,xy->ab", density, weight) * np.outer(masses, masses)
        entries = (np.ones_like(likelihood), intercept, slope, intercept**2, np.log(variance))
        found += [(likelihood * entry).sum() for entry in entries]
    return dict(zip(("b0", "b1", "b0^2", "log s2"), found[1:] / found[0], strict=True))


@pytest.fixture(scope="module")
def one_record() -> tuple[databases.Line, np.ndarray, dict[str, float]]:
    """Return a prior, what is released of one record, and the posterior means."""
    line = databases.Line(
        np.array([[-1.0, 1.0]] * 3),
        0.25,
        1.0,
        a=3.0,
        b=0.4,
        x_mean=np.zeros(2),
        x_cov=np.eye(2),
        truncated=True,
    )
    values = np.array([0.9, 0.5, 0.1, 0.8, 0.6, 0.1, 0.4, 0.1, 0.0])
    return line, values, quadrature(values, line.scale, line.a, line.b, 1.0)


@pytest.mark.parametrize(
    "sampler", ["plain", "joint", "soma", pytest.param("soma, joint", marks=pytest.mark.matrix)]
)
def test_posterior_is_that_of_quadrature(
    sampler: str, one_record: tuple[databases.Line, np.ndarray, dict[str, float]]
) -> None:
    line, values, wanted = one_record
    more = {"prior_sd": [1.0, 1.0, 1e-9]}
    chain = make(line, values, 1, *SAMPLERS[sampler], **more).make_chain(np.random.default_rng(8))
    # steps of all records at once cost thirty times as much, and tell as much in a quarter of the sweeps
    draws = chain.run(*((20_000, 1) if SAMPLERS[sampler][0] else (40_000, 2)), skip=2000)
    beta = draws["beta"]
    columns = (beta[:, 0], beta[:, 1], beta[:, 0] ** 2, np.log(draws["sigma2"]))
    for name, column in zip(wanted, columns, strict=True):
        mean, error = batch_means(column)
        assert error < 0.04
        assert abs(mean - wanted[name]) < LIMIT * error + 0.003, name  # the grid's error beside it


@pytest.mark.matrix  # by day one record's is that of quadrature, and several have their joint law
@pytest.mark.parametrize("prior", [pytest.param(CUT, id="free"), pytest.param(CUT_KNOWN, id="known")])
def test_posterior_is_that_of_weighed_databases(prior: databases.Line) -> None:
    rng = np.random.default_rng(4)
    values = prior.release(rng, prior.draw(rng, 1, 3)[1])[0]
    means = databases.weighed(prior, values, 3, rng, 40_000, 25)
    for sampler in ("joint", "plain"):
        compare(make(prior, values, 3, *SAMPLERS[sampler]), [2, len(sampler)], 3, means)


# each prior and each sampler by day: offers under what is fixed, steps of all records under what is learned
@pytest.mark.parametrize(
    ("prior", "sampler"),
    [
        pytest.param(
            prior,
            sampler,
            id=f"{name}-{sampler}",
            marks=() if joint == (name == "learned") else pytest.mark.matrix,
        )
        for name, prior in (("free", CUT), ("learned", CUT_CAUCHY))
        for sampler, (joint, _) in SAMPLERS.items()
    ],
)
def test_joint_law_is_invariant(prior: databases.Line, sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = joint_p_values(prior, joint, 3 * offers, 8, 700)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


def test_draws_do_not_depend_on_chunks_and_stay_within_the_bounds() -> None:
    model = make(CUT, np.arange(9.0), 6, True, 0, predict=[[0.0, 0.0], [9.0, -9.0]])
    assert isinstance(model.law, TruncatedMoments) and "not the slope" in model.attrs["prior"]
    whole = same_in_chunks(model, 60, 2, 31)
    low, high = CUT.bounds[-1]
    for name in ("prediction", "predictive"):
        assert (whole[name] >= low).all() and (whole[name] <= high).all()
    np.testing.assert_array_equal(whole["prediction"], whole["prediction_clamped"])
    mean = whole["beta"][:, 0] + 9.0 * (whole["beta"][:, 1] - whole["beta"][:, 2])
    sd = np.sqrt(whole["sigma2"])
    ends = (low - mean) / sd, (high - mean) / sd
    wanted = stats.truncnorm.mean(*ends, loc=mean, scale=sd)
    near = np.abs(mean) < 8.0
    np.testing.assert_allclose(whole["prediction"][near, 1], wanted[near], atol=1e-6)


def test_steps_are_learnt_in_burn_in_alone() -> None:
    chain: Any = make(CUT, np.arange(9.0), 6, True, 0).make_chain(np.random.default_rng(3))
    assert chain.theta.learnt[LENGTH] == 0.0
    chain.keep(thin=2, skip=30)
    kept = []
    for until in (20, 30, 44, 61):
        chain.proceed(until)
        kept.append(np.delete(chain.theta.learnt, 1))  # whether it learns
    assert (kept[0] != kept[1]).any()
    np.testing.assert_array_equal(kept[2], kept[1])
    np.testing.assert_array_equal(kept[3], kept[1])


def short_run(sampler: str) -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    chain = make(CUT, np.linspace(-2.0, 4.0, 9), 6, *SAMPLERS[sampler]).make_chain(np.random.default_rng(3))
    draws = chain.run(3, skip=12)
    return np.concatenate([draws[name].ravel() for name in ("beta", "sigma2", "x_mean", "x_cov")]).tolist()


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    lines = interpreted(__name__, "[short_run(s) for s in SAMPLERS]")
    for sampler, found in zip(SAMPLERS, lines, strict=True):
        np.testing.assert_allclose(found, short_run(sampler), rtol=1e-6, err_msg=sampler)


@pytest.mark.matrix
def test_joint_law_is_invariant_where_points_stand_for_records() -> None:
    values = joint_p_values(CUT, True, 0, POINTS + 44, 250)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst
