"""Releases and kernels beyond a normal kernel under Laplace noise: what a cell's `setting` stands for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.simulations import three_betas, three_gaussians
from dpmix.kernels import Beta, MultivariateNormal, NormalTruncatedNIG
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.count_likelihoods import SmoothedDraws, released
from dpmix.mechanisms.channels.histograms import histogram_bins
from dpmix.mechanisms.channels.rows import GaussianRows, laplace_rows
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.wavelet.channel import wavelet_cells
from dpmix.numerics.equal_cells import equal_edges

__all__ = ["build"]

Floats = NDArray[np.float64]
Built = tuple[Floats, Any, Any]  # z, channel, kernel

DELTA = 0.1
BETA = (2.0, 2.0, 2.0, 2.0)  # shape and rate of a, of b
BINS = 16


def build(setting: str, epsilon: float, n: int) -> Built:
    """Return released values, channel and kernel of `n` records."""
    name, _, detail = setting.partition("-")
    return _SETTINGS[name](epsilon, n, detail)


def _normals(n: int) -> Floats:
    return three_gaussians(n, np.random.default_rng(1))[:, 0].copy()


def _betas(n: int) -> Floats:
    return three_betas(n, np.random.default_rng(1))[:, 0].copy()


def _truncated(epsilon: float, n: int, detail: str) -> Built:
    """Gaussian noise of the scale that Beraha, Favaro and Rao (2024) use in section 4.3."""
    sd = 20.0 / epsilon * math.sqrt(2.0 * math.log(1.25 / DELTA))
    z = _normals(n) + sd * np.random.default_rng(2).standard_normal(n)
    return z, NoNoise(), NormalTruncatedNIG(0.0, 0.1, 3.0, 3.0, sd**2)


def _wavelet(epsilon: float, n: int, detail: str) -> Built:
    levels = int(detail)
    places = np.minimum(
        (_betas(n)[:, None] * 2.0 ** np.arange(levels + 1)), 2.0 ** np.arange(levels + 1) - 1e-9
    )
    scale = 2.0 * (2.0 ** ((levels + 1) / 2.0) - 1.0) / (math.sqrt(2.0) - 1.0) / epsilon
    values = np.random.default_rng(2).laplace(0.0, scale, (n, 2 ** (levels + 1) - 1))
    for j in range(levels + 1):
        k = places[:, j].astype(int)
        sign = np.where(places[:, j] - k < 0.5, 1.0, -1.0)
        values[np.arange(n), 2**j - 1 + k] += sign * 2.0 ** (j / 2.0)
    edges = equal_edges((0.0, 1.0), 2 ** (levels + 1))
    return np.arange(float(n)), wavelet_cells(values, edges, scale), Beta(*BETA, 0.0, 1.0)


def _binomial(epsilon: float, n: int, detail: str) -> Built:
    trials = int(detail)
    weight = math.tanh(epsilon / (2.0 * trials))
    chance = 0.5 + weight * (_betas(n) - 0.5)
    z = np.random.default_rng(2).binomial(trials, chance).astype(np.float64)
    return z, BinomialNoise.make(trials, weight, 0.0, 1.0), Beta(*BETA, 0.0, 1.0)


def _beta(epsilon: float, n: int, detail: str) -> Built:
    z = _betas(n) + np.random.default_rng(2).laplace(0.0, 1.0 / epsilon, n)
    return z, LaplaceNoise(1.0 / epsilon), Beta(*BETA, 0.0, 1.0)


def _smoothed(epsilon: float, n: int, detail: str) -> Built:
    draws = int(n**0.6 + 1.0)
    weight = BINS / (BINS + n * math.expm1(epsilon / draws))
    rng = np.random.default_rng(2)
    edges = equal_edges((0.0, 1.0), BINS)
    counts = np.histogram(_betas(n), edges)[0]
    drawn = released(rng.choice(BINS, draws, p=(1.0 - weight) * counts / n + weight / BINS), BINS)
    likelihood = SmoothedDraws(drawn, (1.0 - weight) * BINS / n, weight)
    return np.arange(float(n)), histogram_bins(likelihood, n, edges), Beta(*BETA, 0.0, 1.0)


def _pairs(epsilon: float, n: int, noise: str) -> Built:
    """Two columns; noise of sd 1 on each."""
    rng = np.random.default_rng(1)
    y = rng.choice([-4.0, 4.0], n)[:, None] * np.array([1.0, 0.5]) + rng.standard_normal((n, 2))
    kernel = MultivariateNormal(np.zeros(2), 0.1, 5.0, 2.0 * np.eye(2))
    if noise == "gaussian":
        return np.arange(float(n)), GaussianRows(y + rng.standard_normal((n, 2)), np.ones(2)), kernel
    scales = np.full(2, math.sqrt(0.5))
    return np.arange(float(n)), laplace_rows(y + rng.laplace(0.0, math.sqrt(0.5), (n, 2)), scales), kernel


_SETTINGS: dict[str, Callable[[float, int, str], Built]] = {
    "truncated": _truncated,
    "wavelet": _wavelet,
    "binomial": _binomial,
    "beta": _beta,
    "smoothed": _smoothed,
    "pairs": _pairs,
}
