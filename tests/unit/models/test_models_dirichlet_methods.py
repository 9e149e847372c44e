"""The bootstrap, simulation and normal approximation of compositions, and priors from half of a release."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from dpmix.errors import DataError
from dpmix.models.dirichlet.abc import Simulated
from dpmix.models.dirichlet.alpha import elicited, gamma_prior
from dpmix.models.dirichlet.augmentation import Augmented
from dpmix.models.dirichlet.bootstrap import Bootstrap, draw_refits, make_refits
from dpmix.models.dirichlet.mean_logarithms import dirichlet_mle
from dpmix.models.dirichlet.model import parts_of
from dpmix.models.dirichlet.normal_approximation import (
    NormalApproximation,
    _draw_variance,
    censored_moments,
    make_moments,
)
from dpmix.release.sanitized import Release
from dpmix.run.model_protocols import ParametricModel
from tests.helpers.compositions import log_moments_release, stated_release

SURE = 1e-6  # of each test of a law


def bootstrap(release: Release) -> Bootstrap:
    """Return the bootstrap of a release."""
    return Bootstrap(release, parts_of(release))


def simulated(release: Release, keep: float = 0.1) -> Simulated:
    """Return the simulations of a release, under a gamma prior."""
    parts = parts_of(release)
    return Simulated(release, parts, gamma_prior(2.0, 1.0, len(parts[0].released)), "", keep)


def approximated(release: Release, shape: float = 2.0, rate: float = 1.0) -> NormalApproximation:
    """Return the normal approximation of a release, under a gamma prior."""
    parts = parts_of(release)
    return NormalApproximation(release, parts, gamma_prior(shape, rate, len(parts[0].released)))


def alphas(model: ParametricModel, draws: int, skip: int = 0, thin: int = 1, seed: int = 1) -> np.ndarray:
    """Return draws of alpha."""
    return model.make_chain(np.random.default_rng(seed)).run(draws, thin, skip)["alpha"]


def refit_by_hand(release: Release, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Draw by Algorithm 2 as it is written; return the estimate, and how many refits had none."""
    part = parts_of(release)[0]
    alpha, none = np.empty(len(part.released)), 0
    while True:
        means = part.released - rng.laplace(0.0, part.scale, len(part.released))
        if not dirichlet_mle(means, alpha):
            continue
        shares = np.maximum(rng.dirichlet(alpha, part.size), part.threshold)
        if dirichlet_mle(np.log(shares).mean(axis=0), alpha):
            return alpha, none
        none += 1


def test_bootstrap_draws_are_those_of_the_algorithm() -> None:
    release = stated_release([-0.9, -1.0], [6], 0.2, [0.25])
    rng = np.random.default_rng(4)
    by_hand = [refit_by_hand(release, rng) for _ in range(1500)]
    wanted, none = np.array([alpha for alpha, _ in by_hand]), sum(count for _, count in by_hand)
    model = bootstrap(release)
    chain = model.make_chain(np.random.default_rng(5))
    found = chain.run(1500)
    for j in range(2):
        assert stats.ks_2samp(found["alpha"][:, j], wanted[:, j]).pvalue > SURE
    assert stats.ks_2samp(found["mean"][:, 0], wanted[:, 0] / wanted.sum(axis=1)).pvalue > SURE
    # some refits are out of the range, and as many as by hand
    share = none / (none + 1500)
    spread = math.sqrt(share * (1.0 - share))
    assert share > 0.02
    assert found["acceptance_rate"][-1] == pytest.approx(1.0 - share, abs=5.0 * spread * math.sqrt(2 / 1500))
    assert model.constants["bootstrap_redrawn"] == pytest.approx(share, abs=5.0 * spread / math.sqrt(200))


def test_a_threshold_that_leaves_no_refit_an_estimate_is_refused() -> None:
    release = stated_release([-0.7, -0.75], [200], 0.6, [0.001])
    with pytest.raises(DataError, match=r"threshold 0\.6 censors so much .* smaller threshold"):
        bootstrap(release)


