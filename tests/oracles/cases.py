"""Six releases and hyperparameters under which the posterior of the partition is spread out.

The base measure has E[var] = 1; noise of scale "near" is comparable with that, "far" well beyond it.
"""

from __future__ import annotations

import functools

import numpy as np

from tests.oracles.blocks import Table, block_table
from tests.oracles.joint import Model
from tests.oracles.marginals import Channel
from tests.oracles.partitions import Exact, posterior

Z = np.array([-4.1, -3.2, -0.4, 0.9, 3.5, 4.4])
GRID = np.array([-4.5, -2.0, 0.0, 3.0, 6.0])
BASE = (0.0, 0.2, 3.0, 2.0)
CHANNELS: dict[str, Channel] = {
    "laplace-near": ("laplace", 0.7),
    "laplace-far": ("laplace", 2.0),
    "gaussian-near": ("gaussian", 0.8),
    "gaussian-far": ("gaussian", 2.0),
    "none": ("none", 0.0),
}
GAMMA = (2.0, 2.0)


@functools.cache
def table(channel: str) -> Table:
    """Integrals over theta of every block of `Z`."""
    return block_table(Z, CHANNELS[channel], BASE, GRID)


@functools.cache
def exact(channel: str, discount: float, alpha: float | tuple[float, float]) -> Exact:
    """Exact posterior of `Z`."""
    return posterior(table(channel), discount, alpha)


def model(channel: str, discount: float, alpha: float | tuple[float, float]) -> Model:
    """Model of these cases."""
    return Model(CHANNELS[channel], BASE, discount, alpha)
