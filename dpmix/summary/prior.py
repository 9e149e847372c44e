"""The normal-inverse-gamma base measure as the summary needs it: its predictive density and draws from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NormalInverseGamma:
    """The base measure G0: variance ~ InverseGamma(a, scale b), mean | variance ~ N(mu0, variance / lam).

    Everything is in the data's units.

    Parameters
    ----------
    mu0, lam, a, b : float
        Location, prior weight of the location, shape and scale; the last three positive.
    """

    mu0: float
    lam: float
    a: float
    b: float

    @cached_property
    def _student(self) -> Any:
        scale = np.sqrt(self.b * (self.lam + 1.0) / (self.a * self.lam))
        return stats.t(2.0 * self.a, loc=self.mu0, scale=scale)

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density of one record at `y`: Student's t with 2a degrees of freedom.

        It is the mean of the random density under a Dirichlet- or Pitman-Yor-process prior, whatever the
        concentration and the discount.
        """
        return np.asarray(self._student.pdf(y), dtype=np.float64)

    def predictive_quantile(self, level: Floats) -> Floats:
        """Quantiles of the prior predictive at the levels in (0, 1)."""
        return np.asarray(self._student.ppf(level), dtype=np.float64)

    def predictive_second_moment(self) -> float:
        """E[Y^2] of the prior predictive; infinite when a <= 1."""
        if self.a <= 1.0:
            return float("inf")
        return self.mu0**2 + self.b / (self.a - 1.0) * (1.0 + 1.0 / self.lam)

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Draw `size` independent atoms; return their means and variances."""
        variance = self.b / rng.gamma(self.a, size=size)
        mean = self.mu0 + np.sqrt(variance / self.lam) * rng.standard_normal(size)
        return mean, variance