def test_two_parts_are_pooled_by_the_bootstrap() -> None:
    """With next to no noise and many records, the refit is the estimate from the pooled means."""
    release = stated_release([-1.0, -0.8, -1.3, -0.6], [300_000, 100_000], 1e-6, [1e-9, 1e-9])
    wanted = np.empty(2)
    assert dirichlet_mle(np.array([-1.075, -0.75]), wanted)
    refits, found = make_refits(parts_of(release)), np.empty((3, 2))
    draw_refits(refits, np.random.default_rng(1), found, 3)
    np.testing.assert_allclose(found.mean(axis=0), wanted, rtol=0.01)


def test_priors_are_fitted_to_draws() -> None:
    rng = np.random.default_rng(7)
    correlation = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, -0.3], [0.0, -0.3, 1.0]])
    scores = rng.multivariate_normal(np.zeros(3), correlation, 20_000)
    shape, rate = np.array([2.0, 9.0, 0.8]), np.array([1.0, 3.0, 0.2])
    draws = stats.gamma.ppf(stats.norm.cdf(scores), shape) / rate
    joined, apart = elicited(draws, True), elicited(draws, False)
    for prior in (joined, apart):
        np.testing.assert_allclose(prior.shape, shape, rtol=0.06)
        np.testing.assert_allclose(prior.rate, rate, rtol=0.06)
    np.testing.assert_allclose(joined.root @ joined.root.T, correlation, atol=0.03)
    np.testing.assert_allclose(
        joined.precision, np.linalg.inv(joined.root @ joined.root.T) - np.eye(3), atol=1e-6
    )
    assert not apart.precision.any()
    # simulations draw from what was fitted
    release = stated_release([-1.5, -1.6, -1.2], [5], 0.05, [0.1])
    again = np.empty((20_000, 3))
    Simulated(release, parts_of(release), joined, "", 1.0).source(rng).draw(rng, again)
    for j in range(3):
        assert stats.ks_2samp(again[:, j], draws[:, j]).pvalue > SURE
    found = stats.spearmanr(again).statistic
    np.testing.assert_allclose(found, stats.spearmanr(draws).statistic, atol=0.04)


