"""Blocks of records with their parameters integrated out: marginal likelihoods of conjugate normal kernels.

A block of c values keeps the sums of (z - mu0) and its square, and what its predictive density needs: with
lambda_c = lambda + c and mu_c, a_c, b_c likewise, one value more gives ``b' = b_c + lambda_c / (2 (lambda_c +
1)) (z - mu_c)^2``. The marginal likelihood of the block is, up to constants, lambda_c^(-1/2) I_c(b_c) with
``I_c(b) = int v^(-a_c-1) exp(-b / v) dv`` over the support of the variance. So the predictive density is a
ratio of I_(c+1)(b') to I_c(b_c): of two incomplete gamma functions where the variance is truncated (Beraha,
Favaro and Rao 2024, section 3.3). A block that takes or loses a value knows one of the two already.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels import log_factor, log_integral
from dpmix.numerics.jit import inlined, njit

# rows of the table of blocks: sums, mu_c, b_c, lambda_c / (2 (lambda_c + 1)), log I_c(b_c)
FIRST, SECOND, MU, B, GAIN, INTEGRAL = 0, 1, 2, 3, 4, 5
ROWS = 6
RATIO, MASS = 0, 1  # rows of the constants
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


@inlined
def put(kernel, blocks, h, z):
    """Add a value to the sums of block h, to be refreshed."""
    gap = z - kernel.mu0
    blocks[FIRST, h] += gap
    blocks[SECOND, h] += gap * gap


@inlined
def _place(kernel, blocks, h, count):
    """Set the constants of block h, of `count` values, but for its integral."""
    lam = kernel.lam + count
    shift = blocks[FIRST, h] / lam
    blocks[MU, h] = kernel.mu0 + shift
    blocks[B, h] = kernel.b + 0.5 * max(blocks[SECOND, h] - blocks[FIRST, h] * shift, 0.0)
    blocks[GAIN, h] = 0.5 * lam / (lam + 1.0)


@inlined
def refresh(kernel, blocks, h, count):
    """Prepare the predictive density of block h, of `count` values, perhaps none."""
    _place(kernel, blocks, h, count)
    blocks[INTEGRAL, h] = log_integral(kernel, count, blocks[B, h])


@inlined
def give(kernel, blocks, h, count, z, integral):
    """Add a value to block h, which has `count` with it; `integral` is that of `grown_integral`."""
    put(kernel, blocks, h, z)
    _place(kernel, blocks, h, count)
    blocks[INTEGRAL, h] = integral


@inlined
def take(kernel, blocks, h, count, z):
    """Take a value from block h, which has `count` without it; return its `grown_integral` for that value."""
    gap = z - kernel.mu0
    integral = blocks[INTEGRAL, h]
    if count > 0:
        blocks[FIRST, h] -= gap
        blocks[SECOND, h] -= gap * gap
    else:
        reset_block(blocks, h)
    refresh(kernel, blocks, h, count)
    return integral


@njit
def _ratio(kernel, count):
    lam = kernel.lam + count
    ratio = log_factor(kernel, count + 1) - log_factor(kernel, count)
    return ratio + 0.5 * math.log(lam / (lam + 1.0)) - _HALF_LOG_2PI


@njit
def constants_of(kernel, discount, n):
    """Return what depends on the number c = 0..n of values in a block alone, shape (2, n + 1).

    In row RATIO the logarithm of what the predictive density owes to it, in row MASS log(c - discount), 0 for
    c = 0.
    """
    found = np.zeros((2, n + 1))
    for count in range(n + 1):
        found[RATIO, count] = _ratio(kernel, count)
        if count > 0:
            found[MASS, count] = math.log(count - discount)
    return found


@njit
def follow_lambda(kernel, constants):
    """Bring the constants of `constants_of` to the kernel's lambda, where it is learned and has moved."""
    for count in range(constants.shape[1]):
        ratio = _ratio(kernel, count)
        if count == 0 and ratio == constants[RATIO, 0]:
            return
        constants[RATIO, count] = ratio


@inlined
def grown_integral(kernel, blocks, h, count, z):
    """Return log I_(c+1)(b') of block h, of `count` values, with `z` besides.

    With the constant of c and less log I_c(b_c) it is the log predictive density of `z`.
    """
    gap = z - blocks[MU, h]
    return log_integral(kernel, count + 1, blocks[B, h] + blocks[GAIN, h] * gap * gap)


@njit
def log_block(kernel, blocks, h, count):
    """Return the log marginal likelihood of the `count` >= 1 values of block h, up to (2 pi)^(-count/2).

    The block need not be refreshed.
    """
    _place(kernel, blocks, h, count)
    filled = log_integral(kernel, count, blocks[B, h]) + log_factor(kernel, count)
    empty = log_integral(kernel, 0, kernel.b) + log_factor(kernel, 0)
    return filled - empty + 0.5 * math.log(kernel.lam / (kernel.lam + count))
