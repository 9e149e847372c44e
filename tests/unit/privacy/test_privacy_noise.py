"""The noise of real releases: its law, its grid, its guarantee, and audits that catch planted faults."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmix.errors import PrivacyError
from dpmix.privacy.conversions import gaussian_delta
from dpmix.privacy.noise import BLOCK, AdditiveNoise, calibrated

Sampler = Callable[[int], np.ndarray]
KINDS = ["laplace", "gaussian"]


def epsilon_lower_bound(
    one: Sampler, other: Sampler, low: float, n: int, confidence: float = 1 - 1e-6
) -> float:
    """Bound epsilon from below by the event {z <= low}, with Clopper-Pearson bounds on both probabilities."""
    hits, misses = int((one(n) <= low).sum()), int((other(n) <= low).sum())
    error = (1 - confidence) / 2
    least = stats.beta.ppf(error, hits, n - hits + 1)
    most = stats.beta.ppf(1 - error, misses + 1, n - misses)
    return math.log(least / most)


def on_grid(values: np.ndarray, noise: AdditiveNoise) -> np.ndarray:
    steps = np.ldexp(values, -noise.granularity)
    return steps == np.rint(steps)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("scale", "value"), [(1.0, 0.0), (0.013, 2.5), (4e5, -7.0)])
def test_the_noise_has_its_law(kind: str, scale: float, value: float) -> None:
    noise = AdditiveNoise(kind, scale, 5 * scale)
    law = stats.laplace(value, scale) if kind == "laplace" else stats.norm(value, scale)
    released = noise.add(np.full(6000, value))
    assert stats.kstest(released, law.cdf).pvalue > 1e-6
    wrong = stats.laplace(value, 1.2 * scale) if kind == "laplace" else stats.norm(value, 1.2 * scale)
    assert stats.kstest(released, wrong.cdf).pvalue < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_neighbouring_draws_are_independent_and_never_repeat(kind: str) -> None:
    noise = AdditiveNoise(kind, 1.0, 5.0)
    first, second = noise.add(np.zeros(5000)), noise.add(np.zeros(5000))
    assert np.unique(np.concatenate([first, second])).size == 10_000
    assert abs(stats.spearmanr(first, second).statistic) < 0.08
    assert abs(stats.spearmanr(first[1:], first[:-1]).statistic) < 0.08


@pytest.mark.parametrize("kind", KINDS)
def test_released_numbers_lie_on_the_grid_and_naive_ones_do_not(kind: str) -> None:
    noise = AdditiveNoise(kind, 1.0, 5.0)
    small = noise.add(np.zeros(30_000))
    small = small[np.abs(small) < 2.0**-6]  # where doubles are far finer than the grid
    assert small.size > 200
    assert on_grid(small, noise).all()
    naive = noise.simulate(np.zeros(100_000), np.random.default_rng(1))
    assert on_grid(naive[np.abs(naive) < 2.0**-6], noise).mean() < 0.05


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ratio", [1e-6, 0.05, 1.0, 50.0, 1e9])
def test_the_grid_is_far_below_scale_and_sensitivity_and_costs_next_to_nothing(
    kind: str, ratio: float
) -> None:
    noise = AdditiveNoise(kind, 3.0 * ratio, 3.0)
    assert 2.0**noise.granularity <= min(noise.scale, noise.sensitivity) * 2.0**-40
    exact = 1 / ratio if kind == "laplace" else 0.5 / ratio**2
    assert exact * (1 - 1e-15) <= noise.loss <= exact * (1 + 1e-10)


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(KINDS), st.floats(-6, 3), st.floats(-3, 6))
def test_calibrated_noise_never_exceeds_what_was_asked(kind: str, log_loss: float, log_width: float) -> None:
    loss, width = 10.0**log_loss, 10.0**log_width
    scale = width / loss if kind == "laplace" else width / math.sqrt(2 * loss)
    noise = calibrated(kind, scale, width, loss)
    assert loss * (1 - 1e-9) < noise.loss <= loss
    assert scale <= noise.scale < scale * (1 + 1e-9)


def test_a_loss_that_the_scale_does_not_give_is_refused() -> None:
    with pytest.raises(PrivacyError, match="no laplace noise meets epsilon"):
        calibrated("laplace", 1e-9, 1.0, 1.0)


def test_the_audit_stays_below_the_recorded_epsilon() -> None:
    noise = AdditiveNoise("laplace", 5.0, 5.0)
    bound = epsilon_lower_bound(
        lambda n: noise.add(np.full(n, 1.0)), lambda n: noise.add(np.full(n, 6.0)), 1.0, 20_000
    )
    assert 0.85 < bound <= noise.loss


@pytest.mark.parametrize(("scale", "far"), [(2.5, 6.0), (5.0, 11.0)], ids=["half the scale", "not clamped"])
def test_the_audit_catches_planted_faults(scale: float, far: float) -> None:
    rng = np.random.default_rng(2)
    faulty = AdditiveNoise("laplace", scale, 5.0)
    bound = epsilon_lower_bound(
        lambda n: faulty.simulate(np.full(n, 1.0), rng),
        lambda n: faulty.simulate(np.full(n, far), rng),
        1.0,
        20_000,
    )
    assert bound > 1.0  # the claimed epsilon


def test_gaussian_noise_meets_its_delta_and_half_the_scale_does_not() -> None:
    noise = AdditiveNoise("gaussian", 2.0, 4.0)
    epsilon, mu, n = 1.0, math.sqrt(2 * noise.loss), 20_000
    delta = gaussian_delta(epsilon, mu)
    edge = 2.0 * (epsilon / mu + mu / 2)  # the event that attains delta
    margin = 5 * math.sqrt((1 + math.e**2) / (4 * n))

    def gap(one: AdditiveNoise, draw: Callable[[AdditiveNoise, np.ndarray], np.ndarray]) -> float:
        high, low = draw(one, np.full(n, 4.0)), draw(one, np.full(n, 0.0))
        return float((high > edge).mean() - math.e * (low > edge).mean())

    assert abs(gap(noise, lambda one, y: one.add(y)) - delta) < margin
    rng = np.random.default_rng(3)
    assert gap(AdditiveNoise("gaussian", 1.0, 4.0), lambda one, y: one.simulate(y, rng)) > delta + margin


@pytest.mark.parametrize("n", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
def test_every_length_comes_back_with_progress(n: int) -> None:
    done: list[int] = []
    values = np.linspace(0.0, 1000.0, n)
    released = AdditiveNoise("laplace", 0.01, 1000.0).add(values, done.append)
    assert released.shape == (n,)
    assert np.abs(released - values).max() < 1.0
    assert done[-1] == n
    assert done == sorted(done)


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.0, np.nan]),
        np.array([0.0, np.inf]),
        np.array([1, 2, 3]),
        np.array([1.0, 2.0], dtype=np.float32),
        np.zeros((2, 2)),
        np.array([]),
        np.array([0.0, 5.1]),
        np.array(["a"]),
    ],
    ids=["nan", "inf", "int", "float32", "two columns", "empty", "wider than the domain", "text"],
)
def test_what_the_library_would_take_in_silence_is_refused(values: np.ndarray) -> None:
    with pytest.raises(PrivacyError) as caught:
        AdditiveNoise("laplace", 1.0, 5.0).add(values)
    assert "5.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("scale", "sensitivity"),
    [
        (0.0, 1.0),
        (-1.0, 1.0),
        (math.nan, 1.0),
        (math.inf, 1.0),
        (1.0, 0.0),
        (1e-300, 1.0),
        (1e80, 1.0),
        (1.0, 1e80),
    ],
)
def test_impossible_scales_are_refused(scale: float, sensitivity: float) -> None:
    with pytest.raises(PrivacyError, match="noise"):
        AdditiveNoise("laplace", scale, sensitivity)


@pytest.mark.parametrize("kind", KINDS)
def test_simulated_noise_is_reproducible_and_has_its_law(kind: str) -> None:
    noise = AdditiveNoise(kind, 2.0, 5.0)
    draws = [noise.simulate(np.zeros(5000), np.random.default_rng(4)) for _ in range(2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    law = stats.laplace(0, 2.0) if kind == "laplace" else stats.norm(0, 2.0)
    assert stats.kstest(draws[0], law.cdf).pvalue > 1e-6
