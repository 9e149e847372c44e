"""Exact posterior of a small mixture by enumerating every set partition (methods.md section 4).

Y_i | theta_i ~ N(mu_i, var_i), Z_i | Y_i through the channel, theta_i | P ~ P, P ~ PY(d, alpha, NIG(mu0, lam,
a, b)). Given a partition the blocks are independent, and a block's marginal likelihood is an integral over
two dimensions of prod_i g(z_i | mu, var). `BlockTable` does these integrals once for each of the 2^n - 1
blocks, by the trapezoidal rule in t = log var and x = (mu - mu0) sqrt(lam / var): there the prior is a
Gumbel times a normal and every g(z_i | .) is analytic with one scale, sqrt(lam), whatever var is, so that the
rule converges geometrically. `posterior` then sums over the partitions, and over alpha where it has a
Gamma(shape, rate) prior (a third, one-dimensional, quadrature).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.oracles.log_g import Channel, log_g

Array = NDArray[np.float64]
Base = tuple[float, float, float, float]
Partition = tuple[tuple[int, ...], ...]


def set_partitions(n: int) -> Iterator[Partition]:
    """Every partition of 0..n-1 into blocks, each block sorted, blocks in order of their least element."""

    def grow(i: int, blocks: list[list[int]]) -> Iterator[Partition]:
        if i == n:
            yield tuple(tuple(block) for block in blocks)
            return
        for block in blocks:
            block.append(i)
            yield from grow(i + 1, blocks)
            block.pop()
        blocks.append([i])
        yield from grow(i + 1, blocks)
        blocks.pop()

    yield from grow(0, [])


def log_eppf(sizes: list[int], alpha: float | Array, d: float) -> Array:
    """Log prior probability of one partition with these block sizes, vectorised over alpha."""
    al = np.asarray(alpha, dtype=float)
    out = special.gammaln(al + 1) - special.gammaln(al + sum(sizes))
    for j in range(1, len(sizes)):
        out = out + np.log(al + j * d)
    for size in sizes:
        out = out + special.gammaln(size - d) - special.gammaln(1 - d)
    return np.asarray(out)


def prior_predictive_pdf(base: Base, y: Array | float) -> Array:
    """Density of one Y drawn from the base measure: Student t."""
    mu0, lam, a, b = base
    return np.asarray(stats.t.pdf(y, 2 * a, mu0, np.sqrt(b * (1 + lam) / (a * lam))))


def log_marginal_nig(base: Base, y: Array) -> float:
    """Closed form of the marginal likelihood of noise-free values `y` in one block."""
    mu0, lam, a, b = base
    n, mean = len(y), float(np.mean(y))
    lam_n, a_n = lam + n, a + n / 2
    b_n = b + 0.5 * float(np.sum((y - mean) ** 2)) + 0.5 * lam * n / lam_n * (mean - mu0) ** 2
    return float(
        a * np.log(b) - a_n * np.log(b_n) + special.gammaln(a_n) - special.gammaln(a)
        + 0.5 * np.log(lam / lam_n) - 0.5 * n * np.log(2 * np.pi)
    )  # fmt: skip


def alpha_rule(shape: float, rate: float, points: int = 400) -> tuple[Array, Array]:
    """Nodes and log weights of a rule for expectations under Gamma(shape, rate), trapezoidal in log alpha."""
    t = np.linspace(np.log(stats.gamma.ppf(1e-14, shape)) - 2, np.log(60.0 + 4 * shape), points) - np.log(
        rate
    )
    log_w = np.log(t[1] - t[0]) + shape * (np.log(rate) + t) - rate * np.exp(t) - special.gammaln(shape)
    return np.exp(t), log_w


class BlockTable:
    """Integrals over theta for every block of the records `z`.

    Attributes, indexed by the bit mask of a block (mask 0 is the empty block, that is the prior):
    ``log_m`` log marginal likelihood; ``f1``, ``f2`` posterior means of f(y | theta) and of its square at
    each `y`; ``loglik`` posterior mean of sum_i log g(z_i | theta) over the block; ``mean``, ``log_var``
    posterior means of mu and log var.
    `blocks` asks for these blocks alone instead, in this order: for more records than can be enumerated.
    """

    def __init__(
        self,
        z: Array,
        channel: Channel,
        base: Base,
        y: Array,
        resolution: float = 1.0,
        blocks: list[list[int]] | None = None,
    ) -> None:
        mu0, lam, a, b = base
        self.z, self.channel, self.base, self.y = np.asarray(z, float), channel, base, np.asarray(y, float)
        n = len(self.z)
        step_x = 0.45 * np.sqrt(lam / (n + 2)) / resolution
        step_t = 0.08 / resolution
        reach = 9.5
        x = np.arange(-reach, reach + step_x, step_x)
        t = np.arange(np.log(b) - 4.5, np.log(b) + 36.0 / a, step_t)
        var = np.exp(t)[:, None]
        mu = mu0 + x[None, :] * np.sqrt(var / lam)
        log_prior = (
            a * np.log(b) - special.gammaln(a) - a * t[:, None] - b / var
            - 0.5 * x[None, :] ** 2 - 0.5 * np.log(2 * np.pi) + np.log(step_x * step_t)
        )  # fmt: skip
        records = np.stack([log_g(channel, zi, mu, var).ravel() for zi in self.z])
        density = np.stack([stats.norm.pdf(yj, mu, np.sqrt(var)).ravel() for yj in self.y])
        columns = np.concatenate(
            [density, density**2, np.stack([mu.ravel(), np.broadcast_to(t[:, None], mu.shape).ravel()])]
        )
        if blocks is None:
            blocks = [[i for i in range(n) if mask >> i & 1] for mask in range(1 << n)]
        m, size = len(self.y), len(blocks)
        self.log_m, self.loglik = np.empty(size), np.empty(size)
        self.mean, self.log_var = np.empty(size), np.empty(size)
        self.f1, self.f2 = np.empty((size, m)), np.empty((size, m))
        for mask, members in enumerate(blocks):
            log_lik = records[members].sum(axis=0)
            log_w = log_lik + log_prior.ravel()
            top = log_w.max()
            w = np.exp(log_w - top)
            total = w.sum()
            w /= total
            self.log_m[mask] = top + np.log(total)
            self.loglik[mask] = w @ log_lik
            values = columns @ w
            self.f1[mask], self.f2[mask] = values[:m], values[m : 2 * m]
            self.mean[mask], self.log_var[mask] = values[2 * m], values[2 * m + 1]


@dataclass(frozen=True)
class Exact:
    """Exact posterior quantities; `density_sd` is the standard deviation of the random density f_P(y)."""

    partitions: list[Partition]
    probability: Array
    p_k: Array
    cocluster: Array
    density: Array
    density_sd: Array
    density_prior_second: Array
    log_likelihood: float
    concentration: float
    mean_of_first: float
    log_var_of_first: float
    log_evidence: float


def posterior(table: BlockTable, d: float, alpha: float | tuple[float, float]) -> Exact:
    """Sum over all partitions; `alpha` is a number, or (shape, rate) of a Gamma prior on it.

    The random density at y is f_P(y) = sum_h w_h f(y | theta_h) + w_0 f_P0(y) with (w_1..w_k, w_0) ~
    Dirichlet(n_h - d, alpha + k d) and P0 ~ PY(d, alpha + k d, G0), whose f_P0(y) has mean f0(y) and variance
    (1 - d) / (alpha + k d + 1) (E_G0 f^2 - f0^2).
    """
    n = len(table.z)
    if isinstance(alpha, tuple):
        al, log_w = alpha_rule(*alpha)
    else:
        al, log_w = np.array([alpha]), np.zeros(1)
    parts = list(set_partitions(n))
    rows = []
    for part in parts:
        masks = [sum(1 << i for i in block) for block in part]
        sizes = np.array([len(block) for block in part], float)
        k = len(part)
        log_al = log_w + log_eppf([len(block) for block in part], al, d)
        top = log_al.max()
        post_al = np.exp(log_al - top)
        log_p = top + np.log(post_al.sum()) + table.log_m[masks].sum()
        post_al /= post_al.sum()
        total, new = al + n, al + k * d
        w1 = (sizes - d)[:, None] / total
        w0 = new / total
        f1, f2 = table.f1[masks], table.f2[masks]
        f0, f0_second = table.f1[0], table.f2[0]
        first = np.tensordot(w1 @ post_al, f1, 1) + (w0 @ post_al) * f0
        # moments of the Dirichlet weights, averaged over alpha
        scale = post_al / (total * (total + 1))
        shares = sizes - d
        cross = np.tensordot(shares, f1, 1) ** 2 - np.tensordot(shares**2, f1**2, 1)
        own = np.tensordot(shares * (shares + 1), f2, 1)
        rest_second = f0[None, :] ** 2 + ((1 - d) / (new + 1))[:, None] * (f0_second - f0**2)[None, :]
        second = (
            scale.sum() * (cross + own)
            + 2 * (scale @ new) * np.tensordot(shares, f1, 1) * f0
            + (scale * new * (new + 1)) @ rest_second
        )
        home = next(mask for mask in masks if mask & 1)
        rows.append(
            (
                log_p,
                k,
                first,
                second,
                table.loglik[masks].sum(),
                post_al @ al,
                table.mean[home],
                table.log_var[home],
            )
        )
    log_p = np.array([row[0] for row in rows])
    evidence = special.logsumexp(log_p)
    p = np.exp(log_p - evidence)
    ks = np.array([row[1] for row in rows])
    cocluster = np.zeros((n, n))
    for part, weight in zip(parts, p, strict=True):
        for block in part:
            cocluster[np.ix_(block, block)] += weight
    first = p @ np.array([row[2] for row in rows])
    second = p @ np.array([row[3] for row in rows])
    return Exact(
        partitions=parts,
        probability=p,
        p_k=np.array([p[ks == k].sum() for k in range(n + 1)]),
        cocluster=cocluster,
        density=first,
        density_sd=np.sqrt(second - first**2),
        density_prior_second=table.f2[0],
        log_likelihood=float(p @ np.array([row[4] for row in rows])),
        concentration=float(p @ np.array([row[5] for row in rows])),
        mean_of_first=float(p @ np.array([row[6] for row in rows])),
        log_var_of_first=float(p @ np.array([row[7] for row in rows])),
        log_evidence=float(evidence),
    )
