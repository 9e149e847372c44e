"""Exact posterior of a small mixture by enumerating every set partition (methods.md section 4).

Y_i | theta_i ~ f, Z_i | Y_i through the channel, theta_i | P ~ P, P ~ PY(d, alpha, G0). `posterior` sums over
the partitions, given the integrals of `blocks` for each of the 2^n - 1 blocks, and over alpha where it has a
Gamma(shape, rate) prior (a one-dimensional quadrature). `enumerate_posterior` is the same for any list of
partitions with weights and blocks of their own, and `over_bases` sums over the nodes of a law of G0, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.oracles.blocks import Table

Array = NDArray[np.float64]
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


def alpha_rule(shape: float, rate: float, points: int = 400) -> tuple[Array, Array]:
    """Nodes and log weights of a rule for expectations under Gamma(shape, rate), trapezoidal in log alpha."""
    t = np.linspace(np.log(stats.gamma.ppf(1e-14, shape)) - 2, np.log(60.0 + 4 * shape), points) - np.log(
        rate
    )
    log_w = np.log(t[1] - t[0]) + shape * (np.log(rate) + t) - rate * np.exp(t) - special.gammaln(shape)
    return np.exp(t), log_w


@dataclass(frozen=True)
class Exact:
    """Exact posterior quantities; `density_sd` is the standard deviation of the random density f_P(y).

    `theta_of_first` are posterior means of the kernel's summaries for the component of the first record.
    `probability` is that of each row that was enumerated: of each partition, in `posterior`.
    """

    probability: Array
    p_k: Array
    cocluster: Array
    density: Array
    density_sd: Array
    log_likelihood: float
    concentration: float
    theta_of_first: Array
    log_evidence: float


def posterior(table: Table, d: float, alpha: float | tuple[float, float]) -> Exact:
    """Sum over all partitions; `alpha` is a number, or (shape, rate) of a Gamma prior on it."""
    rows = []
    for part in set_partitions(table.n):
        masks = [sum(1 << i for i in block) for block in part]
        rows.append((part, float(table.log_m[masks].sum()), masks))
    return enumerate_posterior(table, rows, d, alpha)


def enumerate_posterior(
    table: Table,
    rows: Iterable[tuple[Partition, float, list[int]]],
    d: float,
    alpha: float | tuple[float, float],
) -> Exact:
    """Sum over `rows`: a partition, its log likelihood, and the index in `table` of each of its blocks.

    The random density at y is f_P(y) = sum_h w_h f(y | theta_h) + w_0 f_P0(y) with (w_1..w_k, w_0) ~
    Dirichlet(n_h - d, alpha + k d) and P0 ~ PY(d, alpha + k d, G0), whose f_P0(y) has mean f0(y) and variance
    (1 - d) / (alpha + k d + 1) (E_G0 f^2 - f0^2). Index 0 of `table` is the prior.
    """
    if isinstance(alpha, tuple):
        al, log_w = alpha_rule(*alpha)
    else:
        al, log_w = np.array([alpha]), np.zeros(1)
    f0, f0_second = table.f1[0], table.f2[0]
    parts, found = [], []
    for part, log_likelihood, index in rows:
        sizes = np.array([len(block) for block in part], float)
        k, n = len(part), int(sizes.sum())
        log_al = log_w + log_eppf([len(block) for block in part], al, d)
        top = log_al.max()
        post_al = np.exp(log_al - top)
        log_p = top + np.log(post_al.sum()) + log_likelihood
        post_al /= post_al.sum()
        total, new = al + n, al + k * d
        w1 = (sizes - d)[:, None] / total
        w0 = new / total
        f1, f2 = table.f1[index], table.f2[index]
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
        home = index[next(h for h, block in enumerate(part) if 0 in block)]
        parts.append(part)
        found.append((log_p, k, first, second, table.loglik[index].sum(), post_al @ al, table.theta[home]))
    log_p, ks, firsts, seconds, logliks, alphas, thetas = (np.array(c) for c in zip(*found, strict=True))
    evidence = special.logsumexp(log_p)
    p = np.exp(log_p - evidence)
    n = sum(len(block) for block in parts[0])
    cocluster = np.zeros((n, n))
    for part, weight in zip(parts, p, strict=True):
        for block in part:
            cocluster[np.ix_(block, block)] += weight
    first = p @ firsts
    return Exact(
        probability=p,
        p_k=np.array([p[ks == k].sum() for k in range(n + 1)]),
        cocluster=cocluster,
        density=first,
        density_sd=np.sqrt(p @ seconds - first**2),
        log_likelihood=float(p @ logliks),
        concentration=float(p @ alphas),
        theta_of_first=p @ thetas,
        log_evidence=float(evidence),
    )


def over_bases(
    n: int, alpha: float, log_w: Array, log_block: Callable[[list[int]], Array], functions: Sequence[Array]
) -> dict[str, Array]:
    """Posterior under a Dirichlet process whose base measure G0 is drawn, by nodes with these log weights.

    `log_block` gives the log marginal likelihood of a block's records at each node. Of n records: the
    probabilities of each number of clusters, those that the first goes with the second and with the fourth,
    and the means of `functions` of the node.
    """

    @functools.cache
    def block(members: tuple[int, ...]) -> Array:
        return np.log(alpha) + special.gammaln(len(members)) + log_block(list(members))

    listed = list(set_partitions(n))
    logs = np.stack([log_w + sum(map(block, blocks)) for blocks in listed])
    p = np.exp(logs - logs.max())
    p /= p.sum()
    k = np.array([len(blocks) for blocks in listed])
    together = np.array([[any(0 in b and j in b for b in blocks) for j in (1, 3)] for blocks in listed])
    return {
        "n_clusters": np.array([p[k == j].sum() for j in range(1, n + 1)]),
        "together": together.T @ p.sum(axis=1),
        "base": np.array([p.sum(axis=0) @ f for f in functions]),
    }
