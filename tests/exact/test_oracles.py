"""The oracles themselves, against closed forms, other quadratures and importance sampling."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate, special, stats

from tests.oracles import blocks as bl
from tests.oracles import kernels as kn
from tests.oracles import log_g as lg
from tests.oracles import partitions as pt

BASE = (0.3, 0.25, 2.5, 1.5)
Z = np.array([-2.6, -1.9, 0.2, 0.7, 2.1, 3.4])
GRID = np.array([-2.0, 0.5, 2.5])
CHANNELS = [("none", 0.0), ("gaussian", 0.6), ("gaussian", 2.5), ("laplace", 0.5), ("laplace", 2.0)]


@pytest.mark.parametrize(
    "channel", [("laplace", 0.02), ("laplace", 0.7), ("laplace", 9.0), ("gaussian", 1.3)]
)
@pytest.mark.parametrize("z", [-3.0, 0.4, 11.0])
def test_mp_log_g_is_the_integral_that_defines_it(channel: lg.Channel, z: float) -> None:
    truth = lg.mp_log_g_by_quadrature(channel, z, 0.4, 0.81)
    assert abs(lg.mp_log_g(channel, z, 0.4, 0.81) - truth) < mp.mpf(10) ** -15


@pytest.mark.parametrize("channel", CHANNELS)
def test_double_precision_log_g_follows_mpmath(channel: lg.Channel) -> None:
    for sd in (0.003, 0.4, 30.0):
        for z in (-25.0, -1.0, 0.3, 2.0, 80.0):
            truth = float(lg.mp_log_g(channel, z, 0.3, sd**2))
            assert float(lg.log_g(channel, z, 0.3, sd**2)) == pytest.approx(truth, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("channel", [("laplace", 0.5), ("laplace", 3.0), ("gaussian", 0.8)])
@pytest.mark.parametrize("z", [-2.5, 0.4, 4.0])
def test_latent_cdf_is_the_integral_that_defines_it(channel: lg.Channel, z: float) -> None:
    for y in (-1.5, 0.2, 0.6, 1.8):
        truth = lg.latent_cdf_by_quadrature(channel, y, z, 0.4, 0.9)
        assert float(lg.latent_cdf(channel, np.array([y]), z, 0.4, 0.9)[0]) == pytest.approx(truth, abs=1e-8)


def test_partitions_are_counted_by_bell_numbers() -> None:
    for n, bell in enumerate([1, 1, 2, 5, 15, 52, 203]):
        found = list(pt.set_partitions(n))
        assert len(found) == len(set(found)) == bell


@pytest.mark.parametrize("d", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("alpha", [0.2, 1.0, 7.0])
def test_prior_of_partitions_sums_to_one_and_is_the_urn(alpha: float, d: float) -> None:
    total = 0.0
    for part in pt.set_partitions(6):
        log_p = float(pt.log_eppf([len(block) for block in part], alpha, d))
        total += np.exp(log_p)
        home = {i: block for block in part for i in block}
        urn, seen = 0.0, [0]
        for i in range(1, 6):
            k = len({home[j] for j in seen})
            mates = sum(j in home[i] for j in seen)
            urn += np.log((mates - d if mates else alpha + k * d) / (alpha + i))
            seen.append(i)
        assert log_p == pytest.approx(urn, abs=1e-12)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_rule_for_the_concentration() -> None:
    for shape, rate in ((0.5, 0.5), (2.0, 1.0), (9.0, 3.0)):
        alpha, log_w = pt.alpha_rule(shape, rate)
        assert np.exp(log_w).sum() == pytest.approx(1.0, abs=1e-7)
        assert np.exp(log_w) @ alpha == pytest.approx(shape / rate, rel=1e-9)
        assert np.exp(log_w) @ np.log(alpha) == pytest.approx(special.digamma(shape) - np.log(rate), abs=2e-6)


@pytest.mark.parametrize(
    "channel",
    [
        pytest.param(channel, marks=() if channel == CHANNELS[1] else pytest.mark.matrix)
        for channel in CHANNELS
    ],
)
def test_block_integrals_have_converged(channel: lg.Channel) -> None:
    coarse = bl.block_table(Z, channel, BASE, GRID)
    fine = bl.block_table(Z, channel, BASE, GRID, resolution=1.7)
    np.testing.assert_allclose(coarse.log_m, fine.log_m, atol=1e-10)
    np.testing.assert_allclose(coarse.f1, fine.f1, rtol=1e-10)
    np.testing.assert_allclose(coarse.f2, fine.f2, rtol=1e-10)
    np.testing.assert_allclose(coarse.theta, fine.theta, atol=1e-9)
    np.testing.assert_allclose(coarse.f1[0], kn.prior_predictive_pdf(BASE, GRID), rtol=1e-10)


def test_block_integrals_have_the_closed_form_without_noise() -> None:
    table = bl.block_table(Z, ("none", 0.0), BASE, GRID)
    for mask in range(1, 64):
        members = [i for i in range(6) if mask >> i & 1]
        closed = kn.log_marginal_nig(BASE, Z[members])
        assert table.log_m[mask] == pytest.approx(closed, abs=1e-10)
        predictive = [np.exp(kn.log_marginal_nig(BASE, np.append(Z[members], y)) - closed) for y in GRID]
        np.testing.assert_allclose(table.f1[mask], predictive, rtol=1e-9)


def test_gaussian_block_by_a_one_dimensional_integral() -> None:
    """Given var, z of a block is multivariate normal, so that only var is left to integrate over."""
    mu0, lam, a, b = BASE
    sd = 0.6
    members = [0, 2, 3, 5]
    table = bl.block_table(Z, ("gaussian", sd), BASE, GRID)

    def integrand(log_v: float) -> float:
        v = np.exp(log_v)
        cov = (v + sd**2) * np.eye(4) + v / lam
        log_prior = a * np.log(b) - special.gammaln(a) - a * log_v - b / v
        return float(
            np.exp(log_prior + stats.multivariate_normal.logpdf(Z[members], np.full(4, mu0), cov) + 10)
        )

    value, _ = integrate.quad(integrand, -6, 14, epsabs=0, epsrel=1e-11, limit=400)
    mask = sum(1 << i for i in members)
    assert table.log_m[mask] == pytest.approx(np.log(value) - 10, abs=1e-9)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_laplace_blocks_by_integrating_over_the_latent_values(scale: float) -> None:
    """The other order of integration: theta in closed form, then the latent values by quadrature."""
    table = bl.block_table(Z, ("laplace", scale), BASE, GRID)
    nodes, weights = special.roots_legendre(90)

    def rule(z: float) -> tuple[np.ndarray, np.ndarray]:
        cuts = np.array([-25.0, -6.0, -2.0, 0.0, 2.0, 6.0, 25.0]) * scale + z
        half = np.diff(cuts) / 2
        y = (half[:, None] * nodes + (cuts[:-1] + half)[:, None]).ravel()
        return y, (half[:, None] * weights).ravel() * stats.laplace.pdf(z, y, scale)

    y, w = rule(Z[0])
    one = w @ np.exp([kn.log_marginal_nig(BASE, np.array([v])) for v in y])
    assert table.log_m[1] == pytest.approx(np.log(one), abs=1e-8)
    u, x = rule(Z[4])
    mu0, lam, a, b = BASE
    shape = np.eye(2) * b / a + b / (a * lam)
    pair = stats.multivariate_t([mu0, mu0], shape, 2 * a)
    two = w @ pair.pdf(np.stack(np.meshgrid(y, u, indexing="ij"), axis=-1)) @ x
    assert table.log_m[0b010001] == pytest.approx(np.log(two), abs=1e-8)


@pytest.mark.parametrize(
    ("d", "prior"),
    [
        (0.3, (2.0, 2.0)),
        *(
            pytest.param(*case, marks=pytest.mark.matrix)
            for case in ((0.0, 1.5), (0.3, 1.5), (0.0, (2.0, 2.0)))
        ),
    ],
)
def test_posterior_by_importance_sampling_of_the_random_measure(
    d: float, prior: float | tuple[float, float]
) -> None:
    """Draw P by sticks, weigh it by prod_i sum_h w_h g(z_i | theta_h): no partition anywhere."""
    rng = np.random.default_rng(5)
    channel, z, draws, sticks = ("laplace", 0.8), Z[[1, 3, 4]], 30_000, 80
    mu0, lam, a, b = BASE
    alpha = np.full(draws, prior) if isinstance(prior, float) else rng.gamma(prior[0], 1 / prior[1], draws)
    evidence, first, second, concentration = [], [], [], []
    for part in np.array_split(alpha, 20):
        v = rng.beta(1 - d, part[:, None] + d * np.arange(1, sticks + 1))
        v[:, -1] = 1.0
        w = v * np.cumprod(np.concatenate([np.ones((len(part), 1)), 1 - v[:, :-1]], axis=1), axis=1)
        var = b / rng.gamma(a, 1.0, w.shape)
        mu = mu0 + np.sqrt(var / lam) * rng.standard_normal(w.shape)
        lik = np.prod([(w * np.exp(lg.log_g(channel, zi, mu, var))).sum(axis=1) for zi in z], axis=0)
        f = np.array([(w * stats.norm.pdf(y, mu, np.sqrt(var))).sum(axis=1) for y in GRID])
        evidence.append(lik)
        first.append(f)
        second.append(f**2)
        concentration.append(part)
    weight = np.concatenate(evidence)
    f, ff = np.concatenate(first, axis=1), np.concatenate(second, axis=1)
    exact = pt.posterior(bl.block_table(z, channel, BASE, GRID), d, prior)

    def check(values: np.ndarray, truth: float) -> None:
        estimate = np.average(values, weights=weight)
        error = np.sqrt(np.sum((weight * (values - estimate)) ** 2)) / weight.sum()
        assert abs(estimate - truth) < 4.5 * error + 1e-4

    assert abs(weight.mean() - np.exp(exact.log_evidence)) < 4.5 * weight.std() / np.sqrt(draws)
    for j in range(len(GRID)):
        check(f[j], exact.density[j])
        check(ff[j], exact.density_sd[j] ** 2 + exact.density[j] ** 2)
    check(np.concatenate(concentration), exact.concentration)
    assert exact.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert exact.p_k.sum() == pytest.approx(1.0, abs=1e-12)
