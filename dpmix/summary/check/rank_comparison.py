"""How far out an observed release is among its replicates, and of which saved states these are.

The p-values hold whatever the statistic. The observed and R replicated statistics are treated alike: each of
the R + 1 is standardized by mean and standard deviation of the R others, and its distance is the largest
deviation over the entries; the p-value is the rank of the observed distance, (number that are as large) /
(R + 1). Were the observed release one more draw like the replicates, this p-value would be at most t with
probability at most t. It is one that the model was fitted to, so that p is closer to 1 than uniform: small
values mean what they say, large ones little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.equal_cells import spread

if TYPE_CHECKING:
    from dpmix.run.chains_reader import ChainSet

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


# Which saved states


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
