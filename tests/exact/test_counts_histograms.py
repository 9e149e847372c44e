"""The sampler on counts given a histogram of all records, against enumeration of partitions and bins.

Four records in 4 bins, or six in 3: every partition times every assignment to bins, each block integrated
over theta by quadrature. P(k), the mean density and its second moment, the concentration and the
probabilities of all vectors of counts have to lie within `PRIMARY` Monte Carlo standard errors, by 200 batch
means: with
other seeds some comparison of the 400 here would fail with a probability of about 0.01.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.every import expect, law_of
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.models.counts_mixture.source import HistogramCounts
from tests.helpers import counts
from tests.helpers.seeds import rng_of
from tests.oracles import histograms
from tests.oracles.blocks import Table
from tests.oracles.joint import Model
from tests.oracles.mc import compare, discrepancies

PRIMARY = 4.5
BASES = {"normal": (0.3, 0.25, 2.5, 1.5), "beta": (2.0, 2.0, 2.0, 1.0, -1.0, 3.0)}
GRID = np.array([-0.7, 0.4, 1.6])
# release, what is released, records
RELEASES: dict[str, tuple[histograms.Release, np.ndarray, int]] = {
    "smoothed": (("smoothed", (4, 0.2, -1.0, 3.0)), np.array([-0.8, -0.6, -0.5, 0.9, 1.0, 1.9]), 4),
    "smoothed-many": (("smoothed", (3, 0.5, -1.0, 3.0)), np.linspace(-0.9, 1.5, 40), 6),
    "laplace": (("counts", (4, "laplace", 1.1, -1.0, 3.0)), np.array([2.6, -0.8, 0.4, 1.7]), 4),
    "gaussian": (("counts", (3, "gaussian", 0.9, -1.0, 3.0)), np.array([3.6, -0.3, 1.9]), 6),
    "geometric": (("counts", (3, "geometric", 3.0, -1.0, 3.0)), np.array([6.0, -3.0, 4.0]), 6),
    "gaussian-few": (("counts", (4, "gaussian", 0.9, -1.0, 3.0)), np.array([2.6, -0.3, 0.4, 1.7]), 4),
    "geometric-few": (("counts", (4, "geometric", 3.0, -1.0, 3.0)), np.array([4.0, -3.0, 1.0, 2.0]), 4),
}
CASES = [(name, kernel) for name in RELEASES for kernel in BASES]
# six records take their 148,000 terms, smoothed draws a sampler that is compiled for them alone; noises are a
# density each: one on whole numbers and one on all stand for them
QUICK = {("laplace", "normal"), ("geometric-few", "normal")}


@functools.cache
def setting(name: str, kernel: str) -> tuple[Model, histograms.ExactCounts, Table]:
    """Return model and exact posterior of a case."""
    release, z, n = RELEASES[name]
    alpha = 1.0 if n == 6 else (2.0, 2.0)
    found, table = histograms.posterior(release, z, n, 0.0, alpha, kernel, BASES[kernel], GRID)
    return Model(release, BASES[kernel], 0.0, alpha, kernel, len(z)), found, table


def worst_gap(name: str, kernel: str, draws: int = 20_000) -> float:
    """Largest gap to the exact posterior, in standard errors."""
    model, exact, table = setting(name, kernel)
    _, z, n = RELEASES[name]
    return gap_of(counts.histogram(model, z, n), exact, table, rng_of("counts", name, kernel), draws)


def gap_of(
    fitted: CountsMixture,
    exact: histograms.ExactCounts,
    table: Table,
    rng: np.random.Generator,
    draws: int,
) -> float:
    chain = fitted.make_chain(rng)
    chain.keep(1, 300)
    chain.proceed(300)
    seen = np.empty((draws, len(exact.counts[0])), dtype=int)
    for i in range(draws):
        chain.proceed(301 + i)
        seen[i] = chain._latent
    gaps = compare(counts.padded(chain), table, exact.exact, 0.0)
    likely = np.flatnonzero(exact.probability > 0.01)
    assert len(likely) > 3
    found = np.all(seen[:, None] == exact.counts[likely], axis=2)
    of_counts = discrepancies(found, exact.probability[likely])
    return max(float(np.max(np.abs(gap))) for gap in (*gaps[0].values(), *gaps[1].values(), of_counts))


@pytest.mark.parametrize(
    ("name", "kernel"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.matrix) for case in CASES],
)
def test_posterior_is_exact(name: str, kernel: str) -> None:
    assert worst_gap(name, kernel, 8_000 if kernel == "normal" else 5_000) < PRIMARY


@pytest.mark.parametrize(
    "kind", ["perturbed_histogram", pytest.param("smoothed_histogram", marks=pytest.mark.matrix)]
)
def test_bins_of_whole_numbers_are_those_that_they_hold(kind: str) -> None:
    """-1 and 0, 1, 2 and 3, 4 and 5: a bin from 0.5 to 2 holds 1 alone, which stands for 0.5 to 1.5."""
    own = {"kind": kind, "bins": 4, "domain": [[-1.0, 5.0]], "whole_numbers": True}
    if kind == "perturbed_histogram":
        z, own = np.array([2.6, -0.8, 0.4, 1.7]), own | {"noise": "laplace", "scale": [1.1]}
        release: histograms.Release = ("counts", (4, "laplace", 1.1, -1.0, 6.0))
    else:  # draws are anywhere in the bins themselves, 1.7 in that of 1
        z = np.array([-0.8, 0.2, 1.7, 1.8, 3.6, 0.4])
        own = own | {"draws": 6, "weight": 0.2, "scale": []}
        release = ("smoothed", (4, 0.2, -1.0, 6.0))
    law = expect(law_of(own), HistogramLaw)
    alpha, base = (2.0, 2.0), BASES["normal"]
    model = Model(("none", 0.0), base, 0.0, alpha, "normal", len(z))
    fitted = counts.mixture(model, HistogramCounts(law.likelihood(z[:, None], 4), 4, law.edges()))
    inner = np.array([0.5, 1.5, 3.5])
    exact, table = histograms.posterior(release, z, 4, 0.0, alpha, "normal", base, GRID, inner=inner)
    assert gap_of(fitted, exact, table, rng_of("whole numbers", kind), 8_000) < PRIMARY
