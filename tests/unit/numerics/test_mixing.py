"""The mixing measure: no concentration is too small or too large for its weights."""

from __future__ import annotations

import numpy as np
import pytest

from dpmix.numerics.mixing import PitmanYor, draw_concentration, draw_measure, opening_mass


@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1e-3, 1.0, 1e12])
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_weights_sum_to_one_whatever_the_concentration(alpha: float, blocks: int) -> None:
    """Below about 0.01 gammas underflow to zero; without blocks nothing else is there to divide by."""
    rng, weights = np.random.default_rng(1), np.zeros(3)
    for _ in range(200):
        left = draw_measure(rng, alpha, 0.0, np.array([1, 5, 2]), blocks, weights)
        assert 0.0 <= left <= 1.0
        assert left + weights[:blocks].sum() == pytest.approx(1.0, abs=1e-12)
        assert blocks or left == 1.0


@pytest.mark.parametrize("alpha", [-0.4, -0.2, 0.0])
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_a_discount_lets_the_concentration_fall_below_zero(alpha: float, blocks: int) -> None:
    rng, weights = np.random.default_rng(3), np.zeros(3)
    lefts = [draw_measure(rng, alpha, 0.5, np.array([1, 5, 2]), blocks, weights) for _ in range(4000)]
    records = np.array([0, 1, 6, 8])[blocks]
    mean = 1.0 if blocks == 0 else (alpha + 0.5 * blocks) / (alpha + records)
    assert np.mean(lefts) == pytest.approx(mean, abs=0.03)
    assert opening_mass(alpha, 0.5, blocks) == (1.0 if blocks == 0 else alpha + 0.5 * blocks)


@pytest.mark.parametrize(("shape", "rate"), [(0.01, 1.0), (2.0, 1.0), (2.0, 1e-12), (0.01, 1e12)])
@pytest.mark.parametrize("n", [1, 6, 10**9])
def test_a_concentration_stays_a_number(shape: float, rate: float, n: int) -> None:
    rng, mixing, alpha = np.random.default_rng(2), PitmanYor(1.0, 0.0, shape, rate), 1.0
    for k in (1, 1, 1, min(n, 40), 1) * 100:
        alpha = draw_concentration(rng, mixing, alpha, float(n), k)
        assert 0.0 <= alpha < np.inf
