"""What a check asks of a model: replicates of its release, and what of them is compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dpmix.run.chains_reader import ChainSet
from dpmix.summary.density import generator
from dpmix.summary.grids import spread

__all__ = ["Replicator", "Unavailable", "places"]

Floats = NDArray[np.float64]

_STREAM = -1000  # of the generators derived from the chains' seed; one a saved state


class Unavailable(Exception):  # noqa: N818 - not an error: a check that there is not
    """There is no check of this release, or no such group in the chains file; the text says why."""


class Replicator(ABC):
    """A model's releases, drawn anew from saved states.

    A replicate depends on the seed, the chain's id and the number of the state alone.
    """

    chains: ChainSet

    @property
    def size(self) -> int:
        """About how many numbers are drawn for one replicate."""
        return self.chains.n

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
                rng = generator(self.chains, int(self.chains.ids[chain]), _STREAM - state)
                yield chain, state, draw(chain, state, rng)


def places(chains: ChainSet, most: int) -> list[tuple[int, NDArray[np.int64]]]:
    """Return at most `most` saved states of all chains together, evenly spaced in each."""
    count = len(chains.ids)
    return [(chain, spread(chains.draws, max(1, most // count))) for chain in range(count)]
