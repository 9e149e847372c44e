"""The collapsed samplers, and all others on the truncated base measure, against enumeration in closed form.

Neal 2, Neal 3 and split-merge integrate theta out: under the truncated normal-inverse-gamma base given
Gaussian noise, under the plain one given the records. About 30 comparisons a case have the limits of
`tests.helpers.checks`: with other seeds some of the 18 cases would fail with probability 0.003.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.helpers import samplers
from tests.helpers.checks import LEVEL, posterior_gaps, worst_p_value
from tests.helpers.seeds import rng_of, seed_of
from tests.oracles import cases
from tests.oracles.blocks import Table, truncated_table
from tests.oracles.joint import Model
from tests.oracles.mc import batch_means, random_density
from tests.oracles.partitions import Exact, posterior

SD = {"near": 0.8, "far": 2.0}
WORKING_ON_Z = ("neal8", "slice", "blocked", *samplers.COLLAPSED)
LATER = {
    *(("truncated", sampler) for sampler in ("neal8", "slice", "blocked", "split_merge")),
    *(("none", sampler) for sampler in ("neal2", "neal3")),
}
"""Base measures and samplers that are compiled for this file alone, at night.

By day neal2 and neal3 work on z under the truncated base, and split_merge on the records.
"""
CASES = [
    (sampler, noise, discount, alpha)
    for sampler in WORKING_ON_Z
    for noise, discount, alpha in (("near", 0.0, 1.0), ("far", 0.3, cases.GAMMA))
]


def base(noise: str) -> tuple[float, ...]:
    """Base measure whose floor is the noise's variance."""
    return (*cases.BASE, SD[noise] ** 2)


@functools.cache
def exact(noise: str, discount: float, alpha: float | tuple[float, float]) -> tuple[Table, Exact]:
    """Table and exact posterior."""
    table = truncated_table(cases.Z, base(noise), cases.GRID)
    return table, posterior(table, discount, alpha)


def params(cases: list[Any], base: Callable[[Any], str]) -> list[Any]:
    """Return cases for pytest, the sampler first, with marks by their base measure."""
    return [
        pytest.param(*case, marks=pytest.mark.matrix if (base(case), case[0]) in LATER else ())
        for case in cases
    ]


@pytest.mark.parametrize(("sampler", "noise", "discount", "alpha"), params(CASES, lambda _: "truncated"))
def test_posterior_under_the_truncated_base_is_exact(
    sampler: str, noise: str, discount: float, alpha: float | tuple[float, float]
) -> None:
    model = Model(("gaussian", SD[noise]), base(noise), discount, alpha, "truncated")
    seed = seed_of("posterior", "truncated", sampler, noise, discount, alpha)
    # one cluster has probability 0.004 in the first case: its batch means are skewed unless batches are long
    draws = 48_000 if sampler == "split_merge" else 12_000
    gaps = posterior_gaps(sampler, model, cases.Z, *exact(noise, discount, alpha), seed, draws=draws)
    assert max(gaps.values()) < 1.0, gaps


PLAIN = [
    (sampler, d, alpha) for sampler in samplers.COLLAPSED for d, alpha in ((0.0, cases.GAMMA), (0.3, 1.0))
]


@pytest.mark.parametrize(("sampler", "discount", "alpha"), params(PLAIN, lambda _: "none"))
def test_collapsed_posterior_without_noise_is_exact(
    sampler: str, discount: float, alpha: float | tuple[float, float]
) -> None:
    model = cases.model("none", discount, alpha)
    found = cases.table("none"), cases.exact("none", discount, alpha)
    seed = seed_of("posterior", "collapsed", sampler, discount, alpha)
    gaps = posterior_gaps(sampler, model, cases.Z, *found, seed)
    assert max(gaps.values()) < 1.0, gaps


JOINT = [
    (sampler, "truncated", discount, alpha, n)
    for sampler in WORKING_ON_Z
    for discount, alpha, n in ((0.3, (2.0, 2.0), 5), (0.0, 1.0, 22))
] + [
    (sampler, "none", discount, alpha, n)
    for sampler in samplers.COLLAPSED
    for discount, alpha, n in ((0.3, (2.0, 2.0), 5), (0.0, 1.0, 22))
]


