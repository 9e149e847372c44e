"""Which records a stated subsample has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["subsample_of"]


def subsample_of(n: int, wanted: int) -> NDArray[np.int64]:
    """Return the places of so many of n records, all of them where there are no more.

    The same in all chains and processes: picked once and for all, whatever the seed and the values.
    """
    if wanted >= n:
        return np.arange(n, dtype=np.int64)
    return np.sort(np.random.default_rng(n).choice(n, wanted, replace=False)).astype(np.int64)
