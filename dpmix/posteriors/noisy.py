"""What becomes of noisy counts: the nearest counts that a posterior can have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_counts", "settled"]

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
    if noisy.size == 1:
        first = min(max(float(noisy[0]), 0.0), float(n))
        return np.array([first, n - first])
    return nearest_counts(noisy, n)


def nearest_counts(noisy: Floats, n: int) -> Floats:
    """Return the nearest point with entries of at least 0 that sum to n: all less a number, cut at 0.

    Parameters
    ----------
    noisy : ndarray, shape (d,)
    n : int
    """
    falling = np.sort(noisy)[::-1]
    shifts = (np.cumsum(falling) - n) / np.arange(1, noisy.size + 1)
    shift = shifts[np.nonzero(falling > shifts)[0][-1]]
    found: Floats = np.maximum(noisy - shift, 0.0)
    return found
