"""What the laws of releases of a histogram share (methods, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dpmix.mechanisms.laws.law_base import Floats, Law, Observation, OnePair, Says, Whole
from dpmix.numerics.equal_cells import equal_edges

__all__ = ["HistogramLaw"]


class HistogramLaw(Law):
    """A release that depends on the records through their counts in equal bins, in each group if any."""

    bins: Annotated[Whole, Field(ge=1), Says("does not state its bins, a whole number of at least 1")]
    domain: OnePair

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on counts; NaN where draws are released."""
        raise NotImplementedError

    def channel(self, values: Floats, n: int) -> Any:
        """Return the compiled channel of released values (rows,) of n records."""
        raise NotImplementedError

    def draw_from_counts(self, counts: Floats, rng: Generator) -> Floats:
        """Draw what is released of counts (bins,), in floating point: noisy counts, or numbers of draws."""
        raise NotImplementedError

    def covariance(self, shares: Floats, n: int) -> tuple[float, Floats]:
        """Return what the bins' shares are multiplied by in what is released, and its covariance given them.

        Parameters
        ----------
        shares : float64 array (bins,)
            Of the records.
        n : int
            Number of records.
        """
        raise NotImplementedError

    def edges(self) -> Floats:
        """Return the edges of the bins, in the units of the data."""
        return equal_edges(self.domain[0], self.bins)

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return the numbers of the records; see `Law`."""
        column = values[:, 0]
        channel = self.channel(column, n)
        return Observation(np.arange(n, dtype=np.float64), channel, column, ("released",), self.noise_scale)

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Return that it does: records beyond the bounds count as at them."""
        return True
