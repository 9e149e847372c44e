"""The law of the noisy counts of a histogram (methods, section 3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.random import Generator

from dpmix.laws.additive import NOISES, WHOLE, draw_noise, noise_added, noise_variance
from dpmix.laws.cell_laws import HistogramLaw
from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Labels,
    OneScale,
    Pictured,
    Says,
    first,
    moments_of_cells,
    whole_where_all_are,
)
from dpmix.mechanisms.perturbed_histogram.section import Noise, PerturbedHistogramMechanism
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.channels.count_likelihoods import CountsWithNoise


class PerturbedHistogramLaw(HistogramLaw):
    """Counts of the records in equal bins, of each group where there are groups, plus noise of scale s."""

    capabilities = PerturbedHistogramMechanism
    pictured = Pictured("released counts, noise included", "the released counts, with their noise")
    noise: Annotated[Noise, Says(f"does not state its noise, one of {', '.join(NOISES)}")]
    scale: OneScale

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on each count."""
        return self.scale[0]

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say which value is no count, or that there are others than the bins."""
        rows, columns = values.shape
        groups = self.group_names
        if columns != 1:
            return f"has {columns} columns, but a {self.kind} release has one"
        if rows != self.bins * max(1, len(groups)):
            each = f" in each of {len(groups)} groups" if groups else ""
            return f"has {counted(rows, 'noisy count')}, but mechanism.bins is {self.bins}{each}"
        if self.noise in WHOLE:
            column = values[:, 0]
            as_given = f"is no whole number, as {self.noise.replace('_', ' ')} noise gives"
            return first(column != np.floor(column), as_given, "bin")
        return None

    def warning(self, values: Floats, n: int) -> str | None:
        """Say that counts exceed the number of records, as noise, a wrong n and wrong bins make them."""
        above = int((values > n).sum())
        if not above:
            return None
        return (
            f"{above} of {counted(len(values), 'noisy count')} "
            f"{'is' if above == 1 else 'are'} above n = {n}: legal with noise, but check n and the bins"
        )

    def likelihood(self, values: Floats, n: int) -> CountsWithNoise:
        """Return the log-likelihoods of counts; see `HistogramLaw`."""
        from dpmix.mechanisms.channels.count_likelihoods import NOISES, CountsWithNoise

        return CountsWithNoise(np.ascontiguousarray(values[:, 0]), NOISES[self.noise], self.noise_scale)

    def channel(self, values: Floats, n: int) -> Any:
        """Return the channel of noisy counts."""
        from dpmix.mechanisms.channels.histograms import histogram_bins

        return histogram_bins(self.likelihood(values, n), n, self.edges())

    def tabulated(self, values: Floats) -> dict[str, Any]:
        """Return counts by group and bin; see `Law`."""
        edges, groups = self.cell_edges(), self.group_names or (None,)
        found: dict[str, Any] = {}
        if self.groups:
            found[next(iter(self.groups))] = [name for name in self.group_names for _ in range(self.bins)]
        ends = {"lower": np.tile(edges[:-1], len(groups)), "upper": np.tile(edges[1:], len(groups))}
        return {**found, **ends, "count": whole_where_all_are(values)}

    def draw_from_counts(self, counts: Floats, rng: Generator) -> Floats:
        """Draw noisy counts."""
        return counts + draw_noise(self.noise, self.noise_scale, counts.size, rng)

    def covariance(self, shares: Floats, n: int) -> tuple[float, Floats]:
        """Return gain and covariance; see `HistogramLaw`."""
        return 1.0, noise_variance(self.noise, self.scale[0]) / n**2 * np.eye(len(shares))

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        by, private = self.by_groups
        return (
            f"{noise_added(self.noise, self.scale)} the counts of {counted(n, 'record')}{by} in "
            f"{counted(self.bins, 'bin')}, which were released for all of them together{private}."
        )

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return the moments of the shares of bins, noise taken off the square."""
        first_power, second_power = moments_of_cells(len(values))
        shares = values[:, 0] / n
        mean = float(first_power @ shares)
        variance = float(second_power @ shares) - mean**2
        loadings = second_power - 2.0 * mean * first_power
        kurtosis = max(float((first_power - mean) ** 4 @ shares) - variance**2, 0.0)
        noise = noise_variance(self.noise, self.scale[0])
        error = math.sqrt(kurtosis / n + noise * float(loadings @ loadings) / n**2)
        # the square of a noisy mean is too large by the variance of that noise
        found = EstimatedMoments(mean, variance + noise * float(first_power @ first_power) / n**2, error)
        low, high = self.domain[0] if pair is None else pair
        return found.moved(low, high - low)


LAW = PerturbedHistogramLaw
