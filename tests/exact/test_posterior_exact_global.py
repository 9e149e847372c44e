"""Every sampler for a release of the whole sample, against enumeration of partitions and bins.

Four records, 4 bins: 15 partitions times 256 assignments. The limits of `tests.helpers.checks` are passed by
mistake in one of the cases with probability 0.004; of the joint law some 300 p-values exceed `LEVEL`: by
mistake not so with probability below 0.001.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.helpers import samplers
from tests.helpers.checks import LEVEL, PRIMARY, params, posterior_gaps, worst_p_value
from tests.helpers.seeds import rng_of, seed_of, turn_of
from tests.oracles import histograms
from tests.oracles.blocks import Table
from tests.oracles.joint import Model
from tests.oracles.mc import discrepancies

BASES = {"normal": (0.3, 0.25, 2.5, 1.5), "beta": (2.0, 2.0, 2.0, 1.0, -1.0, 3.0)}
GRID = np.array([-0.7, 0.4, 1.6])
RELEASES: dict[str, tuple[histograms.Release, np.ndarray]] = {
    "smoothed": (("smoothed", (4, 0.2, -1.0, 3.0)), np.array([-0.8, -0.6, -0.5, 0.9, 1.0, 1.9])),
    "laplace": (("counts", (4, "laplace", 1.1, -1.0, 3.0)), np.array([2.6, -0.8, 0.4, 1.7])),
    "gaussian": (("counts", (4, "gaussian", 1.1, -1.0, 3.0)), np.array([2.6, -0.8, 0.4, 1.7])),
    "geometric": (("counts", (4, "geometric", 1.1, -1.0, 3.0)), np.array([3.0, -1.0, 0.0, 2.0])),
}
# the three kinds of noisy counts are one class with other numbers: each sampler has one of them a kernel, as
# its name says
COUNTS = ("laplace", "gaussian", "geometric")
CASES = [
    (sampler, kernel, release)
    for kernel in BASES
    for sampler in samplers.GLOBAL
    for release in ("smoothed", COUNTS[turn_of(3, kernel, sampler)])
]
QUICK = {("neal5", "beta", "smoothed")}


@functools.cache
def exact(
    name: str, kernel: str, discount: float, alpha: float | tuple[float, float]
) -> tuple[histograms.ExactCounts, Table]:
    """Exact posterior and the table of blocks."""
    release, z = RELEASES[name]
    return histograms.posterior(release, z, 4, discount, alpha, kernel, BASES[kernel], GRID)


@pytest.mark.parametrize(("sampler", "kernel", "name"), params(CASES, QUICK))
def test_posterior_is_exact(sampler: str, kernel: str, name: str) -> None:
    discount, alpha = (0.3, 1.0) if turn_of(2, sampler, kernel, name) else (0.0, (2.0, 2.0))
    release, z = RELEASES[name]
    model = Model(release, BASES[kernel], discount, alpha, kernel, len(z))
    found, table = exact(name, kernel, discount, alpha)
    seed = seed_of("posterior", "global", sampler, kernel, name)
    gaps = posterior_gaps(sampler, model, z, table, found.exact, seed, draws=10_000)
    assert max(gaps.values()) < 1.0, gaps
    # the counts of the records, which the release says something of
    chain = samplers.chain(sampler, model, z, rng_of("counts", sampler, kernel, name), n=4)
    chain.advance(300)
    counts = np.empty((4000, 4), dtype=int)
    for draw in counts:
        chain.advance(2)
        latent = chain.latent[:, 0] if samplers.latent_count(sampler) else chain.draw_latents()
        draw[:] = histograms.count(release, model.law.value(latent))
    likely = np.flatnonzero(found.probability > 0.02)
    seen = np.all(counts[:, None] == found.counts[likely], axis=2)
    assert np.max(np.abs(discrepancies(seen, found.probability[likely], 100))) < PRIMARY + 0.5
    assert len(likely) > 5


@pytest.mark.parametrize(("sampler", "kernel", "name"), params(CASES, QUICK))
def test_joint_law_is_invariant(sampler: str, kernel: str, name: str) -> None:
    discount, alpha = (0.0, (2.0, 2.0)) if turn_of(2, sampler, kernel, name) else (0.3, 1.0)
    release, _ = RELEASES[name]
    n = 4 if turn_of(3, sampler, kernel, name) else 12
    model = Model(release, BASES[kernel], discount, alpha, kernel, released=7)
    p_value, what = worst_p_value(sampler, model, n, seed_of("joint law", "global", sampler, kernel, name))
    assert p_value > LEVEL, what
