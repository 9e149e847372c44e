"""Joint-distribution tests (Geweke 2004) of every sampler under every channel, with exact p-values.

Independent restarts from the joint law, moved by rounds of sweeps and redrawn releases, must have the joint
law still (`tests.oracles.joint`). All p-values of this file are compared with `LEVEL`, so that with other
seeds than the fixed ones a right sampler would fail with probability below 0.002 (about 900 p-values, by
Bonferroni).
"""

from __future__ import annotations

import pytest

from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles.joint import Model, exact_restarts, joint_p_values

LEVEL = 2e-6
RESTARTS, ROUNDS, SWEEPS = 700, 6, 2
BASE = (0.5, 0.3, 3.0, 2.0)
CHANNELS = {"laplace": ("laplace", 1.2), "gaussian": ("gaussian", 1.2), "none": ("none", 0.0)}
PRIORS: list[tuple[float, float | tuple[float, float]]] = [
    (0.0, 1.0),
    (0.3, 1.0),
    (0.0, (2.0, 2.0)),
    (0.3, (2.0, 2.0)),
]
CASES = [
    (sampler, channel, discount, alpha, n)
    for channel in CHANNELS
    for sampler in samplers.SAMPLERS
    for discount, alpha in PRIORS
    for n in (5, 22)
    if (channel != "none" or sampler not in samplers.NOISY)
    # records by the dozen for the moves of large clusters, once a sampler and channel
    and (n == 5 or (discount, alpha) == (0.0, 1.0))
    # what the channel has to do with the concentration is little: all priors under one channel only
    and (channel == "laplace" or (discount, alpha) in (PRIORS[0], PRIORS[3]))
]


def is_later(sampler: str, channel: str, discount: float, alpha: float | tuple[float, float], n: int) -> bool:
    """Whether a case is for the night: by day the richest prior, and records by the dozen once.

    Without noise, exact posteriors are what there is by day. Steps of parameters without use of the conjugate
    prior are by day held to exact posteriors alone. Plainer priors and large clusters are so too, with every
    sampler.
    """
    return (
        samplers.is_later(sampler, channel)
        or sampler.endswith("metropolis")
        or channel == "none"
        or ((discount, alpha) != PRIORS[3] and (sampler, channel, n) != ("neal8-3", "gaussian", 22))
    )


@pytest.mark.parametrize(
    ("sampler", "channel", "discount", "alpha", "n"),
    [pytest.param(*case, marks=pytest.mark.matrix if is_later(*case) else ()) for case in CASES],
)
def test_joint_law_is_invariant(
    sampler: str, channel: str, discount: float, alpha: float | tuple[float, float], n: int
) -> None:
    model = Model(CHANNELS[channel], BASE, discount, alpha)
    rng = rng_of("joint law", sampler, channel, discount, alpha, n)
    found = exact_restarts(
        lambda z: samplers.chain(sampler, model, z, rng),
        model,
        n,
        rng,
        RESTARTS,
        ROUNDS,
        SWEEPS,
        latent=samplers.latent_count(sampler),
        # the stick of each cluster is part of the blocked sampler's state, and is not drawn by the restarts
        settle=60 if sampler.startswith("blocked") else 0,
        # private Neal 5 keeps its estimates of g, which go with z
        restate=sampler.startswith(("neal2", "neal5")),
    )
    p_values = joint_p_values(found, model, n, rng)
    worst = min(p_values, key=lambda name: p_values[name])
    assert p_values[worst] > LEVEL, worst
