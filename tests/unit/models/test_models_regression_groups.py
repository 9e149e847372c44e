"""Regressions of groups whose sizes are private: against weighed draws, the joint law, and itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmix.models.latent_groups import next_batch, transfer_jointly
from dpmix.models.linear_regression.build import build
from dpmix.models.linear_regression.groups import GroupedRegression, GroupedRegressionChain
from dpmix.numerics.bounded_normal import share_above
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles import databases
from tests.oracles.databases import Line
from tests.oracles.mc import batch_means
from tests.unit.models.test_models_regression import FREE, KNOWN, PRIORS, settings, theta

LIMIT, LEVEL = 4.5, 1e-5
SAMPLERS = {"plain": (False, 0), "joint": (True, 0), "soma, joint": (True, 2)}
CENTRE = np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5, 0.0, 0.5])
"""Of y, x_1 y, x_2 y, y^2, x_1, x_2, x_1^2, x_1 x_2 and x_2^2 on [-1, 1]."""
SCALES = (1.2, 1.5)


def make(
    line: Line, values: Any, n: int, joint: bool, offers: int, scales: Any = SCALES, **more: Any
) -> GroupedRegression:
    groups = (len(values) + 1) // 10
    mechanism = {
        "kind": "clamped_moments",
        "noise": "laplace",
        "bounds": line.bounds.tolist(),
        "scale": list(scales),
        "centre": CENTRE.tolist(),
        "kappa": scales[1] / scales[0],
        "groups": {"sex": ["female", "male", "other"][:groups]},
    }
    column = np.array(values, dtype=float).reshape(-1, 1)
    release = Release(
        column,
        ("moment",),
        mechanism,
        2.0,
        0.0,
        None,
        n,
        adjacency="replacement, private groups",
        trust="global",
    )
    sampler = {"kind": "soma", "offers": offers} if offers else {}
    made = build(load_spec({"model": settings(line) | more, "sampler": sampler | {"joint": joint}}), release)
    assert isinstance(made, GroupedRegression)
    return made


def of_group(draws: dict[str, Any], group: int) -> dict[str, Any]:
    return {name: values[:, group] for name, values in theta(draws).items()}


@pytest.mark.parametrize("prior", ["free", pytest.param("known", marks=pytest.mark.matrix)])
def test_posterior_is_that_of_weighed_databases(prior: str) -> None:
    line, rng = {"free": FREE, "known": KNOWN}[prior], np.random.default_rng([3, len(prior)])
    sizes, sums = np.array([0.8]), np.array([[0.6, 0.2, -0.4, 0.1, 0.5, -0.6, 0.3, -0.2, 0.1]] * 2)
    sums[1] = [-1.0, 0.8, 0.4, -0.5, -0.9, 1.0, 0.4, -0.6, 0.3]
    means = databases.weighed_groups(line, (sizes, sums), SCALES, CENTRE, 3, rng, 40_000, 25)
    for sampler in SAMPLERS:
        model = make(line, [*sizes, *sums.ravel()], 3, *SAMPLERS[sampler])
        draws = model.make_chain(np.random.default_rng(2)).run(12_000, thin=3, skip=1000)
        found = {f"size[{g}]": draws["group_size"][:, g] for g in range(2)}
        for g in range(2):
            columns = databases.functions(of_group(draws, g))
            found |= {f"{name} of {g}": column for name, column in columns.items()}
        for name, column in found.items():
            mean, error = batch_means(column)
            wanted, slack = means[name]
            assert slack < 0.04 and error < 0.06, name
            assert abs(mean - wanted) < LIMIT * np.hypot(error, slack), (sampler, name)


def move_alone(chain: GroupedRegressionChain, count: int) -> None:
    """Move records together with the parameters of both groups, and do nothing else."""
    for _ in range(count):
        pair = next_batch(chain.rng, len(chain.held.values), chain.model.plan.most)
        transfer_jointly(chain.model.law, chain.rng, chain.held, *pair)


def joint_p_values(
    line: Line, joint: bool, offers: int, n: int, restarts: int, *, alone: bool = False
) -> dict[str, float]:
    """Restart from the joint law; sweep and redraw the release in turn; compare with fresh draws of it."""
    rng, groups = np.random.default_rng(11), 3
    starts = [line.draw(rng, restarts, n) for _ in range(groups)]
    fresh = [line.draw(rng, 20 * restarts, 1)[0] for _ in range(groups)]
    model = make(line, np.zeros(groups - 1 + 9 * groups), n, joint, offers)
    chain = model.make_chain(rng)
    assert isinstance(chain, GroupedRegressionChain)
    held = chain.held
    # steep ones, with which moves are nothing but right
    held.slopes.spread[:, 0], held.slopes.spread[:, 1:] = 1.0, 0.4
    p = line.p
    states, (centre, half) = [line.rescaled(start) for start, _ in starts], line.frame
    found: list[list[dict[str, Any]]] = [[] for _ in range(groups)]
    sizes, noises = np.empty((restarts, groups)), []
    for i in range(restarts):
        own_sizes = rng.multinomial(n, rng.dirichlet(np.ones(groups)))
        held.starts[1:] = np.cumsum(own_sizes)
        for g, (_, data) in enumerate(starts):
            held.values[g] = states[g][i]
            own = held.records[held.starts[g] : held.starts[g + 1]]
            own[:, : p + 1] = (data[i, : own_sizes[g]] - centre) / half
            own[:, p + 1 :] = line.units(data[i, : own_sizes[g]])
        for _ in range(3):
            now = np.diff(held.starts)
            model.law.sizes[:] = now[:-1] + rng.laplace(0.0, SCALES[0], groups - 1)
            for g in range(groups):
                own = centre + half * held.records[held.starts[g] : held.starts[g + 1], : p + 1]
                sums = databases.grouped_sums(line, own, np.array(len(own)), CENTRE)
                model.law.sums[g] = sums + rng.laplace(0.0, SCALES[1], 9)
            held.age[0] = 0  # take sums from scratch
            if alone:
                for g in range(groups):
                    own = centre + half * held.records[held.starts[g] : held.starts[g + 1], : p + 1]
                    sums = databases.grouped_sums(line, own, np.array(len(own)), CENTRE)
                    held.rests[g] = model.law.sums[g] - sums
                    held.levels[g, 0] = np.abs(held.rests[g]).sum()
                move_alone(chain, 12)
            else:
                chain.sweep(2)
        out = {q.name: np.zeros((1, *model.shape(q))) for q in model.parameters}
        chain.record(0, out)
        drawn = {name: column[0] for name, column in out.items()}
        sizes[i] = drawn["group_size"]
        for g in range(groups):
            found[g].append({name: values[g] for name, values in theta(drawn).items()})
        place = i % n
        g = int(np.searchsorted(held.starts, place, side="right")) - 1
        record, values = held.records[place], held.values[g]
        taken = record[p + 1 : -1] if line.clamped_predictors else record[:p]
        mean = values[0] + taken @ values[1 : p + 1]
        noise = (record[p] - mean) / values[p + 1]
        if line.truncated:  # then normal as well
            share = share_above(record[p], mean, values[p + 1])
            noise = stats.norm.isf(min(max(share, 1e-15), 1.0 - 1e-15))
        noises.append(noise)
    values_of = {"noise": float(stats.kstest(noises, stats.norm.cdf).pvalue)}
    wanted_sizes = [rng.multinomial(n, pi) for pi in rng.dirichlet(np.ones(groups), 20 * restarts)]
    for g in range(groups):
        table = [np.bincount(s[:, g].astype(int), minlength=n + 1) for s in (sizes, np.array(wanted_sizes))]
        values_of[f"size[{g}]"] = float(stats.chi2_contingency(table).pvalue)
        columns = {name: np.array([row[name] for row in found[g]]) for name in found[g][0]}
        wanted = databases.functions(fresh[g])
        for name, column in databases.functions(columns).items():
            if not name.endswith("^2"):
                values_of[f"{name} of {g}"] = float(stats.ks_2samp(column, wanted[name]).pvalue)
    return values_of


@pytest.mark.parametrize(
    ("prior", "sampler", "alone"),
    [
        ("free", "plain", False),
        ("free", "joint", False),
        ("free", "soma, joint", False),
        pytest.param("free", "joint", True, marks=pytest.mark.matrix),
        ("learned", "joint", False),
        pytest.param("scales learned", "joint", False, marks=pytest.mark.matrix),
        pytest.param("scales learned", "joint", True, marks=pytest.mark.matrix),
        ("coefficients learned", "joint", False),
        pytest.param("coefficients learned", "joint", True, marks=pytest.mark.matrix),
    ],
)
def test_joint_law_is_invariant(prior: str, sampler: str, alone: bool) -> None:
    joint, offers = SAMPLERS[sampler]
    values = joint_p_values(PRIORS[prior], joint, 3 * offers, 8, 2000 if alone else 500, alone=alone)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.matrix
@pytest.mark.parametrize(("sampler", "alone"), [("soma, joint", False), ("joint", True)])
def test_joint_law_is_invariant_with_truncated_errors(sampler: str, alone: bool) -> None:
    joint, offers = SAMPLERS[sampler]
    line = dataclasses.replace(FREE, truncated=True)
    values = joint_p_values(line, joint, 3 * offers, 8, 2000 if alone else 500, alone=alone)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("truncated", "sampler", "alone"),
    [
        (False, "soma, joint", False),
        (False, "joint", True),
        (True, "soma, joint", False),
        (True, "joint", True),
    ],
)
def test_joint_law_is_invariant_with_clamped_predictors(truncated: bool, sampler: str, alone: bool) -> None:
    joint, offers = SAMPLERS[sampler]
    line = dataclasses.replace(FREE, clamped_predictors=True, truncated=truncated)
    values = joint_p_values(line, joint, 3 * offers, 8, 2000 if alone else 500, alone=alone)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sums_kept_are_those_of_the_records(sampler: str) -> None:
    values = np.random.default_rng(3).normal(size=29)
    values[:2] = [20.0, 11.0]
    model = make(FREE, values, 40, *SAMPLERS[sampler])
    chain = model.make_chain(np.random.default_rng(3))
    held, before = chain.held, chain.held.starts.copy()
    chain.sweep(64 * 5 - 1)  # the next sweep would take them from scratch
    assert held.starts[0] == 0 and held.starts[-1] == 40 and (held.starts != before).any()
    centre, half = FREE.frame
    records = centre + half * held.records[:, :3]
    np.testing.assert_allclose(held.records[:, 3:], FREE.units(records), atol=1e-12)
    for g in range(3):
        own = records[held.starts[g] : held.starts[g + 1]]
        wanted = model.law.sums[g] - databases.grouped_sums(FREE, own, np.array(len(own)), CENTRE)
        np.testing.assert_allclose(held.rests[g], wanted, atol=1e-11)
        assert held.levels[g, 0] == pytest.approx(np.abs(wanted).sum())


def test_draws_are_the_same_in_chunks_and_have_their_names() -> None:
    model = make(FREE, [3.0, *np.arange(18.0)], 6, True, 0, predict=[[0.0, 0.0], [1.0, -1.0]])
    draws = same_in_chunks(model, 20, 2, 31)
    dims = {parameter.name: parameter.dims for parameter in model.parameters}
    assert dims == {
        "beta": ("group", "coefficient"),
        "sigma2": ("group",),
        "x_mean": ("group", "predictor"),
        "x_cov": ("group", "predictor", "predictor_other"),
        "prediction": ("group", "row"),
        "prediction_clamped": ("group", "row"),
        "predictive": ("group", "row"),
        "group_share": ("group",),
        "group_size": ("group",),
    }
    assert model.coords["group"].tolist() == ["female", "male"]
    beta = draws["beta"]
    np.testing.assert_allclose(draws["prediction"][..., 1], beta[..., 0] + beta[..., 1] - beta[..., 2])
    np.testing.assert_array_equal(draws["group_size"].sum(axis=1), 6.0)


def test_shares_of_groups_are_drawn_from_their_prior() -> None:
    model = make(FREE, np.zeros(19), 6, True, 0)
    found = model.prior_draws(np.random.default_rng(4), 4000)
    assert found["group_share"].shape == (4000, 2) and "group_size" not in found
    assert stats.kstest(found["group_share"][:, 0], "uniform").pvalue > 1e-6


def few_draws() -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    drawn = make(FREE, [3.0, *np.linspace(-2.0, 4.0, 18)], 6, True, 0).make_chain(np.random.default_rng(3))
    draws = drawn.run(3, skip=12)
    return np.concatenate([draws[name].ravel() for name in ("beta", "x_cov", "group_share")]).tolist()


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    found = interpreted(__name__, "few_draws()")
    np.testing.assert_allclose(found, few_draws(), rtol=1e-7)
