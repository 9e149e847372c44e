"""All samplers agree on the posterior of forty records, and with one that shares no code of theirs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.seeds import rng_of
from tests.oracles.blocks import Table, block_table
from tests.oracles.joint import Model
from tests.oracles.mc import batch_means, random_density
from tests.oracles.reference import ReferenceChain

DRAWS, BURN_IN = 4000, 1000
# 28 or 36 pairs, 14 strongly dependent statistics, 3 cases: below 0.01 that any pair of right samplers
# exceeds this
LIMIT = 4.8
BASE = (0.0, 0.1, 3.0, 2.0)
GRID = np.array([-5.0, -2.5, 0.0, 2.5, 5.0])
CASES = {
    "laplace": Model(("laplace", 0.8), BASE, 0.0, (2.0, 2.0)),
    "gaussian": Model(("gaussian", 1.0), BASE, 0.25, 1.0),
    "none": Model(("none", 0.0), BASE, 0.25, (2.0, 2.0)),
}


def release(model: Model) -> Any:
    """Forty records of three normals, with noise."""
    rng = np.random.default_rng(12)
    y = rng.choice([-5.0, 0.0, 5.0], 40) + rng.standard_normal(40)
    kind, scale = model.channel
    return y + (rng.laplace(0, scale, 40) if kind == "laplace" else scale * rng.standard_normal(40))


def statistics(draws: dict[str, Any], table: Table, discount: float) -> Any:
    """(draw, statistic): clusters, density at `GRID`, its square, co-clustering, concentration."""
    density, square = random_density(draws, table, discount)
    labels, k = draws["allocations"], draws["n_clusters"]
    pairs = [labels[:, i] == labels[:, i + 1] for i in range(3)]
    return np.column_stack([k, k <= 3, density, square[:, 1::2], *pairs, np.log(draws["concentration"])])


@pytest.mark.parametrize(
    ("name", "later"),
    [
        pytest.param("laplace", samplers.LATER, id="laplace, but for the later"),
        *(pytest.param(name, (), id=name, marks=pytest.mark.matrix) for name in CASES),
    ],
)
def test_samplers_agree(name: str, later: tuple[str, ...]) -> None:
    """All samplers but those that are compiled `later`, for others at night."""
    model = CASES[name]
    z = release(model)
    table = block_table(z, model.channel, model.base, GRID, blocks=[[]])
    found = {}
    for sampler in samplers.SAMPLERS:
        if sampler in later or (name == "none" and sampler in samplers.NOISY):
            continue
        chain = samplers.chain(sampler, model, z.copy(), rng_of("agree", name, sampler))
        chain.advance(BURN_IN)
        # the samplers with Metropolis steps need more sweeps for as much information
        thin = 12 if samplers.latent_count(sampler) else 3
        draws = chain.run(DRAWS, thin=thin, allocations=True)
        found[sampler] = batch_means(statistics(draws, table, model.discount), batches=80)
    if name == "laplace":
        plain = ReferenceChain(z.copy(), model, "neal8", 3, 0, np.random.default_rng(7))
        plain.advance(BURN_IN)
        found["reference"] = batch_means(statistics(plain.run(DRAWS, 3), table, model.discount), batches=80)
    for (a, (mean_a, error_a)), (b, (mean_b, error_b)) in itertools.combinations(found.items(), 2):
        error = np.hypot(error_a, error_b)
        gap = np.abs(mean_a - mean_b) / np.where(error > 0, error, 1.0)
        assert gap.max() < LIMIT, (a, b, int(gap.argmax()))
    best = min(error[0] for _, error in found.values())
    assert best < 0.06  # of the mean number of clusters: the agreement says something