@pytest.mark.parametrize(("sampler", "kind", "discount", "alpha", "n"), params(JOINT, lambda case: case[1]))
def test_joint_law_is_invariant(
    sampler: str, kind: str, discount: float, alpha: float | tuple[float, float], n: int
) -> None:
    """Some 300 p-values above `LEVEL`: a right sampler would fail with probability below 0.001."""
    model = (
        Model(("gaussian", 1.2), (0.5, 0.3, 3.0, 2.0, 1.44), discount, alpha, "truncated")
        if kind == "truncated"
        else Model(("none", 0.0), (0.5, 0.3, 3.0, 2.0), discount, alpha)
    )
    seed = seed_of("joint law", "collapsed", sampler, kind, discount, alpha, n)
    p_value, name = worst_p_value(sampler, model, n, seed)
    assert p_value > LEVEL, name


@pytest.mark.matrix
def test_samplers_agree_on_forty_records() -> None:
    """Neal 2, 3, 8, split-merge and slice, one release with a value far in a tail.

    Blocked Gibbs sampling mixes too slowly over its sticks to say anything here. 10 pairs of samplers and 11
    dependent statistics: right samplers pass the limit with probability below 0.001.
    """
    rng = np.random.default_rng(12)
    z = rng.choice([-5.0, 0.0, 5.0], 40) + 1.2 * rng.standard_normal(40)
    z[0] = 30.0
    model = Model(("gaussian", 0.8), (0.0, 0.1, 3.0, 2.0, 0.64), 0.25, (2.0, 2.0), "truncated")
    table = truncated_table(z[:1], model.base, np.array([-5.0, -2.5, 0.0, 2.5, 5.0]))
    found = {}
    for sampler in (s for s in WORKING_ON_Z if s != "blocked"):
        chain = samplers.chain(sampler, model, z.copy(), rng_of("truncated", sampler))
        chain.advance(600)
        draws = chain.run(3000, thin=2, allocations=True)
        cdf, square = random_density(draws, table, model.discount)
        k, labels = draws["n_clusters"], draws["allocations"]
        pairs = [labels[:, i] == labels[:, i + 1] for i in range(1, 4)]
        found[sampler] = batch_means(
            np.column_stack([k, k <= 4, cdf, square[:, 2], *pairs, np.log(draws["concentration"])]), 60
        )
    for a, (mean_a, error_a) in found.items():
        for b, (mean_b, error_b) in found.items():
            error = np.hypot(error_a, error_b)
            gap = np.abs(mean_a - mean_b) / np.where(error > 0, error, 1.0)
            assert gap.max() < 4.9, (a, b, int(gap.argmax()))
    assert min(error[0] for _, error in found.values()) < 0.08


@pytest.mark.parametrize("sampler", params([(s,) for s in samplers.COLLAPSED], lambda _: "truncated"))
def test_far_tail_of_the_truncated_base_is_no_trouble(sampler: str) -> None:
    """Noise far below what the base measure expects, and far above: there R(a, b) is below 1e-9."""
    sd = 0.05
    b = 5.0
    model = Model(("gaussian", sd), (0.0, 0.2, 3.0, b, sd**2), 0.0, 1.0, "truncated")
    z = np.array([-0.3, 0.0, 0.2, 40.0])
    chain = samplers.chain(sampler, model, z, np.random.default_rng(25))
    draws = chain.run(500, allocations=True)
    assert np.all(np.isfinite(draws["log_likelihood"]))
    tight = Model(("gaussian", 40.0), (0.0, 0.2, 3.0, 2.0, 1600.0), 0.0, 1.0, "truncated")
    assert special.gammainc(3.0, 2.0 / 1600.0) < 1e-9
    table = truncated_table(10 * cases.Z[:4], tight.base, cases.GRID)
    gaps = posterior_gaps(
        sampler, tight, 10 * cases.Z[:4], table, posterior(table, 0.0, 1.0), [26, len(sampler)]
    )
    assert max(gaps.values()) < 1.0, gaps
