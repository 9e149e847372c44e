"""What a check asks of a model: replicates of its release, and how far out the observed one is among them.

The p-values hold whatever the statistic. The observed and R replicated statistics are treated alike: each of
the R + 1 is standardized by mean and standard deviation of the R others, and its distance is the largest
deviation over the entries; the p-value is the rank of the observed distance, (number that are as large) /
(R + 1). Were the observed release one more draw like the replicates, this p-value would be at most t with
probability at most t. It is one that the model was fitted to, so that p is closer to 1 than uniform: small
values mean what they say, large ones little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.mechanisms.laws.every import Law, expect
from dpmix.mechanisms.laws.statistic_laws import HistogramLaw
from dpmix.numerics.equal_cells import spread
from dpmix.summary.dated import bins_in_words, dated_of

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored
    from dpmix.run.chains_reader import ChainSet, NamedChains

# The observed release among replicates


Floats = NDArray[np.float64]

LIKELIHOODS = 1_000
"""Draws of all chains together whose log likelihoods are kept."""
LEVEL = 0.95
"""Pointwise probability of the bands of replicates."""
_TINY = 1e-12


@dataclass(frozen=True)
class RankComparison:
    """An observed statistic (K,) beside those of R replicates.

    Parameters
    ----------
    observed, mean, lower, upper : float64 arrays (K,)
        The observed entries; mean and equal-tailed intervals of the replicates.
    sd : float64 array (K,)
        Standard deviations of the replicates.
    tails : float64 array (K,)
        Two-sided tail probability of each observed entry by itself.
    distances : float64 array (R + 1, K)
        Absolute standardized deviations, of the observed statistic first.
    """

    observed: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    sd: Floats
    tails: Floats
    distances: Floats

    def p(self, entries: slice = slice(None)) -> float:
        """Return the p-value of the largest deviation among some entries."""
        largest = self.distances[:, entries].max(axis=1)
        return float((largest >= largest[0]).mean())

    def reach(self, entries: slice = slice(None), level: float = 0.99) -> float:
        """Return the standardized deviation that replicates stay below with this probability."""
        return float(np.quantile(self.distances[1:, entries].max(axis=1), level, method="lower"))


def compare(observed: Floats, replicates: Floats) -> RankComparison:
    """Set an observed statistic (K,) beside those of replicates (R, K), R at least 3."""
    ends = [0.5 * (1.0 - LEVEL), 0.5 * (1.0 + LEVEL)]
    lower, upper = np.quantile(replicates, ends, axis=0)
    everything = np.concatenate([observed[None], replicates])
    return RankComparison(
        observed,
        replicates.mean(axis=0),
        lower,
        upper,
        replicates.std(axis=0, ddof=1),
        two_sided(observed, replicates),
        _distances(everything),
    )


def two_sided(observed: Floats, replicates: Floats) -> Floats:
    """Return twice the smaller share of statistics that lie as far out on one side, at most 1; shape (K,)."""
    below = (replicates <= observed).sum(axis=0)
    above = (replicates >= observed).sum(axis=0)
    return np.asarray(np.minimum(1.0, 2.0 * (1.0 + np.minimum(below, above)) / (len(replicates) + 1.0)))


def _distances(values: Floats) -> Floats:
    """Return how many standard deviations of all others each row is from their mean, entry by entry.

    Entries in which all others agree count 0 where a row does too, and infinity where it does not.
    """
    rows = len(values)
    centred = values - values.mean(axis=0)
    total = (centred**2).sum(axis=0)
    gaps = np.abs(centred) * rows / (rows - 1.0)  # from the mean of the others
    # the others' sum of squares about their own mean
    squares = np.maximum(total - centred**2 * rows / (rows - 1.0), 0.0)
    scale = np.abs(values).max(axis=0)
    # what is left beside one row far out is rounding
    flat = squares <= np.maximum((_TINY * scale) ** 2 * rows, _TINY * total)
    sds = np.sqrt(np.where(flat, 1.0, squares) / (rows - 2.0))
    apart = np.where(gaps > _TINY * np.maximum(scale, 1e-300), np.inf, 0.0)
    return np.asarray(np.where(flat, apart, gaps / sds))


# What draws replicates of a release, and what of them is compared


_STREAM = -1000  # of the generators derived from the chains' seed; one a saved state


class Unavailable(Exception):  # noqa: N818 - not an error: a check that there is not
    """There is no check of this release, or no such group in the chains file; the text says why."""


class Replicator(ABC):
    """A model's releases, drawn anew from saved states.

    A replicate depends on the seed, the chain's id and the number of the state alone.

    Attributes
    ----------
    chains : ChainSet
    size : int
        About how many numbers are drawn for one replicate.
    """

    chains: ChainSet
    size: int

    @abstractmethod
    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Read what is needed of these saved states, (place of the chain, numbers of states) each."""

    @abstractmethod
    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return a release drawn from a state: in the layout of the file's, or what `reduce` makes of one."""

    def whole(self, chain: int, state: int, rng: Generator) -> Floats:
        """Return a release in the layout of the file's `observed_data`."""
        return self.replicate(chain, state, rng)

    def reduce(self, released: Floats) -> Floats:
        """Return what is compared of a release in the layout of the file's."""
        return released

    def draws(
        self, wanted: Sequence[tuple[int, NDArray[np.int64]]], *, whole: bool = False
    ) -> Iterator[tuple[int, int, Floats]]:
        """Yield place of the chain, number of the state and replicate, for all wanted states in order."""
        draw = self.whole if whole else self.replicate
        for chain, states in wanted:
            for state in states.tolist():
                rng = self.chains.generator(int(self.chains.ids[chain]), _STREAM - state)
                yield chain, state, draw(chain, state, rng)


