"""The binomial channel: g against quadrature in many digits and its double sum, draws, probabilities."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpmix.kernels import NormalNIG
from dpmix.kernels.beta.kernel import Beta
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
)
from tests.helpers.parametric import interpreted

LO, HI = -1.0, 5.0
NORMAL = NormalNIG(0.0, 0.1, 3.0, 3.0)
BETA = Beta(2.0, 2.0, 2.0, 2.0, LO, HI - LO)
LEVEL = 1e-5  # of each of the 5 tests of draws; seeds fixed
CHANNELS = {(m, w): BinomialNoise.make(m, w, LO, HI) for m, w in ((1, 0.9), (7, 0.3), (40, 0.8), (300, 0.99))}
BETAS = [(0.01, 0.01), (0.3, 40.0), (1.0, 1.0), (5.0, 50.0), (1e3, 0.02), (900.0, 1e3)]


def double_sum(m: int, w: float, z: int, a: float, b: float) -> mp.mpf:
    """Return g by the sum of methods, section 4, in 30 digits."""
    with mp.workdps(30):
        a, b, w = mp.mpf(a), mp.mpf(b), mp.mpf(w)
        base = (1 - w) / 2
        total = mp.mpf(0)
        moments = {}
        for i in range(z + 1):
            for j in range(m - z + 1):
                if (i, j) not in moments:
                    moments[i, j] = mp.rf(a, i) * mp.rf(b, j) / mp.rf(a + b, i + j)
                total += (
                    mp.binomial(z, i)
                    * mp.binomial(m - z, j)
                    * base ** (m - i - j)
                    * w ** (i + j)
                    * moments[i, j]
                )
        return mp.binomial(m, z) * total


def marginals(channel: BinomialNoise, kernel, first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Return g and log g of all numbers."""
    theta = np.array([[7.0, first], [7.0, second]])
    m = int(channel.trials)
    z = np.concatenate([np.arange(m + 1.0), np.arange(m + 1.0)[::-1]])
    out = np.empty(len(z))
    fill_marginal(channel, kernel, theta, 1, z, 0, len(z), out)
    assert np.array_equal(out[: m + 1], out[m + 1 :][::-1])
    return out[: m + 1], np.array([log_marginal(channel, kernel, v, theta, 1) for v in z[: m + 1]])


