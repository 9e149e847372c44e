"""Compositions of groups whose sizes are private: against quadrature, the joint law, and what sweeps keep."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmix.errors import DataError, SpecError
from dpmix.models.dirichlet.alpha import gamma_prior
from dpmix.models.dirichlet.build import build
from dpmix.models.dirichlet.groups import (
    GroupedCompositions,
    GroupedCompositionsChain,
    move_apart,
    move_with_records,
)
from dpmix.models.dirichlet.latent_records import Shapes, set_shapes
from dpmix.models.latent_groups import draw_sizes, grouped_sums, next_batch
from dpmix.release.sanitized import Release
from dpmix.spec import load_spec
from tests.helpers.compositions import Choice, grouped_release, stated_groups
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles.compositions import Sums, functions, two_groups, two_parts
from tests.oracles.mc import batch_means

LIMIT = 4.5
LEVEL = 1e-6
PLANS = {"plain": (0, False), "joint": (0, True), "soma, joint": (3, True)}


def model_of(release: Release, plan: str = "joint", shape: float = 2.0, rate: float = 1.0) -> Any:
    d = release.mechanism["components"]
    return GroupedCompositions(release, grouped_sums(release, d), gamma_prior(shape, rate, d), *PLANS[plan])


def log_prior(alpha: np.ndarray) -> np.ndarray:
    return np.asarray(stats.gamma(2.0).logpdf(alpha).sum(axis=1))


# records; noisy size of the first group, its scale; noisy sums less the centre's, their scale; threshold
RELEASES: dict[str, tuple[int, float, float, list[list[float]], float, float]] = {
    "some noise": (3, 1.3, 1.0, [[0.5, -0.7], [-0.3, 1.2]], 0.7, 0.02),
    "sizes are clear": (2, 1.1, 0.1, [[0.5, -2.0], [1.5, -0.2]], 2.0, 0.02),
    "sums are clear": (2, 1.0, 5.0, [[1.4, 1.0], [0.9, 1.2]], 0.4, 0.02),
    "much censored": (2, 1.5, 1.0, [[0.9, -1.9], [0.3, -0.6]], 0.4, 0.15),
    "out of range": (2, -2.0, 1.0, [[3.0, -4.0], [0.0, 9.0]], 1.0, 0.02),
}


NIGHT = ("sizes are clear", "sums are clear", "much censored", "out of range")  # the first by day with faults


@pytest.mark.parametrize(
    "released", [pytest.param(name, marks=pytest.mark.matrix if name in NIGHT else ()) for name in RELEASES]
)
def test_posterior_is_that_of_quadrature(released: str) -> None:
    count, size, size_scale, sums, scale, threshold = RELEASES[released]
    release = stated_groups([size, *np.ravel(sums)], count, 2, threshold, [size_scale, scale])
    centre = release.mechanism["centre"]
    weight, wanted = two_groups(
        log_prior, (size, size_scale), np.array(sums), scale, centre, count, threshold
    )
    for plan in PLANS:
        compare(model_of(release, plan), weight, wanted)


def compare(model: Any, weight: np.ndarray, wanted: list[dict[str, float]]) -> None:
    """Hold means of functions of alpha, sizes and shares against those wanted."""
    draws = model.make_chain(np.random.default_rng(4)).run(12_000, thin=2, skip=500)
    for group in range(2):
        for name, column in functions(draws["alpha"][:, group]).items():
            mean, error = batch_means(column)
            assert error < 0.06, name
            assert abs(mean - wanted[group][name]) < LIMIT * error + 0.002, (group, name)
    for n, probability in enumerate(weight):
        mean, error = batch_means(np.asarray(draws["group_size"][:, 0] == n, dtype=float))
        assert abs(mean - probability) < LIMIT * error + 0.002, n
    # given the sizes, shares are Dirichlet(1 + sizes)
    mean, error = batch_means(draws["group_share"][:, 0])
    assert abs(mean - weight @ (np.arange(len(weight)) + 1.0) / (len(weight) + 1.0)) < LIMIT * error
    np.testing.assert_array_equal(draws["group_size"].sum(axis=1), len(weight) - 1.0)


@pytest.mark.parametrize(
    "fault", [{"size_rate": 0.0}, pytest.param({"centre": 0.0}, marks=pytest.mark.matrix)]
)
def test_faults_are_found(fault: dict[str, float]) -> None:
    """Without the term of sizes, or with sums that are taken not to be centred, quadrature disagrees."""
    count, size, size_scale, sums, scale, threshold = RELEASES["sizes are clear"]
    release = stated_groups([size, *np.ravel(sums)], count, 2, threshold, [size_scale, scale])
    centre = release.mechanism["centre"]
    exact = two_groups(log_prior, (size, size_scale), np.array(sums), scale, centre, count, threshold)
    model = model_of(release)
    model.law = model.law._replace(**fault)
    with pytest.raises(AssertionError):
        compare(model, *exact)


@pytest.mark.matrix
def test_with_sizes_that_are_known_groups_are_releases_of_their_own() -> None:
    sums, scale, threshold = np.array([[0.5, -0.7], [-0.3, 1.2]]), 0.7, 0.02
    release = stated_groups([1.0, *np.ravel(sums)], 3, 2, threshold, [1e-3, scale])
    draws = model_of(release).make_chain(np.random.default_rng(4)).run(8000, thin=2, skip=500)
    np.testing.assert_array_equal(draws["group_size"], [[1.0, 2.0]] * 8000)
    for group, size in enumerate((1, 2)):
        own = Sums(sums[group] + release.mechanism["centre"] * size, scale, size)
        wanted = two_parts(log_prior, [own], threshold)
        for name, column in functions(draws["alpha"][:, group]).items():
            mean, error = batch_means(column)
            assert abs(mean - wanted[name]) < LIMIT * error + 0.002, (group, name)


def move_alone(chain: GroupedCompositionsChain, count: int, move: str) -> None:
    """Move records or the parameters of two groups together with the rest, and do nothing else."""
    law, held = chain.model.law, chain.held
    groups = len(held.sums)
    for group in range(groups):
        set_shapes(Shapes(*(part[group] for part in held.shapes)))
    for _ in range(count):
        if move.startswith("apart"):
            move_apart(law, chain.rng, held)
            continue
        move_with_records(law, chain.rng, held, *next_batch(chain.rng, groups, chain.model.plan.most))


def joint_p_values(plan: str, restarts: int, *, alone: str = "", scored: bool = False) -> dict[str, float]:
    """Restart from the joint law; sweep and redraw the release in turn; compare with fresh draws of it."""
    rng, d, groups, n, threshold = np.random.default_rng(21), 3, 3, 9, 0.1
    shape = np.array([0.7, 2.0, 6.0])  # parts of both kinds of maps
    scales = [1.5, 0.1 if alone == "apart, clear sums" else 0.8]
    choice = Choice((0.2, 0.1, 0.02), (0.0, 0.0, 0.0), 3.0) if scored else None
    release = stated_groups([3.0, 3.0, *[0.0] * 9], n, groups, threshold, scales, choice=choice)
    model = model_of(release, plan)
    model.law = model.law._replace(prior=model.prior._replace(shape=shape))
    chain = model.make_chain(rng)
    assert isinstance(chain, GroupedCompositionsChain)
    held = chain.held
    held.slopes.spread[:] = [1.0, 0.6, -0.5, 0.3]  # steep ones, with which moves are nothing but right
    alphas, sizes, first = np.empty((restarts, groups, d)), np.empty((restarts, groups)), []
    noise, score_noise = [], []  # of what was released last, given the state after it

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        pi = rng.dirichlet(np.ones(groups), count)
        return rng.gamma(shape, size=(count, groups, d)), np.array([rng.multinomial(n, p) for p in pi])

    for row, (start, size) in enumerate(zip(*draw(restarts), strict=True)):
        held.shapes.alpha[:] = start
        held.starts[1:] = np.cumsum(size)
        own = np.repeat(start, size, axis=0).T
        logs = np.log(rng.standard_gamma(own + 1.0)) - rng.standard_exponential((d, n)) / own
        held.records[:] = logs - np.logaddexp.reduce(logs, axis=0)
        for _ in range(3):
            censored = np.maximum(held.records, math.log(threshold))
            parts = np.split(censored, held.starts[1:-1], axis=1)
            sums = np.stack([part.sum(axis=1) for part in parts])
            held.sums[:, :d] = sums
            if choice is not None:
                own_records = np.split(held.records, held.starts[1:-1], axis=1)
                held.sums[:, d:] = [choice.counts(records) for records in own_records]
                model.law.scores.noisy[:] = held.sums[:, d:].sum(axis=0) + choice.noise(rng)
            own_sizes = np.diff(held.starts)
            model.law.sums[:] = sums - model.law.centre * own_sizes[:, None]
            model.law.sums[:] += rng.laplace(0.0, scales[1], sums.shape)
            model.law.sizes[:] = own_sizes[:-1] + rng.laplace(0.0, scales[0], groups - 1)
            if alone:
                move_alone(chain, 60 if alone.startswith("apart") else 12, alone)
            else:
                chain.sweep(2)
        alphas[row], sizes[row] = held.shapes.alpha, np.diff(held.starts)
        own_records, j = np.split(held.records, held.starts[1:-1], axis=1), row % d
        kept = np.maximum(own_records[j][j], math.log(threshold)).sum() - model.law.centre * sizes[row, j]
        noise.append(stats.laplace.cdf(model.law.sums[j, j], kept, scales[1]))
        if choice is not None:
            score_noise.append(model.law.scores.noisy[j] - choice.counts(held.records)[j])
        group = int(np.searchsorted(held.starts, row % n, side="right")) - 1
        share, mine = math.exp(held.records[0, row % n]), held.shapes.alpha[group]
        first.append(stats.beta.cdf(share, mine[0], mine[1:].sum()))
    fresh, fresh_sizes = draw(20 * restarts)
    values = {"first share": float(stats.kstest(first, "uniform").pvalue)}
    values["noise of sums"] = float(stats.kstest(noise, "uniform").pvalue)
    if choice is not None:
        fresh_noise = np.concatenate([choice.noise(rng) for _ in range(10 * restarts)])
        values["noise of scores"] = float(stats.ks_2samp(score_noise, fresh_noise).pvalue)
    for group in range(groups):
        values[f"size {group}"] = float(
            stats.chi2_contingency(
                [np.bincount(s[:, group].astype(int), minlength=n + 1) for s in (sizes, fresh_sizes)]
            ).pvalue
        )
        wanted = functions(fresh[:, group])
        for name, column in functions(alphas[:, group]).items():
            values[f"{name} {group}"] = float(stats.ks_2samp(column, wanted[name]).pvalue)
    return values


@pytest.mark.parametrize(
    ("plan", "alone", "scored"),
    [
        ("plain", "", False),
        ("joint", "", False),
        ("soma, joint", "", False),
        pytest.param("joint", "sizes", False, marks=pytest.mark.matrix),
        pytest.param("joint", "apart", True, marks=pytest.mark.matrix),
        pytest.param("joint", "apart, clear sums", True, marks=pytest.mark.matrix),
        pytest.param("plain", "", True, marks=pytest.mark.matrix),
        ("joint", "", True),
        pytest.param("soma, joint", "", True, marks=pytest.mark.matrix),
        pytest.param("joint", "sizes", True, marks=pytest.mark.matrix),
    ],
)
def test_joint_law_is_invariant(plan: str, alone: str, scored: bool) -> None:
    values = joint_p_values(plan, 2000 if alone else 500, alone=alone, scored=scored)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.parametrize("plan", PLANS)
def test_sums_kept_are_those_of_the_records(plan: str) -> None:
    release = grouped_release([[3.0, 0.6, 2.0], [1.0, 1.0, 4.0], [2.0, 5.0, 1.0]], [30, 21, 9], 0.05, 2.0, 2)
    chain = model_of(release, plan).make_chain(np.random.default_rng(3))
    held, before = chain.held, chain.held.starts.copy()
    chain.sweep(64 * 5 - 1)  # the next sweep would take them from scratch
    assert held.starts[0] == 0 and held.starts[-1] == 60 and (np.diff(held.starts) >= 0).all()
    assert (held.starts != before).any()
    parts = np.split(np.maximum(held.records, math.log(0.05)), held.starts[1:-1], axis=1)
    np.testing.assert_allclose(held.sums, [part.sum(axis=1) for part in parts], rtol=1e-11)
    np.testing.assert_allclose(np.logaddexp.reduce(held.records, axis=0), 0.0, atol=1e-12)
    assert 0.0 < chain.acceptance_rate <= 1.0


def test_draws_are_the_same_in_chunks_and_have_their_names() -> None:
    release = grouped_release([[3.0, 0.6], [1.0, 1.0]], [30, 10], 0.05, 2.0, 2)
    model = model_of(release)
    draws = same_in_chunks(model, 12, 2, skip=30)
    assert draws["alpha"].shape == (12, 2, 2) and draws["predictive_c1"].shape == (12, 2)
    dims = {parameter.name: parameter.dims for parameter in model.parameters}
    assert dims == {
        "alpha": ("group", "component"),
        "mean": ("group", "component"),
        "group_share": ("group",),
        "group_size": ("group",),
        "predictive_c1": ("group",),
        "predictive_c2": ("group",),
    }
    assert model.coords["group"].tolist() == ["A", "B"]


def test_shares_of_groups_are_drawn_from_their_prior() -> None:
    release = grouped_release([[3.0, 0.6], [1.0, 1.0]], [30, 10], 0.05, 2.0, 2)
    found = model_of(release).prior_draws(np.random.default_rng(4), 4000)
    assert {name: values.shape for name, values in found.items()} == {"group_share": (4000, 2)}
    assert stats.kstest(found["group_share"][:, 0], "uniform").pvalue > LEVEL


def few_draws() -> list[float]:
    release = grouped_release([[3.0, 0.6], [1.0, 1.0]], [9, 5], 0.05, 2.0, 2)
    chain = model_of(release).make_chain(np.random.default_rng(1))
    drawn = chain.run(3, thin=1, skip=3)
    return [*drawn["alpha"].ravel().tolist(), *drawn["group_share"].ravel().tolist()]


def test_compiled_draws_are_those_of_the_interpreter() -> None:
    np.testing.assert_allclose(interpreted(__name__, "few_draws()"), few_draws())


@pytest.mark.parametrize("sizes", [[0.4, 0.3], [90.0, 80.0], [-9.0, 200.0], [12.3, 20.8]])
def test_a_start_has_sizes_that_there_can_be(sizes: list[float]) -> None:
    release = stated_groups([*sizes, *[0.0] * 6], 40, 3, 0.05, [3.0, 5.0])
    sums = grouped_sums(release, 2)
    for rng in (None, np.random.default_rng(1)):
        drawn = draw_sizes(rng, sums)
        assert drawn.sum() == 40 and (drawn >= 0).all()
    if sizes[0] == 12.3:
        assert draw_sizes(None, sums).tolist() == [12, 21, 7]


def test_what_takes_no_groups_is_refused_by_name() -> None:
    release = grouped_release([[3.0, 0.6], [1.0, 1.0]], [30, 10], 0.05, 2.0, 2)
    spec: dict[str, Any] = {
        "data": {"path": "x.csv", "columns": ["c1", "c2"]},
        "model": {"kind": "dirichlet"},
        "mechanism": {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.05},
        "sampler": {"iterations": 10, "burn_in": 5},
    }
    assert isinstance(build(load_spec(spec), release), GroupedCompositions)
    for kind in ("bootstrap", "replicated", "abc", "normal_approximation"):
        with pytest.raises(SpecError, match=f"^sampler.kind: {kind} takes no release of groups"):
            build(load_spec({**spec, "sampler": {**spec["sampler"], "kind": kind}}), release)
    split = {**spec["mechanism"], "split": 0.5}
    prior = {**spec, "mechanism": split, "model": {"kind": "dirichlet", "prior": "p3"}}
    with pytest.raises(SpecError, match="^model.prior: p3 takes the first of two parts"):
        build(load_spec(prior), release)
    short = Release(**{**vars(release), "values": release.values[:-1]})
    with pytest.raises(DataError, match="the release has 4 values, and 2 groups of 2 sums"):
        grouped_sums(short, 2)
