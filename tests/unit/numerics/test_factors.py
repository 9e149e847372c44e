"""Small matrices and their factors are those of the library."""

from __future__ import annotations

import numpy as np
import pytest

from dpmix.numerics.factors import cholesky, invert_lower, product


@pytest.mark.parametrize("size", [1, 2, 5])
def test_small_matrices_are_those_of_the_library(size: int) -> None:
    rng = np.random.default_rng(size)
    left, right = rng.standard_normal((size, size)), rng.standard_normal((size, size))
    assert product(left, right.T) == pytest.approx(left @ right.T, rel=1e-13, abs=1e-14)
    assert product(left[:1], right) == pytest.approx(left[:1] @ right, rel=1e-13, abs=1e-14)
    matrix = product(left, left.T) + np.eye(size)
    root, inverse = np.empty((size, size)), np.empty((size, size))
    cholesky(matrix, root)
    invert_lower(root, inverse)
    assert root == pytest.approx(np.linalg.cholesky(matrix), rel=1e-12)
    assert inverse @ root == pytest.approx(np.eye(size), abs=1e-12)
