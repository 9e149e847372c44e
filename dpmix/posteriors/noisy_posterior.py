"""What becomes of noisy counts: the nearest that a posterior can have, and how far that posterior is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["distances", "nearest_counts", "settled", "settled_rows"]

Floats = NDArray[np.float64]


def settled(noisy: Floats, n: int) -> Floats:
    """Return counts of at least 0 that sum to n, shape (d,), from what carries noise.

    Parameters
    ----------
    noisy : ndarray, shape (1,) or (d,)
        The first of two counts, clipped to [0, n]; or all of three or more, see `nearest_counts`.
    n : int
        Number of records.
    """
    found: Floats = settled_rows(noisy[None], n)[0]
    return found


def settled_rows(noisy: Floats, n: int) -> Floats:
    """Return the same row by row: (k, 1) or (k, d) to (k, d)."""
    if noisy.shape[1] == 1:
        first = np.clip(noisy, 0.0, float(n))
        return np.hstack([first, n - first])
    return nearest_counts(noisy, n)


def nearest_counts(noisy: Floats, n: int) -> Floats:
    """Return the nearest point with entries of at least 0 that sum to n: all less a number, cut at 0.

    Parameters
    ----------
    noisy : ndarray, shape (..., d)
    n : int
    """
    falling = np.sort(noisy, axis=-1)[..., ::-1]
    shifts = (np.cumsum(falling, axis=-1) - n) / np.arange(1, noisy.shape[-1] + 1)
    last = noisy.shape[-1] - 1 - np.argmax((falling > shifts)[..., ::-1], axis=-1, keepdims=True)
    found: Floats = np.maximum(noisy - np.take_along_axis(shifts, last, axis=-1), 0.0)
    return found


def distances(a: Floats, b: Floats) -> Floats:
    """Return the Hellinger distances of Dirichlet laws, row by row, (k, d) each."""
    from scipy.special import gammaln  # late: a release by noise starts without

    def log_beta(x: Floats) -> Floats:
        found: Floats = gammaln(x).sum(axis=1) - gammaln(x.sum(axis=1))
        return found

    log_affinity = log_beta(0.5 * (a + b)) - 0.5 * (log_beta(a) + log_beta(b))
    found: Floats = np.sqrt(-np.expm1(np.minimum(log_affinity, 0.0)))
    return found
