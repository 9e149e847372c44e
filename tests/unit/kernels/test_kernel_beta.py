"""Beta kernel: special functions, draws, Langevin steps and random walks against SciPy and quadrature."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpmix.kernels import (
    Beta,
    draw_posterior,
    draw_prior,
    draw_record,
    log_prior,
    make_tuning,
    propose,
    tally,
    value,
)
from dpmix.numerics.jit import njit
from dpmix.numerics.special import digamma, log_beta, log_gamma_draw, stirling, trigamma

KERNEL = Beta(2.0, 1.5, 3.0, 0.5, -2.0, 5.0)
LEVEL = 1e-6  # of each of some 60 tests that draw; a correct kernel fails one with probability below 1e-4
DATA = np.array([0.02, 0.11, 0.4, 0.45, 0.97])


def test_derivatives_of_log_gamma():
    x = np.concatenate([np.logspace(-100, 8, 500), np.linspace(0.01, 30.0, 500)])
    psi = np.array([digamma(v) for v in x])
    assert np.max(np.abs(psi - special.digamma(x)) / np.maximum(1.0, np.abs(psi))) < 1e-13
    assert np.max(np.abs([trigamma(v) / special.polygamma(1, v) - 1.0 for v in x])) < 1e-13


def test_log_beta():
    rng = np.random.default_rng(1)
    for a, b in 10.0 ** rng.uniform(-6.0, 6.0, (300, 2)):
        with mp.workdps(40):
            truth = float(mp.log(mp.beta(a, b)))
        assert log_beta(a, b) == pytest.approx(truth, rel=1e-13, abs=1e-13)


@njit
def _log_gammas(rng, shape, out):
    for i in range(len(out)):
        out[i] = log_gamma_draw(rng, shape)


@pytest.mark.parametrize("shape", [1e-5, 0.01, 0.3, 1.0, 4.0, 1e4])
def test_log_gamma_draws(shape):
    out = np.empty(4000)
    _log_gammas(np.random.default_rng(int(1e5 * shape)), shape, out)
    # far below, the distribution function of Gamma(s) at x is x^s / Gamma(s + 1)
    far = out < -600.0
    u = np.where(
        far,
        np.exp(np.minimum(shape * out - special.gammaln(shape + 1.0), 0.0)),
        special.gammainc(shape, np.exp(np.maximum(out, -600.0))),
    )
    assert stats.kstest(u, "uniform").pvalue > LEVEL


@njit
def _prior(kernel, rng, theta, out):
    for i in range(out.shape[1]):
        draw_prior(kernel, rng, theta, 0)
        out[:, i] = theta[:, 0]


def test_prior_draws():
    out = np.empty((2, 4000))
    _prior(KERNEL, np.random.default_rng(2), np.ones((2, 1)), out)
    assert stats.kstest(out[0], stats.gamma(2.0, scale=1 / 1.5).cdf).pvalue > LEVEL
    assert stats.kstest(out[1], stats.gamma(3.0, scale=2.0).cdf).pvalue > LEVEL


def test_prior_draws_of_tiny_shapes_are_never_zero_or_infinite():
    out = np.empty((2, 4000))
    _prior(Beta(0.001, 1.0, 0.01, 1e-90, 0.0, 1.0), np.random.default_rng(3), np.ones((2, 1)), out)
    assert np.all(out > 0.0) and np.all(np.isfinite(out))
    assert np.min(out[0]) < 1e-50  # a shape of 0.001 does reach there


@njit
def _records(kernel, rng, theta, out):
    for i in range(len(out)):
        out[i] = draw_record(kernel, rng, theta, 0)


@pytest.mark.parametrize(("a", "b"), [(2.0, 3.0), (0.5, 0.02), (0.01, 0.3), (900.0, 40.0)])
def test_record_draws(a, b):
    out = np.empty(4000)
    _records(KERNEL, np.random.default_rng(4), np.array([[a], [b]]), out)
    assert np.all(np.isfinite(out))
    # below, by log u; above by log(1 - u): the smaller tail in either case
    low = special.betainc(a, b, special.expit(out))
    u = np.where(
        out < 0.0, low, special.betaincc(a, b, 1.0) + 1.0 - special.betainc(b, a, special.expit(-out))
    )
    far = out < -700.0
    u[far] = np.exp(a * out[far] - np.log(a) - special.betaln(a, b))
    assert stats.kstest(u, "uniform").pvalue > LEVEL


def test_value_and_tally_at_the_ends():
    assert value(KERNEL, 0.0) == pytest.approx(0.5)
    assert value(KERNEL, -800.0) == -2.0 and value(KERNEL, 800.0) == 3.0
    assert value(KERNEL, -30.0) + 2.0 == pytest.approx(5.0 * np.exp(-30.0), rel=1e-2)
    sums = np.zeros((2, 1))
    for y in (-1500.0, 900.0, 0.0, 1.3):
        tally(KERNEL, np.ones((2, 1)), 0, y, sums)
    u = special.log_expit(np.array([-1500.0, 900.0, 0.0, 1.3]))
    v = special.log_expit(-np.array([-1500.0, 900.0, 0.0, 1.3]))
    np.testing.assert_allclose(sums[:, 0], [u.sum(), v.sum()], rtol=1e-14)


def test_log_prior_is_the_density_of_the_logs():
    theta = np.array([[0.3, 2.5, 1e-101], [4.0, 0.01, 1.0]])
    a, b = theta[:, :2]
    truth = stats.gamma.logpdf(a, 2.0, scale=1 / 1.5) + stats.gamma.logpdf(b, 3.0, scale=2.0) + np.log(a * b)
    found = np.array([log_prior(KERNEL, theta, h) for h in range(2)])
    assert found[1] - found[0] == pytest.approx(truth[1] - truth[0], rel=1e-12)
    assert log_prior(KERNEL, theta, 2) == -np.inf


def exact(count, sums, size, rng):
    """Quantile grid of the posterior of (log a, log b): draws (2, size), and cdfs of both margins."""
    x = np.linspace(-9.0, 6.0, 1501)
    a, b = np.exp(x)[:, None], np.exp(x)[None, :]
    log_p = 2.0 * np.log(a) - 1.5 * a + 3.0 * np.log(b) - 0.5 * b
    log_p = log_p + a * sums[0] + b * sums[1] - count * special.betaln(a, b)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    at = rng.choice(p.size, size, p=p.ravel())
    jitter = 0.01 * (rng.random((2, size)) - 0.5)
    draws = np.stack([x[at // 1501], x[at % 1501]]) + jitter
    margins = [np.cumsum(p.sum(axis=1 - side)) for side in (0, 1)]
    return draws, [lambda v, m=m: np.interp(v, x + 0.005, m) for m in margins]


def stats_of(data):
    return np.array([np.log(data).sum(), np.log1p(-data).sum()])


@njit
def _langevin(kernel, rng, count, sums, theta, tuning, calls):
    for h in range(theta.shape[1]):
        for _ in range(calls):
            draw_posterior(kernel, rng, count, sums, h, theta, tuning)


@njit
def _walk(kernel, rng, count, sums, theta, proposal, spread, moves):
    """Metropolis by `propose`; return the share accepted."""
    accepted = 0
    for h in range(theta.shape[1]):
        for _ in range(moves):
            ratio = propose(kernel, rng, theta, h, count, spread, proposal)
            for side in range(2):
                ratio += (proposal[side, h] - theta[side, h]) * sums[side]
            ratio -= count * (log_beta(proposal[0, h], proposal[1, h]) - log_beta(theta[0, h], theta[1, h]))
            if -rng.standard_exponential() < ratio:
                theta[:, h] = proposal[:, h]
                accepted += 1
    return accepted / (moves * theta.shape[1])


def check(theta, cdfs):
    """Both margins by Kolmogorov-Smirnov."""
    for side in (0, 1):
        assert stats.kstest(np.log(theta[side]), cdfs[side]).pvalue > LEVEL


@pytest.mark.parametrize("step", [0.05, 0.8])
@pytest.mark.parametrize("data", [DATA[:0], DATA, np.repeat(DATA[1:4], 30)], ids=len)
def test_langevin_steps_leave_the_posterior_as_it_is(data, step):
    """Start from exact draws; the step is large enough to be rejected at times."""
    rng = np.random.default_rng([5, len(data)])
    draws, cdfs = exact(len(data), stats_of(data), 8_000, rng)
    theta = np.exp(draws)
    tuning = make_tuning(step)
    _langevin(KERNEL, rng, len(data), np.repeat(stats_of(data)[:, None], 8_000, 1), theta, tuning, 6)
    assert not np.any(np.log(theta) == draws)
    check(theta, cdfs)
    assert tuning.tolist() == (step, 0.0, 0.0)


@pytest.mark.parametrize("start", [(1e-6, 1e-6), (1e4, 1e-3), (1e5, 1e5)])
@pytest.mark.parametrize("data", [DATA, np.repeat(DATA, 200)], ids=len)
def test_adapted_langevin_steps_find_the_posterior_from_far_out(data, start):
    rng = np.random.default_rng(6)
    sums = stats_of(data)
    theta = np.array(start)[:, None]
    tuning = make_tuning(0.05, adapting=1.0)
    _langevin(KERNEL, rng, len(data), sums[:, None], theta, tuning, 400)
    assert tuning.adaptations == 2000.0
    assert 0.3 < tuning.step <= 2.0  # the metric is that of the posterior: steps near 1 serve
    tuning.adapting = 0.0
    fixed = tuning.copy()
    theta = np.repeat(theta, 4000, axis=1)
    _langevin(KERNEL, rng, len(data), np.repeat(sums[:, None], 4000, 1), theta, tuning, 10)
    assert tuning == fixed
    _, cdfs = exact(len(data), sums, 1, rng)
    if len(data) == 5:  # the grid is too coarse for the others
        check(theta, cdfs)
    else:
        a, b, _, _ = stats.beta.fit(data, floc=0.0, fscale=1.0)
        assert np.median(theta[0]) == pytest.approx(a, rel=0.05)
        assert np.median(theta[1]) == pytest.approx(b, rel=0.05)


@pytest.mark.parametrize("spread", [0.0, 0.1, 50.0])
@pytest.mark.parametrize("data", [DATA[:0], DATA], ids=len)
def test_random_walks_leave_the_posterior_as_it_is(data, spread):
    """With `count` 0 it is the prior."""
    rng = np.random.default_rng([7, len(data)])
    sums = stats_of(data)
    draws, cdfs = exact(len(data), sums, 8_000, rng)
    theta = np.exp(draws)
    rate = _walk(KERNEL, rng, len(data), sums, theta, np.ones_like(theta), spread, 20)
    assert 0.1 < rate < 0.8
    check(theta, cdfs)


def test_random_walk_from_the_ends_of_the_base_measure_stays_inside():
    theta = np.array([[1e-99], [1e99]])
    proposal = np.ones((2, 1))
    rng = np.random.default_rng(8)
    kernel = Beta(1e-3, 1e-99, 1e-3, 1e-99, 0.0, 1.0)
    ratios = [propose(kernel, rng, theta, 0, 0, 0.0, proposal) for _ in range(50)]
    assert -np.inf in ratios
    assert np.all(np.isfinite(proposal)) and np.all(proposal > 0.0)


@pytest.mark.parametrize("x", [10.0, 10.7, 33.3, 1e4, 1e9])
def test_stirling_against_mpmath(x: float) -> None:
    with mp.workdps(40):
        z = mp.mpf(x)
        wanted = mp.loggamma(z) - ((z - 0.5) * mp.log(z) - z + mp.log(2 * mp.pi) / 2)
        assert stirling(x) == pytest.approx(float(wanted), rel=1e-13)
