"""Regression whose line is in clamped predictors: against weighed draws, the joint law, and itself.

Limits are those of `tests.unit.models.test_models_regression`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.clamped_predictors import ClampedPredictorMoments, scale_with_law
from dpmix.models.linear_regression.joint import carry, map_of
from dpmix.models.linear_regression.latent_records import make_room
from dpmix.models.linear_regression.model import RegressionChain
from dpmix.models.sum_augmentation import recount, sweep
from dpmix.spec import load_spec
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles import databases
from tests.unit.models.test_models_regression import (
    CAUCHY,
    FREE,
    KNOWN,
    LEVEL,
    SAMPLERS,
    compare,
    joint_p_values,
    make,
    released,
)

# beyond the bounds are about half of the values of the first predictor, so that steep lines tell models apart
NARROW = np.array([[-0.6, 0.6], [-1.0, 2.0], [-2.0, 2.5]])
HELD = dataclasses.replace(FREE, bounds=NARROW, sd=0.5, clamped_predictors=True)
OF_NARROW = np.diag((0.4 * np.array([0.6, 1.5])) ** 2)  # the default's: squares of a fifth of the widths
HELD_CAUCHY = dataclasses.replace(CAUCHY, bounds=NARROW, psi=OF_NARROW, clamped_predictors=True)
HELD_KNOWN = dataclasses.replace(KNOWN, bounds=NARROW, sd=0.4, clamped_predictors=True)


@pytest.mark.matrix  # by day each prior and each sampler has its joint law
@pytest.mark.parametrize(
    ("prior", "n", "scale"),
    [
        pytest.param(HELD, 2, 0.8, id="free"),
        pytest.param(HELD, 6, 2.5, id="free, six"),
        pytest.param(HELD_KNOWN, 2, 0.8, id="known"),
        pytest.param(HELD_KNOWN, 6, 2.5, id="known, six"),
    ],
)
def test_posterior_is_that_of_weighed_databases(prior: databases.Line, n: int, scale: float) -> None:
    rng, prior = np.random.default_rng(5), dataclasses.replace(prior, scale=scale)
    values = prior.release(rng, prior.draw(rng, 1, n)[1])[0]
    means = databases.weighed(prior, values, n, rng, 40_000, 25)
    for sampler in SAMPLERS:
        compare(make(prior, values, n, *SAMPLERS[sampler]), [2, len(sampler)], 5, means)


# each prior and each sampler by day: offers under what is fixed, steps of all records under what is learned
@pytest.mark.parametrize(
    ("prior", "sampler"),
    [
        pytest.param(
            prior,
            sampler,
            id=f"{name}-{sampler}",
            marks=() if name == ("learned" if joint else "free") else pytest.mark.matrix,
        )
        for name, prior in (("free", HELD), ("learned", HELD_CAUCHY), ("known", HELD_KNOWN))
        for sampler, (joint, _) in SAMPLERS.items()
    ],
)
def test_joint_law_is_invariant(prior: databases.Line, sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = joint_p_values(prior, joint, 3 * offers, 8, 700)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


def what_is_random(records: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return z and e of records (n, 6), given the parameters."""
    errors = (records[:, 2] - values[0] - records[:, 3:5] @ values[1:3]) / values[3]
    return np.vstack([np.linalg.solve(values[6:].reshape(2, 2), (records[:, :2] - values[4:6]).T), errors])


def law_of_records(records: np.ndarray, values: np.ndarray) -> list[float]:
    """Return p-values of errors and latent predictors being standard normal, given the parameters."""
    np.testing.assert_array_equal(records[:, 3:], np.clip(records[:, :3], -1.0, 1.0))
    *z, errors = what_is_random(records, values)
    return [float(stats.kstest(column, "norm").pvalue) for column in (errors, *z, errors * np.sign(z[0]))]


def test_offers_have_the_law_of_records() -> None:
    line = dataclasses.replace(HELD, scale=1e9)  # under so much noise all offers are accepted
    chain = make(line, np.zeros(9), 4000, False, 0).make_chain(np.random.default_rng(3))
    assert isinstance(chain, RegressionChain)
    assert min(law_of_records(chain.records, chain.theta.values)) > LEVEL  # by `draw_record`
    before = chain.records[:, 2].copy()
    sweep(chain.law, chain.rng, chain.theta, chain.records, chain.tally, make_room(3), np.zeros(2))
    assert (chain.records[:, 2] != before).mean() > 0.99
    assert min(law_of_records(chain.records, chain.theta.values)) > LEVEL


def test_records_that_follow_the_parameters_keep_what_is_random() -> None:
    rng = np.random.default_rng(5)
    chain = make(HELD, np.zeros(9), 40, True, 0).make_chain(rng)
    assert isinstance(chain, RegressionChain)
    law, old, records = chain.law, chain.theta.values, chain.records
    new = old + np.array([0.3, -0.5, 0.2, 0.4, 0.2, -0.3, 0.5, 0.0, 0.3, 0.2])
    before, after = np.empty((4, 4)), np.empty((4, 4))
    map_of(law, old, before, False)
    map_of(law, new, after, False)
    out = np.empty_like(records)
    for i in range(len(records)):
        carry(law, old, new, after @ np.linalg.inv(before), records[i], out[i])
    np.testing.assert_allclose(what_is_random(out, new), what_is_random(records, old), atol=1e-12)
    np.testing.assert_allclose(out[:, 3:], np.clip(out[:, :3], -1.0, 1.0), atol=1e-12)
    assert (np.abs(out[:, 3]) == 1.0).any() and (out[:, 3] != records[:, 3]).any()


