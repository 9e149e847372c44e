"""Blocks of records with their parameters integrated out: marginal likelihoods of conjugate normal kernels.

A block of n_h values keeps the sums of (z - mu0) and its square, and what its predictive density needs: with
(mu_n, lambda_n, a_n, b_n) of `dpmix.kernels.normal.posterior`, one value more gives
``b' = b_n + lambda_n / (2 (lambda_n + 1)) (z - mu_n)^2``, and the ratio of marginal likelihoods follows from
the constants of (a_n, b_n) and (a_n + 1/2, b'), the truncation of the variance among them (Beraha, Favaro and
Rao 2024, section 3.3).
"""

from __future__ import annotations

import math

import numpy as np

from dpmix._jit import njit
from dpmix.kernels import log_truncation
from dpmix.kernels.normal import posterior

__all__ = [
    "add_value",
    "log_block",
    "log_predictive",
    "new_blocks",
    "ratios_of",
    "refresh",
    "remove_value",
    "reset_block",
]

# rows of the table of blocks
FIRST, SECOND, MU, B, SHAPE, GAIN, HEAD = 0, 1, 2, 3, 4, 5, 6
ROWS = 7
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@njit
def new_blocks(size):
    """Return a table of `size` empty blocks, to be refreshed."""
    return np.zeros((ROWS, size))


@njit
def reset_block(blocks, h):
    """Empty block h."""
    blocks[FIRST, h] = 0.0
    blocks[SECOND, h] = 0.0


@njit
def add_value(kernel, blocks, h, z):
    """Add a value to the sums of block h."""
    gap = z - kernel.mu0
    blocks[FIRST, h] += gap
    blocks[SECOND, h] += gap * gap


@njit
def remove_value(kernel, blocks, h, z):
    """Take a value from the sums of block h."""
    gap = z - kernel.mu0
    blocks[FIRST, h] -= gap
    blocks[SECOND, h] -= gap * gap


@njit
def _log_normaliser(kernel, lam, a, b):
    """Return what a block's marginal likelihood owes to its posterior's constants."""
    return math.lgamma(a) - a * math.log(b) - 0.5 * math.log(lam) + log_truncation(kernel, a, b)


@njit
def ratios_of(kernel, n):
    """Return what the predictive density owes to the number of values in a block alone, for 0..n of them."""
    ratios = np.empty(n + 1)
    for count in range(n + 1):
        a = kernel.a + 0.5 * count
        lam = kernel.lam + count
        ratios[count] = math.lgamma(a + 0.5) - math.lgamma(a) + 0.5 * math.log(lam / (lam + 1.0))
    return ratios - _HALF_LOG_2PI


@njit
def refresh(kernel, blocks, ratios, h, count):
    """Prepare the predictive density of block h, of `count` values, perhaps none."""
    mu, lam, a, b = posterior(kernel, count, blocks[FIRST, h], blocks[SECOND, h], kernel.mu0)
    blocks[MU, h] = mu
    blocks[B, h] = b
    blocks[SHAPE, h] = a + 0.5
    blocks[GAIN, h] = 0.5 * lam / (lam + 1.0)
    blocks[HEAD, h] = ratios[count] + a * math.log(b) - log_truncation(kernel, a, b)


@njit
def log_predictive(kernel, blocks, h, z):
    """Return log p(z | the values of block h), parameters integrated out."""
    gap = z - blocks[MU, h]
    b = blocks[B, h] + blocks[GAIN, h] * gap * gap
    a = blocks[SHAPE, h]
    return blocks[HEAD, h] - a * math.log(b) + log_truncation(kernel, a, b)


@njit
def log_block(kernel, blocks, h, count):
    """Return the log marginal likelihood of the `count` >= 1 values of block h, up to (2 pi)^(-count/2)."""
    _, lam, a, b = posterior(kernel, count, blocks[FIRST, h], blocks[SECOND, h], kernel.mu0)
    prior = _log_normaliser(kernel, kernel.lam, kernel.a, kernel.b)
    return _log_normaliser(kernel, lam, a, b) - prior
