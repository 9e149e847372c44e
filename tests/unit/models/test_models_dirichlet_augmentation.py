"""Data augmentation for compositions: against quadrature, by the joint law, and what its sweeps keep.

Means are compared within 4.5 standard errors of batch means, about 150 of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from dpmix.mechanisms.log_moments.law import exact_width
from dpmix.models.dirichlet.alpha import (
    AlphaPrior,
    elicited,
    gamma_prior,
    log_likelihood,
    log_prior,
    matched,
    normal_score,
    slice_alpha,
    start_alpha,
    tie,
    whiten,
)
from dpmix.models.dirichlet.augmentation import Augmented, AugmentedDirichlet, build
from dpmix.models.dirichlet.joint import make_room, unpack
from dpmix.models.dirichlet.latent_records import (
    CensoredLogs,
    make_shapes,
    no_scores,
    set_shapes,
    sweep_offers,
)
from dpmix.models.dirichlet.mean_logarithms import in_range
from dpmix.models.dirichlet.model import CompositionPart, parts_of
from dpmix.models.dirichlet.replicated import Replicated
from dpmix.release.sanitized import Release
from dpmix.run.model_protocols import ParametricModel
from dpmix.spec import load_spec
from tests.helpers.compositions import Choice, log_moments_release, stated_release
from tests.helpers.parametric import interpreted, same_in_chunks
from tests.oracles.compositions import Sums, functions, two_parts
from tests.oracles.mc import batch_means

LIMIT = 4.5
LEVEL = 1e-6
SAMPLERS: dict[str, tuple[int | None, bool]] = {
    "plain": (None, False),
    "joint": (None, True),
    "soma": (3, False),
    "soma, joint": (3, True),
}
"""Offers of soma, and whether there are joint moves."""


def copula(d: int, correlation: float, joined: bool = True) -> AlphaPrior:
    """Return a prior of the form of p4, or p3, fitted to draws that are known."""
    rng = np.random.default_rng(8)
    covariance = np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d)
    scores = rng.multivariate_normal(np.zeros(d), covariance, 4000)
    shapes = 1.5 + 2.0 * np.arange(d)
    return elicited(stats.gamma.ppf(stats.norm.cdf(scores), shapes) / 1.4, joined)


PRIORS: dict[str, Callable[[int], AlphaPrior]] = {
    "gamma": lambda d: gamma_prior(2.0, 1.0, d),
    "p3": lambda d: copula(d, 0.6, joined=False),
    "p4": lambda d: copula(d, 0.6),
}


def density_of(prior: AlphaPrior) -> Callable[[np.ndarray], np.ndarray]:
    """Return the log density of a prior at points (m, d), by SciPy."""
    margins = stats.gamma(prior.shape, scale=1.0 / prior.rate)
    normal = stats.multivariate_normal(np.zeros(len(prior.shape)), prior.root @ prior.root.T)

    def density(alpha: np.ndarray) -> np.ndarray:
        below, above = margins.logcdf(alpha), margins.logsf(alpha)
        z = np.where(below < above, special.ndtri_exp(below), -special.ndtri_exp(above))
        return np.asarray(
            margins.logpdf(alpha).sum(axis=1) + normal.logpdf(z) - stats.norm.logpdf(z).sum(axis=1)
        )

    return density


def augmented(release: Release, prior: AlphaPrior, sampler: str, used: slice = slice(None)) -> Augmented:
    """Return the model of a release."""
    return Augmented(release, parts_of(release)[used], prior, *SAMPLERS[sampler])


def compare(model: ParametricModel, wanted: dict[str, float], draws: int, thin: int, skip: int = 500) -> None:
    """Hold means of functions of alpha against those wanted."""
    chain = model.make_chain(np.random.default_rng([4, draws]))
    for name, column in functions(chain.run(draws, thin=thin, skip=skip)["alpha"]).items():
        mean, error = batch_means(column)
        assert error < 0.06, name
        assert abs(mean - wanted[name]) < LIMIT * error + 0.002, name


# sums released of three records, or of three and three; scale; threshold
RELEASES: dict[str, tuple[list[list[float]], float, float]] = {
    "some noise": ([[-2.0, -3.5]], 1.0, 0.02),
    "little noise": ([[-4.0, -1.2]], 0.1, 0.02),
    "much censored": ([[-1.5, -5.5]], 0.4, 0.15),
    "out of range": ([[1.0, -2.0]], 0.7, 0.02),
    "two parts": ([[-2.0, -3.5], [-1.6, -2.2]], 0.5, 0.02),
}
QUICK = {
    ("some noise", "gamma", "joint"),
    ("two parts", "p4", "soma, joint"),
    ("much censored", "p3", "plain"),
}
CASES = [(release, prior, sampler) for release in RELEASES for prior in PRIORS for sampler in SAMPLERS]


@pytest.mark.parametrize(
    ("released", "prior", "sampler"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.matrix) for case in CASES],
)
def test_posterior_is_that_of_quadrature(released: str, prior: str, sampler: str) -> None:
    sums, scale, threshold = RELEASES[released]
    law = PRIORS[prior](2)
    parts = [Sums(np.array(values), scale) for values in sums]
    wanted = two_parts(density_of(law), parts, threshold)
    values = (np.concatenate(sums) / 3.0).tolist()
    release = stated_release(values, [3] * len(sums), threshold, [scale / 3.0] * len(sums))
    compare(augmented(release, law, sampler), wanted, 8000, 3 if released == "little noise" else 2)


def test_the_second_part_alone_is_fitted_under_a_prior_of_the_first() -> None:
    release = stated_release([-0.5, -0.9, -1.2, -0.4], [7, 3], 0.02, [0.1, 0.3])
    law = PRIORS["p4"](2)
    wanted = two_parts(density_of(law), [Sums(3.0 * np.array([-1.2, -0.4]), 0.9)], 0.02)
    compare(augmented(release, law, "joint", slice(1, None)), wanted, 8000, 2)


def joint_p_values(prior: AlphaPrior, sampler: str, restarts: int, scored: bool) -> dict[str, float]:
    """Restart from the joint law; sweep and redraw the release in turn; compare with fresh draws of it."""
    rng, d, sizes, scale = np.random.default_rng(21), len(prior.shape), [5, 4], 0.3
    choice = Choice((0.2, 0.1, 0.02), (0.0, 0.0, 0.0), 3.0) if scored else None
    release = stated_release([-1.0] * (2 * d), sizes, 0.1, [scale / size for size in sizes], choice)

    def draw(count: int) -> np.ndarray:
        z = rng.standard_normal((count, d)) @ prior.root.T
        return np.asarray(stats.gamma.ppf(stats.norm.cdf(z), prior.shape) / prior.rate)

    model = augmented(release, prior, sampler)
    chain = model.make_chain(rng)
    assert isinstance(chain, AugmentedDirichlet)
    found, first = np.empty((restarts, d)), np.empty(restarts)
    for row, start in enumerate(draw(restarts)):
        chain.shapes.alpha[:] = start
        logs = np.log(rng.standard_gamma(start[:, None] + 1.0, (d, sum(sizes))))
        logs -= rng.standard_exponential((d, sum(sizes))) / start[:, None]
        chain.records[:] = logs - np.logaddexp.reduce(logs, axis=0)
        for _ in range(4):
            censored = np.maximum(chain.records, math.log(0.1))
            sums = np.stack([censored[:, :5].sum(axis=1), censored[:, 5:].sum(axis=1)])
            chain.sums[:, :d] = sums
            model.law.released[:] = sums + rng.laplace(0.0, scale, sums.shape)
            if choice is not None:
                chain.sums[:, d:] = [
                    choice.counts(own) for own in (chain.records[:, :5], chain.records[:, 5:])
                ]
                model.law.scores.noisy[:] = chain.sums[:, d:].sum(axis=0) + choice.noise(rng)
            chain.sweep(2)
        found[row] = chain.shapes.alpha
        share = np.exp(chain.records[0, row % 9])
        first[row] = stats.beta.cdf(share, found[row, 0], found[row, 1:].sum())
    fresh = draw(20 * restarts)
    values = {"first share": float(stats.kstest(first, "uniform").pvalue)}
    for name, column in functions(found).items():
        values[name] = float(stats.ks_2samp(column, functions(fresh)[name]).pvalue)
    return values


@pytest.mark.parametrize(
    ("prior", "sampler", "scored"),
    [
        pytest.param(*case, marks=() if case in quick else pytest.mark.matrix)
        for quick in [{("p4", "joint", False), ("gamma", "soma", False), ("gamma", "soma, joint", True)}]
        for case in itertools.product(PRIORS, SAMPLERS, (False, True))
    ],
)
def test_joint_law_is_invariant(prior: str, sampler: str, scored: bool) -> None:
    law = PRIORS[prior](3)
    if prior == "gamma":
        law = law._replace(shape=np.array([0.7, 2.0, 6.0]))  # parts of both kinds of maps
    values = joint_p_values(law, sampler, 600, scored)
    worst = min(values, key=lambda name: values[name])
    assert values[worst] > LEVEL, worst


@pytest.mark.parametrize("prior", PRIORS)
def test_densities_are_those_of_scipy(prior: str) -> None:
    law, rng = PRIORS[prior](3), np.random.default_rng(2)
    points = rng.gamma(2.0, 2.0, (20, 3)) * 10.0 ** rng.uniform(-2.0, 0.7, (20, 3))
    points = points[(stats.gamma.sf(points * law.rate, law.shape) > 1e-9).all(axis=1)]
    assert len(points) > 10
    gaps = np.array([log_prior(point, law) for point in points]) - density_of(law)(points)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)
    shares = rng.dirichlet([2.0, 0.8, 3.0], 6)
    for point in points[:5]:
        wanted = stats.dirichlet.logpdf(shares.T, point).sum()
        assert log_likelihood(point, 6, np.log(shares).sum(axis=0)) == pytest.approx(wanted, rel=1e-12)
    assert log_prior(np.array([1.0, -1.0, 1.0]), law) == -math.inf


def test_normal_scores_are_those_of_scipy() -> None:
    levels = np.concatenate([-np.geomspace(math.log(2.0), 700.0, 300), [math.log(0.45), math.log(0.4999)]])
    found = [normal_score(level) for level in levels]
    np.testing.assert_allclose(found, special.ndtri_exp(levels), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("prior", ["gamma", "p4"])
@pytest.mark.parametrize("n", [1, 40])
def test_the_slice_sampler_has_the_posterior_given_a_database(prior: str, n: int) -> None:
    law, rng = PRIORS[prior](2), np.random.default_rng(3)
    sums = np.log(rng.dirichlet([0.8, 3.0], n)).sum(axis=0)
    axis = np.linspace(-6.0, 4.0, 161)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.exp(grid)
    margins = stats.gamma(law.shape, scale=1.0 / law.rate)
    level = margins.logpdf(points).sum(axis=1) + grid.sum(axis=1)
    scores = special.ndtri(np.clip(margins.cdf(points), 1e-300, 1.0 - 1e-16))
    level -= 0.5 * np.einsum("ij,jk,ik->i", scores, law.precision, scores)
    level += (points - 1.0) @ sums - n * special.betaln(points[:, 0], points[:, 1])
    weights = np.exp(level - level.max())
    weights /= weights.sum()
    alpha, root, draws = np.ones(2), np.empty((2, 2)), np.empty((12_000, 2))
    whiten(np.array([0.8, 3.0]), n, law, root)
    for draw in draws:
        slice_alpha(rng, alpha, n, sums, law, root, 2)
        draw[:] = alpha
    for name, column in functions(draws).items():
        mean, error = batch_means(column)
        assert error < 0.05, name
        assert abs(mean - weights @ functions(points)[name]) < LIMIT * error, name


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_sums_kept_are_those_of_the_records(sampler: str) -> None:
    release = log_moments_release([3.0, 0.6, 2.0], [50, 31], 0.05, 3.0, seed=2)
    chain = augmented(release, PRIORS["gamma"](3), sampler).make_chain(np.random.default_rng(3))
    assert isinstance(chain, AugmentedDirichlet)
    chain.sweep(64 * 5 - 1)  # the next sweep would take them from scratch
    censored = np.maximum(chain.records, math.log(0.05))
    wanted = np.stack([censored[:, :50].sum(axis=1), censored[:, 50:].sum(axis=1)])
    np.testing.assert_allclose(chain.sums, wanted, rtol=1e-11)
    np.testing.assert_allclose(np.logaddexp.reduce(chain.records, axis=0), 0.0, atol=1e-12)
    assert 0.0 < chain.acceptance_rate <= 1.0


@pytest.mark.parametrize(
    ("sampler", "draws", "thin"),
    [
        pytest.param("soma, joint", 8000, 3, marks=pytest.mark.matrix),
        pytest.param("plain", 8000, 8, marks=pytest.mark.matrix),
        pytest.param("soma", 8000, 24, marks=pytest.mark.matrix),
    ],
)
def test_samplers_agree(sampler: str, draws: int, thin: int) -> None:
    release = log_moments_release([3.0, 0.6, 2.0], [20], 0.05, 1.0, seed=4)
    found = {}
    for name in ("joint", sampler):
        chain = augmented(release, PRIORS["gamma"](3), name).make_chain(np.random.default_rng(3))
        alpha = chain.run(draws, thin=thin, skip=600)["alpha"]
        found[name] = {key: batch_means(column, 40) for key, column in functions(alpha).items()}
    for key, (mean, error) in found[sampler].items():
        other, slack = found["joint"][key]
        assert abs(mean - other) < LIMIT * math.hypot(error, slack), key


@pytest.mark.parametrize("alpha", [[0.2, 0.3], [0.1, 5.0], [4.0, 7.0]])
def test_compositions_become_gamma_variates(alpha: list[float]) -> None:
    """Of these shapes, with the compositions that there were."""
    rng, shapes = np.random.default_rng(12), np.array(alpha)
    logs = np.log(rng.standard_gamma(shapes[:, None] + 1.0, (2, 3000)))
    logs -= rng.standard_exponential((2, 3000)) / shapes[:, None]
    records = logs - np.logaddexp(logs[0], logs[1])
    room, small = make_room(3000, 2), (shapes < 3.0).astype(float)
    unpack(rng, shapes, records, small, room)
    gammas = 3.0 * np.log(room.roots[:, :3000]) - small[:, None] * room.ratios[:, :3000]
    np.testing.assert_allclose(gammas - np.logaddexp(gammas[0], gammas[1]), records, atol=1e-9)
    for j in range(2):
        own = stats.gamma(alpha[j] + small[j]).cdf(room.roots[j, :3000] ** 3)
        assert stats.kstest(own, stats.uniform.cdf).pvalue > LEVEL, j
    assert stats.kstest(np.exp(gammas).sum(axis=0), stats.gamma(sum(alpha)).cdf).pvalue > LEVEL


def test_single_offers_replace_records_as_often_as_their_law_says() -> None:
    known = CensoredLogs(np.array([-3.0, -2.0]), 1.3, math.log(0.02), no_scores())
    shapes, rng = make_shapes(2), np.random.default_rng(3)
    shapes.alpha[:] = [0.8, 1.5]
    set_shapes(shapes)
    start = np.log(np.array([[0.5, 0.04, 0.9], [0.5, 0.96, 0.1]]))
    taken, wide, moves = np.zeros(4), np.empty((2, 5)), np.zeros(2)
    columns = wide[:, 1:4]
    for _ in range(12_000):
        columns[:] = start
        sums = np.maximum(start, known.floor).sum(axis=1)
        sweep_offers(known, rng, shapes, columns, sums, moves, 1)
        changed = np.flatnonzero((columns != start).any(axis=0))
        taken[changed[0] if len(changed) else 3] += 1.0
    offers = np.log(rng.dirichlet([0.8, 1.5], 200_000)).T
    kept = np.maximum(start, known.floor)
    moved = kept.sum(axis=1)[:, None] - kept  # sums without each record
    level = np.abs(known.released - kept.sum(axis=1)).sum()
    found = np.abs((known.released[:, None] - moved)[:, :, None] - np.maximum(offers, known.floor)[:, None])
    weights = np.exp(known.rate * (level - found.sum(axis=0)))
    total = weights.sum(axis=0)
    chance = (weights / total * np.minimum(1.0, total / (total - weights + 1.0))).mean(axis=1)
    assert (weights.max(axis=0) > 1.0).mean() > 0.3 and chance.sum() < 0.95
    expected = 12_000 * np.append(chance, 1.0 - chance.sum())
    assert stats.chisquare(taken, expected).pvalue > LEVEL
    assert moves[0] == taken[:3].sum() and moves[1] == 12_000.0


# pseudo-records have a posterior where alpha stays above 1 - b / n
HEAVY = AlphaPrior(np.array([30.0, 50.0]), np.array([10.0, 20.0]), np.zeros((2, 2)), np.eye(2))


@pytest.mark.parametrize(
    ("n", "count"),
    [
        pytest.param(6, 1, marks=pytest.mark.matrix),
        pytest.param(5, 2, marks=pytest.mark.matrix),
        (6, 3),
        (3, 9),
    ],
)
def test_pseudo_records_have_the_density_of_a_record_to_a_power(n: int, count: int) -> None:
    """With as many as there are records, or more, it is that of data augmentation."""
    few, means = min(n, count), np.array([-0.7, -1.1])
    prior = PRIORS["p4"](2) if n == few else HEAVY
    parts = [Sums(few * means, few * 0.3, few, n / few)]
    low = -6.0 if n == few else math.log(1.001 - count / n)
    wanted = two_parts(density_of(prior), parts, 0.02, low, 3.2 if n == few else 2.5)
    release = stated_release(means.tolist(), [n], 0.02, [0.3])
    model = Replicated(release, parts_of(release), prior, count)
    assert model.constants["pseudo_records"] == count
    compare(model, wanted, 8000, 2)


def test_pseudo_records_of_two_parts_are_kept_apart() -> None:
    means = [-0.7, -1.1, -0.1, -2.5]  # so far apart that it shows whose noise and power is whose
    parts = [Sums(np.array(means[:2]) * 2.0, 2.0, 2, 2.0), Sums(np.array(means[2:]) * 2.0, 0.2, 2, 1.5)]
    wanted = two_parts(density_of(HEAVY), parts, 0.02, math.log(0.501), 2.5)
    release = stated_release(means, [4, 3], 0.02, [1.0, 0.1])
    compare(Replicated(release, parts_of(release), HEAVY, 2), wanted, 8000, 2)


MODELS: dict[str, Callable[[Release], ParametricModel]] = {
    name: lambda release, name=name: augmented(release, PRIORS["p4"](3), name)  # type: ignore[misc]
    for name in SAMPLERS
} | {"replicated": lambda release: Replicated(release, parts_of(release), PRIORS["p4"](3), 4)}


@pytest.mark.parametrize("name", MODELS)
def test_draws_do_not_depend_on_chunks_or_on_being_restored(name: str) -> None:
    model = MODELS[name](log_moments_release([3.0, 0.6, 2.0], [30, 21], 0.05, 3.0, seed=5))
    whole = same_in_chunks(model, 40, 3, 31)
    np.testing.assert_allclose(whole["mean"], whole["alpha"] / whole["alpha"].sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["joint", "replicated"])
def test_moves_learn_in_burn_in_alone(name: str) -> None:
    """What is adapted afterwards, to the states that it moves, would change the law of the draws."""
    model = MODELS[name](log_moments_release([3.0, 0.6, 2.0], [30, 21], 0.05, 3.0, seed=5))
    chain = model.make_chain(np.random.default_rng(3))
    chain.keep(thin=2, skip=40)
    kept = []
    for until in (20, 40, 60, 81):
        chain.proceed(until)
        kept.append(chain.snapshot())
    own = [key for key in kept[0] if key in ("state_root", "state_centre") or key.startswith("state_learnt")]
    assert len(own) >= 2
    for key in own:
        assert (kept[0][key] != kept[1][key]).any() or key == "state_learnt_small", key
        if key == "state_learnt_counts":  # moves are counted all along
            assert kept[1][key][0] == kept[3][key][0] == 50.0
            continue
        np.testing.assert_array_equal(kept[2][key], kept[1][key], err_msg=key)
        np.testing.assert_array_equal(kept[3][key], kept[1][key], err_msg=key)


@pytest.mark.parametrize(
    ("means", "scale"),
    [
        ([-0.8, -1.2, -1.5], 1e-9),
        ([-0.8, -1.2, -1.5], 5.0),
        ([2.0, -1.0, -9.0], 0.01),
        ([-4.6, -4.6, -4.6], 0.1),
    ],
)
def test_chains_start_at_what_the_release_says(means: list[float], scale: float) -> None:
    part = CompositionPart(50, np.array(means), scale, 0.01)
    alpha, (found,) = start_alpha(np.random.default_rng(1), [part])
    assert (alpha > 0.0).all() and np.isfinite(alpha).all()
    assert in_range(found) and (found > math.log(0.01)).all()
    if scale == 1e-9:
        np.testing.assert_allclose(found, means, atol=1e-6)
        shares = np.random.default_rng(2).dirichlet(alpha, 50)
        logs = matched(np.log(shares.T), found, math.log(0.01))
        np.testing.assert_allclose(np.maximum(logs, math.log(0.01)).mean(axis=1), found, atol=1e-9)
        np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0)


def test_next_to_no_noise_is_that_of_the_records() -> None:
    """Under a huge epsilon, the chain stays where the sums are those released."""
    release = log_moments_release([3.0, 2.0], [40], 1e-4, 1e10, seed=6)
    chain = augmented(release, PRIORS["gamma"](2), "joint").make_chain(np.random.default_rng(3))
    assert isinstance(chain, AugmentedDirichlet)
    draws = chain.run(20, skip=20)["alpha"]
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(chain.sums[0], 40.0 * parts_of(release)[0].released, atol=1e-5)


@pytest.mark.parametrize("sizes", [[500], [200, 300]])
def test_ties_are_ratios_of_information(sizes: list[int]) -> None:
    """Where nothing is censored: n V and n V (V + noise)^-1 V, V of the digammas' derivatives."""
    alpha, scales = np.array([2.2, 3.3, 4.4]), [0.05 * math.sqrt(500 / size) for size in sizes]
    means = special.digamma(alpha) - special.digamma(alpha.sum())
    release = stated_release(means.tolist() * len(sizes), sizes, 1e-9, scales)
    v = np.diag(special.polygamma(1, alpha)) - special.polygamma(1, alpha.sum())
    noise = 2.0 * 500 * 0.05**2 * np.eye(3)  # the same in all parts
    wanted = np.linalg.eigvalsh(np.linalg.inv(v @ np.linalg.solve(v + noise, v)) @ v).max() - 1.0
    assert wanted == pytest.approx(noise[0, 0] / np.linalg.eigvalsh(v).min())
    assert tie(parts_of(release), gamma_prior(1.0, 1e-6, 3))[0] == pytest.approx(wanted, rel=0.05)
    # a prior that knows alpha leaves nothing to be tied
    assert tie(parts_of(release), gamma_prior(1e9, 1e9 / 3.0, 3))[0] < 0.01


