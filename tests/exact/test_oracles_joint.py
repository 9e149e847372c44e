"""Oracles for global histograms and for two columns, against other routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.oracles import histograms as hg
from tests.oracles import kernels as kn
from tests.oracles import niw
from tests.oracles import partitions as pt

NORMAL = (0.3, 0.25, 2.5, 1.5)
BETA = (2.0, 1.0, 2.0, 2.0, -1.0, 3.0)
GRID = np.array([-0.7, 0.4, 1.6])
RELEASES: dict[str, tuple[hg.Release, np.ndarray]] = {
    "smoothed": (("smoothed", (4, 0.3, -1.0, 3.0)), np.array([-0.8, -0.6, 0.9, 1.0, 1.9])),
    "laplace": (("counts", (4, "laplace", 0.9, -1.0, 3.0)), np.array([2.6, -0.8, 0.4, 1.7])),
    "gaussian": (("counts", (4, "gaussian", 0.8, -1.0, 3.0)), np.array([2.6, -0.8, 0.4, 1.7])),
    "geometric": (("counts", (4, "geometric", 0.9, -1.0, 3.0)), np.array([3.0, -1.0, 0.0, 2.0])),
}


@pytest.mark.parametrize("name", RELEASES)
def test_densities_of_global_releases_have_mass_one_and_are_those_of_draws(name: str) -> None:
    release, z = RELEASES[name]
    rng = np.random.default_rng(1)
    y = np.array([-1.4, -0.9, 0.8, 2.7])
    assert list(hg.bins_of(release, y)) == [0, 0, 2, 3]
    draws = 2 if name == "smoothed" else 0
    found = np.array([hg.draw_release(rng, release, y, draws) for _ in range(4000)])
    counts = hg.count(release, y)
    if name == "smoothed":
        bins = np.array([(i, j) for i in range(4) for j in range(4)])
        middles = -1 + 3 * (bins + 0.5) / 4
        law = np.array([np.exp(hg.log_likelihood(release, m, counts)) for m in middles]) / 16
        assert law.sum() == pytest.approx(1.0, rel=1e-12)
        seen = np.bincount(hg.bins_of(release, found) @ [4, 1], minlength=16)
        assert stats.chisquare(seen, law * 4000).pvalue > 1e-4
        return
    gaps = found - counts
    assert abs(np.mean(gaps)) < 4.5 * gaps.std() / np.sqrt(gaps.size)
    values = np.arange(-60.0, 61.0) if name == "geometric" else np.linspace(-30, 30, 60_001)
    one = np.array(
        [
            hg.log_likelihood((release[0], (1, *release[1][1:])), np.array([v]), [2])
            for v in values[:: 100 if len(values) > 200 else 1]
        ]
    )
    step = 1.0 if name == "geometric" else 0.1
    assert np.exp(one).sum() * step == pytest.approx(1.0, abs=2e-3)
    width = np.sum(np.exp(one) * step * (values[:: 100 if len(values) > 200 else 1] - 2) ** 2)
    assert np.var(gaps) == pytest.approx(width, rel=0.08)


@pytest.mark.matrix
@pytest.mark.parametrize("kernel", ["normal", "beta"])
@pytest.mark.parametrize("name", RELEASES)
def test_global_posterior_by_importance_sampling_of_mixture_and_records(name: str, kernel: str) -> None:
    """Draw P by sticks, then the records, and weigh them by the release: no partition, no bin masses."""
    release, z = RELEASES[name]
    base, d, n = (NORMAL if kernel == "normal" else BETA), 0.3, 4
    law: Any = kn.kernel(kernel, base)
    rng = np.random.default_rng(2)
    draws, sticks = 20_000, 25
    v = rng.beta(1 - d, 1.0 + d * np.arange(1, sticks + 1), (draws, sticks))
    v[:, -1] = 1.0
    w = v * np.cumprod(np.concatenate([np.ones((draws, 1)), 1 - v[:, :-1]], axis=1), axis=1)
    theta = law.draw_prior(rng, draws * sticks).reshape(2, draws, sticks)
    u = rng.random((draws, n, 1)) * w.sum(axis=1)[:, None, None]
    labels = (np.cumsum(w, axis=1)[:, None, :] < u).sum(axis=2)
    k = np.array([len(set(row)) for row in labels])
    y = law.value(law.draw_latent(rng, np.take_along_axis(theta, labels[None], axis=2)))
    counts = np.array([hg.count(release, row) for row in y])
    log_w = {tuple(c): hg.log_likelihood(release, z, c) for c in np.unique(counts, axis=0)}
    weight = np.exp([log_w[tuple(c)] for c in counts])
    found, _ = hg.posterior(release, z, n, d, 1.0, kernel, base, GRID)
    fine, _ = hg.posterior(release, z, n, d, 1.0, kernel, base, GRID, resolution=1.6)
    exact = found.exact
    np.testing.assert_allclose(exact.p_k, fine.exact.p_k, atol=1e-8)
    np.testing.assert_allclose(exact.density, fine.exact.density, rtol=1e-7)
    assert found.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert len(found.counts) == 35

    def check(values: Any, truth: float) -> None:
        estimate = np.average(values, weights=weight)
        error = np.sqrt(np.sum((weight * (values - estimate)) ** 2)) / weight.sum()
        assert abs(estimate - truth) < 4.5 * error + 1e-4

    assert abs(weight.mean() - np.exp(exact.log_evidence)) < 4.5 * weight.std() / np.sqrt(draws)
    for size in (1, 2, 4):
        check(k == size, exact.p_k[size])
    for j, point in enumerate(GRID):
        f = (w * law.pdf(point, theta)).sum(axis=1)
        check(f, exact.density[j])
        check(f**2, exact.density_sd[j] ** 2 + exact.density[j] ** 2)
    for index in (0, 7, 20, 34):
        check(np.all(counts == found.counts[index], axis=1), found.probability[index])


NIW: niw.Base = ((0.2, -0.3), 0.4, 5.0, ((2.0, 0.5), (0.5, 1.0)))
PAIRS = np.array([[-1.5, -0.6], [-0.4, 0.3], [1.8, 0.4], [2.2, 1.5]])
POINTS = np.array([[-1.0, -0.4], [0.3, 0.0], [2.0, 1.0]])


def assert_equal_tables(one: Any, other: Any, **tolerance: float) -> None:
    for field in ("log_m", "f1", "f2", "theta"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), err_msg=field, **tolerance)


def test_gaussian_blocks_of_pairs_tend_to_the_closed_form_as_the_noise_goes() -> None:
    exact = niw.latent_table(PAIRS, NIW, POINTS, 0.0, 1, 0)
    assert_equal_tables(niw.gaussian_table(PAIRS, NIW, POINTS, 1e-6), exact, rtol=1e-6, atol=1e-7)
    # chain rule of the closed form, and the multivariate t of a single record
    t = stats.multivariate_t.pdf(
        POINTS, NIW[0], np.array(NIW[3]) * (1 + NIW[1]) / (NIW[1] * (NIW[2] - 1)), NIW[2] - 1
    )
    np.testing.assert_allclose(exact.f1[0], t, rtol=1e-10)


@pytest.mark.matrix
def test_gaussian_blocks_of_pairs_have_converged() -> None:
    coarse = niw.gaussian_table(PAIRS[:3], NIW, POINTS, (0.5, 0.9))
    fine = niw.gaussian_table(PAIRS[:3], NIW, POINTS, (0.5, 0.9), resolution=1.3)
    assert_equal_tables(coarse, fine, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(coarse.loglik, fine.loglik, atol=1e-7)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_blocks_of_pairs_by_importance_sampling_of_theta(kind: str) -> None:
    """The other order: theta from the base measure, the latent values of one record by quadrature."""
    rng = np.random.default_rng(3)
    scale = np.array([0.5, 0.9])
    law = niw.MultivariateNormal(NIW)
    theta = law.draw_prior(rng, 6000)
    mean, covariance = law.unpack(theta)
    if kind == "gaussian":
        table = niw.gaussian_table(PAIRS[:3], NIW, POINTS, scale)
        g = [np.exp(niw.log_normal(z, mean, covariance + np.diag(scale**2))) for z in PAIRS[:3]]
    else:
        table = niw.latent_table(PAIRS[:3], NIW, POINTS, scale, 2**17, 4)
        again = niw.latent_table(PAIRS[:3], NIW, POINTS, scale, 2**17, 5)
        np.testing.assert_allclose(table.log_m, again.log_m, atol=1e-2)
        np.testing.assert_allclose(table.f1, again.f1, rtol=1e-2)
        noise = stats.laplace.ppf(stats.qmc.Sobol(2, seed=6).random(2**9)) * scale
        g = [np.exp(niw.log_normal(z - noise[:, None], mean, covariance)).mean(axis=0) for z in PAIRS[:3]]
    for mask in range(1, 8):
        members = [i for i in range(3) if mask >> i & 1]
        weight = np.prod([g[i] for i in members], axis=0)
        error = weight.std() / np.sqrt(len(weight))
        assert abs(weight.mean() - np.exp(table.log_m[mask])) < 4.5 * error
        f = np.array([law.function(y, (mean, covariance)) for y in POINTS])
        for values, truth in (
            (f, table.f1[mask]),
            (f**2, table.f2[mask]),
            (law.summaries((mean, covariance)), table.theta[mask]),
        ):
            estimate = values @ weight / weight.sum()
            spread = np.sqrt(((values - estimate[:, None]) ** 2) @ weight**2) / weight.sum()
            assert np.all(np.abs(estimate - truth) < 4.5 * spread)


def test_draws_of_the_base_measure_of_pairs_follow_the_quadrature_rule() -> None:
    law = niw.MultivariateNormal(NIW)
    draws = law.draw_prior(np.random.default_rng(7), 20_000)
    sigma, log_w = niw.sigma_nodes(NIW, 1.0)
    w = np.exp(log_w)
    assert w.sum() == pytest.approx(1.0, abs=1e-9)
    for values, truth in (
        (np.log(draws[2]), w @ np.log(sigma[:, 0, 0])),
        (
            draws[3] / np.sqrt(draws[2] * draws[5]),
            w @ (sigma[:, 0, 1] / np.sqrt(sigma[:, 0, 0] * sigma[:, 1, 1])),
        ),
    ):
        assert abs(values.mean() - truth) < 4.5 * values.std() / np.sqrt(20_000)
    uniforms = [law.uniforms(column) for column in draws[:, :3000].T]
    for name in uniforms[0]:
        assert stats.kstest([u[name] for u in uniforms], "uniform").pvalue > 1e-4


def test_posterior_of_pairs_sums_to_one() -> None:
    exact = pt.posterior(niw.gaussian_table(PAIRS[:3], NIW, POINTS, (0.5, 0.9)), 0.3, (2.0, 2.0))
    assert exact.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert 0.05 < exact.p_k[1] < 0.95
