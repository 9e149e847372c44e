"""The law of a record's number of successes (methods, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dpmix.mechanisms.binomial.section import BinomialMechanism
from dpmix.mechanisms.laws.law_base import (
    EstimatedMoments,
    Floats,
    Ints,
    Labels,
    Law,
    Number,
    Observation,
    OnePair,
    Says,
    Scales,
    Whole,
    first,
    moments_of_records,
)
from dpmix.mechanisms.laws.transitions import MatrixTransition, Transition, binomial_matrix

__all__ = ["LAW", "BinomialLaw"]


class BinomialLaw(Law):
    """Z ~ Binomial(M, 1/2 + w (y - 1/2)), y the record's place in its domain."""

    capabilities = BinomialMechanism
    trials: Annotated[Whole, Field(ge=1), Says("does not state its trials, a whole number of at least 1")]
    weight: Annotated[Number, Field(gt=0, lt=1), Says("does not state its weight, between 0 and 1")]
    domain: OnePair
    scale: Scales

    @property
    def outputs(self) -> int:
        """The numbers of successes: 0 .. trials."""
        return self.trials + 1

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value is no number of successes."""
        if values.shape[1] != 1:
            return f"has {values.shape[1]} columns, but a binomial release has one"
        column = values[:, 0]
        bad = (column != np.floor(column)) | (column < 0) | (column > self.trials)
        return first(bad, f"is no whole number from 0 to the {self.trials} trials", "record")

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return numbers of successes; see `Law`."""
        from dpmix.mechanisms.channels.all_channels import BinomialNoise

        lo, hi = self.domain[0]
        z = np.ascontiguousarray(values[:, 0])
        return Observation(z, BinomialNoise.make(self.trials, self.weight, lo, hi), z, ("obs",), math.nan)

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Return that it does: records beyond the bounds count as at them."""
        return True

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Draw numbers of successes; see `Law`."""
        low, high = self.domain[0]
        share = np.clip((latent - low) / (high - low), 0.0, 1.0)
        return rng.binomial(self.trials, 0.5 + self.weight * (share - 0.5)).astype(np.float64)

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`."""
        return MatrixTransition(binomial_matrix(self.trials, self.weight, len(cells) - 1, chosen))

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        return (
            f"Each of {n} records was released on its own as the number of successes in {self.trials} trials,"
            " whose probability is the record's place in the domain, drawn towards a half (weight "
            f"{self.weight:.4g})."
        )

    def estimates(self, successes: Floats) -> Floats:
        """Return the unbiased estimate lo + width (1/2 + (z/M - 1/2)/w) of each record."""
        low, high = self.domain[0]
        return np.asarray(low + (high - low) * (0.5 + (successes / self.trials - 0.5) / self.weight))

    @property
    def step(self) -> float:
        """Distance between the estimates that a release can have."""
        low, high = self.domain[0]
        return (high - low) / (self.trials * self.weight)

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments given that E Z (Z - 1)/(M (M - 1)) = p^2, p = 1/2 + w (y - 1/2)."""
        if self.trials < 2:
            return None
        successes, weight = values[:, 0], self.weight
        p = successes / self.trials
        square = successes * (successes - 1.0) / (self.trials * (self.trials - 1.0))
        least = 0.5 * (1.0 - weight)
        found = moments_of_records((p - least) / weight, (square - 2.0 * least * p + least**2) / weight**2)
        lo, hi = self.domain[0] if pair is None else pair
        return found.moved(lo, hi - lo)


LAW = BinomialLaw