def test_joint_moves_are_made_where_they_pay() -> None:
    def joint(epsilon: float, n: int, threshold: float = 0.01, **sampler: object) -> bool:
        release = log_moments_release([2.2, 3.3, 4.4, 5.5, 6.6], [n], threshold, epsilon, seed=1)
        spec = load_spec({"model": {"kind": "dirichlet"}, "sampler": sampler})
        models = [build(spec, release) for _ in range(2)]
        assert models[0].plan.joint == models[1].plan.joint == models[0].constants["joint_moves"]
        return models[0].plan.joint

    assert joint(0.25, 100) and joint(0.25, 5000) and joint(3.0, 100) and joint(10.0, 1000, kind="soma")
    assert not joint(3.0, 5000) and not joint(10.0, 1000) and not joint(1.0, 1_000_000)
    assert not joint(0.25, 100, joint=False)
    assert joint(0.01, 50)  # hardly anything but noise


def scored_release(n: int, epsilon2: float) -> Release:
    """Return a release of days, epsilon 1, and scores of thresholds that a share of the records is below."""
    rng, choice = np.random.default_rng(3), Choice((0.05, 0.01, 0.001), (0.0, 0.0, 0.0), epsilon2)
    shares = rng.dirichlet([12.3, 1.5, 16.1], n)
    scale = exact_width(0.001, 3) / n
    means = np.log(np.maximum(shares, 0.001)).mean(axis=0) + rng.laplace(0.0, scale, 3)
    scores = choice.counts(np.log(shares).T) + choice.noise(rng)
    return stated_release(means.tolist(), [n], 0.001, [scale], choice._replace(scores=tuple(scores)))