@pytest.mark.parametrize("a, b", BETAS)
@pytest.mark.parametrize("m, w", [(1, 0.9), (7, 0.3), (40, 0.8)])
def test_beta_marginal_is_the_double_sum(m, w, a, b):
    g, logs = marginals(CHANNELS[m, w], BETA, a, b)
    for z in {0, m // 3, m - 1, m}:
        truth = double_sum(m, w, z, a, b)
        assert abs(g[z] / truth - 1) < 1e-11, z
        assert abs(logs[z] - mp.log(truth)) < 1e-11, z


@pytest.mark.parametrize("a, b", BETAS)
def test_beta_marginal_with_hundreds_of_trials(a, b):
    """300 trials, w = 0.99: some g are below 1e-300. Against the same integral by quadrature in the logit."""
    m, w = 300, 0.99
    g, logs = marginals(CHANNELS[m, w], BETA, a, b)
    step = 0.004
    logit = np.arange(-40.0 / min(a, 1), 40.0 / min(b, 1), step)
    power = a * -np.logaddexp(0, -logit) + b * -np.logaddexp(0, logit) - float(mp.log(mp.beta(a, b)))
    p, q = (1 - w) / 2 + w * special.expit(logit), (1 - w) / 2 + w * special.expit(-logit)
    for z in (0, 1, 60, 150, 299, 300):
        choose = special.gammaln(m + 1) - special.gammaln(z + 1) - special.gammaln(m - z + 1)
        truth = special.logsumexp(power + z * np.log(p) + (m - z) * np.log(q)) + math.log(step) + choose
        assert logs[z] == pytest.approx(truth, abs=2e-10)
        assert g[z] == pytest.approx(math.exp(truth), rel=2e-10, abs=2e-305)


@pytest.mark.parametrize("mean", [2.0, -0.9, 5.0, 9.0, -40.0])
@pytest.mark.parametrize("sd", [1e-3, 0.05, 0.7, 4.0, 300.0])
@pytest.mark.parametrize("m, w", CHANNELS)
def test_normal_marginal(m, w, mean, sd):
    """Against 60000 points and the two ends; at 300 trials and w = 0.99 the guarantee is eps = 1588."""
    g, logs = marginals(CHANNELS[m, w], NORMAL, mean, sd * sd)
    t, weights = np.polynomial.legendre.leggauss(30)
    left, right = max(LO, mean - 70 * sd), min(HI, mean + 70 * sd)
    ends = np.linspace(left, right, 2001) if right > left else np.array([LO, LO])
    y = (((ends[1:] + ends[:-1]) / 2)[:, None] + np.diff(ends)[:, None] / 2 * t).ravel()
    with np.errstate(divide="ignore"):
        mass = np.log((np.diff(ends)[:, None] / 2 * weights).ravel()) + stats.norm.logpdf(y, mean, sd)
    mass = np.concatenate([mass, [stats.norm.logcdf(LO, mean, sd), stats.norm.logsf(HI, mean, sd)]])
    u = (np.concatenate([y, [LO, HI]]) - LO) / (HI - LO)
    for z in {0, m // 7, m // 2, m}:
        choose = special.gammaln(m + 1) - special.gammaln(z + 1) - special.gammaln(m - z + 1)
        terms = mass + z * np.log(0.5 + w * (u - 0.5)) + (m - z) * np.log(0.5 + w * (0.5 - u))
        truth = special.logsumexp(terms) + choose
        assert logs[z] == pytest.approx(truth, abs=1e-10, rel=1e-13), z
        assert g[z] == pytest.approx(math.exp(truth), rel=1e-10, abs=1e-304), z


@pytest.mark.parametrize("m, w", CHANNELS)
def test_probabilities_add_up(m, w):
    for kernel, points in ((BETA, BETAS), (NORMAL, [(2.0, 1.0), (-1.0, 0.01), (70.0, 4.0), (3.0, 1e6)])):
        for first, second in points:
            assert np.sum(marginals(CHANNELS[m, w], kernel, first, second)[0]) == pytest.approx(
                1.0, abs=1e-11
            )


@pytest.mark.parametrize("m, w", CHANNELS)
def test_noise_is_binomial_and_held_at_the_ends(m, w):
    channel = CHANNELS[m, w]
    z = np.arange(m + 1)
    for y in (-np.inf, -4.0, LO, 0.3, 2.0, HI, 17.0, np.inf):
        p = 0.5 + w * (min(max((y - LO) / (HI - LO), 0.0), 1.0) - 0.5)
        found = [noise_density(channel, float(v), y) for v in z]
        assert found == pytest.approx(stats.binom(m, p).pmf(z), rel=1e-10, abs=1e-300)
    assert hides(channel) and log_constant(channel) == 0.0 and noise_variance(channel) > 0


def test_a_thousand_trials():
    channel = BinomialNoise.make(1000, math.tanh(50.0 / 2000), LO, HI)
    for kernel, first, second in (
        (BETA, 0.01, 3.0),
        (BETA, 1e3, 700.0),
        (NORMAL, 1.0, 0.5),
        (NORMAL, 4.9, 1e-4),
    ):
        g, logs = marginals(channel, kernel, first, second)
        assert np.sum(g) == pytest.approx(1.0, abs=1e-10)
        assert logs[g > 1e-280] == pytest.approx(np.log(g[g > 1e-280]), abs=1e-10)
        assert np.all(np.isfinite(logs))


@pytest.mark.parametrize("z", [0, 5, 40])
@pytest.mark.parametrize("a, b", [(0.4, 0.7), (6.0, 2.0)])
def test_latent_value_is_drawn_exactly(z, a, b):
    """Against the posterior's distribution function on a fine grid of logits."""
    m, w = 40, 0.8
    rng = np.random.default_rng([z, int(10 * a)])
    theta = np.array([[a], [b]])
    draws = [draw_latent(CHANNELS[m, w], BETA, rng, float(z), theta, 0) for _ in range(4000)]
    logit = np.linspace(-90.0, 90.0, 100_001)
    p, q = 0.5 + w * (special.expit(logit) - 0.5), 0.5 + w * (special.expit(-logit) - 0.5)
    logs = -a * np.logaddexp(0, -logit) - b * np.logaddexp(0, logit) + z * np.log(p) + (m - z) * np.log(q)
    cdf = np.cumsum(np.exp(logs - np.max(logs)))
    assert stats.kstest(np.interp(draws, logit + 0.0009, cdf / cdf[-1]), "uniform").pvalue > LEVEL


def test_chains_start_where_the_release_points():
    channel = CHANNELS[40, 0.8]
    rng = np.random.default_rng(0)
    starts = [draw_start(channel, NORMAL, rng, z) for z in (0.0, 20.0, 24.0, 40.0)]
    assert starts == pytest.approx([LO, 2.0, LO + 6.0 * (0.1 / 0.8 + 0.5), HI])
    logits = [draw_start(channel, BETA, rng, 3.0) for _ in range(4000)]
    assert stats.kstest(special.expit(logits), "uniform").pvalue > LEVEL


def test_impossible_channels_are_refused():
    for m, w in ((0, 0.5), (3, 0.0), (3, 1.0), (3, math.nan)):
        with pytest.raises(ValueError, match="trials must be 1 or more"):
            BinomialNoise.make(m, w, LO, HI)


def numbers() -> list[float]:
    """Return some of everything, for the comparison with the interpreter."""
    channel = BinomialNoise.make(12, 0.6, LO, HI)
    rng = np.random.default_rng(1)
    z = np.array([0.0, 3.0, 12.0, 3.0])
    out = np.empty(4)
    found: list[float] = list(channel.log_table.ravel())
    for kernel, first, second in (
        (NORMAL, 1.0, 2.0),
        (NORMAL, -9.0, 0.1),
        (BETA, 0.4, 3.0),
        (BETA, 30.0, 7.0),
    ):
        theta = np.array([[first], [second]])
        fill_marginal(channel, kernel, theta, 0, z, 0, 4, out)
        found += [*out, *(log_marginal(channel, kernel, v, theta, 0) for v in z)]
        found += [noise_density(channel, v, 1.7) for v in z]
        found += [draw_start(channel, kernel, rng, v) for v in z]
        if kernel is BETA:
            found += [draw_latent(channel, kernel, rng, v, theta, 0) for v in z]
    return found


def test_the_interpreter_gives_the_same_numbers():
    other = interpreted(__name__, "[float(v) for v in numbers()]")
    assert numbers() == pytest.approx(other, rel=1e-12)
