"""Draws of the joint law of methods section 4, exact laws of label-invariant statistics, tests on them.

`exact_restarts` is the joint-distribution test (Geweke 2004) with independent restarts (Gandy and Scott
2020): draw (state, z) from the joint law, then alternate sweeps of the sampler with draws of z given its
state. Every step leaves the joint law invariant, so that restarts are independent draws of it, and most
statistics have known laws: the p-values are exact, with no Monte Carlo standard error to estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.oracles.log_g import Channel
from tests.oracles.partitions import Base, alpha_rule, log_eppf

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """Channel, base measure, discount, and the concentration: a number, or (shape, rate) of a Gamma prior."""

    channel: Channel
    base: Base
    discount: float
    alpha: float | tuple[float, float]


class ChainLike(Protocol):
    """What the tests need of a sampler's chain."""

    z: Any

    def set_state(self, allocations: Any, theta: Any, concentration: float, latent: Any = None) -> None:
        """Start from this state."""

    def advance(self, sweeps: int) -> None:
        """Run the sampler."""

    @property
    def allocations(self) -> Any:
        """Labels 0..k-1."""

    @property
    def theta(self) -> Any:
        """Means and variances, (2, k)."""

    @property
    def concentration(self) -> float:
        """Present concentration."""

    @property
    def latent(self) -> Any:
        """Latent values the sampler keeps, (n, m), or None."""


def add_noise(rng: np.random.Generator, channel: Channel, y: Array) -> Array:
    """Draw z given y."""
    kind, scale = channel
    if kind == "laplace":
        return y + rng.laplace(0.0, scale, y.shape)
    return y + scale * rng.standard_normal(y.shape) if kind == "gaussian" else y.copy()


def draw_state(rng: np.random.Generator, model: Model, n: int) -> tuple[Any, Array, float]:
    """Allocations (in order of appearance), theta (2, k) and concentration from their prior."""
    mu0, lam, a, b = model.base
    alpha = model.alpha if isinstance(model.alpha, float) else rng.gamma(model.alpha[0], 1.0 / model.alpha[1])
    counts: list[int] = []
    labels = np.empty(n, dtype=np.int64)
    for i in range(n):
        k = len(counts)
        weights = np.append(np.array(counts) - model.discount, alpha + k * model.discount)
        h = int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
        labels[i] = h = min(h, k)
        if h == k:
            counts.append(0)
        counts[h] += 1
    var = b / rng.standard_gamma(a, len(counts))
    mean = mu0 + np.sqrt(var / lam) * rng.standard_normal(len(counts))
    return labels, np.stack([mean, var]), float(alpha)


def draw_latent(rng: np.random.Generator, labels: Any, theta: Array, m: int) -> Array:
    """Draw m latent values for each record from f(. | theta of its component), (n, m)."""
    mean, var = theta[0, labels][:, None], theta[1, labels][:, None]
    return np.asarray(mean + np.sqrt(var) * rng.standard_normal((len(labels), m)))


def draw_release(rng: np.random.Generator, channel: Channel, latent: Array) -> Array:
    """Draw z given the latent values: with m of them, the noise is around one taken at random."""
    n, m = latent.shape
    return add_noise(rng, channel, latent[np.arange(n), rng.integers(0, m, n)] if m > 1 else latent[:, 0])


def marginal_cdf(channel: Channel, z: Array, mean: Array, var: Array) -> Array:
    """Distribution function of z given theta, the integral of g."""
    kind, scale = channel
    x = z - mean
    if kind != "laplace":
        return np.asarray(special.ndtr(x / np.sqrt(var + scale**2)))
    sd = np.sqrt(var)
    near = np.exp(0.5 * var / scale**2 - x / scale + special.log_ndtr(x / sd - sd / scale))
    far = np.exp(0.5 * var / scale**2 + x / scale + special.log_ndtr(-x / sd - sd / scale))
    return np.asarray(special.ndtr(x / sd) - 0.5 * (near - far))


