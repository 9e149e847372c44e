"""Values that no confidential record has: draws of a public base measure, or of a public grid.

They are drawn without looking at the data, so that their randomness carries no guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.release.columns import Column, Grid
from dpmix.spec.synthesis_section import BaseSpec, BetaOnBounds, HistogramBase

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NewValues:
    """The distribution of new values of one column.

    Parameters
    ----------
    column : Column
        Numeric, of public categories, or of free labels.
    base : BaseSpec or None
        Of a numeric column.
    grid : Grid or None
        Where new numbers are moved to.
    """

    column: Column
    base: BaseSpec | None = None
    grid: Grid | None = None

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw new values: numbers, or codes of public categories (uniformly).

        Returns
        -------
        ndarray of float64, shape (count,)
            Of free labels 0, 1, ..: a fresh label each.
        """
        if self.column.categories is not None:
            return rng.integers(len(self.column.categories), size=count).astype(np.float64)
        if self.column.bounds is None:
            return np.arange(count, dtype=np.float64)
        low, high = self.column.bounds
        if isinstance(self.base, HistogramBase):
            edges, weights = np.array(self.base.edges), np.array(self.base.weights)
            piece = rng.choice(len(weights), count, p=weights / weights.sum())
            drawn = edges[piece] + rng.random(count) * (edges[piece + 1] - edges[piece])
        else:
            if isinstance(self.base, BetaOnBounds):
                places = rng.beta(self.base.a, self.base.b, count)
            else:
                places = rng.random(count)
            drawn = low + places * (high - low)
        drawn = np.clip(drawn, low, high)
        return drawn if self.grid is None else self.grid.nearest(drawn)

    def describe_base(self) -> dict[str, Any] | None:
        """Return the base measure for JSON, None of labels."""
        if self.column.bounds is None:
            return None
        return {"kind": "uniform"} if self.base is None else self.base.model_dump(mode="json")
