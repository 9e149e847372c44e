"""What the summary asks of a kernel with its base measure G0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from dpmix.kernels.layout import Floats

__all__ = ["Family", "Floats"]


class Family(Protocol):
    """A kernel on the line with its base measure; everything is in the data's units.

    Atoms are arrays of shape (parameters, size), whose rows are the family's own.
    """

    def atoms(self, parameters: Mapping[str, Floats]) -> Floats:
        """Return atoms from components as chains files hold them, each array of shape (size,)."""

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Draw `size` independent atoms from G0."""

    def densities(self, weights: Floats, atoms: Floats, y: Floats) -> Floats:
        """Return each atom's weight times its kernel's density at each y, shape (size, y.size)."""

    def moments(self, atoms: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the variance of a record under each atom, shapes (size,)."""

    def sample(self, atoms: Floats, rng: np.random.Generator) -> Floats:
        """Draw one record from each atom's kernel, shape (size,)."""

    def predictive(self, y: Floats) -> Floats:
        """Prior predictive density of one record: the integral of the kernel's density over G0.

        It is the mean of the random density under a Dirichlet- or Pitman-Yor-process prior, whatever the
        concentration and the discount.
        """

    def cdf(self, atoms: Floats, y: Floats, *, upper: bool = False) -> Floats:
        """Return Pr(Y <= y) under each atom at its own y, or Pr(Y > y) with its digits; shapes (size,)."""

    def quantile_bounds(self, atoms: Floats, level: float) -> tuple[Floats, Floats]:
        """Return values between which each atom's quantile lies, shapes (size,); equal where it is known."""

    def predictive_cdf(self, y: Floats) -> Floats:
        """Pr(Y <= y) of one record under the prior predictive, to about 1e-3 of the smaller tail."""

    def predictive_moments(self) -> tuple[float, float]:
        """Return E[Y] and E[Y^2] of the prior predictive; the second may be infinite."""

    def nodes(self) -> Floats:
        """Return increasing points dense where the prior predictive has mass, and far into both tails."""

    def inside(self, grid: Floats) -> Floats:
        """Return the points where densities are reported for the grid that was asked for."""

    def for_distance(self) -> Family:
        """Return the family in the coordinate in which distances are integrated numerically."""
