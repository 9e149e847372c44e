"""Draws from perturbed and smoothed histograms of one or several columns (methods, sections 3 and 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.laws.additive import noise_name
from dpmix.mechanisms.curators.mechanism import (
    HALF_NOISE,
    TWICE_EPSILON,
    Floats,
    Loss,
    NoisyCells,
    Seeded,
    smoothing_of_twice_epsilon,
)
from dpmix.mechanisms.smoothed_histogram.curator import draw_cells, smoothed_guarantee
from dpmix.privacy.exact import Source, bernoulli, generator_from, integers, source_of
from dpmix.privacy.noise import noisy
from dpmix.spec.capabilities import counted
from dpmix.synthesis.generator import Generator, Labels

if TYPE_CHECKING:
    from dpmix.columns.cells import Cells, Ints
    from dpmix.mechanisms.perturbed_histogram.curator import PerturbedHistogram
    from dpmix.privacy.accounting import Guarantee
    from dpmix.synthesis.records import Records


@dataclass(frozen=True, kw_only=True)
class _Histogram(Generator):
    """What both kinds share.

    Parameters
    ----------
    cells : Cells
        The bins.
    noise : PerturbedHistogram or None
        The mechanism of the counts; None where these carry no noise.
    """

    cells: Cells
    noise: PerturbedHistogram | None

    @property
    def of_any_number(self) -> bool:
        """Whether noise on the counts is what protects; see `Sanitizer`."""
        return self.noise is not None

    @property
    def noisy_cells(self) -> NoisyCells | None:
        """The bins and their noise, where they carry any; see `Sanitizer`."""
        return None if self.noise is None else self.noise.noisy_cells

    @property
    def noise_share(self) -> float | None:
        """Share of what is kept of the noise of cells, were all but a few empty; see `Sanitizer`.

        Clipping keeps the positive half of an empty cell's noise, E max(X, 0) = E |X|/2 on average. That is
        s/sqrt(8) of Laplace noise of standard deviation s, s/sqrt(2 pi) of Gaussian noise, and of geometric
        noise less than of Laplace noise.
        """
        if self.noisy_cells is None or self.noise is None:
            return None
        cells, sd = self.noisy_cells
        cells = cells if self.possible is None else int(np.count_nonzero(self.possible.flags))
        half = sd / math.sqrt(2.0 * math.pi if self.noise.noise == "gaussian" else 8.0)
        return cells * half / (self.n + cells * half)

    def of_records(self, n: int) -> Self:
        """Return it for another number of confidential records; see `Sanitizer`."""
        noise = None if self.noise is None else replace(self.noise, n=n)
        return self if self.n == n else replace(self, n=n, noise=noise)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise on its counts; see `Sanitizer`."""
        assert self.noise is not None  # else its own kind says what is weaker
        return HALF_NOISE, replace(self, noise=replace(self.noise, s=self.noise.s / 2))

    def figures(self, **own: Any) -> dict[str, Any]:
        """Return numbers of records and bins, what a kind has of its `own`, and the noise."""
        noise = {} if self.noise is None else self.noise.figures()
        found = {"records": self.records, "n": self.n, "cells": self.cells.count, **own}
        return found | {key: value for key, value in noise.items() if key not in ("bins", "n")}

    @property
    def _drawn(self) -> str:
        draws, bins = counted(self.records, "draw"), counted(self.cells.count, "bin")
        return f"{draws} from a histogram of {bins}"

    def _within(self, chosen: Ints, rng: np.random.Generator) -> tuple[Floats, Labels]:
        labels = tuple(column.categories for column in self.columns)
        drawn = (self.possible or self.cells).draw_within(chosen, rng)
        return drawn, labels

    def _of_possible(self, weights: Floats) -> Floats:
        """Take the weights of impossible cells away; equal ones where nothing is left."""
        if self.possible is None:
            return weights
        kept = np.where(self.possible.flags, weights, 0.0)
        return kept if kept.any() else self.possible.flags.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class PerturbedSynthesis(_Histogram):
    """Release m draws from a histogram whose counts carry noise, clipped at 0 and normalised.

    The noisy counts carry the whole guarantee, whatever m is: all else is post-processing. Where every
    clipped count is zero the draws are uniform.

    Parameters
    ----------
    noise : PerturbedHistogram
        The mechanism of the counts.
    """

    kind: ClassVar[str] = "perturbed_histogram"
    noise: PerturbedHistogram

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the noisy counts."""
        return self.noise.guarantee

    def own(self) -> dict[str, Any]:
        """Return bins and noise."""
        return {
            **self.cells.describe(),
            "noise": self.noise.noise,
            "scale": [self.noise.s],
        }

    def drawn_in_words(self) -> str:
        """Say what is drawn."""
        return f"{self._drawn} whose counts carry {noise_name(self.noise.noise)} of scale {self.noise.s:.6g}"

    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records; see `Generator`."""
        shares = noisy_shares(self.noise, self.cells.counts(records.values), rng)
        free = generator_from(source_of(rng))
        return self._within(_choose(self._of_possible(shares), self.records, free), free)


