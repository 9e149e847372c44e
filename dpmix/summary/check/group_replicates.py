"""Replicates of releases of groups whose sizes are private (methods, section 16).

A replicate draws sizes of the groups from their shares, (n_1, .., n_G) ~ Multinomial(N, pi), records of each
group given its own parameters, and then the mechanism of all of them together: noisy sizes and sums of f less
its centre, or noisy counts, or draws, of (group, cell). N is public.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import Law, expect
from dpmix.mechanisms.laws.histogram import HistogramLaw
from dpmix.mechanisms.laws.noise_laws import draw_noise
from dpmix.mechanisms.laws.statistic_laws import SumsOfGroups
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.mechanisms.noisy_counts.law import NoisyCountsLaw
from dpmix.mechanisms.perturbed_histogram.law import PerturbedHistogramLaw
from dpmix.mechanisms.smoothed_histogram.law import SmoothedHistogramLaw
from dpmix.numerics.equal_cells import cell_of
from dpmix.run.chains_reader import NamedChains
from dpmix.summary.check.discrete_replicates import cdf_of, cell_probabilities
from dpmix.summary.check.replicators import Unavailable
from dpmix.summary.check.statistic_check import StatisticReplicator
from dpmix.summary.check.statistic_replicates import (
    ClampedMomentsReplicator,
    LogMomentsReplicator,
    NoisyCountsReplicator,
    draw_log_shares,
    sum_to_one,
)
from dpmix.summary.dated import bins_in_words, dated_of

__all__ = ["grouped_replicator"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SHARE = "group_share"
_BINS = "bin_probability"


class _Grouped(StatisticReplicator):
    """What all of them share: it goes before the class of the same release without groups."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.law.group_names

    def sizes(self, chain: int, state: int, rng: Generator) -> Ints:
        """Draw the sizes of the groups."""
        return rng.multinomial(self.chains.n, sum_to_one(self.values[_SHARE][chain, state]))

    def noisy(self, sizes: Ints, sums: Sequence[Floats], rng: Generator) -> Floats:
        """Return what is released of sizes, and of sums (entries,) of each group less n_g centres."""
        law = expect(self.law, SumsOfGroups)
        of_sizes, of_sums = law.scale
        centre = np.asarray(law.centre, dtype=np.float64)
        whole = np.concatenate([own - size * centre for own, size in zip(sums, sizes.tolist(), strict=True)])
        return np.concatenate(
            [
                sizes[:-1] + draw_noise("laplace", of_sizes, sizes.size - 1, rng),
                whole + draw_noise("laplace", of_sums, whole.size, rng),
            ]
        )

    def named(self, entries: Sequence[str]) -> list[str]:
        """Return the names of sizes, and of the entries of each group."""
        sizes = [f"size of {group}" for group in self.groups[:-1]]
        return sizes + [f"{group}: {entry}" for group in self.groups for entry in entries]


class GroupedCounts(_Grouped, NoisyCountsReplicator):
    """Counts of levels within every pair of group and class: classes are drawn within their group."""

    @property
    def needed(self) -> tuple[str, ...]:
        """What one group needs, and the shares of the groups."""
        return (*super().needed, _SHARE)

    @property
    def names(self) -> list[str]:
        """Group, level of a feature and class, as they are released: by feature, then group."""
        own, found, start = super().names, [], 0
        for count in self.levels:
            part = own[start : start + count * self.classes]
            found += [f"{group}: {entry}" for group in self.groups for entry in part]
            start += len(part)
        return found

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw sizes of groups, of classes within them, levels within these, and the noise."""
        shares = sum_to_one(self.values["p"][chain, state])
        classes = rng.multinomial(self.sizes(chain, state, rng), shares)
        features = [f"p_feature_{k + 1}" for k in range(len(self.levels))]
        parts = [
            rng.multinomial(classes, sum_to_one(self.values[name][chain, state])).ravel() for name in features
        ]
        counts = np.concatenate(parts).astype(np.float64)
        return counts + draw_noise(self.law.noise, self.law.scale[0], counts.size, rng)


class GroupedMomentsReplicator(_Grouped, ClampedMomentsReplicator):
    """Noisy sizes, and sums of products of clamped and rescaled variables of each group."""

    what = "noisy sizes and moments"

    @property
    def needed(self) -> tuple[str, ...]:
        """What one group needs, and the shares of the groups."""
        return (*super().needed, _SHARE)

    @property
    def names(self) -> list[str]:
        """The sizes, and the factors of each moment by group."""
        return self.named(super().names)

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw records of each group, clamp them, and sum their products."""
        sizes = self.sizes(chain, state, rng)
        sums = [self.sums(chain, (state, group), size, rng) for group, size in enumerate(sizes.tolist())]
        return self.noisy(sizes, sums, rng)


