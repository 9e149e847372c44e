"""Joint-distribution test (Geweke 2004) of the sampler on counts given local releases, with restarts.

Each restart draws concentration, clusters, parameters, records and their counts from the prior, exactly, then
alternates sweeps with fresh counts given the clusters: the joint law must stay (`tests.oracles.joint`). Cells
are fixed, and some hold nobody. Compared are the number of clusters and the sum of squared sizes (exact laws
by simulation), concentration, a record's mean and variance, and the counts, about ten p-values a case:
by Bonferroni a right sampler would fail with other seeds with a probability of 1e-4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmix.columns.cells import Counts
from tests.helpers import counts
from tests.helpers.seeds import rng_of
from tests.oracles import joint
from tests.oracles.joint import Model

EDGES = np.array([-3.5, -2.0, 0.0, 1.5, 4.0])
BASE = (0.5, 0.3, 3.0, 2.0)
CHANNELS: dict[str, tuple[str, Any]] = {
    "laplace": ("laplace", 0.7),
    "gaussian": ("gaussian", 0.8),
    "none": ("none", 0.0),
    "binomial": ("binomial", (5, 0.85, -2.0, 4.0)),
}
LEVEL = 1e-5
RESTARTS, ROUNDS, SWEEPS = 500, 4, 1


def p_values(name: str, n: int, restarts: int = RESTARTS) -> dict[str, float]:
    """P-values of what is compared."""
    model = Model(CHANNELS[name], BASE, 0.0, (2.0, 2.0))
    rng = rng_of("counts", "joint law", name, n)
    chain: Any = None
    found, prior = [], []
    for _ in range(restarts):
        labels, theta, alpha = joint.draw_state(rng, model, n)
        held = _release(rng, model, labels, theta)
        if chain is None:
            everywhere = Counts(np.ones(len(held), dtype=np.int64), *_cells(model))
            chain = counts.mixture(model, everywhere).make_chain(rng)
        state, k = chain._state, theta.shape[1]
        state.clusters[0], state.floats[0] = k, alpha
        state.sizes[:k], state.theta[:, :k] = np.bincount(labels), theta
        chain._counts[:] = held
        chain.keep(10**9, 0)
        for turn in range(ROUNDS):
            chain.proceed((turn + 1) * SWEEPS)
            k = int(state.clusters[0])
            labels, theta = np.repeat(np.arange(k), state.sizes[:k]), state.theta[:, :k].copy()
            chain._counts[:] = held = _release(rng, model, labels, theta)
        found.append(_say(labels, theta, float(state.floats[0]), held))
    for _ in range(4 * restarts):
        labels, theta, alpha = joint.draw_state(rng, model, n)
        prior.append(_say(labels, theta, alpha, _release(rng, model, labels, theta)))
    return {
        key: float(stats.ks_2samp([row[key] for row in found], [row[key] for row in prior]).pvalue)
        for key in found[0]
    }


def _cells(model: Model) -> tuple[Any, ...]:
    """Return what `Counts` holds beside the counts."""
    some = counts.counted(model, np.array([0.0]), EDGES)
    outputs = counts.outputs_of(model)
    edges = np.arange(1.0, outputs) - 0.5 if outputs else EDGES
    return edges, some.width


def _release(rng: np.random.Generator, model: Model, labels: Any, theta: Any) -> Any:
    """Draw records, their release, and its counts."""
    z = joint.draw_release(rng, model, joint.draw_latent(rng, model, labels, theta, 1))
    if counts.outputs_of(model):
        return np.bincount(z.astype(np.int64), minlength=counts.outputs_of(model))
    return np.bincount(np.searchsorted(EDGES, z, side="right"), minlength=len(EDGES) + 1)


def _say(labels: Any, theta: Any, alpha: float, held: Any) -> dict[str, float]:
    sizes = np.bincount(labels)
    shares = sizes / sizes.sum()
    return {
        "n_clusters": float(len(sizes)),
        "squares": float(np.sum(sizes**2)),
        "concentration": alpha,
        "mean": float(shares @ theta[0]),
        "variance": float(shares @ np.log(theta[1])),
        **{f"count[{c}]": float(value) for c, value in enumerate(held)},
    }


@pytest.mark.parametrize(
    ("name", "n"),
    [
        pytest.param(name, n, marks=() if (name, n) == ("laplace", 6) else pytest.mark.matrix)
        for name in CHANNELS
        for n in (6, 40)
    ],
)
def test_joint_law_is_invariant(name: str, n: int) -> None:
    found = p_values(name, n)
    worst = min(found, key=lambda key: found[key])
    assert found[worst] > LEVEL, worst