class StatisticReplicator(Replicator):
    """Replicates of the release that a parametric model was fitted to.

    Attributes
    ----------
    what : str
        What the entries are.
    unit, per : str, float
        Unit in which a misfit is told, and what it is divided by.
    blind : str
        What the entries cannot show, whatever the noise.
    needed : tuple of str
        Names of the parameters that a replicate depends on.
    values : dict of str to float64 array (chains, draws, ..)
        Their draws, once `prepare` has read them.
    """

    chains: NamedChains
    what = "entries"
    unit = "of an entry"
    blind = ""
    needed: tuple[str, ...]

    def __init__(self, chains: NamedChains) -> None:
        self.chains, self.per = chains, float(chains.n)
        self.law: Law = chains.mechanism
        self.values: dict[str, Floats] = {}

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of what `reduce` returns."""

    def prepare(self, wanted: Sequence[tuple[int, NDArray[np.int64]]]) -> None:
        """Read the parameters."""
        self.values = {name: self.chains.read(stored_of(self.chains, name)) for name in self.needed}

    def reduce(self, released: Floats) -> Floats:
        """Return the entries."""
        return released.ravel()


class OfBins:
    """What the entries of a release of a histogram are: counts of its bins, or numbers of draws in them."""

    law: Law
    edges: Floats
    of_draws: bool
    what: str
    unit: str
    per: float
    blind = ""

    def tell_bins(self, chains: ChainSet) -> None:
        """Take the bins from the law of a histogram."""
        self.law = expect(chains.mechanism, HistogramLaw)
        self.edges, self.of_draws = self.law.edges(), not self.law.counts_bins
        self.what = "numbers of draws in bins" if self.of_draws else "counts of bins"
        self.unit = "of all draws in a bin" if self.of_draws else "of all records in a bin"
        self.per = float(len(chains.observed) if self.of_draws else chains.n)
        self.bins = bins_in_words(self.edges, date=dated_of(chains).only)

    @property
    def names(self) -> list[str]:
        """The bins."""
        return self.bins


def stored_of(chains: NamedChains, name: str) -> Stored:
    """Return a parameter by name.

    Raises
    ------
    Unavailable
        Where the chains do not hold it.
    """
    for parameter in chains.parameters:
        if parameter.name == name:
            return parameter
    raise Unavailable(f"the chains do not hold {name}")


def has(chains: NamedChains, name: str) -> bool:
    """Say whether the chains hold a parameter."""
    return any(parameter.name == name for parameter in chains.parameters)


def places(chains: ChainSet, most: int, of: int | None = None) -> list[tuple[int, NDArray[np.int64]]]:
    """Return at most `most` saved states of all chains together, evenly spaced in each.

    Parameters
    ----------
    chains : ChainSet
    most : int
    of : int, optional
        The number of chains that share them, where it is not that of these.
    """
    count = len(chains.ids)
    return [(chain, spread(chains.draws, max(1, most // (of or count)))) for chain in range(count)]


def shared(states: int, chains: int) -> NDArray[np.int64]:
    """Return which of the kept states of each chain are looked at.

    Earlier versions kept as many of one chain in a file of its own as of several in one.
    """
    return spread(states, max(1, LIKELIHOODS // chains))
