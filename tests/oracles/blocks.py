"""Integrals over theta for blocks of records, the one ingredient of the enumeration of partitions.

Given a partition the blocks are independent, and a block's marginal likelihood is the integral of prod_i
g(z_i | theta) over the base measure. `block_table` does it by the kernel's own quadrature rule. Normal: the
trapezoidal rule in t = log var and x = (mu - mu0) sqrt(lam / var): there the prior is a Gumbel times a normal
and every g(z_i | .) is analytic with one scale, sqrt(lam), whatever var is, so that the rule converges
geometrically. Beta: the same in (log a, log b). `truncated_table` knows the truncated base measure in closed
form, up to one dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tests.oracles import kernels
from tests.oracles.marginals import Channel, log_g

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Integrals for every block of n records, the first index being the bit mask of a block.

    Mask 0 is the empty block: the prior. ``log_m`` log marginal likelihood; ``f1``, ``f2`` (mask, point)
    posterior means of the kernel's `function` at each `y` and of its square; ``loglik`` posterior mean of
    sum_i log g(z_i | theta) over the block; ``theta`` (mask, S) posterior means of the kernel's `summaries`.
    """

    kernel: Any
    y: Array
    n: int
    log_m: Array
    f1: Array
    f2: Array
    loglik: Array
    theta: Array


def all_blocks(n: int) -> list[list[int]]:
    """Members of every block of n records, in the order of their bit masks."""
    return [[i for i in range(n) if mask >> i & 1] for mask in range(1 << n)]


def tabulate(kernel: Any, y: Array, records: Array, theta: Array, log_prior: Array, blocks: Any) -> Table:
    """Sum over the nodes for each block; `records` (n, G) are the log densities of the records there."""
    function = np.stack([kernel.function(yj, theta) for yj in y])
    columns = np.concatenate([function, function**2, kernel.summaries(theta)])
    m = len(y)
    rows = []
    for members in blocks:
        log_lik = records[members].sum(axis=0)
        log_w = log_lik + log_prior
        top = log_w.max()
        w = np.exp(log_w - top)
        total = w.sum()
        w /= total
        rows.append((top + np.log(total), columns @ w, w @ np.where(w > 0, log_lik, 0.0)))
    means = np.array([row[1] for row in rows])
    return Table(
        kernel,
        y,
        len(records),
        log_m=np.array([row[0] for row in rows]),
        f1=means[:, :m],
        f2=means[:, m : 2 * m],
        loglik=np.array([row[2] for row in rows]),
        theta=means[:, 2 * m :],
    )


def block_table(
    z: Array,
    channel: Channel,
    base: tuple[float, ...],
    y: Array,
    resolution: float = 1.0,
    blocks: list[list[int]] | None = None,
    kernel: str = "normal",
) -> Table:
    """Integrals for every block of the records `z`.

    `blocks` asks for these blocks alone instead, in this order: for more records than can be enumerated.
    """
    law = kernels.kernel(kernel, base)
    z, y = np.asarray(z, float), np.asarray(y, float)
    theta, log_prior = law.nodes(len(z), resolution)
    records = log_g(law, channel, z, theta)
    return tabulate(law, y, records, theta, log_prior, blocks or all_blocks(len(z)))


def truncated_table(z: Array, base: tuple[float, ...], y: Array, resolution: float = 1.0) -> Table:
    """The blocks of the truncated NIG base measure: z_i ~ N(mu, tau2), tau2 >= floor, in closed form.

    Given tau2, mu is normal and so is everything that is asked for; tau2 - floor is integrated over by the
    trapezoidal rule in its logarithm.
    """
    mu0, lam, a, b, floor = base
    z, y = np.asarray(z, float), np.asarray(y, float)
    law = kernels.kernel("truncated", base)
    t = np.arange(np.log(floor) - 60.0, np.log(b + floor) + 42.0 / a, 0.05 / resolution)
    variance = np.exp(t)
    tau2 = floor + variance
    rows = []
    for members in all_blocks(len(z)):
        block = z[members]
        n, mean = len(block), block.mean() if members else mu0
        a_n, lam_n = a + n / 2, lam + n
        scatter = np.sum((block - mean) ** 2)
        b_n = b + 0.5 * scatter + 0.5 * lam * n / lam_n * (mean - mu0) ** 2
        mu_n = (lam * mu0 + n * mean) / lam_n
        log_w = t - (a_n + 1) * np.log(tau2) - b_n / tau2
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        spread = np.sqrt(variance + tau2 / lam_n)
        h = (y[:, None] - mu_n) / spread
        # E F(y)^2 = Pr(two Y given theta are below y), bivariate normal with the correlation of a shared mean
        share = tau2 / lam_n / (variance + tau2 / lam_n)
        both = special.ndtr(h) - 2 * special.owens_t(h, np.sqrt((1 - share) / (1 + share)))
        squares = scatter + n * ((mean - mu_n) ** 2 + tau2 / lam_n)
        log_lik = -0.5 * squares / tau2 - 0.5 * n * np.log(2 * np.pi * tau2)
        log_m = kernels.log_marginal_truncated(base, block) if members else 0.0
        rows.append((log_m, special.ndtr(h) @ w, both @ w, log_lik @ w, [mu_n, t @ w]))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Table(law, y, len(z), *columns)
