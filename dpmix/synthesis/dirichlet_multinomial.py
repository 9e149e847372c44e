"""Draws from the posterior predictive of a Dirichlet-multinomial over public cells (methods, section 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln

from dpmix.mechanisms.curators.neighbours import TWICE_EPSILON, Loss
from dpmix.privacy.accounting import Guarantee
from dpmix.release.columns import Cells
from dpmix.synthesis.generator import Floats, Generator, Labels, Randomness
from dpmix.synthesis.records import Records
from dpmix.synthesis.urn import draw_categories, numbers_a_draw
from dpmix.synthesis.urn_guarantee import dm_epsilon


@dataclass(frozen=True, kw_only=True)
class DirichletMultinomial(Generator):
    """Release m sequential draws of cells, cell j with weight n_j + a, a number uniform within its cell.

    It is the Pitman-Yor predictive of discount -a and concentration K a over K categories. The release is
    eps-DP with eps = log(1 + m/a), attained by m releases of a cell that only the replaced record is in.

    Where ranges leave J' of the cells possible, it is the urn given that all draws are possible: that of the
    N records in these cells alone. A record that leaves them changes a probability by the factor of its own
    cell, 1 + m/a at most, times (N - 1 + J' a)/(N - 1 + J' a + m) < 1, or by the inverse of the latter: the
    guarantee is the same (methods, section 5).

    Parameters
    ----------
    cells : Cells
        The K public cells.
    concentration : Fraction
        Prior count a of each cell.
    """

    kind: ClassVar[str] = "dirichlet_multinomial"
    cells: Cells
    concentration: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """Pure epsilon, rounded up."""
        return Guarantee(dm_epsilon(self.concentration, self.records), 0.0, None, "global")

    @property
    def of_any_number(self) -> bool:
        """True; see `Generator`."""
        return True

    @property
    def numbers_a_draw(self) -> int:
        """Urns of large weights take Python's integers; see `Generator`."""
        return numbers_a_draw(self.n + self.records, self.concentration.denominator)

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the urn; see `Generator`."""
        a = float(self.concentration)

        def of_urn(releases: Floats) -> Floats:
            first, second = (gammaln(a + c + releases[:, :2]) - gammaln(a + c) for c in (one, other))
            return np.asarray((first - second).sum(axis=1))

        return of_urn

    def weakened(self) -> tuple[str, Self]:
        """Return it with the prior count of twice the epsilon, log(1 + m/a); see `Generator`."""
        m = self.records
        a = m / ((1 + m / self.concentration) ** 2 - 1)
        return TWICE_EPSILON, replace(self, concentration=Fraction(a).limit_denominator(10**6))

    @property
    def uniform_share(self) -> float | None:
        """Share of the prior counts among all; see `Generator`."""
        prior = float(self.cells.count * self.concentration)
        return prior / (prior + self.n)

    def own(self) -> dict[str, Any]:
        """Return cells and prior count."""
        return self.cells.describe() | {"concentration": float(self.concentration)}

    def figures(self) -> dict[str, Any]:
        """Return numbers of records and cells, and the prior count."""
        return {
            "records": self.records,
            "n": self.n,
            "cells": self.cells.count,
            "concentration": float(self.concentration),
        }

    def in_words(self) -> str:
        """Say what is drawn."""
        return (
            f"{self.records} draws from the posterior predictive of a Dirichlet-multinomial over "
            f"{self.cells.count} cells, prior count {float(self.concentration):.6g} each"
        )

    def draw(self, records: Records, randomness: Randomness) -> tuple[Floats, Labels]:
        """Draw synthetic records; see `Generator`."""
        cells, count = self.cells.of_values(records.values), self.cells.count
        if self.possible is not None:  # an urn of the possible cells alone
            flags = self.possible.flags
            places, numbers = np.flatnonzero(flags), np.cumsum(flags) - 1
            cells, count = numbers[cells[flags[cells]]], len(places)
        drawn = draw_categories(cells, count, self.concentration, self.records, randomness.source)
        if self.possible is not None:
            drawn = places[drawn]
        values = (self.possible or self.cells).draw_within(drawn, randomness.generator())
        return values, tuple(column.categories for column in self.columns)
