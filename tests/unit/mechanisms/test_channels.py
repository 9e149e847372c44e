"""Channels and the normal kernel against the oracles: log g, exact draws of y | z, theta, conjugate draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmix.kernels import NormalNIG, draw_posterior, draw_prior, tally
from dpmix.mechanisms.channels.channel_functions import draw_latent, log_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from tests.oracles.log_g import Channel, latent_cdf, mp_log_g

KERNEL = NormalNIG(0.0, 0.1, 3.0, 3.0)
# each draw test rejects a correct sampler with this probability; there are about 60 of them, seeds fixed
LEVEL = 1e-5


def made(channel: Channel) -> LaplaceNoise | GaussianNoise | NoNoise:
    """Return dpmix's channel of this oracle description."""
    kind, scale = channel
    return {"laplace": LaplaceNoise, "gaussian": GaussianNoise}[kind](scale) if kind != "none" else NoNoise()


def worst_error(
    channel: Channel, points: list[tuple[float, float, float]]
) -> tuple[float, tuple[float, float, float]]:
    """Return the largest |log g - truth| over (z, mean, variance), and where it is."""
    errors = []
    for z, mean, var in points:
        value = log_marginal(made(channel), KERNEL, z, np.array([[mean], [var]]), 0)
        errors.append((float(abs(mp_log_g(channel, z, mean, var) - float(value))), (z, mean, var)))
    return max(errors)


RATIOS = [1e-3, 1e-2, 0.03, 0.1, 0.3, 0.9, 1.0, 1.1, 3.0, 10.0, 30.0, 1e2, 1e3]
DISTANCES = [
    0.0,
    1e-9,
    1e-3,
    0.1,
    0.5,
    1.0,
    2.0,
    3.0,
    5.0,
    7.3,
    8.0,
    10.0,
    15.0,
    20.0,
    26.0,
    30.0,
    36.0,
    37.7,
    38.0,
    40.0,
]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_log_g_is_good_to_a_trillionth(kind: str, ratio: float) -> None:
    """|error of log g| <= 1e-12 up to 40 sd from the mean, noise scales from 1e-3 to 1e3 sd."""
    points = [(side * t, 0.0, 1.0) for t in DISTANCES for side in (1.0, -1.0)]
    error, where = worst_error((kind, ratio), points)
    assert error <= 1e-12, where


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_log_g_where_the_formula_changes_branch(kind: str) -> None:
    """Distances near r = sd / s, where the two sides of the Laplace integral trade places."""
    for ratio in (0.03, 0.2, 1.0, 4.0):
        r = 1.0 / ratio
        points = [
            (r + gap, 0.0, 1.0)
            for gap in (-6.0, -1.0, -1e-4, -1e-13, 0.0, 1e-13, 1e-4, 1.0, 6.0)
            if abs(r + gap) <= 40
        ]
        error, where = worst_error((kind, ratio), points)
        assert error <= 1e-12, where


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "none"])
def test_log_g_at_random_arguments(kind: str) -> None:
    """Random locations and scales, units far from one among them.

    z - mean is rounded by half a unit in the last place, which is the caller's: distances are at most 12 sd
    here.
    """
    rng = np.random.default_rng(11)
    for _ in range(60):
        sd = 10 ** rng.uniform(-3, 3)
        scale = sd * 10 ** rng.uniform(-3, 3)
        mean = sd * rng.normal()
        error, where = worst_error(
            (kind, scale if kind != "none" else 0.0), [(mean + sd * rng.uniform(-12, 12), mean, sd**2)]
        )
        assert error <= 1e-12, (where, scale)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_log_g_far_beyond_every_scale_is_finite(kind: str) -> None:
    """At hundreds of sd g underflows, its logarithm does not; relative error is what a double can give."""
    for ratio in (1e-3, 1.0, 1e3):
        for z in (60.0, 400.0, 1e4):
            truth = float(mp_log_g((kind, ratio), z, 0.0, 1.0))
            value = log_marginal(made((kind, ratio)), KERNEL, z, np.array([[0.0], [1.0]]), 0)
            assert value == pytest.approx(truth, rel=1e-13)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("ratio", [1e-3, 0.05, 0.5, 1.0, 4.0, 1e3])
@pytest.mark.parametrize("distance", [0.0, -0.7, 3.0, -9.0, 30.0, -40.0])
def test_latent_value_is_drawn_exactly(kind: str, ratio: float, distance: float) -> None:
    """Kolmogorov-Smirnov test of y | z, theta; at 30 and 40 sd the normals are cut in their far tails."""
    mean, sd, draws = 0.4, 1.7, 4000
    z = mean + distance * sd
    rng = np.random.default_rng([17, int(1000 * ratio), int(10 * distance) + 1000])
    theta = np.array([[9.0, mean], [1.0, sd**2]])
    channel = (kind, ratio * sd)
    y = np.array([draw_latent(made(channel), KERNEL, rng, z, theta, 1) for _ in range(draws)])
    u = latent_cdf(channel, np.sort(y), z, mean, sd**2)
    assert stats.kstest(u, "uniform").pvalue > LEVEL
    # the square of the normal scores weighs the tails, which Kolmogorov-Smirnov hardly sees
    square = np.mean(stats.norm.ppf(np.clip(u, 1e-12, 1 - 1e-12)) ** 2)
    assert abs(square - 1) < stats.norm.isf(LEVEL / 2) * np.sqrt(2 / draws) * 1.15


def test_latent_value_without_noise_is_the_record() -> None:
    rng = np.random.default_rng(0)
    assert draw_latent(NoNoise(), KERNEL, rng, 1.25, np.array([[0.0], [1.0]]), 0) == 1.25


@pytest.mark.parametrize("values", [[], [0.7], [-1.2, 0.3, 4.1], [1e6 + 0.25, 1e6 - 0.5, 1e6 + 1.0, 1e6]])
def test_conjugate_draws(values: list[float]) -> None:
    """Mean and variance against the NIG posterior, Kolmogorov-Smirnov on both pivots and on their product."""
    kernel = NormalNIG(0.5, 0.2, 2.5, 1.5)
    rng, draws = np.random.default_rng(23), 4000
    n = len(values)
    mean = np.mean(values) if n else 0.0
    lam, a = kernel.lam + n, kernel.a + n / 2
    mu = (kernel.lam * kernel.mu0 + n * mean) / lam
    b = (
        kernel.b
        + 0.5 * sum((v - mean) ** 2 for v in values)
        + 0.5 * kernel.lam * n / lam * (mean - kernel.mu0) ** 2
    )
    out = np.empty((2, draws))
    for t in range(draws):
        # the reference of the running sums is the component's present mean, as in a sampler near its
        # posterior
        theta = np.array([[mean + 0.3], [1.0]])
        stats_ = np.zeros((2, 1))
        for v in values:
            tally(kernel, theta, 0, v, stats_)
        if n:
            draw_posterior(kernel, rng, n, stats_, 0, theta, np.zeros(3))
        else:
            draw_prior(kernel, rng, theta, 0)
        out[:, t] = theta[:, 0]
    score = (out[0] - mu) / np.sqrt(out[1] / lam)
    assert stats.kstest(out[1], stats.invgamma(a, scale=b).cdf).pvalue > LEVEL
    assert stats.kstest(score, "norm").pvalue > LEVEL
    assert abs(stats.spearmanr(score, out[1]).statistic) < stats.norm.isf(LEVEL / 2) / np.sqrt(draws)
