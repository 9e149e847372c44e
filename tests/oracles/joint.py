"""Draws of the joint law of methods section 4, exact laws of label-invariant statistics, tests on them.

`exact_restarts` is the joint-distribution test (Geweke 2004) with independent restarts (Gandy and Scott
2020): draw (state, z) from the joint law, then alternate sweeps of the sampler with draws of z given its
state. Every step leaves the joint law invariant, so that restarts are independent draws of it, and most
statistics have known laws: the p-values are exact, with no Monte Carlo standard error to estimate.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.oracles import histograms, kernels, marginals
from tests.oracles.log_g import Channel
from tests.oracles.niw import MultivariateNormal
from tests.oracles.partitions import alpha_rule, log_eppf

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """Channel, base measure, discount, and the concentration: a number, or (shape, rate) of a Gamma prior.

    Channels are those of `marginals`, of `histograms` (with `released` values drawn, where it is not counts)
    and, for the kernel ``multivariate``, ``laplace``, ``gaussian`` or ``none`` with a scale for each column.
    """

    channel: tuple[str, Any]
    base: Any
    discount: float
    alpha: float | tuple[float, float]
    kernel: str = "normal"
    released: int = 0

    @functools.cached_property
    def law(self) -> Any:
        """Kernel and base measure."""
        if self.kernel == "multivariate":
            return MultivariateNormal(self.base)
        return kernels.kernel(self.kernel, self.base)

    @property
    def is_global(self) -> bool:
        """Whether the release is one of the whole sample."""
        return self.channel[0] in ("smoothed", "counts")


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


def draw_state(rng: np.random.Generator, model: Model, n: int) -> tuple[Any, Array, float]:
    """Allocations (in order of appearance), theta (2, k) and concentration from their prior."""
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
    return labels, model.law.draw_prior(rng, len(counts)), float(alpha)


def draw_latent(rng: np.random.Generator, model: Model, labels: Any, theta: Array, m: int) -> Array:
    """Draw m latent values for each record from f(. | theta of its component), (n, m) or (n, m, column)."""
    return np.stack([model.law.draw_latent(rng, theta[:, labels]) for _ in range(m)], axis=1)


def draw_release(rng: np.random.Generator, model: Model, latent: Array) -> Array:
    """Draw z given the latent values: with m of them, the noise is around one taken at random."""
    n, m = latent.shape[:2]
    y = latent[np.arange(n), rng.integers(0, m, n)] if m > 1 else latent[:, 0]
    if model.is_global:
        return histograms.draw_release(rng, model.channel, model.law.value(y), model.released)
    return marginals.draw_release(rng, model.law, model.channel, y)


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


def overwrite(chain: ChainLike, z: Array, latent: Array) -> None:
    """Put a new release, given the latent values, in the place of a chain's."""
    chain.z[:] = z


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
    redraw: Callable[[Any, Array, Array], None] = overwrite,
    holds_more: bool = False,
) -> dict[str, Array]:
    """Statistics of `restarts` independent draws, each moved by rounds of sweeps and redrawn releases.

    `latent` is the number of latent values a record that the sampler keeps in its state. The last round ends
    with the sweeps, so that the statistics see z together with a state that the sampler drew given it.
    `settle` sweeps come before all else, for samplers whose state holds more than can be set: they must
    then be enough to reach the posterior given z. With `restate` a chain that keeps functions of z is told
    its state anew. `redraw` puts a new release into a chain. With `holds_more` the state says something of
    latent values that it does not hold, which the chain then draws.
    """
    chain: Any = None
    rows = []
    for _ in range(restarts):
        labels, theta, alpha = draw_state(rng, model, n)
        y = draw_latent(rng, model, labels, theta, max(latent, 1))
        z = draw_release(rng, model, y)
        if chain is None:
            chain = make(z.copy())
        redraw(chain, z, y)
        chain.set_state(labels, theta, alpha, y if latent or holds_more else None)
        chain.advance(settle)
        for turn in range(rounds):
            if turn:
                labels, theta = chain.allocations, chain.theta
                y = latent_values(rng, model, chain, latent, holds_more)
                z = draw_release(rng, model, y)
                redraw(chain, z, y)
                if restate:
                    chain.set_state(labels, theta, chain.concentration, y if latent else None)
            chain.advance(sweeps)
        y = latent_values(rng, model, chain, latent, holds_more)
        rows.append(statistics(model, z, chain.allocations, chain.theta, chain.concentration, y))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def latent_values(rng: np.random.Generator, model: Model, chain: Any, latent: int, holds_more: bool) -> Array:
    """Return the latent values (n, m) of a chain's state, or draws of them given it."""
    if latent:
        return np.asarray(chain.latent)
    if holds_more:
        return np.asarray(chain.draw_latents()[:, None])
    return draw_latent(rng, model, chain.allocations, chain.theta, 1)


