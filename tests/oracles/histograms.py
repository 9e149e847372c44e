"""Exact posterior given a global histogram: partitions and bins of all records enumerated.

Records Y_1..Y_n in [lo, lo + width], cut into m equal bins with counts c_j (end bins extend to the ends of
the kernel's support). Releases: ``("smoothed", (m, w, lo, width))``, draws from f = (1 - w) m c_j / n + w on
bin j of [0, 1]; ``("counts", (m, noise, scale, lo, width))``, c_j plus noise: ``laplace``, ``gaussian`` (an
sd) or ``geometric`` (two-sided, parameter exp(-1 / scale)).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tests.oracles import kernels
from tests.oracles.blocks import Table, tabulate
from tests.oracles.marginals import cell_edges
from tests.oracles.partitions import Exact, Partition, enumerate_posterior, set_partitions

Array = NDArray[np.float64]
Release = tuple[str, Any]


def bins_of(release: Release, y: Array) -> Any:
    """Bin of each value."""
    m, lo, width = release[1][0], *release[1][-2:]
    return np.clip(np.floor((y - lo) / width * m), 0, m - 1).astype(int)


def count(release: Release, y: Array) -> Any:
    """Counts of the bins."""
    return np.bincount(bins_of(release, y), minlength=release[1][0])


def log_likelihood(release: Release, z: Array, counts: Any) -> float:
    """Log density of a release given the counts of the records, in units of the domain."""
    kind, (m, *rest) = release
    counts = np.asarray(counts)
    if kind == "smoothed":
        density = (1 - rest[0]) * m * counts / counts.sum() + rest[0]
        return float(count(release, z) @ np.log(density))
    noise, scale = rest[:2]
    gap = np.asarray(z) - counts
    if noise == "laplace":
        return float(stats.laplace.logpdf(gap, 0, scale).sum())
    if noise == "gaussian":
        return float(stats.norm.logpdf(gap, 0, scale).sum())
    r = np.exp(-1 / scale)
    return float(np.sum(np.log((1 - r) / (1 + r)) - np.abs(gap) / scale))


def draw_release(rng: np.random.Generator, release: Release, y: Array, draws: int) -> Array:
    """Draw the release of the records `y`: (draws,) values in the data's units, or (m,) noisy counts."""
    kind, (m, *rest) = release
    if kind == "smoothed":
        w, lo, width = rest
        chosen = np.where(
            rng.random(draws) < w, rng.integers(0, m, draws), rng.choice(bins_of(release, y), draws)
        )
        return np.asarray(lo + width * (chosen + rng.random(draws)) / m)
    noise, scale = rest[:2]
    counts = count(release, y).astype(float)
    if noise == "laplace":
        return np.asarray(counts + rng.laplace(0, scale, m))
    if noise == "gaussian":
        return np.asarray(counts + scale * rng.standard_normal(m))
    p = 1 - np.exp(-1 / scale)
    return np.asarray(counts + rng.geometric(p, m) - rng.geometric(p, m))


@dataclass(frozen=True)
class ExactCounts:
    """Posterior of the mixture, and of the counts: all vectors of counts, and their probabilities."""

    exact: Exact
    counts: Any
    probability: Array


def bin_table(
    release: Release,
    n: int,
    kernel: str,
    base: tuple[float, ...],
    y: Array,
    resolution: float = 1.0,
    inner: Array | None = None,
) -> tuple[Table, dict[tuple[int, ...], int]]:
    """Integrals of prod_i F_{bin_i}(theta) for every vector of counts of up to n records, and their index.

    Edges between the bins are `inner`, those of equal ones where it is left out.
    """
    m, lo, width = release[1][0], *release[1][-2:]
    inner = cell_edges(m, lo, width) if inner is None else inner
    law = kernels.kernel(kernel, base)
    theta, log_prior = law.nodes(n, resolution)
    with np.errstate(divide="ignore"):
        masses = np.log(np.maximum(law.masses(theta, inner), 1e-300))
    vectors = sorted(
        {c for c in itertools.product(range(n + 1), repeat=m) if sum(c) <= n}, key=lambda c: (sum(c), c)
    )
    blocks = [[j for j, c in enumerate(vector) for _ in range(c)] for vector in vectors]
    table = tabulate(law, np.asarray(y, float), masses, theta, log_prior, blocks)
    # no record has a marginal density of its own
    table = replace(table, loglik=np.full(len(vectors), np.nan))
    return table, {vector: i for i, vector in enumerate(vectors)}


def posterior(
    release: Release,
    z: Array,
    n: int,
    d: float,
    alpha: float | tuple[float, float],
    kernel: str,
    base: tuple[float, ...],
    y: Array,
    resolution: float = 1.0,
    inner: Array | None = None,
) -> tuple[ExactCounts, Table]:
    """Sum over the partitions of n records and over their bins; edges as `bin_table` has them."""
    m = release[1][0]
    table, index = bin_table(release, n, kernel, base, y, resolution, inner)
    bins = np.array(list(itertools.product(range(m), repeat=n)))
    counts = np.array([np.bincount(row, minlength=m) for row in bins])
    likelihood = np.array([log_likelihood(release, z, c) for c in counts])
    rows: list[tuple[Partition, float, list[int]]] = []
    for part in set_partitions(n):
        for row, log_lik in zip(bins, likelihood, strict=True):
            blocks = [index[tuple(np.bincount(row[list(block)], minlength=m))] for block in part]
            rows.append((part, float(log_lik + table.log_m[blocks].sum()), blocks))
    exact = enumerate_posterior(table, rows, d, alpha)
    share = exact.probability.reshape(-1, len(bins)).sum(axis=0)
    vectors, inverse = np.unique(counts, axis=0, return_inverse=True)
    return ExactCounts(exact, vectors, np.bincount(np.ravel(inverse), weights=share)), table
