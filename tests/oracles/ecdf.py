"""Simultaneous bands for the ECDF of ranks (Säilynoja, Bürkner and Vehtari 2022), and the p-value they stand
for.

N fractional ranks are uniform on {1..K} / K, so the count at or below j / K is Binomial(N, j / K) and the
counts form a Markov chain with binomial steps. `coverage` follows that chain through pointwise intervals;
nothing is simulated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

Array = NDArray[np.float64]


def pointwise(gamma: float, n: int, points: int) -> tuple[Array, Array]:
    """Smallest and largest counts at j / points, j = 1..points-1, that are not in a tail of gamma / 2."""
    z = np.arange(1, points) / points
    return stats.binom.ppf(gamma / 2, n, z), stats.binom.isf(gamma / 2, n, z)


def coverage(gamma: float, n: int, points: int) -> float:
    """Probability that the counts of n uniform ranks stay within `pointwise` bounds everywhere."""
    low, high = pointwise(gamma, n, points)
    states, p = np.array([0.0]), np.array([1.0])
    for j in range(points - 1):
        reach = np.arange(low[j], high[j] + 1)
        step = stats.binom.pmf(reach[:, None] - states[None, :], n - states[None, :], 1.0 / (points - j))
        states, p = reach, step @ p
    return float(p.sum())


def band(level: float, n: int, points: int) -> tuple[float, Array, Array]:
    """Pointwise gamma, and bounds on the counts, that hold all together with probability `level`."""
    log_gamma = optimize.brentq(
        lambda x: coverage(np.exp(x), n, points) - level, np.log(1e-12), np.log(1.0 - level), xtol=1e-3
    )
    gamma = float(np.exp(log_gamma))
    return gamma, *pointwise(gamma, n, points)


def p_value(ranks: NDArray[np.int64], points: int) -> float:
    """Probability that uniform ranks 0..points-1 leave a band as narrow as these would need."""
    n = len(ranks)
    counts = np.cumsum(np.bincount(ranks, minlength=points))[:-1]
    z = np.arange(1, points) / points
    tail = np.minimum(stats.binom.cdf(counts, n, z), stats.binom.sf(counts - 1, n, z)).min()
    # the bounds that just exclude the most extreme count
    return float(min(1.0, 1.0 - coverage(2 * tail * (1 + 1e-9), n, points)))
