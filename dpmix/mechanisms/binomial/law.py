"""The law of a record's number of successes (methods, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Ints,
    Labels,
    Law,
    Number,
    Observation,
    OnePair,
    Pictured,
    Says,
    Scales,
    Whole,
    each_of,
    first,
    moments_of_records,
)
from dpmix.laws.transitions import (
    MatrixTransition,
    TableLikelihood,
    Transition,
    information_of_outputs,
)
from dpmix.mechanisms.binomial.section import BinomialMechanism

_CELLS = 1_024  # of the public bounds, for likelihoods
_MOST_TRIALS = 2_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


class BinomialLaw(Law):
    """Z ~ Binomial(M, 1/2 + w (y - 1/2)), y the record's place in its domain."""

    capabilities = BinomialMechanism
    clamps = True
    pictured = Pictured(
        "released values, rescaled",
        "the released numbers of successes, each turned into an estimate of its record that is right on "
        "average; these carry the mechanism's noise",
        "rescaled values",
    )
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
        from dpmix.mechanisms.binomial.channel import BinomialNoise

        lo, hi = self.domain[0]
        z = np.ascontiguousarray(values[:, 0])
        return Observation(z, BinomialNoise.make(self.trials, self.weight, lo, hi), z, ("obs",), math.nan)

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Draw numbers of successes; see `Law`."""
        low, high = self.domain[0]
        share = np.clip((latent - low) / (high - low), 0.0, 1.0)
        return rng.binomial(self.trials, 0.5 + self.weight * (share - 0.5)).astype(np.float64)

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`.

        The probability is averaged over a cell by five Gauss-Legendre nodes: p moves by weight over the
        number of cells there, and its logarithm by far less than 1.
        """
        from scipy.special import gammaln, xlog1py, xlogy  # late: laws start without SciPy

        trials, count = self.trials, len(cells) - 1
        y = (np.arange(count)[:, None] + 0.5 * (1.0 + _NODES)) / count
        p = 0.5 + self.weight * (y - 0.5)
        z = chosen.astype(np.float64)[:, None]
        constant = gammaln(trials + 1.0) - gammaln(z + 1.0) - gammaln(trials - z + 1.0)
        found = np.zeros((len(z), count))
        for node, share in enumerate(0.5 * _WEIGHTS):
            at = p[None, :, node]
            found += share * np.exp(constant + xlogy(z, at) + xlog1py(trials - z, -at))
        return MatrixTransition(found)

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        return (
            f"{each_of(n).capitalize()} was released on its own as the number of successes in {self.trials} "
            "trials, whose probability is the record's place in the domain, drawn towards a half (weight "
            f"{self.weight:.4g})."
        )

    def cell_likelihood(self, values: Floats, scale: float) -> TableLikelihood:
        """Return the probabilities at the middles of cells, and at the ends of the bounds; see `Law`."""
        from scipy.special import gammaln  # late: laws start without SciPy

        trials, (low, high) = self.trials, self.domain[0]
        if trials > _MOST_TRIALS:
            raise ValueError(f"there are more than {_MOST_TRIALS:,} trials")
        # what lies beyond the domain counts as at its ends, in cells of their own
        share = np.concatenate([[0.0], (np.arange(_CELLS) + 0.5) / _CELLS, [1.0]])
        p = 0.5 + self.weight * (share - 0.5)
        k = np.arange(trials + 1)[:, None]
        choose = gammaln(trials + 1) - gammaln(k + 1) - gammaln(trials - k + 1)
        table = np.exp(choose + k * np.log(p) + (trials - k) * np.log1p(-p))
        edges = np.linspace(low, high, _CELLS + 1)
        return TableLikelihood(edges, table, np.zeros(len(values)), values.ravel().astype(np.int64))

    def information(self, places: Floats, weights: Floats, shares: Floats, n: int) -> Floats:
        """Return the information of numbers of successes; see `Law`."""
        from scipy.special import gammaln, xlog1py, xlogy  # late: laws start without SciPy

        lo, hi = self.domain[0]
        successes = np.arange(self.outputs)[:, None, None]
        p = 0.5 + self.weight * (np.clip((places - lo) / (hi - lo), 0.0, 1.0) - 0.5)
        logs = (
            gammaln(self.trials + 1)
            - gammaln(successes + 1)
            - gammaln(self.trials - successes + 1)
            + xlogy(successes, p)
            + xlog1py(self.trials - successes, -p)
        )
        return information_of_outputs(np.asarray(np.exp(logs) @ weights), shares, n)

    def places(self, released: Floats, column: int = 0) -> Floats:
        """Return the unbiased estimate lo + width (1/2 + (z/M - 1/2)/w) of each record."""
        low, high = self.domain[0]
        return np.asarray(low + (high - low) * (0.5 + (released / self.trials - 0.5) / self.weight))

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