@pytest.mark.parametrize("known", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_scaling_alone_leaves_the_joint_law_as_it_is(known: bool) -> None:
    law_of_scaling(dataclasses.replace(HELD, x_mean=np.array([0.1, 0.3]) if known else None), what_is_random)


def law_of_scaling(line: databases.Line, random_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    """Compare parameters scaled with their records, from the joint law, with fresh draws; and one database.

    What is random in it, `random_of` records and parameters, stays.
    """
    rng, restarts, n = np.random.default_rng(11), 3000, 3
    start, data = line.draw(rng, restarts, n)
    fresh, _ = line.draw(rng, 20 * restarts, 1)
    chain = make(line, np.zeros(9), n, True, 0).make_chain(rng)
    assert isinstance(chain, RegressionChain)
    states, (centre, half) = line.rescaled(start), line.frame
    values, records, rows = chain.theta.values, chain.records, []
    for i in range(restarts):
        values[:] = states[i]
        records[:, :3] = (data[i] - centre) / half
        records[:, 3:] = line.units(data[i])
        chain.law.released[:] = line.release(rng, data[i])
        recount(chain.law, records, chain.tally)
        for _ in range(20):
            for predictor in range(2):
                scale_with_law(chain.law, rng, values, records, chain.tally, predictor)
        rows.append(values.copy())
    found, wanted = np.array(rows), line.rescaled(fresh)
    # x_mean and what is below and on the diagonal of L; scaled is all of a row alike
    for place in (4, 5, 6, 8, 9):
        if line.x_mean is None or place > 5:
            assert stats.ks_2samp(found[:, place], wanted[:, place]).pvalue > LEVEL, place
    # the last records moved, and their y with them
    held = np.column_stack([(data[-1] - centre) / half, line.units(data[-1])])
    np.testing.assert_allclose(random_of(records, values), random_of(held, states[-1]), atol=1e-7)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sums_kept_are_those_of_the_records(sampler: str) -> None:
    joint, offers = SAMPLERS[sampler]
    values = HELD.release(np.random.default_rng(1), HELD.draw(np.random.default_rng(2), 1, 20)[1])[0]
    model = make(HELD, values, 20, joint, offers)
    assert isinstance(model.law, ClampedPredictorMoments) and model.attrs["predictors"] == "clamped"
    chain = model.make_chain(np.random.default_rng(3))
    assert isinstance(chain, RegressionChain)
    chain.keep(thin=1, skip=0)
    chain.proceed(64 * 20 - 1)  # the next sweep would take them from scratch
    centre, half = HELD.frame
    records = centre + half * chain.records[:, :3]
    np.testing.assert_allclose(chain.records[:, 3:], HELD.units(records), atol=1e-13)
    assert (np.abs(chain.records[:, 3]) == 1.0).any()
    wanted = values - databases.moments(HELD.units(records))
    np.testing.assert_allclose(chain.tally.sums, wanted, atol=1e-11)


@pytest.mark.matrix
def test_zeros_and_ones_have_the_slope_that_the_table_has() -> None:
    """Of 1,000 records under little noise, where a line in predictors before clamping is flat."""
    rng, n = np.random.default_rng(6), 1000
    line = dataclasses.replace(FREE, bounds=np.array([[0.0, 1.0], [0.0, 60.0]]), scale=0.7)
    x = (rng.random(n) < 0.4).astype(float)
    y = 20.0 + 10.0 * x + 5.0 * rng.standard_normal(n)
    records = np.column_stack([x, y])
    values = line.release(rng, records)
    settings = {"kind": "linear_regression", "predictors": "clamped", "predict": [[0.0], [1.0]]}
    chain = build(load_spec({"model": settings}), released(line, values, n)).make_chain(rng)
    draws = chain.run(4000, thin=1, skip=3000)
    slope, intercept = np.polyfit(x, y, 1)
    for column, wanted in ((draws["beta"][:, 1], slope), (draws["beta"][:, 0], intercept)):
        assert abs(column.mean() - wanted) < 0.8 and 0.1 < column.std() < 0.6
    np.testing.assert_allclose(draws["prediction"][:, 1], draws["beta"].sum(axis=1))


def test_chains_start_wide_and_in_the_middle_of_the_bounds() -> None:
    for seed in range(4):  # where a narrow law finds all records at one bound, and stays
        chain = make(HELD, np.zeros(9), 6, True, 0).make_chain(np.random.default_rng(seed))
        assert isinstance(chain, RegressionChain)
        np.testing.assert_array_equal(chain.theta.values[4:], [0.0, 0.0, 1.0, 0.0, 0.0, 1.0])


def test_draws_do_not_depend_on_chunks() -> None:
    model = make(HELD, np.arange(9.0), 6, True, 0, predict=[[0.0, 0.0], [9.0, -9.0]])
    whole = same_in_chunks(model, 60, 2, 31)
    mean = whole["beta"][:, 0] + 0.6 * whole["beta"][:, 1] - whole["beta"][:, 2]
    np.testing.assert_allclose(whole["prediction"][:, 1], mean)


def short_run(sampler: str) -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    chain = make(HELD, np.linspace(-2.0, 4.0, 9), 6, *SAMPLERS[sampler]).make_chain(np.random.default_rng(3))
    draws = chain.run(3, skip=12)
    return np.concatenate([draws[name].ravel() for name in ("beta", "sigma2", "x_mean", "x_cov")]).tolist()


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    lines = interpreted(__name__, "[short_run(s) for s in SAMPLERS]")
    for sampler, found in zip(SAMPLERS, lines, strict=True):
        np.testing.assert_allclose(found, short_run(sampler), rtol=1e-7, err_msg=sampler)
