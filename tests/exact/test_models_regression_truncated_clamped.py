"""Regression with truncated errors about a line in clamped predictors: weighed draws, the joint law, itself.

Limits are those of `tests.unit.models.test_models_regression`.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.joint import carry, map_of
from dpmix.models.linear_regression.latent_records import make_room
from dpmix.models.linear_regression.model import RegressionChain
from dpmix.models.linear_regression.truncated import TruncatedClampedMoments
from dpmix.models.sum_augmentation import sweep
from dpmix.spec import load_spec
from tests.exact.test_models_regression_clamped_predictors import (
    HELD,
    HELD_CAUCHY,
    HELD_KNOWN,
    law_of_scaling,
)
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles import databases
from tests.unit.models.test_models_regression import (
    FREE,
    LEVEL,
    SAMPLERS,
    compare,
    joint_p_values,
    make,
    released,
)

BOTH = dataclasses.replace(HELD, truncated=True)
BOTH_CAUCHY = dataclasses.replace(HELD_CAUCHY, truncated=True)
BOTH_KNOWN = dataclasses.replace(HELD_KNOWN, truncated=True)


@pytest.mark.matrix
@pytest.mark.parametrize("prior", [pytest.param(BOTH, id="free"), pytest.param(BOTH_KNOWN, id="known")])
def test_posterior_is_that_of_weighed_databases(prior: databases.Line) -> None:
    rng = np.random.default_rng(4)
    values = prior.release(rng, prior.draw(rng, 1, 3)[1])[0]
    means = databases.weighed(prior, values, 3, rng, 40_000, 25)
    for sampler in ("joint", "plain", "soma"):
        compare(make(prior, values, 3, *SAMPLERS[sampler]), [2, len(sampler)], 8, means)


@pytest.mark.matrix
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("prior", [pytest.param(BOTH, id="free"), pytest.param(BOTH_CAUCHY, id="learned")])
def test_joint_law_is_invariant(prior: databases.Line, sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = joint_p_values(prior, joint, 3 * offers, 8, 700)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


def what_is_random(records: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return z and v of records (n, 6), given the parameters."""
    mean = values[0] + records[:, 3:5] @ values[1:3]
    ends = (-1.0 - mean) / values[3], (1.0 - mean) / values[3]
    v = stats.truncnorm.sf(records[:, 2], *ends, loc=mean, scale=values[3])
    return np.vstack([np.linalg.solve(values[6:].reshape(2, 2), (records[:, :2] - values[4:6]).T), v])


def test_offers_have_the_law_of_records() -> None:
    line = dataclasses.replace(BOTH, scale=1e9)  # under so much noise all offers are accepted
    chain = make(line, np.zeros(9), 4000, False, 0).make_chain(np.random.default_rng(3))
    assert isinstance(chain, RegressionChain) and isinstance(chain.law, TruncatedClampedMoments)
    for _ in range(2):  # by `draw_record`, and by the block
        *z, v = what_is_random(chain.records, chain.theta.values)
        np.testing.assert_allclose(chain.records[:, 3:], np.clip(chain.records[:, :3], -1.0, 1.0))
        assert min(stats.kstest(column, "norm").pvalue for column in z) > LEVEL
        assert stats.kstest(v, "uniform").pvalue > LEVEL
        assert stats.kstest(v[z[0] > 0.0], "uniform").pvalue > LEVEL
        sweep(chain.law, chain.rng, chain.theta, chain.records, chain.tally, make_room(3), np.zeros(2))


def test_records_that_follow_the_parameters_keep_what_is_random() -> None:
    chain = make(BOTH, np.zeros(9), 40, True, 0).make_chain(np.random.default_rng(5))
    assert isinstance(chain, RegressionChain)
    law, old, records = chain.law, chain.theta.values, chain.records
    new = old + np.array([0.1, -0.2, 0.2, 0.2, 0.2, -0.3, 0.5, 0.0, 0.3, 0.2])
    before, after = np.empty((4, 4)), np.empty((4, 4))
    map_of(law, old, before, False)
    map_of(law, new, after, False)
    out = np.empty_like(records)
    for i in range(len(records)):
        carry(law, old, new, after @ np.linalg.inv(before), records[i], out[i])
    np.testing.assert_allclose(what_is_random(out, new), what_is_random(records, old), atol=1e-9)
    np.testing.assert_allclose(out[:, 3:], np.clip(out[:, :3], -1.0, 1.0), atol=1e-12)
    assert (np.abs(out[:, 3]) == 1.0).any() and (out[:, 3] != records[:, 3]).any()


@pytest.mark.parametrize("known", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_scaling_alone_leaves_the_joint_law_as_it_is(known: bool) -> None:
    law_of_scaling(dataclasses.replace(BOTH, x_mean=np.array([0.1, 0.3]) if known else None), what_is_random)


@pytest.mark.matrix
def test_draws_do_not_depend_on_chunks_and_stay_within_the_bounds() -> None:
    model = make(BOTH, np.arange(9.0), 6, True, 0, predict=[[0.0, 0.0], [9.0, -9.0]])
    assert model.attrs["predictors"] == "clamped" and model.attrs["response"] == "truncated"
    assert "not the slope" in model.attrs["prior"] and "as the table holds them" in model.attrs["prior"]
    whole = same_in_chunks(model, 60, 2, 31)
    low, high = BOTH.bounds[-1]
    mean = whole["beta"][:, 0] + 0.6 * whole["beta"][:, 1] - whole["beta"][:, 2]
    sd = np.sqrt(whole["sigma2"])
    wanted = stats.truncnorm.mean((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)
    near = np.abs(mean) < 8.0
    np.testing.assert_allclose(whole["prediction"][near, 1], wanted[near], atol=1e-6)


@pytest.mark.matrix
def test_zeros_and_ones_have_the_means_that_the_table_has() -> None:
    """Of 1,000 records under little noise, half of one group near the response's lower bound."""
    rng, n = np.random.default_rng(6), 1000
    line = dataclasses.replace(FREE, bounds=np.array([[0.0, 1.0], [0.0, 60.0]]), scale=0.7)
    x = (rng.random(n) < 0.4).astype(float)
    y = databases.truncated(rng, 5.0 + 25.0 * x, np.array(10.0), 0.0, 60.0)
    values = line.release(rng, np.column_stack([x, y]))
    settings = {
        "kind": "linear_regression",
        "predictors": "clamped",
        "response": "truncated",
        "predict": [[0.0], [1.0]],
    }
    chain = build(load_spec({"model": settings}), released(line, values, n)).make_chain(rng)
    draws = chain.run(4000, thin=1, skip=3000)
    for row in range(2):
        found = draws["prediction"][:, row]
        assert abs(found.mean() - y[x == row].mean()) < 1.0 and 0.1 < found.std() < 0.8
    assert abs(draws["beta"][:, 1].mean() - 25.0) < 3.0


def short_run(sampler: str) -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    chain = make(BOTH, np.linspace(-2.0, 4.0, 9), 6, *SAMPLERS[sampler]).make_chain(np.random.default_rng(3))
    draws = chain.run(3, skip=12)
    return np.concatenate([draws[name].ravel() for name in ("beta", "sigma2", "x_mean", "x_cov")]).tolist()


@pytest.mark.matrix
def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    lines = interpreted(__name__, "[short_run(s) for s in SAMPLERS]")
    for sampler, found in zip(SAMPLERS, lines, strict=True):
        np.testing.assert_allclose(found, short_run(sampler), rtol=1e-6, err_msg=sampler)
