"""The units of a regression: chains run on variables rescaled to [-1, 1] by public bounds.

Priors so do not depend on the units of the data (methods, section 15); results are given in these. With
centres c and half-widths h of the bounds, x~ = (x - c)/h, a slope is h_y b~/h_x, and the intercept
c_y + h_y b~_0 - sum_j slope_j c_j.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Units"]

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """Centre and half-width of the public bounds of each column, the response's last, shapes (q,)."""

    centre: Floats
    half: Floats

    @classmethod
    def of(cls, bounds: Any) -> Units:
        """Return the units of pairs of bounds, the response's last."""
        low, high = np.array(bounds, dtype=np.float64).T
        half = 0.5 * (high - low)
        return cls(low + half, half)

    def rescaled(self, rows: Floats) -> Floats:
        """Return predictors (.., p) of new rows on the rescaled variables."""
        return np.asarray((rows - self.centre[:-1]) / self.half[:-1])

    def coefficients(self, beta: Floats) -> Floats:
        """Return coefficients (draws, q), the intercept first, in the units of the data."""
        slopes = beta[:, 1:] * (self.half[-1] / self.half[:-1])
        intercept = self.centre[-1] + self.half[-1] * beta[:, 0]
        for j, centre in enumerate(self.centre[:-1]):  # one by one: the same for any number of draws at once
            intercept = intercept - slopes[:, j] * centre
        return np.column_stack([intercept, slopes])

    def response(self, values: Floats) -> Floats:
        """Return responses in the units of the data."""
        return np.asarray(self.centre[-1] + self.half[-1] * values)

    def scale(self, values: Any, power: int = 1) -> Any:
        """Return standard deviations of the response (power 2: variances) in the units of the data."""
        return values * self.half[-1] ** power

    def covariance(self) -> Floats:
        """Return what predictors' covariances (p, p) are multiplied by, in the units of the data."""
        return np.asarray(np.outer(self.half[:-1], self.half[:-1]))
