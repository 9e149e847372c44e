"""A histogram of all records as what a mixture on counts is fitted to: its bins are the cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.models.counts.cell_counts import CountsWithNoise, SmoothedDraws

__all__ = ["HistogramCounts"]


@dataclass(frozen=True, eq=False)
class HistogramCounts:
    """Numbers of records in all bins, which are latent.

    Parameters
    ----------
    release : NoisyCounts or SmoothedDraws
        Log-likelihoods of the numbers of records in the bins.
    n : int
        Number of records.
    edges : float64 array (B + 1,)
        Of the bins; those at the ends reach to the ends of the kernel's support.
    """

    release: CountsWithNoise | SmoothedDraws
    n: int
    edges: NDArray[np.float64]

    @property
    def inner(self) -> NDArray[np.float64]:
        """Edges between the bins, (B - 1,)."""
        return np.ascontiguousarray(self.edges[1:-1], dtype=np.float64)

    def constants(self) -> dict[str, float]:
        """Return what the chains file says of the cells: a width of 0, for nothing of the release is lost."""
        return {"cells_first": float(self.edges[0]), "cells_last": float(self.edges[-1]), "cells_width": 0.0}
