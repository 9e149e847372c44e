"""Small matrices and their factors are those of the library."""

from __future__ import annotations

import numpy as np
import pytest

from dpmix.numerics.factors import (
    cholesky,
    half_log_determinant,
    invert_lower,
    product,
    solve_lower,
    solve_transposed,
)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_small_matrices_are_those_of_the_library(size: int) -> None:
    rng = np.random.default_rng(size)
    left, right = rng.standard_normal((size, size)), rng.standard_normal((size, size))
    assert product(left, right.T) == pytest.approx(left @ right.T, rel=1e-13, abs=1e-14)
    assert product(left[:1], right) == pytest.approx(left[:1] @ right, rel=1e-13, abs=1e-14)
    matrix = product(left, left.T) + np.eye(size)
    root, inverse = np.empty((size, size)), np.empty((size, size))
    assert cholesky(matrix, root)
    invert_lower(root, inverse)
    assert root == pytest.approx(np.linalg.cholesky(matrix), rel=1e-12)
    assert inverse @ root == pytest.approx(np.eye(size), abs=1e-12)
    assert half_log_determinant(root) == pytest.approx(0.5 * np.linalg.slogdet(matrix)[1], rel=1e-12)
    x = rng.standard_normal(size)
    y, z = x.copy(), x.copy()
    squared = solve_lower(root, y)
    assert y == pytest.approx(np.linalg.solve(root, x), rel=1e-12)
    assert squared == pytest.approx(x @ np.linalg.solve(matrix, x), rel=1e-12)
    solve_transposed(root, z)
    assert z == pytest.approx(np.linalg.solve(root.T, x), rel=1e-12)
    assert cholesky(matrix, matrix)  # in its own place
    np.testing.assert_array_equal(matrix, root)


@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]], [[np.nan, 0.0], [0.0, 1.0]]]
)
def test_a_matrix_without_a_factor_is_told(matrix: list[list[float]]) -> None:
    root = np.empty((2, 2))
    assert not cholesky(np.array(matrix), root)
    assert np.isnan(matrix[0][0]) or np.isfinite(root).all()
