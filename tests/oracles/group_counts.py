"""Exact posteriors given the histogram of several groups whose sizes are private, by enumeration.

Every table of counts of N records over G groups and m bins has the prior: n_g uniform over all that sum to N
(shares Dirichlet(1, .., 1), integrated out), and the counts of a group given its size those of its own
model, Dirichlet-multinomial or a mixture, the groups independent. Written from the definitions, without the
code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.oracles import cell_counts, histograms
from tests.oracles.partitions import alpha_rule, enumerate_posterior, set_partitions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tables:
    """All tables of counts (T, G, m), and their posterior probabilities (T,)."""

    counts: NDArray[np.int64]
    probability: Array

    def mean(self, function: Callable[[tuple[int, ...]], Any]) -> Array:
        """Posterior mean of a function of one group's counts, for each group."""
        known = {
            tuple(c): np.asarray(function(tuple(c))) for c in self.counts.reshape(-1, self.counts.shape[2])
        }
        values = np.array([[known[tuple(c)] for c in table] for table in self.counts])
        return np.asarray(np.tensordot(self.probability, values, 1))


def enumerate_tables(
    n: int,
    groups: int,
    bins: int,
    log_group: Callable[[tuple[int, ...]], float],
    log_release: Callable[[Any], float],
) -> Tables:
    """Weigh all tables: `log_group` is the log probability of a group's counts given its size."""
    counts = cell_counts.vectors(n, groups * bins).reshape(-1, groups, bins)
    known: dict[tuple[int, ...], float] = {}
    log_p = np.empty(len(counts))
    for t, table in enumerate(counts):
        for c in map(tuple, table.tolist()):
            if c not in known:
                known[c] = log_group(c)
        log_p[t] = sum(known[tuple(c)] for c in table.tolist()) + log_release(table.ravel())
    return Tables(counts, np.exp(log_p - special.logsumexp(log_p)))


def discrete(kind: cell_counts.Kind, released: Array, n: int, groups: int, shapes: Array) -> Tables:
    """Return the posterior of the discrete model with Dirichlet parameters `shapes` (m,) in each group."""
    return enumerate_tables(
        n,
        groups,
        len(shapes),
        lambda c: cell_counts.log_prior(c, shapes) if sum(c) else 0.0,
        lambda table: log_release(kind, released, table),
    )


def log_release(kind: cell_counts.Kind, released: Array, table: Any) -> float:
    """Log likelihood of noisy counts, or of numbers of draws, of all bins of all groups."""
    if kind["kind"] == "smoothed":
        density = (1 - kind["weight"]) * len(table) * table / table.sum() + kind["weight"]
        return float(released @ np.log(density))
    return float(np.log(cell_counts.noise_density(kind, released - table)).sum())


@dataclass(frozen=True)
class Mixture:
    """Exact posterior of mixtures of groups; moments of the random density at each point, (G, points)."""

    tables: Tables
    clusters: Array
    density: Array
    density_squared: Array
    concentration: Array
    sizes: Array


def mixture(
    kind: cell_counts.Kind,
    released: Array,
    n: int,
    groups: int,
    d: float,
    alpha: float | tuple[float, float],
    kernel: str,
    base: tuple[float, ...],
    places: tuple[int, float, float],
    y: Array,
) -> Mixture:
    """Sum over the partitions of each group's records, for each table; `places` are m, lo and width."""
    m = places[0]
    table, index = histograms.bin_table(("counts", (m, "laplace", 1.0, *places[1:])), n, kernel, base, y)
    known: dict[tuple[int, ...], tuple[float, Array, Array, Array, float]] = {}

    def group(c: tuple[int, ...]) -> tuple[float, Array, Array, Array, float]:
        if c in known:
            return known[c]
        size = sum(c)
        clusters = np.zeros(n + 1)
        if size == 0:
            nodes, log_w = (
                alpha_rule(*alpha) if isinstance(alpha, tuple) else (np.array([alpha]), np.zeros(1))
            )
            weight = np.exp(log_w)
            clusters[0] = 1.0
            mean = table.f1[0]
            shrink = float(weight @ ((1 - d) / (nodes + 1)))
            known[c] = (
                0.0,
                clusters,
                mean,
                mean**2 + shrink * (table.f2[0] - mean**2),
                float(weight @ nodes),
            )
            return known[c]
        bins = np.repeat(np.arange(m), c)
        rows = []
        for part in set_partitions(size):
            blocks = [index[tuple(np.bincount(bins[list(block)], minlength=m))] for block in part]
            rows.append((part, float(table.log_m[blocks].sum()), blocks))
        exact = enumerate_posterior(table, rows, d, alpha)
        clusters[: size + 1] = exact.p_k[: size + 1]
        ways = special.gammaln(size + 1) - special.gammaln(np.array(c) + 1.0).sum()
        second = exact.density_sd**2 + exact.density**2
        known[c] = (exact.log_evidence + ways, clusters, exact.density, second, exact.concentration)
        return known[c]

    found = enumerate_tables(
        n, groups, m, lambda c: group(c)[0], lambda counts: log_release(kind, released, counts)
    )
    means = [found.mean(lambda c, i=i: group(c)[i]) for i in range(1, 5)]
    sizes = found.mean(lambda c: np.arange(n + 1) == sum(c))
    return Mixture(found, *means, sizes)
