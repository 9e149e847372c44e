"""Oracles for the beta kernel, the truncated base measure, cells and the binomial, against other routes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special, stats

from tests.oracles import blocks as bl
from tests.oracles import kernels as kn
from tests.oracles import marginals as mg
from tests.oracles import partitions as pt

BETA = kn.Beta((2.0, 1.0, 2.0, 2.0, -1.0, 3.0))
NORMAL = kn.Normal((0.3, 0.25, 2.5, 1.5))
TRUNCATED = kn.TruncatedNormal((0.3, 0.25, 2.5, 1.5, 0.36))
WAVELET = ("wavelet", (1, 0.9, -1.0, 3.0))
BINOMIAL = ("binomial", (6, 0.7, -1.0, 3.0))
THETA = {
    "beta": np.array([[0.004, 0.3, 1.0, 7.0, 12.0], [2.0, 0.02, 1.0, 0.6, 20.0]]),
    "normal": np.array([[0.2, -3.0, 0.5, 6.0], [0.5, 0.01, 9.0, 2.0]]),
}
GRID = np.array([-0.7, 0.4, 1.6])
Z = {"laplace": [-1.4, 0.1, 2.6], "gaussian": [-1.6, 0.1, 2.4], "binomial": [0.0, 2.0, 6.0]}


def mp_log_g(noise: Callable[[float, mp.mpf], mp.mpf], z: float, a: float, b: float) -> mp.mpf:
    """Log of the integral of q(z | y) f(y | a, b) on [-1, 2], each half with its pole taken away."""
    with mp.workdps(25):
        middle, kink = mp.mpf(a + 1) / (a + b + 2), (mp.mpf(z) + 1) / 3
        # the peak of a large a + b wants cuts of its own
        around = [middle * mp.mpf(x) for x in (0.4, 0.7)] + [1 - (1 - middle) * mp.mpf(x) for x in (0.4, 0.7)]
        cuts = sorted({middle, *around, *([kink] if 0 < kink < 1 else [])})
        p, q = min(mp.mpf(a), 1), min(mp.mpf(b), 1)

        def left(v: mp.mpf) -> mp.mpf:
            u = v ** (1 / p)
            return noise(z, 3 * u - 1) * u ** (a - p) * (1 - u) ** (b - 1) / p

        def right(v: mp.mpf) -> mp.mpf:
            u = v ** (1 / q)
            return noise(z, 2 - 3 * u) * u ** (b - q) * (1 - u) ** (a - 1) / q

        total = mp.quad(left, [0, *[c**p for c in cuts if c <= middle]])
        total += mp.quad(right, [0, *[(1 - c) ** q for c in reversed(cuts) if c >= middle]])
        return mp.log(total / mp.beta(a, b))


@pytest.mark.parametrize(
    "channel", [("laplace", 0.4), ("laplace", 2.0), ("gaussian", 0.6), ("gaussian", 1.5), BINOMIAL]
)
def test_marginals_of_the_beta_kernel_are_the_integrals_that_define_them(channel: mg.Channel) -> None:
    kind, parameters = channel

    def noise(z: float, y: mp.mpf) -> mp.mpf:
        if kind == "laplace":
            return mp.exp(-abs(z - y) / parameters) / (2 * parameters)
        if kind == "gaussian":
            return mp.npdf(z, y, parameters)
        trials, w = parameters[:2]
        p = mp.mpf(1) / 2 + w * ((y + 1) / 3 - mp.mpf(1) / 2)
        return mp.binomial(trials, z) * p**z * (1 - p) ** (trials - z)

    for z in Z[kind]:
        found = mg.log_g(BETA, channel, np.array([z]), THETA["beta"])[0]
        for (a, b), value in zip(THETA["beta"].T, found, strict=True):
            truth = float(mp_log_g(noise, z, float(a), float(b)))
            assert value == pytest.approx(truth, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kernel", [BETA, NORMAL])
def test_discrete_marginals_sum_to_one(kernel: Any) -> None:
    theta = THETA["beta" if kernel is BETA else "normal"]
    total = np.exp(mg.log_g(kernel, BINOMIAL, np.arange(7.0), theta)).sum(axis=0)
    np.testing.assert_allclose(total, 1.0, rtol=1e-11)


@pytest.mark.parametrize("scale", [0.7, pytest.param(2.0, marks=pytest.mark.matrix)])
def test_continuous_marginals_of_the_beta_kernel_integrate_to_one(scale: float) -> None:
    nodes, weights = special.roots_legendre(60)
    for kind in ("laplace", "gaussian"):
        reach = [40 * scale, 9 * scale, 3 * scale] if kind == "laplace" else [8 * scale, 3 * scale]
        cuts = np.array([*[-1 - r for r in reach], -1, 0.5, 2, *[2 + r for r in reversed(reach)]])
        half = np.diff(cuts) / 2
        z = ((cuts[:-1] + half)[:, None] + half[:, None] * nodes).ravel()
        w = (half[:, None] * weights).ravel()
        theta = np.array([[1.5, 7.0], [2.0, 0.6]])
        total = w @ np.exp(mg.log_g(BETA, (kind, scale), z, theta))
        np.testing.assert_allclose(total, 1.0, rtol=2e-4 if kind == "laplace" else 1e-9)


def test_binomial_of_the_normal_kernel_by_adaptive_quadrature() -> None:
    for z in (0.0, 2.0, 6.0):
        found = mg.log_g(NORMAL, BINOMIAL, np.array([z]), THETA["normal"])[0]
        for (mean, var), value in zip(THETA["normal"].T, found, strict=True):

            def integrand(y: float, mean: float = mean, var: float = var, z: float = z) -> float:
                p = mg.success(BINOMIAL, np.array(y))
                return float(stats.binom.pmf(z, 6, p) * stats.norm.pdf(y, mean, np.sqrt(var)))

            sd = np.sqrt(var)
            low, high = mean - 15 * sd, mean + 15 * sd
            inner = sorted({low, high, *[c for c in (-1.0, 2.0, mean) if low < c < high]})
            truth = sum(
                integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-11, limit=200)[0]
                for ends in zip(inner[:-1], inner[1:], strict=True)
            )
            assert value == pytest.approx(np.log(truth), abs=1e-9)


@pytest.mark.parametrize("kernel", [BETA, NORMAL])
def test_wavelet_marginal_by_draws_of_the_latent_values(kernel: Any) -> None:
    """Average q(z | y) over draws of y, with the Haar functions evaluated from their definition."""
    rng = np.random.default_rng(1)
    theta = THETA["beta" if kernel is BETA else "normal"]
    latent = kernel.draw_latent(rng, np.repeat(theta[:, 2:3], 60_000, axis=1))
    u = np.clip((kernel.value(latent) + 1) / 3, 0, 1 - 1e-12)
    z = np.array([[0.4, -1.9, 0.7], [-2.0, 0.1, 1.0]])

    def psi(x: Any) -> Any:
        return 1.0 * ((x >= 0) & (x < 0.5)) - 1.0 * ((x >= 0.5) & (x < 1))

    signal = np.array([psi(u), np.sqrt(2) * psi(2 * u), np.sqrt(2) * psi(2 * u - 1)])
    q = np.array([np.prod(stats.laplace.pdf(row[:, None], signal, 0.9), axis=0) for row in z])
    found = np.exp(mg.log_g(kernel, WAVELET, z, theta[:, 2:3])[:, 0])
    error = q.std(axis=1) / np.sqrt(60_000)
    assert np.all(np.abs(q.mean(axis=1) - found) < 4.5 * error)
    release = mg.draw_release(rng, kernel, WAVELET, latent)
    gap = (release - signal.T).ravel()
    assert stats.kstest(gap, stats.laplace(0, 0.9).cdf).pvalue > 1e-4


@pytest.mark.parametrize("kernel", [BETA, NORMAL, TRUNCATED])
def test_quadrature_rule_of_the_base_measure_and_draws_from_it(kernel: Any) -> None:
    theta, log_w = kernel.nodes(0, 1.0)
    assert np.exp(log_w).sum() == pytest.approx(1.0, abs=1e-9)
    rng = np.random.default_rng(3)
    draws = kernel.draw_prior(rng, 20_000)
    values = kernel.summaries(draws)
    exact = kernel.summaries(theta) @ np.exp(log_w)
    assert np.all(np.abs(values.mean(axis=1) - exact) < 4.5 * values.std(axis=1) / np.sqrt(20_000))
    uniforms = [kernel.uniforms(column) for column in draws[:, :4000].T]
    for name in uniforms[0]:
        assert stats.kstest([u[name] for u in uniforms], "uniform").pvalue > 1e-4


@pytest.mark.parametrize("kernel", [BETA, NORMAL])
def test_masses_of_cells_are_those_of_draws_and_of_the_density(kernel: Any) -> None:
    theta = THETA["beta" if kernel is BETA else "normal"]
    edges = np.array([-0.5, 0.3, 1.4])
    masses = kernel.masses(theta, edges)
    np.testing.assert_allclose(masses.sum(axis=0), 1.0, rtol=1e-12)
    inner = [
        integrate.quad(lambda y: float(kernel.pdf(y, theta[:, 2])), low, high, epsabs=0, epsrel=1e-11)[0]
        for low, high in ((-0.5, 0.3), (0.3, 1.4))
    ]
    np.testing.assert_allclose(masses[1:3, 2], inner, rtol=1e-9)
    y = kernel.value(kernel.draw_latent(np.random.default_rng(4), np.repeat(theta[:, 1:2], 20_000, axis=1)))
    share = np.bincount(np.searchsorted(edges, y, side="right"), minlength=4) / 20_000
    assert np.all(
        np.abs(share - masses[:, 1]) < 4.5 * np.sqrt(masses[:, 1] * (1 - masses[:, 1]) / 20_000) + 1e-12
    )


RELEASES = {
    "none": np.array([-3.0, 0.5, 1.2, 30.0]),
    "laplace": np.array([-1.4, 0.1, 0.6, 2.6]),
    "gaussian": np.array([-1.4, 0.1, 0.6, 2.6]),
    "wavelet": np.array([[0.4, -1.9, 0.7], [-2.0, 0.1, 1.0], [3.0, 0.0, 0.0], [1.0, 2.0, -2.0]]),
    "binomial": np.array([0.0, 2.0, 5.0, 6.0]),
}
CHANNELS = {
    "none": ("none", 0.0),
    "laplace": ("laplace", 0.5),
    "gaussian": ("gaussian", 0.7),
    "wavelet": WAVELET,
    "binomial": BINOMIAL,
}
SLOW = ("laplace", "gaussian")


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *(pytest.param("beta", name, marks=pytest.mark.matrix if name in SLOW else ()) for name in CHANNELS),
        ("normal", "wavelet"),
        pytest.param("normal", "binomial", marks=pytest.mark.matrix),
    ],
)
def test_block_integrals_have_converged(kernel: str, name: str) -> None:
    base = BETA.base if kernel == "beta" else NORMAL.base
    case = (RELEASES[name], CHANNELS[name], base, GRID)
    coarse = bl.block_table(*case, kernel=kernel)
    fine = bl.block_table(*case, kernel=kernel, resolution=2.0)
    for field in ("log_m", "f1", "f2", "loglik", "theta"):
        np.testing.assert_allclose(getattr(coarse, field), getattr(fine, field), rtol=1e-7, atol=1e-8)
    assert coarse.log_m[0] == pytest.approx(0.0, abs=1e-9)


def test_truncated_blocks_in_closed_form_are_those_of_quadrature_in_two_dimensions() -> None:
    z = np.array([-1.9, 0.2, 0.7, 3.4])
    theta, log_w = TRUNCATED.nodes(len(z), 1.0)
    records = mg.log_g(TRUNCATED, ("gaussian", 0.6), z, theta)
    full = bl.tabulate(TRUNCATED, GRID, records, theta, log_w, bl.all_blocks(4))
    closed = bl.truncated_table(z, TRUNCATED.base, GRID)
    np.testing.assert_allclose(closed.log_m, full.log_m, atol=1e-8)
    np.testing.assert_allclose(closed.f1, full.f1, rtol=2e-4)
    np.testing.assert_allclose(closed.f2, full.f2, rtol=5e-4)
    np.testing.assert_allclose(closed.loglik, full.loglik, atol=1e-8)
    np.testing.assert_allclose(closed.theta, full.theta, atol=1e-6)


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "d"), [("laplace", 0.3), ("wavelet", 0.0), ("binomial", 0.3)])
def test_posterior_of_the_beta_kernel_by_importance_sampling_of_the_random_measure(
    name: str, d: float
) -> None:
    """Draw P by sticks, weigh it by prod_i sum_h w_h g(z_i | theta_h): no partition anywhere."""
    rng = np.random.default_rng(5)
    draws, sticks = 4000, 25
    z, channel = RELEASES[name][1:], CHANNELS[name]
    v = rng.beta(1 - d, 1.0 + d * np.arange(1, sticks + 1), (draws, sticks))
    v[:, -1] = 1.0
    w = v * np.cumprod(np.concatenate([np.ones((draws, 1)), 1 - v[:, :-1]], axis=1), axis=1)
    theta = BETA.draw_prior(rng, draws * sticks)
    g = np.exp(mg.log_g(BETA, channel, z, theta)).reshape(len(z), draws, sticks)
    weight = np.prod(np.einsum("nds,ds->nd", g, w), axis=0)
    exact = pt.posterior(bl.block_table(z, channel, BETA.base, GRID, kernel="beta"), d, 1.0)
    assert abs(weight.mean() - np.exp(exact.log_evidence)) < 4.5 * weight.std() / np.sqrt(draws)
    for j, y in enumerate(GRID):
        f = (w * BETA.pdf(y, theta).reshape(draws, sticks)).sum(axis=1)
        for values, truth in (
            (f, exact.density[j]),
            (f**2, exact.density_sd[j] ** 2 + exact.density[j] ** 2),
        ):
            estimate = np.average(values, weights=weight)
            error = np.sqrt(np.sum((weight * (values - estimate)) ** 2)) / weight.sum()
            assert abs(estimate - truth) < 4.5 * error + 1e-4
