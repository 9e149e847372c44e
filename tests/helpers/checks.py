"""The two checks that every sampler passes under every channel and kernel: enumeration, and the joint law.

`posterior_gaps` are in Monte Carlo standard errors, of 200 batch means: a right sampler passes 4.6 with
probability 7.6e-6 and 5 with 1.3e-6 in one comparison. `worst_p_value` is the smallest of about a dozen exact
p-values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import samplers
from tests.oracles.blocks import Table
from tests.oracles.joint import Model, exact_restarts, joint_p_values
from tests.oracles.mc import batch_means, compare
from tests.oracles.partitions import Exact

PRIMARY, SECONDARY = 4.6, 5.0
LEVEL = 2e-6


def params(cases: list[Any], quick: set[Any]) -> list[Any]:
    """Return `cases` for pytest, those not in `quick` marked matrix: compiling takes most of the time."""
    if not quick <= set(cases):
        raise ValueError(f"no cases: {quick - set(cases)}")
    return [pytest.param(*case, marks=() if case in quick else pytest.mark.matrix) for case in cases]


def posterior_gaps(
    sampler: str,
    model: Model,
    z: Any,
    table: Table,
    exact: Exact,
    seed: list[int],
    draws: int = 12_000,
    thin: int = 3,
    burn_in: int = 500,
    truncation: int | None = None,
) -> dict[str, float]:
    """Run a chain; return the largest gap to the exact posterior, over its limit, by kind of comparison."""
    chain = samplers.chain(sampler, model, np.array(z), np.random.default_rng(seed), truncation, table.n)
    chain.advance(burn_in)
    thin = 1 if sampler.startswith("blocked") else thin  # its sweeps cost several times the others'
    found = chain.run(draws, thin=thin, allocations=not model.is_global)
    primary, secondary = compare(found, table, exact, model.discount)
    gaps = {name: float(np.max(np.abs(gap))) / PRIMARY for name, gap in primary.items()}
    gaps |= {name: float(np.max(np.abs(gap))) / SECONDARY for name, gap in secondary.items()}
    # the comparison is worth something: P(k) is known to a hundredth or so
    _, error = batch_means(found["n_clusters"][:, None] == np.arange(1, table.n + 1))
    gaps["error of P(k)"] = float(error.max()) / 0.02
    return gaps


def worst_p_value(
    sampler: str,
    model: Model,
    n: int,
    seed: list[int],
    restarts: int = 400,
    rounds: int = 4,
    sweeps: int = 2,
    truncation: int | None = None,
) -> tuple[float, str]:
    """Smallest p-value of the joint-distribution test of `n` records, and of what."""
    rng = np.random.default_rng(seed)
    found = exact_restarts(
        lambda z: samplers.chain(sampler, model, z, rng, truncation, n),
        model,
        n,
        rng,
        restarts,
        rounds,
        sweeps,
        latent=samplers.latent_count(sampler),
        # the stick of each cluster is part of the blocked sampler's state, and is not drawn by the restarts
        settle=40 if sampler.startswith("blocked") else 0,
        # private Neal 5 keeps its estimates of g, which go with z
        restate=sampler.startswith(("neal2", "neal5")),
        redraw=lambda chain, z, latent: samplers.redraw(model, chain, z, latent),
        holds_more=samplers.holds_more(model),
    )
    p_values = joint_p_values(found, model, n, rng)
    name = min(p_values, key=lambda name: p_values[name])
    return p_values[name], name
