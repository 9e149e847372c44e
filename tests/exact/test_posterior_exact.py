"""Every sampler against the exact posterior of six releases, by enumeration of all 203 partitions.

P(k) and the posterior mean density on a grid have to lie within 4.6 Monte Carlo standard errors of the exact
values; co-clustering, the random density's second moment (the bands), parameters, concentration and log
likelihood within 5. Errors are by 200 batch means, whose t distribution passes 4.6 with probability 7.6e-6
and 5 with 1.3e-6: with other seeds, some comparison of the 1300 with the first limit in this file would fail
with a probability of about 0.01.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles import cases
from tests.oracles.blocks import block_table
from tests.oracles.joint import Model
from tests.oracles.mc import batch_means, compare, discrepancies

DRAWS, THIN, BURN_IN = 20_000, 4, 500
PRIMARY, SECONDARY = 4.6, 5.0

FIXED = [
    (sampler, channel, discount, 1.0)
    for channel in cases.CHANNELS
    for discount in (0.0, 0.3)
    for sampler in samplers.SAMPLERS
    if channel != "none" or sampler not in samplers.NOISY
]
RANDOM = [
    (sampler, channel, discount, cases.GAMMA)
    for channel in ("laplace-near", "gaussian-far")
    for discount in (0.0, 0.3)
    for sampler in samplers.SAMPLERS
]


def is_later(sampler: str, channel: str, discount: float, alpha: float | tuple[float, float]) -> bool:
    """Whether a case is for the night: much Laplace noise, and either of discount and law of alpha alone."""
    plain_or_rich = (discount, alpha) in ((0.0, 1.0), (0.3, cases.GAMMA))
    again = channel == "laplace-far" or (channel == "laplace-near" and not plain_or_rich)
    return samplers.is_later(sampler, channel) or again


@pytest.mark.parametrize(
    ("sampler", "channel", "discount", "alpha"),
    [pytest.param(*case, marks=pytest.mark.matrix if is_later(*case) else ()) for case in FIXED + RANDOM],
)
def test_posterior_is_exact(
    sampler: str, channel: str, discount: float, alpha: float | tuple[float, float]
) -> None:
    model = cases.model(channel, discount, alpha)
    rng = rng_of("posterior", sampler, channel, discount, alpha)
    chain = samplers.chain(sampler, model, cases.Z.copy(), rng)
    chain.advance(BURN_IN)
    thin = 1 if sampler.startswith("blocked") else THIN  # its sweeps cost ten times the others'
    draws = chain.run(DRAWS, thin=thin, allocations=True)
    exact = cases.exact(channel, discount, alpha)
    primary, secondary = compare(draws, cases.table(channel), exact, discount)
    for name, gap in primary.items():
        assert np.max(np.abs(gap)) < PRIMARY, name
    for name, gap in secondary.items():
        assert np.max(np.abs(gap)) < SECONDARY, name
    # the comparison is worth something: P(k) is known to a hundredth or so
    _, error = batch_means(draws["n_clusters"][:, None] == np.arange(1, 7))
    assert error.max() < 0.012


LARGE = [
    (sampler, channel)
    for sampler in samplers.SAMPLERS
    for channel in ("laplace-near", "laplace-far", "gaussian-far", "none")
    if channel != "none" or sampler not in samplers.NOISY  # refused by name without noise
]


@pytest.mark.parametrize(
    ("sampler", "channel"),
    [
        pytest.param(
            *case, marks=pytest.mark.matrix if samplers.is_later(*case) or case[1].endswith("far") else ()
        )
        for case in LARGE
    ],
)
def test_large_cluster_is_exact(sampler: str, channel: str) -> None:
    """Forty records in one cluster (a tiny concentration): parameters by quadrature in two dimensions."""
    rng = rng_of("large cluster", sampler, channel)
    kind, scale = cases.CHANNELS[channel]
    y = 1.5 + 0.9 * np.random.default_rng(8).standard_normal(40)
    noise = np.random.default_rng(9)
    z = y + {"laplace": noise.laplace, "gaussian": noise.normal, "none": lambda *_: 0.0}[kind](0.0, scale, 40)
    model = Model((kind, scale), cases.BASE, 0.0, 1e-7)
    grid = np.array([-1.0, 1.0, 2.5])
    table = block_table(z, model.channel, model.base, grid, blocks=[[], list(range(40))])
    chain = samplers.chain(sampler, model, z, rng)
    chain.set_state(
        np.zeros(40, dtype=np.int64),
        np.array([[1.5], [1.0]]),
        1e-7,
        np.repeat(y[:, None], samplers.latent_count(sampler), axis=1)
        if samplers.latent_count(sampler)
        else None,
    )
    chain.advance(BURN_IN)
    thin = 1 if sampler.startswith("blocked") else 3
    draws = chain.run(DRAWS, thin=thin, allocations=False)
    assert np.all(draws["n_clusters"] == 1)
    mean, var = draws["mean"][:, 0], draws["variance"][:, 0]
    density = np.exp(-0.5 * (grid - mean[:, None]) ** 2 / var[:, None]) / np.sqrt(2 * np.pi * var[:, None])
    found = np.column_stack([mean, np.log(var), draws["log_likelihood"], density, density**2])
    truth = np.array([*table.theta[1], table.loglik[1], *table.f1[1], *table.f2[1]])
    assert np.max(np.abs(discrepancies(found, truth))) < PRIMARY
    assert batch_means(np.log(var))[1] < 0.1