def exact_restarts(
    make: Callable[[Array], ChainLike],
    model: Model,
    n: int,
    rng: np.random.Generator,
    restarts: int,
    rounds: int = 6,
    sweeps: int = 2,
    latent: int = 0,
    settle: int = 0,
    restate: bool = False,
) -> dict[str, Array]:
    """Statistics of `restarts` independent draws, each moved by rounds of sweeps and redrawn releases.

    `latent` is the number of latent values a record that the sampler keeps in its state. The last round ends
    with the sweeps, so that the statistics see z together with a state that the sampler drew given it.
    `settle` sweeps come before all else, for samplers whose state holds more than can be set: they must
    then be enough
    to reach the posterior given z. With `restate` a chain that keeps functions of z is told its state anew.
    """
    z = np.zeros(n)
    chain = make(z)
    rows = []
    for _ in range(restarts):
        labels, theta, alpha = draw_state(rng, model, n)
        y = draw_latent(rng, labels, theta, max(latent, 1))
        chain.z[:] = draw_release(rng, model.channel, y)
        chain.set_state(labels, theta, alpha, y if latent else None)
        chain.advance(settle)
        for turn in range(rounds):
            if turn:
                labels, theta = chain.allocations, chain.theta
                y = np.asarray(chain.latent) if latent else draw_latent(rng, labels, theta, 1)
                chain.z[:] = draw_release(rng, model.channel, y)
                if restate:
                    chain.set_state(labels, theta, chain.concentration, y if latent else None)
            chain.advance(sweeps)
        rows.append(statistics(model, chain.z, chain.allocations, chain.theta, chain.concentration))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def statistics(model: Model, z: Array, labels: Any, theta: Array, alpha: float) -> dict[str, float]:
    """Label-invariant statistics; those named u_ are uniform under the joint law, whatever else is given."""
    mu0, lam, a, b = model.base
    counts = np.bincount(labels)
    mean, var = theta[0, labels], theta[1, labels]
    pits = marginal_cdf(model.channel, z, mean, var)
    out = {
        "n_clusters": float(len(counts)),
        "largest": float(counts.max()),
        "size_of_first": float(counts[labels[0]]),
        "u_variance": float(special.gammaincc(a, b / var[0])),
        "u_mean": float(special.ndtr((mean[0] - mu0) * np.sqrt(lam / var[0]))),
        "u_release_first": float(pits[0]),
        "u_release_last": float(pits[-1]),
        "sum": float(z.sum()),
        "sum_of_squares": float(np.log1p(np.sum((z - mu0) ** 2))),
        "spread": float(np.log1p(np.sum((z - z.mean()) ** 2))),
    }
    if isinstance(model.alpha, tuple):
        out["u_concentration"] = float(special.gammainc(model.alpha[0], model.alpha[1] * alpha))
    return out


def integer_partitions(n: int, largest: int | None = None) -> Iterator[list[int]]:
    """Every multiset of block sizes that add up to n, in falling order."""
    if n == 0:
        yield []
    for first in range(min(n, largest or n), 0, -1):
        for rest in integer_partitions(n - first, first):
            yield [first, *rest]


def partition_laws(model: Model, n: int) -> dict[str, Array]:
    """Exact prior probabilities (index = value, 0..n) of the statistics of the partition."""
    if isinstance(model.alpha, tuple):
        alpha, log_w = alpha_rule(*model.alpha)
    else:
        alpha, log_w = np.array([model.alpha]), np.zeros(1)
    laws = {name: np.zeros(n + 1) for name in ("n_clusters", "largest", "size_of_first")}
    for sizes in integer_partitions(n):
        # set partitions with these block sizes: n! / prod_s (s!)^(m_s) m_s!
        ways = special.gammaln(n + 1) - sum(special.gammaln(s + 1) for s in sizes)
        ways -= sum(special.gammaln(sizes.count(s) + 1) for s in set(sizes))
        p = float(np.exp(log_w + ways + log_eppf(sizes, alpha, model.discount)).sum())
        laws["n_clusters"][len(sizes)] += p
        laws["largest"][sizes[0]] += p
        for size in sizes:
            laws["size_of_first"][size] += p * size / n
    return laws


def chi_square(values: Array, law: Array) -> float:
    """P-value of Pearson's test of integers 0..n against their law, rare ones pooled to expect 8 or more."""
    observed = np.bincount(values.astype(int), minlength=len(law)).astype(float)
    expected = law * len(values)
    order = np.argsort(expected)
    pooled: list[list[float]] = [[0.0, 0.0]]
    for index in order:
        if pooled[-1][1] >= 8:
            pooled.append([0.0, 0.0])
        pooled[-1][0] += observed[index]
        pooled[-1][1] += expected[index]
    o, e = np.array(pooled).T
    return float(stats.chi2.sf(np.sum((o - e) ** 2 / e), len(o) - 1)) if len(o) > 1 else 1.0


def joint_p_values(
    found: dict[str, Array], model: Model, n: int, rng: np.random.Generator
) -> dict[str, float]:
    """P-values of the restarts' statistics against exact laws, or against simulations of the joint law."""
    laws = partition_laws(model, n)
    simulated: dict[str, list[float]] = {"sum": [], "sum_of_squares": [], "spread": []}
    for _ in range(4 * len(found["sum"])):
        labels, theta, alpha = draw_state(rng, model, n)
        z = draw_release(rng, model.channel, draw_latent(rng, labels, theta, 1))
        simulated["sum"].append(z.sum())
        simulated["sum_of_squares"].append(np.log1p(np.sum((z - model.base[0]) ** 2)))
        simulated["spread"].append(np.log1p(np.sum((z - z.mean()) ** 2)))
    out = {}
    for name, values in found.items():
        if name in laws:
            out[name] = chi_square(values, laws[name])
        elif name.startswith("u_"):
            out[name] = float(stats.kstest(values, "uniform").pvalue)
        else:
            out[name] = float(stats.ks_2samp(values, simulated[name]).pvalue)
    return out