def test_joint_moves_are_not_made_where_scores_turn_them_down() -> None:
    """Their offers go by the means alone; scores of thresholds tell of alpha, too, and nearly exactly."""
    spec = load_spec({"model": {"kind": "dirichlet"}, "sampler": {"kind": "data_augmentation"}})

    def found(n: int, epsilon2: float) -> tuple[bool, float, float]:
        release = scored_release(n, epsilon2)
        model, prior = build(spec, release), gamma_prior(1.0, 0.1, 3)
        assert isinstance(model, Augmented)
        with_scores, passed = tie(parts_of(release), prior, model.law.scores)
        assert with_scores <= tie(parts_of(release), prior)[0] * (1.0 + 1e-9)
        return model.plan.joint, with_scores, passed

    assert tie(parts_of(scored_release(200, 1.0)), gamma_prior(1.0, 0.1, 3))[1] == 1.0  # without them
    for n in (200, 2000):
        assert found(n, 0.01)[0] and not found(n, 1.0)[0] and not found(n, 30.0)[0]
    assert found(2000, 1.0)[1] < 0.3 * found(2000, 0.01)[1]
    release = scored_release(200, 0.5)
    model = augmented(release, gamma_prior(1.0, 0.1, 3), "joint")
    passed = []
    for scores in (model.law.scores, no_scores()):
        model.law = model.law._replace(scores=scores)
        chain = model.make_chain(np.random.default_rng(1))
        assert isinstance(chain, AugmentedDirichlet)
        chain.sweep(500)
        passed.append(chain.learnt.counts[1] / chain.learnt.counts[2])
    assert 0.4 < found(200, 0.5)[2] / (passed[0] / passed[1]) < 2.5


def short_run(name: str) -> list[float]:
    """Return a few draws, which do not depend on what runs the source."""
    model = MODELS[name](log_moments_release([3.0, 0.6, 2.0], [6, 5], 0.05, 3.0, seed=5))
    return [
        float(entry) for entry in model.make_chain(np.random.default_rng(3)).run(3, skip=4)["alpha"].ravel()
    ]


def test_acceptance_is_bounded_by_the_epsilon_that_the_release_states() -> None:
    """Of several thresholds a part of it goes to the choice, which e^-epsilon is of too."""
    release = dataclasses.replace(log_moments_release([2.0, 3.0, 1.5], [60], 0.05, 0.9, seed=3), epsilon=1.0)
    spec = load_spec({"model": {"kind": "dirichlet"}, "sampler": {"kind": "data_augmentation"}})
    assert build(spec, release).acceptance_bound == math.exp(-1.0)


def test_the_interpreter_draws_what_compiled_code_draws() -> None:
    draws = interpreted(__name__, "[short_run(name) for name in MODELS]")
    for name, found in zip(MODELS, draws, strict=True):
        np.testing.assert_allclose(found, short_run(name), rtol=1e-7, err_msg=name)