class GroupedLogMomentsReplicator(_Grouped, LogMomentsReplicator):
    """Noisy sizes and sums of logarithms of each group; scores of thresholds, of all records together."""

    what = "noisy sizes and sums of logarithms"
    unit = "of a logarithm of 1 in every record"

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.per = float(chains.n)
        if self.scores.size:
            self.what = "noisy sizes, sums of logarithms and scores of thresholds"
            self.unit = "of all records in a size or score, or of a logarithm of 1 in every record"

    @property
    def needed(self) -> tuple[str, ...]:
        """What one group needs, and the shares of the groups."""
        return (*super().needed, _SHARE)

    @property
    def names(self) -> list[str]:
        """The sizes, the components by group, and the thresholds."""
        own = super().names
        return self.named(own[: self.components]) + own[self.components :]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw compositions of each group, censor them, and add noise."""
        floor = math.log(self.law.threshold)
        sizes, sums = self.sizes(chain, state, rng), []
        left = np.zeros(self.scores.size)
        for group, size in enumerate(sizes.tolist()):
            logs = draw_log_shares(self.values["alpha"][chain, state, group], size, rng)
            sums.append(np.maximum(logs, floor).sum(axis=0))
            left += [(logs.min(axis=1) >= math.log(a)).sum() for a in self.thresholds[: left.size]]
        scores = np.diff(left, prepend=0.0)
        if scores.size:
            scores += draw_noise("geometric", 2.0 / self.epsilon_of_scores, scores.size, rng)
        return np.concatenate([self.noisy(sizes, sums, rng), scores])


class GroupedHistogram(_Grouped):
    """Noisy counts, or numbers of draws, of the bins of each group.

    Parameters
    ----------
    chains : NamedChains
        Of mixtures, which hold the probabilities of the bins; or of the discrete model, whose distribution
        function has the edges of the bins among its points.
    """

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.law: HistogramLaw = expect(chains.mechanism, HistogramLaw)
        self.edges = self.law.edges()
        self.of_draws = not self.law.counts_bins
        self.what = "numbers of draws in bins" if self.of_draws else "counts of bins"
        self.unit = "of all draws in a bin" if self.of_draws else "of all records in a bin"
        self.per = float(len(chains.observed) if self.of_draws else chains.n)
        self._date = dated_of(chains).only
        self._cdf = cdf_of(chains) if chains.attrs.get("model") == "discrete" else None

    @property
    def size(self) -> int:
        """Numbers drawn for one replicate."""
        return int(2 * self.edges.size * len(self.groups))

    @property
    def needed(self) -> tuple[str, ...]:
        """What the probabilities of the bins are from, and the shares of the groups."""
        return (_BINS if self._cdf is None else self._cdf.name, _SHARE)

    @property
    def names(self) -> list[str]:
        """Group and bin."""
        bins = bins_in_words(self.edges, date=self._date)
        return [f"{group}: {own}" for group in self.groups for own in bins]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records in all cells, and what is released of them."""
        drawn = self.values[self.needed[0]][chain, state]
        if self._cdf is not None:
            grid = self._cdf.coords[self._cdf.dims[-1]]
            drawn = np.stack([cell_probabilities(grid, own, self.edges) for own in drawn])
        counts = rng.multinomial(self.sizes(chain, state, rng), sum_to_one(drawn))
        return self.law.draw_from_counts(counts.ravel().astype(np.float64), rng)

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """As `replicate`; draws are placed in their bins, beside the code of their group."""
        found = self.replicate(chain, state, rng)
        if not self.of_draws:
            return found
        cells = rng.permutation(np.repeat(np.arange(found.size), found.astype(np.int64)))
        codes, bins = np.divmod(cells, self.edges.size - 1)
        left, right = self.edges[bins], self.edges[bins + 1]
        return np.column_stack([left + rng.random(bins.size) * (right - left), codes])

    def reduce(self, released: Floats) -> Floats:
        """Return the entries of the bins."""
        if not self.of_draws:
            return released.ravel()
        bins = self.edges.size - 1
        cells = cell_of(released[:, 0], self.edges) + bins * released[:, 1].astype(np.int64)
        return np.bincount(cells, minlength=bins * len(self.groups)).astype(np.float64)


_MAKERS: dict[type[Law], Callable[[NamedChains], StatisticReplicator]] = {
    NoisyCountsLaw: GroupedCounts,
    ClampedMomentsLaw: GroupedMomentsReplicator,
    LogMomentsLaw: GroupedLogMomentsReplicator,
    PerturbedHistogramLaw: GroupedHistogram,
    SmoothedHistogramLaw: GroupedHistogram,
}


def grouped_replicator(chains: NamedChains) -> StatisticReplicator:
    """Return what draws replicates of the release of groups that a model was fitted to.

    Raises
    ------
    Unavailable
        Where the release is not replicated.
    """
    model, kind = str(chains.attrs.get("model", "")), chains.mechanism.kind
    made = _MAKERS.get(type(chains.mechanism))
    if made is None or model == "custom":  # which does not say how its release is made
        raise Unavailable(f"releases of groups by {kind} are not replicated for the model {model}")
    return made(chains)
