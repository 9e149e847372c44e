"""Discrete Gaussian noise on counts: its draws, and what it costs, against sums over whole numbers."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmix.errors import PrivacyError
from dpmix.numerics.discrete_gaussian import draw, log_pmf, variance
from dpmix.privacy import conversions as discrete_gaussian
from dpmix.privacy.conversions import (
    discrete_gaussian_delta,
    discrete_gaussian_epsilon,
    discrete_gaussian_sigma,
    gaussian_delta,
    rho_to_epsilon,
)
from dpmix.privacy.noise import LARGEST_SCALE, DiscreteGaussianNoise

ROOT_TWO = math.nextafter(math.sqrt(2), 2)


def mass(sigma: float) -> list[mpmath.mpf]:
    """Return the probabilities of -40, .., 40 by sums."""
    terms = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for x in range(-40, 41)]
    total = mpmath.fsum(terms)
    return [term / total for term in terms]


def enumerated(epsilon: float, sigma: float, moved: int) -> float:
    """Return delta by summing max(0, P - e^eps Q) over all outputs of the counts that move, up and down."""
    p = mass(sigma)
    total = mpmath.mpf(0)
    for output in itertools.product(range(1, 80), repeat=moved):
        here = mpmath.fprod(p[x] for x in output)
        # the first half of the counts is one higher in the other database, the rest one lower
        there = mpmath.fprod(p[x - 1 if i % 2 else x + 1] for i, x in enumerate(output))
        total += max(mpmath.mpf(0), here - mpmath.exp(epsilon) * there)
    return float(total)


@pytest.mark.parametrize(("sigma", "epsilon"), [(0.4, 1.0), (0.9, 0.5), (1.7, 2.0), (3.2, 0.3), (4.1, 1.0)])
def test_delta_is_the_sum_over_all_outputs(sigma: float, epsilon: float) -> None:
    found = discrete_gaussian_delta(epsilon, sigma, 2)
    assert found is not None
    exact = enumerated(epsilon, sigma, 2)
    assert exact <= found <= exact * (1 + 1e-9) + 1e-12


def test_delta_of_four_counts_and_of_sums_that_are_nearly_integrals() -> None:
    sums = discrete_gaussian._small_sums(2.99, 4)
    assert sums.sum() == pytest.approx(1, rel=1e-13)
    s = np.arange(len(sums)) - (len(sums) - 1) // 2
    near = np.abs(s) < 60
    wide = stats.norm(0, 2 * 2.99).pdf(s[near])
    np.testing.assert_allclose(sums[near], wide, rtol=1e-11)
    exact = float(sums @ np.maximum(-np.expm1(0.7 - (2 * s + 4) / (2 * 2.99**2)), 0))
    assert discrete_gaussian_delta(0.7, 2.99, 4) == pytest.approx(exact, rel=1e-9)
    just = discrete_gaussian_delta(0.7, 3.0, 4)
    assert just is not None
    assert just < exact


def test_it_is_not_the_delta_of_gaussian_noise() -> None:
    """The continuous formula would state too small a delta."""
    found = discrete_gaussian_delta(1.0, 3.1, 2)
    assert found is not None
    assert found > 1.01 * gaussian_delta(1.0, math.sqrt(2) / 3.1)


@pytest.mark.parametrize("moved", [2, 6])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (5.0, 1e-4)])
def test_calibration_reaches_what_was_asked_and_no_less_noise_does(
    epsilon: float, delta: float, moved: int
) -> None:
    sigma = discrete_gaussian_sigma(epsilon, delta, moved)
    at, below = (discrete_gaussian_delta(epsilon, sigma * factor, moved) for factor in (1.0, 1 - 1e-6))
    assert at is not None
    assert below is not None
    assert at <= delta < below
    assert discrete_gaussian_epsilon(sigma, moved, delta) == pytest.approx(epsilon, rel=1e-9)
    assert epsilon < rho_to_epsilon(moved / (2 * sigma**2), delta)


def test_noise_too_wide_to_sum_up_is_stated_by_its_rho() -> None:
    assert discrete_gaussian_delta(1e-7, 1e7, 2) is None
    assert discrete_gaussian_epsilon(1e7, 2, 1e-6) == pytest.approx(rho_to_epsilon(1e-14, 1e-6), rel=1e-9)
    sigma = discrete_gaussian_sigma(1e-6, 1e-6, 2)
    assert rho_to_epsilon(1 / sigma**2, 1e-6) <= 1e-6


@pytest.mark.parametrize("sigma", [0.3, 0.8, 2.0, 11.0])
def test_rho_holds_at_all_orders(sigma: float) -> None:
    rho = DiscreteGaussianNoise(sigma, ROOT_TWO, 2).loss
    with mpmath.workdps(40):
        assert 1 / mpmath.mpf(sigma) ** 2 <= mpmath.mpf(rho) <= (1 + 1e-14) / mpmath.mpf(sigma) ** 2
        reach = range(-60 - int(60 * sigma), 61 + int(60 * sigma))
        logs = {x: -(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2) for x in range(-1, 0)} | {
            x: -(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(sigma) ** 2) for x in (*reach, reach[-1] + 1)
        }
        total = mpmath.fsum(mpmath.exp(logs[x]) for x in reach)
        for order in (1.0001, 1.5, 3.0, 12.0):
            inner = mpmath.fsum(mpmath.exp(order * logs[x] + (1 - order) * logs[x + 1]) for x in reach)
            divergence = mpmath.log(inner / total) / (order - 1)
            assert 2 * divergence / order <= rho * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [0.4, 1.3, 7.5])
def test_draws_have_their_law(sigma: float) -> None:
    """Of the operating system's randomness, and seeded: false alarms below 1e-9 each."""
    size = 40_000
    seeded = draw(sigma, (4, size // 4), np.random.default_rng(5)).ravel()
    real = DiscreteGaussianNoise(sigma, ROOT_TWO, size).add(np.full(size, 9, dtype=np.int64)) - 9
    simulated = DiscreteGaussianNoise(sigma, ROOT_TWO, size).simulate(
        np.zeros(size, dtype=np.int64), np.random.default_rng(6)
    )
    far = max(1, int(3 * sigma))
    chances = np.exp(log_pmf(np.arange(-far, far + 1.0), sigma))
    expected = np.append(chances, 1 - chances.sum())
    for found in (seeded, real, simulated):
        inside = np.abs(found) <= far
        counts = np.append(
            np.bincount((found[inside] + far).astype(int), minlength=2 * far + 1), (~inside).sum()
        )
        enough = expected * size > 5
        rest = size - counts[enough].sum(), size * (1 - expected[enough].sum())
        observed, wanted = np.append(counts[enough], rest[0]), np.append(size * expected[enough], rest[1])
        keep = wanted > 1
        assert (
            stats.chisquare(observed[keep], wanted[keep] * observed[keep].sum() / wanted[keep].sum()).pvalue
            > 1e-9
        )
    assert variance(sigma) == pytest.approx(
        float(np.arange(-99, 100.0) ** 2 @ np.exp(log_pmf(np.arange(-99, 100.0), sigma))), rel=1e-10
    )


def test_the_library_adds_in_64_bits_and_refuses_what_doubles_cannot_hold() -> None:
    drawn = DiscreteGaussianNoise(1e10, 1.0, 500).add(np.full(500, 2**40, dtype=np.int64)) - 2.0**40
    assert (np.abs(drawn) > 2**31).mean() > 0.5
    assert stats.kstest(drawn / 1e10, stats.norm.cdf).pvalue > 1e-9
    for scale in (LARGEST_SCALE, 1e-12, math.nan):
        with pytest.raises(PrivacyError, match="the scale of discrete Gaussian noise must lie between"):
            DiscreteGaussianNoise(scale, 1.0, 1)
    with pytest.raises(PrivacyError, match="discrete Gaussian noise is added to whole numbers"):
        DiscreteGaussianNoise(1.0, 1.0, 2).add(np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("delta", [1e-60, 1e-300])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 700.0])
def test_deltas_below_what_sums_leave_out_are_those_of_zcdp(epsilon: float, delta: float) -> None:
    sigma = discrete_gaussian_sigma(epsilon, delta, 2)
    assert epsilon * (1 - 1e-6) < discrete_gaussian_epsilon(sigma, 2, delta) <= epsilon
    assert rho_to_epsilon(1 / sigma**2, delta) == pytest.approx(epsilon, rel=1e-6)


def test_a_loss_that_no_noise_reaches_is_beyond_all_sums() -> None:
    assert discrete_gaussian_delta(1.0, 1e10, 2) == pytest.approx(0.0, abs=1e-40)


def test_what_a_noise_costs_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release asks for it six times, which took most of its time where noise is large."""
    asked = []

    def counted(epsilon: float, sigma: float, moved: int) -> float | None:
        asked.append(epsilon)
        return discrete_gaussian_delta(epsilon, sigma, moved)

    monkeypatch.setattr(discrete_gaussian, "discrete_gaussian_delta", counted)
    epsilon, first = discrete_gaussian_epsilon(17.3, 2, 1e-6), len(asked)
    assert discrete_gaussian_epsilon(17.3, 2, 1e-6) == epsilon and len(asked) == first > 0
    sigma, second = discrete_gaussian_sigma(0.7, 1e-6, 2), len(asked)
    assert discrete_gaussian_sigma(0.7, 1e-6, 2) == sigma and len(asked) == second > first
