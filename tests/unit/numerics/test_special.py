"""Fast densities and special functions against SciPy and the careful versions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as scipy_special

from dpmix.kernels import NormalNIG
from dpmix.mechanisms.channels.channel_functions import fill_marginal, log_marginal, sum_logs
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.numerics.jit import njit
from dpmix.numerics.special import erfcx, exp

KERNEL = NormalNIG(0.0, 0.1, 3.0, 3.0)
CHANNELS = [LaplaceNoise(0.05), LaplaceNoise(4.0), GaussianNoise(2.0), NoNoise()]


@njit
def _each_exp(x, out):
    for i in range(len(x)):
        out[i] = exp(x[i])


@njit
def _each_erfcx(x, out):
    for i in range(len(x)):
        out[i] = erfcx(x[i])


def test_exp_agrees_with_scipy_and_stays_positive_at_the_ends():
    x = np.concatenate([np.linspace(-708.0, 709.0, 200_001), np.linspace(-1.0, 1.0, 20_001)])
    out = np.empty_like(x)
    _each_exp(x, out)
    assert np.max(np.abs(out / np.exp(x) - 1.0)) < 5e-16
    far = np.array([-1e6, -np.inf, 1e6])
    out = np.empty(3)
    _each_exp(far, out)
    assert np.all(out > 0.0) and np.all(np.isfinite(out))


def test_erfcx_agrees_with_scipy_from_zero_to_far_beyond_overflow_of_erfc():
    x = np.concatenate([[0.0], np.logspace(-12, 12, 50_001), np.linspace(0.0, 30.0, 50_001)])
    out = np.empty_like(x)
    _each_erfcx(x, out)
    assert np.max(np.abs(out / scipy_special.erfcx(x) - 1.0)) < 5e-14


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
@pytest.mark.parametrize("variance", [1e-4, 1.0, 400.0])
def test_filled_densities_are_those_of_log_marginal(channel, variance):
    theta = np.array([[1.5], [variance]])
    spread = math.sqrt(variance + 2.0 * channel[0] ** 2)
    z = 1.5 + spread * np.linspace(-12.0, 12.0, 128)
    out = np.empty(128)
    fill_marginal(channel, KERNEL, theta, 0, z, 0, 128, out)
    logs = np.array([log_marginal(channel, KERNEL, value, theta, 0) for value in z])
    assert np.max(np.abs(np.log(out) - logs)) < 2e-13


def test_sums_of_logs_survive_densities_that_underflow():
    channel = NoNoise()
    theta = np.array([[0.0], [1e-4]])
    z = np.concatenate([np.linspace(-0.03, 0.03, 300), [5.0, -7.0], np.linspace(-0.02, 0.02, 50)])
    total = sum_logs(channel, KERNEL, theta, 0, z, 0, len(z), np.empty(128))
    expected = sum(log_marginal(channel, KERNEL, value, theta, 0) for value in z)
    assert total == pytest.approx(expected, rel=1e-12)
