"""The law of a record's Haar coefficients with Laplace noise (methods, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from dpmix.mechanisms.laws.law_base import (
    EstimatedMoments,
    Floats,
    Labels,
    Law,
    Observation,
    OnePair,
    OneScale,
    Says,
    Whole,
    counted,
    moments_of_cells,
    moments_of_records,
    of_scale,
)
from dpmix.mechanisms.wavelet.section import WaveletMechanism
from dpmix.numerics.equal_cells import equal_edges

__all__ = ["LAW", "MOST_LEVELS", "WaveletLaw"]

MOST_LEVELS = 24


class WaveletLaw(Law):
    """2^(J+1) - 1 Haar coefficients of a record, in (j, k) order, each with Laplace noise of scale s."""

    capabilities = WaveletMechanism
    levels: Annotated[Whole, Field(ge=0), Says("does not state its levels, a whole number of at least 0")]
    domain: OnePair
    scale: OneScale
    column: str = "value"

    @field_validator("levels")
    @classmethod
    def _not_too_many(cls, value: int) -> int:
        if value > MOST_LEVELS:
            raise ValueError(f"states more than {MOST_LEVELS} levels")
        return value

    @property
    def cells(self) -> int:
        """Number of the finest cells."""
        return int(2 ** (self.levels + 1))

    def edges(self) -> Floats:
        """Return the edges of the finest cells, in the units of the data."""
        return equal_edges(self.domain[0], self.cells)

    def width(self, columns: int) -> int:
        """Return the number of coefficients."""
        return self.cells - 1

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say whether there are other coefficients than the levels give."""
        if values.shape[1] == self.width(1):
            return None
        return (
            f"has {counted(values.shape[1], 'column')}, but a wavelet release of levels {self.levels} has "
            f"{self.width(1)}: one for each coefficient (j, k)"
        )

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return the numbers of rows of coefficients; see `Law`."""
        from dpmix.mechanisms.channels.all_channels import wavelet_cells

        lo, hi = self.domain[0]
        channel = wavelet_cells(values, lo, hi, self.scale[0])
        return Observation(
            np.arange(len(values), dtype=np.float64), channel, values, ("obs", "column"), self.scale[0]
        )

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Return that it does: records beyond the bounds count as at them."""
        return True

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        return (
            f"Each of {n} records was released on its own as its Haar wavelet coefficients up to level "
            f"{self.levels}, with Laplace noise{of_scale(self.scale)} added to each of them."
        )

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments by y and y^2, averaged over the finest cells, as sums of Haar coefficients."""
        first, second = moments_of_cells(self.cells)

        def estimate(f: Floats) -> Floats:
            total = np.full(len(values), float(np.mean(f)))
            place = 0
            for j in range(self.levels + 1):
                halves = f.reshape(2**j, 2, -1).sum(axis=2)
                loadings = 2.0 ** (0.5 * j) * (halves[:, 0] - halves[:, 1]) / self.cells
                total += values[:, place : place + 2**j] @ loadings
                place += 2**j
            return total

        lo, hi = self.domain[0] if pair is None else pair
        return moments_of_records(estimate(first), estimate(second)).moved(lo, hi - lo)


LAW = WaveletLaw
