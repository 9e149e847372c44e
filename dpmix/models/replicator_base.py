"""What draws replicates of a release: records given a draw of the parameters, then the mechanism.

Of groups whose sizes are private (methods, section 16) a replicate draws sizes of the groups from their
shares, (n_1, .., n_G) ~ Multinomial(N, pi), records of each group given its own parameters, and then the
mechanism of all of them together: noisy sizes and sums of f less its centre, or noisy counts, or draws, of
(group, cell). N is public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.columns.dated import bins_in_words
from dpmix.laws.additive import draw_noise
from dpmix.laws.every import Law, expect
from dpmix.laws.statistic_laws import HistogramLaw, SumsOfGroups
from dpmix.models.meaning_base import dated_of, stored_of, sum_to_one
from dpmix.numerics.equal_cells import cell_of

if TYPE_CHECKING:
    from dpmix.run.chains_reader import ChainSet, NamedChains

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STREAM = -1000  # of the generators derived from the chains' seed; one a saved state


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


# Replicates of releases of groups


_SHARE = "group_share"


class ReplicatesOfGroups(StatisticReplicator):
    """What all of them share: it goes before the class of the same release without groups."""

    def prepare(self, wanted: Sequence[tuple[int, Ints]]) -> None:
        """Read what one group needs, and the shares of the groups."""
        super().prepare(wanted)
        self.values[_SHARE] = self.chains.read(stored_of(self.chains, _SHARE))

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


class GroupedHistogram(ReplicatesOfGroups, OfBins):
    """Noisy counts, or numbers of draws, of the bins of each group."""

    law: HistogramLaw

    def __init__(self, chains: NamedChains) -> None:
        super().__init__(chains)
        self.tell_bins(chains)
        self.size = int(2 * self.edges.size * len(self.groups))

    @abstractmethod
    def shares(self, chain: int, state: int) -> Floats:
        """Return the probabilities of the bins (groups, bins) under a state."""

    @property
    def names(self) -> list[str]:
        """Group and bin."""
        return [f"{group}: {own}" for group in self.groups for own in self.bins]

    def replicate(self, chain: int, state: int, rng: Generator) -> Floats:
        """Draw counts of records in all cells, and what is released of them."""
        drawn = self.shares(chain, state)
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
