"""Small matrices and triangular factors, without the calls of a library, which takes long to load."""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit


@njit
def cholesky(matrix, root):
    """Set `root`, perhaps `matrix` itself, to the lower factor of a symmetric matrix.

    A pivot below 1e-15 times the entry it comes from is raised to that. Return whether none was: whether the
    matrix is positive definite, to rounding.
    """
    size = len(matrix)
    definite = True
    for i in range(size):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            if i == j:
                least = 1e-15 * abs(matrix[i, i]) + 1e-300
                definite = definite and value > least
                root[i, i] = math.sqrt(max(value, least))
            else:
                root[i, j] = value / root[j, j]
        for j in range(i + 1, size):
            root[i, j] = 0.0
    return definite


@njit
def half_log_determinant(root):
    """Return half the log determinant of the matrix with lower factor `root`."""
    total = 0.0
    for i in range(len(root)):
        total += math.log(root[i, i])
    return total


@njit
def solve_lower(root, x):
    """Solve root y = x in place, for a lower triangular `root` at least as large; return |y|^2."""
    total = 0.0
    for i in range(len(x)):
        for k in range(i):
            x[i] -= root[i, k] * x[k]
        x[i] /= root[i, i]
        total += x[i] * x[i]
    return total


@njit
def solve_transposed(root, x):
    """Solve root' y = x in place, for a lower triangular `root` at least as large."""
    for back in range(len(x)):
        i = len(x) - 1 - back
        for k in range(i + 1, len(x)):
            x[i] -= root[k, i] * x[k]
        x[i] /= root[i, i]


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
