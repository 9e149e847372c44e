"""Every sampler with pairs of columns, against enumeration: closed form, quadrature over Sigma, or averages.

The limits of `tests.helpers.checks` are passed by mistake in one of the 15 cases with probability 0.003; of
the joint law some 200 p-values exceed `LEVEL`: by mistake not so with probability below 0.001.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.checks import LEVEL, params, posterior_gaps, worst_p_value
from tests.helpers.seeds import seed_of, turn_of
from tests.oracles import niw
from tests.oracles.blocks import Table
from tests.oracles.joint import Model
from tests.oracles.partitions import posterior

BASE: niw.Base = ((0.2, -0.3), 0.3, 5.0, ((2.0, 0.5), (0.5, 1.0)))
POINTS = np.array([[-1.0, -0.4], [0.3, 0.0], [2.0, 1.0]])
Z = np.array([[-1.9, -0.9], [-1.0, 0.3], [1.9, 0.4], [2.5, 1.8]])
SCALE = (0.5, 0.9)
CASES = [
    (sampler, channel)
    for channel in ("gaussian", "laplace", "none")
    for sampler in ("neal8-3", "slice", "slice-metropolis", "blocked", "blocked-metropolis", "neal5-4")
    if channel != "none" or sampler not in samplers.NOISY
]
QUICK = {("neal8-3", "gaussian")}


@functools.cache
def table(channel: str) -> tuple[Any, Table]:
    """Records and the integrals of every block; three records only where an average takes their place."""
    if channel == "gaussian":
        return Z, niw.gaussian_table(Z, BASE, POINTS, SCALE)
    if channel == "laplace":
        return Z[:3], niw.latent_table(Z[:3], BASE, POINTS, SCALE, 2**17, 1)
    return Z, niw.latent_table(Z, BASE, POINTS, 0.0, 1, 1)


def model(channel: str, discount: float, alpha: float | tuple[float, float]) -> Model:
    """Model of these cases."""
    return Model((channel, 0.0 if channel == "none" else SCALE), BASE, discount, alpha, "multivariate")


@pytest.mark.parametrize(("sampler", "channel"), params(CASES, QUICK))
def test_posterior_is_exact(sampler: str, channel: str) -> None:
    discount, alpha = (0.3, (2.0, 2.0)) if turn_of(2, sampler, channel) else (0.0, 1.0)
    z, blocks = table(channel)
    thin = 6 if sampler in samplers.NOISY else 3
    gaps = posterior_gaps(
        sampler,
        model(channel, discount, alpha),
        z,
        blocks,
        posterior(blocks, discount, alpha),
        seed_of("posterior", "multivariate", sampler, channel),
        thin=thin,
        truncation=60,
    )
    assert max(gaps.values()) < 1.0, gaps


@pytest.mark.parametrize(("sampler", "channel"), params(CASES, QUICK))
def test_joint_law_is_invariant(sampler: str, channel: str) -> None:
    # the other prior than above; records by the dozen for the moves of large clusters, one case in three
    discount, alpha = (0.0, 1.0) if turn_of(2, sampler, channel) else (0.3, (2.0, 2.0))
    n = 4 if turn_of(3, sampler, channel) else 12
    seed = seed_of("joint law", "multivariate", sampler, channel)
    p_value, what = worst_p_value(sampler, model(channel, discount, alpha), n, seed)
    assert p_value > LEVEL, what
