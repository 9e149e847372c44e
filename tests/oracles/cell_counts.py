"""Exact posteriors of numbers of records in cells, by enumeration, and draws of their law with releases.

A release is told by a mapping: its kind, ``noisy`` (counts plus noise), ``smoothed`` (draws of the smoothed
histogram), ``polya`` (draws of the Dirichlet-multinomial predictive) or ``hidden`` (draws of clipped and
normalised noisy counts, mixed with the uniform distribution), and what that kind has: ``noise`` and
``scale``, ``weight``, ``prior``. Written from the definitions, without the code under test.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Array = NDArray[np.float64]
Kind = Mapping[str, Any]


def vectors(n: int, cells: int) -> NDArray[np.int64]:
    """All vectors of counts that sum to n."""
    found = [c for c in itertools.product(range(n + 1), repeat=cells) if sum(c) == n]
    return np.array(found, dtype=np.int64)


def log_prior(c: Any, shapes: Array) -> float:
    """Log of the Dirichlet-multinomial probability of counts."""
    return float(stats.dirichlet_multinomial.logpmf(c, shapes, int(np.sum(c))))


def noise_density(kind: Kind, e: Array) -> Array:
    """Density, or probability, of noise."""
    scale = kind["scale"]
    if kind["noise"] == "laplace":
        return np.asarray(stats.laplace.pdf(e, 0, scale))
    if kind["noise"] == "gaussian":
        return np.asarray(stats.norm.pdf(e, 0, scale))
    r = np.exp(-1 / scale)
    return np.asarray((1 - r) / (1 + r) * r ** np.abs(e))


def probabilities(h: Array, weight: float) -> Array:
    """Probabilities of draws given noisy counts, (.., J)."""
    clipped = np.maximum(h, 0.0)
    total = clipped.sum(-1, keepdims=True)
    share = np.where(total > 0, clipped / np.where(total > 0, total, 1.0), 1.0 / h.shape[-1])
    return np.asarray((1 - weight) * share + weight / h.shape[-1])


def hidden_table(kind: Kind, released: Array, n: int, extra: int = 0) -> tuple[Array, Array]:
    """Return p(released | c) for all c in {0..n}^J, and its integral against the first cell's probability.

    Sums over the integers for geometric noise; else Gauss-Legendre on panels that end where the noise or the
    clipping has a kink. The multinomial coefficient is left out.
    """
    cells, scale = len(released), kind["scale"]
    if kind["noise"] == "geometric":
        far = int(40 * scale) + extra
        nodes, weights = np.arange(-far, n + far + 1.0), np.ones(2 * far + n + 1)
    else:
        tail = scale * np.array([0.3, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
        near = [1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5]
        breaks = np.concatenate([-tail[::-1], [0.0], near, np.arange(1.0, n + 1), n + tail])
        breaks = np.unique(breaks)
        x, w = np.polynomial.legendre.leggauss(5 if cells > 2 else 8)
        half, middle = np.diff(breaks) / 2, (breaks[1:] + breaks[:-1]) / 2
        nodes = (middle[:, None] + half[:, None] * x).ravel()
        weights = (half[:, None] * w).ravel()
    grid = np.stack(np.meshgrid(*[nodes] * cells, indexing="ij"), axis=-1)
    shares = probabilities(grid, kind["weight"])
    likelihood = np.exp(special.xlogy(released, shares).sum(-1))
    at = weights[:, None] * noise_density(kind, nodes[:, None] - np.arange(n + 1))
    found = []
    for table in (likelihood, likelihood * shares[..., 0]):
        for _ in range(cells):
            table = np.tensordot(table, at, axes=(0, 0))
        found.append(table)
    return found[0], found[1]


def log_likelihood(kind: Kind, released: Array, c: Any) -> float:
    """Log of p(released | c) up to a constant, for all kinds but ``hidden``."""
    c = np.asarray(c, float)
    if kind["kind"] == "noisy":
        return float(np.log(noise_density(kind, released - c)).sum())
    if kind["kind"] == "smoothed":
        density = (1 - kind["weight"]) * len(c) * c / c.sum() + kind["weight"]
        return float(special.xlogy(released, density).sum())
    a = kind["prior"]
    return float(np.sum(special.gammaln(a + c + released) - special.gammaln(a + c)))


def posterior(kind: Kind, released: Array, n: int, shapes: Array) -> tuple[NDArray[np.int64], Array, float]:
    """Return all counts, their probabilities, and for ``hidden`` the first cell's mean probability."""
    all_counts = vectors(n, len(shapes))
    prior = np.array([log_prior(c, shapes) for c in all_counts])
    share = np.nan
    if kind["kind"] == "hidden":
        table, first = hidden_table(kind, released, n)
        at = tuple(all_counts.T)
        weights = np.exp(prior) * table[at]
        share = float(np.sum(np.exp(prior) * first[at]) / weights.sum())
    else:
        logs = prior + np.array([log_likelihood(kind, released, c) for c in all_counts])
        weights = np.exp(logs - logs.max())
    return all_counts, weights / weights.sum(), share


def draw_noise(rng: np.random.Generator, kind: Kind, size: int) -> Array:
    """Draw noise."""
    scale = kind["scale"]
    if kind["noise"] == "laplace":
        return np.asarray(rng.laplace(0, scale, size))
    if kind["noise"] == "gaussian":
        return np.asarray(rng.normal(0, scale, size))
    p = 1 - np.exp(-1 / scale)
    return np.asarray(rng.geometric(p, size) - rng.geometric(p, size), dtype=float)


def draw_counts(rng: np.random.Generator, shapes: Array, n: int) -> NDArray[np.int64]:
    """Draw counts from the prior."""
    return np.asarray(rng.multinomial(n, rng.dirichlet(shapes)), dtype=np.int64)


def draw_released(
    rng: np.random.Generator, kind: Kind, c: NDArray[np.int64], h: Array | None, draws: int
) -> tuple[Array, Array | None]:
    """Draw the release given counts, and noisy counts if hidden; and how many draws these explain."""
    cells = len(c)
    if kind["kind"] == "noisy":
        return c + draw_noise(rng, kind, cells), None
    if kind["kind"] == "smoothed":
        shares = (1 - kind["weight"]) * c / c.sum() + kind["weight"] / cells
        return rng.multinomial(draws, shares).astype(float), None
    if kind["kind"] == "polya":
        return rng.multinomial(draws, rng.dirichlet(c + kind["prior"])).astype(float), None
    assert h is not None  # hidden
    explained = rng.multinomial(rng.binomial(draws, 1 - kind["weight"]), probabilities(h, 0.0))
    rest = rng.multinomial(draws - explained.sum(), np.full(cells, 1 / cells))
    return (explained + rest).astype(float), explained.astype(float)