@dataclass(frozen=True, kw_only=True)
class SmoothedSynthesis(_Histogram):
    """Release m draws from a histogram mixed with the uniform density.

    Without noise on the counts the weight w alone is what protects: eps = m log(1 + (1 - w) J/(w n)) for J
    bins, drawn exactly. Under (eps, delta) the counts carry Gaussian noise, and with it the whole guarantee.

    Parameters
    ----------
    weight : float
        Probability w of a uniform draw.
    noise : PerturbedHistogram or None
        The mechanism of the counts.
    """

    kind: ClassVar[str] = "smoothed_histogram"
    weight: float
    noise: PerturbedHistogram | None = None

    @property
    def uniform_share(self) -> float | None:
        """The weight, where nothing else protects; see `Sanitizer`."""
        return self.weight if self.noise is None else None

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the noisy counts, or of the weight."""
        if self.noise is not None:
            return self.noise.guarantee
        possible = None if self.possible is None else int(np.count_nonzero(self.possible.flags))
        return smoothed_guarantee(self.cells.count, self.records, self.n, self.weight, possible)

    def loss_of_counts(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of draws from counts without noise; see `Generator`."""
        if self.noise is not None:
            return None
        floor = self.weight / self.cells.count
        first, second = (np.log((1 - self.weight) * c / self.n + floor) for c in (one, other))
        return lambda releases: releases[:, :2] @ (first - second)

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with half the noise, or less smoothing; see `Sanitizer`."""
        if self.noise is not None:
            return super().weakened()
        weight = smoothing_of_twice_epsilon(self.cells.count, self.n, self.weight)
        return None if weight is None else (TWICE_EPSILON, replace(self, weight=weight))

    def own(self) -> dict[str, Any]:
        """Return bins, weight and noise."""
        return {
            **self.cells.describe(),
            "weight": self.weight,
            "noise": None if self.noise is None else self.noise.noise,
            "scale": [] if self.noise is None else [self.noise.s],
        }

    def figures(self, **own: Any) -> dict[str, Any]:
        """Return the weight besides."""
        return super().figures(weight=self.weight, **own)

    def drawn_in_words(self) -> str:
        """Say what is drawn."""
        counts = (
            "" if self.noise is None else f" whose counts carry Gaussian noise of scale {self.noise.s:.6g}"
        )
        return f"{self._drawn}{counts}, smoothed with weight {self.weight:.6g}"

    def draw(self, records: Records, rng: Seeded) -> tuple[Floats, Labels]:
        """Draw synthetic records; see `Generator`."""
        if self.noise is None:
            cells = self.cells.of_values(records.values)
            if self.possible is None:
                chosen = draw_cells(cells, self.cells.count, self.weight, self.records, source_of(rng))
            else:
                flags = self.possible.flags
                chosen = draw_possible_cells(cells, flags, self.weight, self.records, source_of(rng))
            return self._within(chosen, generator_from(source_of(rng)))
        shares = noisy_shares(self.noise, self.cells.counts(records.values), rng)
        free = generator_from(source_of(rng))
        smooth = (1 - self.weight) * shares + self.weight / self.cells.count
        return self._within(_choose(self._of_possible(smooth), self.records, free), free)


def draw_possible_cells(
    cells: Ints, possible: NDArray[np.bool_], weight: float, draws: int, source: Source
) -> Ints:
    """Draw bins from a smoothed histogram given that they are `possible` (J,), exactly; see `draw_cells`.

    Of J bins J' are possible, and N of the n records lie in them: a draw is uniform with probability (w
    J'/J)/(w J'/J + (1 - w) N/n), else a record's. With b = w n/((1 - w) J) bin v has the probability (n_v +
    b)/(N + J' b), and a replaced record changes it by a factor of 1 + 1/b at most, as without ranges: where
    both bins of the record are possible by (n_v + b)/(n_v - 1 + b), where it leaves the possible ones by that
    times (N - 1 + J' b)/(N + J' b) < 1, or by the inverse of the latter, which is at most 1 + 1/(J' b)
    (methods, section 5). Rho is more than without ranges: see `smoothed_guarantee`.
    """
    places = np.flatnonzero(possible)
    inside = cells[possible[cells]]
    top, bottom = weight.as_integer_ratio()
    uniform = top * len(places) * len(cells)
    ratio = (uniform, uniform + (bottom - top) * len(inside) * len(possible))
    of_records = inside[integers(len(inside), draws, source)] if len(inside) else np.zeros(draws, np.int64)
    chosen = bernoulli(ratio, draws, source) if ratio[0] < ratio[1] else np.ones(draws, dtype=np.bool_)
    return np.where(chosen, places[integers(len(places), draws, source)], of_records)


def noisy_shares(noise: PerturbedHistogram, counts: Ints, rng: Seeded) -> Floats:
    """Return the shares (bins,) by noisy counts, clipped at 0; equal ones where all are clipped."""
    clipped = np.maximum(noisy(noise.source, counts, rng), 0.0)
    total = clipped.sum()
    return np.full(len(clipped), 1 / len(clipped)) if total == 0 else clipped / total


def _choose(shares: Floats, draws: int, rng: np.random.Generator) -> Ints:
    """Draw bins with these probabilities, in random order."""
    edges = np.cumsum(shares)
    places = np.searchsorted(edges, rng.random(draws) * edges[-1], side="right")
    last = np.nonzero(shares)[0][-1]
    return np.asarray(np.minimum(places, last), dtype=np.int64)
