"""Every sampler with the normal kernel under releases of cells: enumeration and the joint law.

The limits of `tests.helpers.checks` are passed by mistake in one of the 18 cases with probability 0.002; of
the joint law 220 p-values exceed `LEVEL`: by mistake not so with probability below 0.001.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.checks import LEVEL, params, posterior_gaps, worst_p_value
from tests.helpers.seeds import seed_of, turn_of
from tests.oracles.blocks import Table, block_table
from tests.oracles.joint import Model
from tests.oracles.partitions import posterior

# two base measures: a good part of the records outside the domain [-2, 2], where the end cells take them
BASE = (0.3, 0.3, 3.0, 2.0)
GRID = np.array([-3.0, -1.0, 0.2, 2.4])
CHANNELS = {
    "wavelet": ("wavelet", (2, 1.0, -2.0, 4.0)),
    "binomial": ("binomial", (8, 0.85, -2.0, 4.0)),
    "square_wave": ("square_wave", (11, 3, 6.0, -2.0, 4.0)),
}
Z = {
    "wavelet": np.array(
        [
            [1.4, 1.2, 0.2, 2.5, -0.3, 0.4, 1.0],
            [0.6, -2.0, -0.5, 0.1, 2.2, -1.3, 0.2],
            [-0.9, 0.3, 1.6, 0.0, 0.7, -2.5, 0.9],
            [-2.0, 0.2, -1.9, 0.8, 0.3, 0.5, -3.0],
            [-0.1, 0.9, -1.1, -0.7, 1.2, 0.1, -1.6],
        ]
    ),
    "binomial": np.array([0.0, 1.0, 4.0, 7.0, 8.0]),
    "square_wave": np.array([0.0, 3.0, 4.0, 8.0, 12.0, 16.0]),
}
CASES = [
    (sampler, channel)
    for channel in CHANNELS
    for sampler in ("neal8-3", "slice", "slice-metropolis", "blocked", "blocked-metropolis", "neal5-4")
]
QUICK: set[tuple[str, str]] = (
    set()
)  # by day the beta kernel shows these channels, and tests of their densities


@functools.cache
def table(channel: str) -> Table:
    """Integrals over theta of every block."""
    return block_table(Z[channel], CHANNELS[channel], BASE, GRID)


@pytest.mark.parametrize(("sampler", "channel"), params(CASES, QUICK))
def test_posterior_is_exact(sampler: str, channel: str) -> None:
    discount, alpha = (0.3, (2.0, 2.0)) if turn_of(2, sampler, channel) else (0.0, 1.0)
    model = Model(CHANNELS[channel], BASE, discount, alpha)
    thin = 6 if sampler in samplers.NOISY else 3
    gaps = posterior_gaps(
        sampler,
        model,
        Z[channel],
        table(channel),
        posterior(table(channel), discount, alpha),
        seed_of("posterior", "cells", sampler, channel),
        thin=thin,
    )
    assert max(gaps.values()) < 1.0, gaps


@pytest.mark.parametrize(("sampler", "channel"), params(CASES, QUICK))
def test_joint_law_is_invariant(sampler: str, channel: str) -> None:
    # the other prior than above; records by the dozen for the moves of large clusters, one case in three
    discount, alpha = (0.0, 1.0) if turn_of(2, sampler, channel) else (0.3, (2.0, 2.0))
    n = 5 if turn_of(3, sampler, channel) else 14
    seed = seed_of("joint law", "cells", sampler, channel)
    model = Model(CHANNELS[channel], BASE, discount, alpha)
    p_value, name = worst_p_value(sampler, model, n, seed)
    assert p_value > LEVEL, name
