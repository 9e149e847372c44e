"""Small matrices and triangular factors, without the calls of a library, which takes long to load."""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit

__all__ = ["cholesky", "invert_lower", "product"]


@njit
def cholesky(matrix, root):
    """Set `root` to the lower factor of a symmetric matrix; entries below its size times 1e-15 are raised."""
    size = len(matrix)
    for i in range(size):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            if i == j:
                root[i, i] = math.sqrt(max(value, 1e-15 * abs(matrix[i, i]) + 1e-300))
            else:
                root[i, j] = value / root[j, j]
        for j in range(i + 1, size):
            root[i, j] = 0.0


@njit
def invert_lower(root, inverse):
    """Set `inverse` to that of a lower triangular matrix."""
    size = len(root)
    inverse[:] = 0.0
    for i in range(size):
        for j in range(i):
            value = 0.0
            for k in range(j, i):
                value -= root[i, k] * inverse[k, j]
            inverse[i, j] = value / root[i, i]
        inverse[i, i] = 1.0 / root[i, i]


@njit
def product(left, right):
    """Return the product of two matrices."""
    rows, size = left.shape
    found = np.zeros((rows, right.shape[1]))
    for i in range(rows):
        for k in range(size):
            for j in range(right.shape[1]):
                found[i, j] += left[i, k] * right[k, j]
    return found
