"""Fisher information of counts about one component, beside that of released values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import Beta, NormalNIG
from dpmix.mechanisms.laws.additive import Additive
from dpmix.mechanisms.laws.every import expect
from dpmix.models.counts_mixture.masses import fill_rows, fill_slopes
from dpmix.models.counts_mixture.model import cells_for
from dpmix.run.chains_reader import Chains

__all__ = ["channel_of", "share_kept"]

_FINE = 16.0  # cells of the finer grid to a cell, a noise scale or a standard deviation
_REACH = 12.0  # standard deviations, and three times as many noise scales, that it covers
_MOST = 20_000

Floats = NDArray[np.float64]


def share_kept(channel: Any, kernel: Any, theta: Floats, edges: Floats) -> tuple[Floats, float]:
    """Return the shares (2,) for mean and log sd of the component theta (2, 1), and its sd."""
    mean, variance, turn = _moments(kernel, theta)
    sd = float(np.sqrt(variance))
    noise = float(getattr(channel, "scale", getattr(channel, "sd", 0.0)))
    step = min(float(np.min(np.diff(edges))), sd, *([noise] if noise else [])) / _FINE
    reach = _REACH * sd + 3.0 * _REACH * noise
    if isinstance(kernel, Beta):
        ends = kernel.lo - 3.0 * _REACH * noise, kernel.lo + kernel.width + 3.0 * _REACH * noise
    else:
        ends = mean - reach, mean + reach
    fine = np.linspace(*ends, int(min(max((ends[1] - ends[0]) / step, 64), _MOST)))
    found = [
        np.diagonal(turn.T @ _information(channel, kernel, theta, grid) @ turn) for grid in (edges, fine)
    ]
    return np.minimum(found[0] / found[1], 1.0), sd


def _information(channel: Any, kernel: Any, theta: Floats, edges: Floats) -> Floats:
    """Return the Fisher information of one count, (2, 2), in the coordinates of Langevin steps."""
    cells = cells_for(channel, kernel, np.ascontiguousarray(edges), np.zeros(0))
    rows = np.zeros((3, len(edges) + 1))
    if not fill_rows(channel, kernel, theta, 0, cells, rows):
        fill_slopes(channel, kernel, theta, 0, cells, rows)
    some = rows[0] > 1e-290
    slopes = rows[1:, some]
    return np.asarray((slopes / rows[0, some]) @ slopes.T)


def _moments(kernel: Any, theta: Floats) -> tuple[float, float, Floats]:
    """Return mean and variance in the data's units, and d coordinates / d(mean, log sd), (2, 2)."""
    first, second = float(theta[0, 0]), float(theta[1, 0])
    if isinstance(kernel, NormalNIG):
        return first, second, np.diag([1.0, 2.0])
    total = first + second
    m, rest = first / total, second / total
    v = m * rest / (total + 1.0)
    by_mean = (1.0 - 2.0 * m) / v / total
    by_log = -(total + 1.0) / total
    turn = np.array([[1.0 / m + by_mean, 2.0 * by_log], [-1.0 / rest + by_mean, 2.0 * by_log]])
    turn[:, 0] /= kernel.width
    return kernel.lo + kernel.width * m, kernel.width**2 * v, turn


def channel_of(chains: Chains) -> Any:
    """Return the channel of a release with noise on each number, or without noise."""
    law = expect(chains.mechanism, Additive)
    return law.channel(float(chains.constants["noise_scale"]) if law.protects else 0.0)