def statistics(
    model: Model, z: Array, labels: Any, theta: Array, alpha: float, latent: Array
) -> dict[str, float]:
    """Label-invariant statistics; those named u_ are uniform under the joint law, whatever else is given.

    `latent` counts for global releases only, where the state always holds it.
    """
    counts = np.bincount(labels)
    out = {
        "n_clusters": float(len(counts)),
        "largest": float(counts.max()),
        "size_of_first": float(counts[labels[0]]),
        **model.law.uniforms(theta[:, labels[0]]),
    }
    if isinstance(model.alpha, tuple):
        out["u_concentration"] = float(special.gammainc(model.alpha[0], model.alpha[1] * alpha))
    if model.kernel in ("normal", "truncated") and model.channel[0] in ("laplace", "gaussian", "none"):
        pits = marginal_cdf(model.channel, z, theta[0, labels], theta[1, labels])
        out |= {"u_release_first": float(pits[0]), "u_release_last": float(pits[-1])}
    return out | features(model, z, labels, theta, latent)


def features(model: Model, z: Array, labels: Any, theta: Array, latent: Array) -> dict[str, float]:
    """Functions of the release, with the state, whose laws are simulated."""
    first = theta[:, labels[0]]
    if model.is_global:
        y = model.law.value(latent[:, 0])
        held = histograms.count(model.channel, y)
        seen = histograms.count(model.channel, z) if model.channel[0] == "smoothed" else z
        place = float(seen @ np.arange(len(seen)))
        return {
            "first_bin": float(seen[0]),
            "place": place,
            "squares": float(seen @ seen),
            "overlap": float(seen @ held),
            "held_squares": float(held @ held),
            "place_and_centre": place * float(model.law.centre(first)),
            "place_and_spread": place * float(model.law.log_spread(first)),
            "first_and_centre": float((y[0] - y[-1]) * model.law.centre(first)),
        }
    origin = model.base[0] if model.kernel in ("normal", "truncated") else 0.0
    own = z if z.ndim == 1 else z[:, 0]
    return {
        "sum": float(z.sum()),
        "sum_of_squares": float(np.log1p(np.sum((z - origin) ** 2))),
        "spread": float(np.log1p(np.sum((z - z.mean()) ** 2))),
        "release_and_centre": float((own[0] - origin) * (model.law.centre(first) - origin)),
        "release_and_spread": float(abs(own[0] - own[-1]) * model.law.log_spread(first)),
    }


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
    simulated: dict[str, list[float]] = {}
    for _ in range(4 * len(found["n_clusters"])):
        labels, theta, alpha = draw_state(rng, model, n)
        y = draw_latent(rng, model, labels, theta, 1)
        for name, value in features(model, draw_release(rng, model, y), labels, theta, y).items():
            simulated.setdefault(name, []).append(value)
    out = {}
    for name, values in found.items():
        if name in laws:
            out[name] = chi_square(values, laws[name])
        elif name.startswith("u_"):
            out[name] = float(stats.kstest(values, "uniform").pvalue)
        else:
            out[name] = float(stats.ks_2samp(values, simulated[name]).pvalue)
    return out
