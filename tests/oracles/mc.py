"""Monte Carlo standard errors by batch means, and comparison with exact values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def batch_means(values: Array, batches: int = 200) -> tuple[Array, Array]:
    """Mean and Monte Carlo standard error along the first axis, cut into `batches` of equal length."""
    length = len(values) // batches
    if length < 1:
        raise ValueError(f"{len(values)} draws are too few for {batches} batches")
    kept = np.asarray(values, float)[: length * batches]
    means = kept.reshape(batches, length, *kept.shape[1:]).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(batches)


def discrepancies(values: Array, exact: Array, batches: int = 200) -> Array:
    """Gap to the exact value in standard errors; where no draw varies, 0 if equal to 1e-12, else infinite."""
    mean, error = batch_means(values, batches)
    gap = mean - np.asarray(exact, float)
    still = np.where(np.abs(gap) < 1e-12, 0.0, np.inf)
    return np.where(error > 0, gap / np.where(error > 0, error, 1.0), still)
