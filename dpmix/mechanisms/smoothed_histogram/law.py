"""The law of draws from a smoothed histogram (methods, section 3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.random import Generator
from pydantic import Field

from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Labels,
    Number,
    Pictured,
    Says,
    Scales,
    Whole,
    first,
    moments_of_records,
)
from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism
from dpmix.numerics.equal_cells import cell_of
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.channels.count_likelihoods import SmoothedDraws


class SmoothedHistogramLaw(HistogramLaw):
    """Draws, uniform on the domain with probability w, else from the histogram of the records."""

    capabilities = SmoothedHistogramMechanism
    pictured = Pictured(
        "released draws",
        "the released draws, which are from a smoothed histogram of the records",
        "released draws",
    )
    draws: Annotated[Whole, Field(ge=1), Says("does not state its draws, a whole number of at least 1")]
    weight: Annotated[Number, Field(gt=0, le=1), Says("does not state its weight, between 0 and 1")]
    scale: Scales

    @property
    def labels(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return the names of groups, whose codes stand beside the draws."""
        return (None, self.group_names) if self.groups else ()

    @property
    def noise_scale(self) -> float:
        """NaN: nothing is added."""
        return math.nan

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value is no draw."""
        rows, columns = values.shape
        groups = self.group_names
        if groups:
            if columns != 2:
                return (
                    f"has {counted(columns, 'column')}, but draws of groups have two, place and code of group"
                )
            codes = values[:, 1]
            bad = (codes != np.floor(codes)) | (codes < 0) | (codes >= len(groups))
            problem = first(bad, f"is no code of {len(groups)} groups", "draw")
            if problem is not None:
                return problem
        elif columns != 1:
            return f"has {columns} columns, but a {self.kind} release has one"
        if rows != self.draws:
            return f"has {counted(rows, 'draw')}, but mechanism.draws is {self.draws}"
        low, high = self.domain[0]
        column = values[:, 0]
        return first((column < low) | (column > high), f"lies outside [{low:g}, {high:g}]", "draw")

    def likelihood(self, values: Floats, n: int) -> SmoothedDraws:
        """Return the log-likelihoods of counts; see `HistogramLaw`."""
        from dpmix.mechanisms.channels.count_likelihoods import SmoothedDraws, released

        bins, groups = self.bins, max(1, len(self.group_names))
        cells = cell_of(values[:, 0], self.cell_edges())
        if self.groups:
            cells = values[:, 1].astype(np.int64) * bins + cells
        slope = (1.0 - self.weight) * groups * bins / n
        return SmoothedDraws(released(cells, groups * bins), slope, self.weight)

    def channel(self, values: Floats, n: int) -> Any:
        """Return the channel of draws."""
        from dpmix.mechanisms.channels.histograms import histogram_bins

        return histogram_bins(self.likelihood(values, n), n, self.edges())

    def draw_from_counts(self, counts: Floats, rng: Generator) -> Floats:
        """Draw numbers of draws in the bins."""
        shares = (1.0 - self.weight) * counts / counts.sum() + self.weight / counts.size
        return rng.multinomial(self.draws, shares / shares.sum()).astype(np.float64)

    def covariance(self, shares: Floats, n: int) -> tuple[float, Floats]:
        """Return gain and covariance; see `HistogramLaw`."""
        gain = 1.0 - self.weight
        drawn = gain * shares + self.weight / len(shares)
        return gain, (np.diag(drawn) - np.outer(drawn, drawn)) / self.draws

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        drawn = f"{counted(self.draws, 'draw')} from the histogram of {counted(n, 'record')}"
        verb = "was" if self.draws == 1 else "were"
        mixed = f"mixed with the uniform density (weight {self.weight:.4g}), {verb} released for all of them"
        by, private = self.by_groups
        each = " in each group" if by else ""
        return f"{drawn}{by} over {counted(self.bins, 'bin')}{each}, {mixed} together{private}."

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments, the uniform draws taken off."""
        low, high = self.domain[0] if pair is None else pair
        draws = (values[:, 0] - low) / (high - low)
        if self.weight >= 1.0:
            return EstimatedMoments(0.5, 0.0, float("inf")).moved(low, high - low)
        rest = 1.0 - self.weight
        found = moments_of_records((draws - 0.5 * self.weight) / rest, (draws**2 - self.weight / 3.0) / rest)
        return found.moved(low, high - low)


LAW = SmoothedHistogramLaw