def given_one_record(release: Release, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points alpha (m, 2) and their posterior weights given a release of one record, by quadrature."""
    part = parts_of(release)[0]
    edges = np.linspace(0.0, 12.0, 61)
    axis = 0.5 * (edges[1:] + edges[:-1])
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    x = 0.5 * (1.0 + np.polynomial.legendre.leggauss(200)[0])
    w = np.polynomial.legendre.leggauss(200)[1]
    gaps = np.log(np.maximum(np.stack([x, 1.0 - x], axis=1), threshold)) - part.released
    noise = w * np.exp(-np.abs(gaps).sum(axis=1) / part.scale)
    logs = (grid - 1.0) @ np.log(np.stack([x, 1.0 - x])) - special.betaln(grid[:, 0], grid[:, 1])[:, None]
    weights = (np.exp(logs) @ noise) * (grid * np.exp(-grid)).prod(axis=1)
    return grid, weights / weights.sum()


def test_simulations_come_to_the_posterior_as_fewer_are_kept() -> None:
    release = stated_release([-1.8, -0.3], [1], 0.05, [0.15])
    grid, weights = given_one_record(release, 0.05)
    wanted = weights @ np.log(grid)
    spread = np.sqrt(weights @ np.log(grid) ** 2 - wanted**2)
    errors = {}
    for keep in (1.0, 0.3, 0.01):
        model = simulated(release, keep)
        draws = np.log(alphas(model, 2000))
        errors[keep] = np.abs((draws.mean(axis=0) - wanted) / spread)
        assert ("abc_tolerance" in model.constants) == (keep < 1.0)
    prior = special.digamma(2.0)
    assert errors[1.0] == pytest.approx(np.abs((prior - wanted) / spread), abs=5.0 / math.sqrt(2000) * 2)
    assert errors[1.0].max() > errors[0.3].max() > errors[0.01].max()
    assert errors[0.01].max() < 5.0 / math.sqrt(2000) + 0.05


def test_simulations_keep_the_share_asked_for() -> None:
    release = log_moments_release([3.0, 2.0], [40], 0.05, 2.0, seed=3)
    model = simulated(release, 0.1)
    kept = model.make_chain(np.random.default_rng(2)).run(500)["acceptance_rate"][-1]
    assert model.constants["abc_kept"] == 0.1
    # the tolerance is told from 1000 simulations, the share from 5000
    assert kept == pytest.approx(0.1, abs=5.0 * math.sqrt(0.09 * (1 / 1000 + 1 / 5000)))


def test_the_normal_approximation_has_the_posterior_that_it_states() -> None:
    """Against quadrature over alpha and the noise, for two components."""
    release = stated_release([-1.4, -0.6], [12], 0.05, [0.2])
    part, model = parts_of(release)[0], approximated(release)
    draws = np.log(alphas(model, 6000, skip=500))
    axis = np.linspace(-2.4, 2.7, 35)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    nodes, w = np.polynomial.legendre.leggauss(14)
    side = np.concatenate([-1.2 * (1.0 + nodes), 1.2 * (1.0 + nodes)])
    mass = np.tile(w, 2) * np.exp(-np.abs(side) / part.scale)
    noise = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    weight = np.outer(mass, mass).ravel()

    moments, levels = make_moments(2), np.empty(len(grid))
    for i, point in enumerate(grid):
        censored_moments(np.exp(point), part.threshold, moments)
        inverse = np.linalg.inv(moments.covariance / part.size)
        gaps = part.released - noise - moments.mean
        density = np.exp(-0.5 * np.einsum("ij,jk,ik->i", gaps, inverse, gaps))
        levels[i] = (weight @ density) * math.sqrt(np.linalg.det(inverse))
        levels[i] *= math.exp(2.0 * point.sum() - np.exp(point).sum())
    weights = levels / levels.sum()
    mean = weights @ grid
    spread = np.sqrt(weights @ grid**2 - mean**2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * spread.min())
    np.testing.assert_allclose(draws.std(axis=0), spread, rtol=0.08)


def test_the_variance_of_laplace_noise_is_drawn_given_it() -> None:
    """1 / variance is inverse Gaussian: E variance = b |e| + b^2, E 1 / variance = 1 / (b |e|)."""
    rng, scale = np.random.default_rng(6), 0.3
    for noise in (0.9, 0.02, 1e-9, 0.0):
        draws = np.array([_draw_variance(rng, noise, scale) for _ in range(4000)])
        error = draws.std() / math.sqrt(len(draws))
        assert draws.mean() == pytest.approx(scale * abs(noise) + scale**2, abs=5.0 * error)
    draws = np.array([_draw_variance(rng, 0.9, scale) for _ in range(4000)])
    law = stats.invgauss(1.0 / (0.9 * scale) * scale**2, scale=1.0 / scale**2)
    assert stats.kstest(1.0 / draws, law.cdf).pvalue > SURE


def test_methods_agree_where_there_are_many_records_and_little_noise() -> None:
    release = log_moments_release([3.3, 4.4], [2000], 1e-4, 20.0, seed=1)
    vague = {"shape": 1.0, "rate": 0.1}
    exact = alphas(Augmented(release, parts_of(release), gamma_prior(1.0, 0.1, 2), None, True), 800, skip=300)
    for draws in (alphas(bootstrap(release), 300), alphas(approximated(release, **vague), 1500, skip=300)):
        np.testing.assert_allclose(draws.mean(axis=0), exact.mean(axis=0), atol=0.5 * exact.std(axis=0).max())
        np.testing.assert_allclose(draws.std(axis=0), exact.std(axis=0), rtol=0.25)


MODELS: dict[str, Callable[[Release], ParametricModel]] = {
    "bootstrap": bootstrap,
    "abc": simulated,
    "normal": approximated,
}


@pytest.mark.parametrize("name", MODELS)
def test_a_chain_goes_on_where_it_was(name: str) -> None:
    release = log_moments_release([3.0, 2.0], [40], 0.05, 2.0, seed=3)
    model = MODELS[name](release)
    whole = model.make_chain(np.random.default_rng(9)).run(12, 2, 3)
    first = model.make_chain(np.random.default_rng(9))
    first.keep(2, 3)
    first.proceed(12)
    before = first.take()
    second = MODELS[name](release).make_chain(np.random.default_rng(77))
    second.restore(first.snapshot())
    second.proceed(27)
    after = second.take()
    for variable, values in whole.items():
        joined = np.concatenate([before[variable][1], after[variable][1]])
        np.testing.assert_array_equal(joined, values, err_msg=variable)
    assert np.isfinite(whole["alpha"]).all()
    np.testing.assert_allclose(whole["mean"].sum(axis=1), 1.0)
    predicted = np.array([whole[name] for name in model.predictive])  # type: ignore[attr-defined]
    np.testing.assert_allclose(predicted.sum(axis=0), 1.0)


@pytest.mark.parametrize("name", ["p2", "p3", "p4"])
def test_simulations_draw_from_priors_of_the_first_part(name: str) -> None:
    release = log_moments_release([3.0, 2.0], [100, 300], 0.01, 4.0, seed=3)
    parts = parts_of(release)
    refits = np.empty((500, 2))
    draw_refits(make_refits(parts[:1]), np.random.default_rng(2), refits, 10_000)
    prior = None if name == "p2" else elicited(refits, name == "p4")
    every = alphas(Simulated(release, parts[1:], prior, name, 1.0), 400)
    # alpha_1 / alpha_2 shows whether the two are drawn together
    for found, drawn in ((every, refits), (np.diff(np.log(every)), np.diff(np.log(refits)))):
        chance = stats.ks_2samp(found[:, 0], drawn[:, 0]).pvalue
        assert chance > SURE or (name == "p3" and found.shape[1] == 1)
    kept = alphas(Simulated(release, parts[1:], prior, name, 0.1), 100)
    assert (kept.std(axis=0) < every.std(axis=0)).all()


@pytest.mark.matrix
def test_simulations_go_on_with_the_posterior_of_the_first_part() -> None:
    release = log_moments_release([3.0, 2.0], [200, 600], 0.01, 4.0, seed=3)
    parts = parts_of(release)
    first = alphas(Augmented(release, parts[:1], gamma_prior(1.0, 0.1, 2), None, True), 2000, skip=500)
    every = alphas(Simulated(release, parts[1:], None, "p5", 1.0), 2000)
    # the posterior has a tail, under Laplace noise, that a chain visits now and then: P(alpha_1 > 20) = 3e-5
    quartiles, others = (np.quantile(np.log(draws), (0.25, 0.5, 0.75), axis=0) for draws in (first, every))
    np.testing.assert_allclose(others, quartiles, atol=0.15 * (quartiles[2] - quartiles[0]).min())
    model = Simulated(release, parts[1:], None, "p5", 0.1)
    whole = alphas(model, 6)
    chain = model.make_chain(np.random.default_rng(1))
    chain.keep(1, 0)
    chain.proceed(3)
    again = model.make_chain(np.random.default_rng(5))
    again.restore(chain.snapshot())
    again.proceed(6)
    np.testing.assert_array_equal(again.take()["alpha"][1], whole[3:])


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("alpha", "threshold"),
    [((2.2, 3.3, 4.4, 5.5, 6.6), 0.01), ((0.5, 0.5, 0.5), 0.01), ((2.0, 20.0, 2.0), 0.1)],
)
@pytest.mark.parametrize(("n", "epsilon"), [(300, 1.0), (3000, 0.5), (3000, 5.0)])
def test_the_normal_approximation_is_close_to_data_augmentation(
    alpha: tuple[float, ...], threshold: float, n: int, epsilon: float
) -> None:
    release = log_moments_release(alpha, [n], threshold, epsilon, seed=2)
    vague = gamma_prior(1.0, 0.1, len(alpha))
    exact = np.log(alphas(Augmented(release, parts_of(release), vague, None, True), 4000, skip=2000))
    near = np.log(alphas(approximated(release, 1.0, 0.1), 4000, skip=1000))
    np.testing.assert_allclose(near.mean(axis=0), exact.mean(axis=0), atol=0.25 * exact.std(axis=0).max())
    np.testing.assert_allclose(near.std(axis=0), exact.std(axis=0), rtol=0.2)
