"""The square-wave channel: g by its definition, window sums, exact draws of latent values, wide ranges."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from dpmix.kernels import Beta, NormalNIG
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    fill_marginal,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.mechanisms.square_wave.channel import square_wave, window_sums
from tests.oracles import kernels
from tests.oracles.marginals import log_g

LO, WIDTH = -1.0, 3.0
NORMAL, BETA = NormalNIG(0.3, 0.3, 3.0, 2.0), Beta(2.0, 2.0, 2.0, 1.0, LO, WIDTH)
OWN = (11, 3, 6.0, LO, WIDTH)


def test_windows_are_summed_without_differences() -> None:
    rng = np.random.default_rng(1)
    for cells, reach in ((2, 0), (5, 2), (9, 4), (12, 1), (1024, 261), (1023, 511), (37, 5)):
        masses = rng.dirichlet(np.full(cells, 0.05)) + 1e-300
        out = np.full(cells + 2 * reach, -1.0)
        window_sums(masses, reach, out)
        exact = [math.fsum(masses[max(j - 2 * reach, 0) : min(j, cells - 1) + 1]) for j in range(len(out))]
        np.testing.assert_allclose(out, exact, rtol=1e-13)


@pytest.mark.parametrize("name", ["normal", "beta"])
def test_marginal_is_that_of_the_definition(name: str) -> None:
    kernel: Any = NORMAL if name == "normal" else BETA
    law = kernels.kernel(name, tuple(kernel))
    channel = square_wave(*OWN[:3], LO, LO + WIDTH)
    normals, betas = [[0.2, -0.9, 4.0], [0.5, 0.01, 3.0]], [[2.0, 0.3, 40.0], [1.5, 0.4, 9.0]]
    theta = np.array(normals if name == "normal" else betas)
    outputs = np.arange(17.0)
    truth = log_g(law, ("square_wave", OWN), outputs, theta)
    assert np.exp(truth).sum(axis=0) == pytest.approx(1.0, abs=1e-12)
    for h in range(3):
        many, one = np.empty(17), np.empty(1)
        fill_marginal(channel, kernel, theta, h, outputs, 0, 17, many)
        np.testing.assert_allclose(np.log(many), truth[:, h], atol=1e-12)
        for j in range(17):
            fill_marginal(channel, kernel, theta, h, outputs, j, j + 1, one)  # by the mass of one interval
            assert math.log(one[0]) == pytest.approx(truth[j, h], abs=1e-12)
            assert log_marginal(channel, kernel, outputs[j], theta, h) == pytest.approx(
                truth[j, h], abs=1e-12
            )


def test_masses_keep_twelve_digits_in_the_tails_under_a_large_ratio() -> None:
    """A ratio of e^20 makes masses of 1e-9 count; against forty digits."""
    cells, reach, odds = 64, 2, math.exp(20.0)
    channel = square_wave(cells, reach, odds, 0.0, 1.0)
    theta, outputs = np.array([[0.5], [0.05**2]]), np.arange(68.0)
    found = np.empty(68)
    fill_marginal(channel, NORMAL, theta, 0, outputs, 0, 68, found)
    with mp.workdps(40):
        total = (2 * reach + 1) * mp.mpf(odds) + cells - 1

        def below(c: int) -> mp.mpf:
            return (
                mp.ncdf((mp.mpf(c) / cells - mp.mpf("0.5")) / mp.mpf(0.05))
                if 0 < c < cells
                else mp.mpf(c > 0)
            )

        for j in range(68):
            mass = below(min(j, cells - 1) + 1) - below(max(j - 2 * reach, 0))
            truth = (1 + (mp.mpf(odds) - 1) * mass) / total
            assert abs(float(found[j] / truth - 1)) < 2e-12


@pytest.mark.parametrize("name", ["normal", "beta"])
def test_latent_values_are_drawn_exactly(name: str) -> None:
    """Cells of 20,000 draws against their posterior, places within the domain: false alarm below 1e-6."""
    kernel: Any = NORMAL if name == "normal" else BETA
    law = kernels.kernel(name, tuple(kernel))
    cells, reach, odds = 8, 1, 5.0
    channel = square_wave(cells, reach, odds, LO, LO + WIDTH)
    theta = np.array([[0.4], [0.8]] if name == "normal" else [[1.5], [0.8]])
    masses = law.masses(theta, LO + WIDTH * np.arange(1, cells) / cells)[:, 0]
    rng = np.random.default_rng(5)
    for z in (0.0, 4.0, 9.0):
        y = np.array([draw_latent(channel, kernel, rng, z, theta, 0) for _ in range(20_000)])
        places = (y - LO) / WIDTH if name == "normal" else 1.0 / (1.0 + np.exp(-y))
        seen = np.bincount(np.clip((places * cells).astype(int), 0, cells - 1), minlength=cells)
        near = (np.arange(cells) <= z) & (z <= np.arange(cells) + 2 * reach)
        weights = np.where(near, odds, 1.0) * masses
        assert stats.chisquare(seen, 20_000 * weights / weights.sum()).pvalue > 1e-6


def test_densities_at_a_value_are_those_of_its_cell() -> None:
    channel = square_wave(4, 1, 7.0, 0.0, 1.0)
    total = 3 * 7.0 + 3
    for y, cell in ((-5.0, 0), (0.0, 0), (0.25, 1), (0.7, 2), (1.0, 3), (9.0, 3)):
        found = [noise_density(channel, float(z), y) for z in range(6)]
        assert found == [(7.0 if cell <= z <= cell + 2 else 1.0) / total for z in range(6)]
    assert 0.0 < noise_variance(channel) <= 4.0
    for wrong in ((1, 0, 2.0), (4, 2, 2.0), (4, 1, 1.0), (4, -1, 2.0)):
        with pytest.raises(ValueError, match="no square wave"):
            square_wave(*wrong, 0.0, 1.0)
