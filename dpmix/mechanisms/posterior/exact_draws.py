"""Exact draws of a posterior from integer weights, listed or not.

Random integers are uniform below bounds of any size, from the source's bytes, and are compared with sums and
products of integers. Nothing is rounded between the weights and the draw.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.posteriors import weight_loops
from dpmix.posteriors.hellinger_law import LISTED, ExponentialMechanism, states
from dpmix.privacy.exact import Source, below

__all__ = ["Listed", "Shells", "sampler"]

_BLOCK = 4096
_WORD = 40
_STEP = 0.25
_MOST = 2.0**61  # units; the tables leave distances below 2^60


def sampler(law: ExponentialMechanism, counts: Sequence[int]) -> Listed | Shells:
    """Return what draws the counts of a posterior given the true counts; their number decides how."""
    of = law.posteriors
    return Listed(law, counts) if of.dimension == 2 or of.size <= LISTED else Shells(law, counts)


class Listed:
    """All weights, and a draw by their cumulative sums, in integers.

    Parameters
    ----------
    law : ExponentialMechanism
        Of two categories, or few posteriors.
    counts : sequence of int
        True counts.
    """

    def __init__(self, law: ExponentialMechanism, counts: Sequence[int]) -> None:
        self.law = law
        self.weights = law.weights(counts)
        sums = exact_sums(self.weights)
        self.ends = list(itertools.accumulate(sums))

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return self.ends[-1]

    def draw(self, source: Source) -> tuple[int, ...]:
        """Return counts drawn with probability weight over total."""
        place = below(self.total, source)
        block = bisect.bisect_right(self.ends, place)
        place -= self.ends[block - 1] if block else 0
        start = block * _BLOCK
        ends = itertools.accumulate(map(int, self.weights[start : start + _BLOCK].tolist()))
        found = start + next(i for i, end in enumerate(ends) if place < end)
        of = self.law.posteriors
        if of.dimension == 2:
            return found, of.n - found
        return tuple(states(of.n, of.dimension)[found].tolist())


def exact_sums(weights: NDArray[np.float64]) -> list[int]:
    """Return the sums of blocks of 4096 integers, held as doubles of any size, exactly."""
    found = [0] * -(-len(weights) // _BLOCK)
    rest, power = weights, 0
    starts = np.arange(0, len(weights), _BLOCK)
    while rest.any():  # by words of 40 bits, of which 4096 have a sum of 52
        high = np.floor(np.ldexp(rest, -_WORD))
        low = (rest - np.ldexp(high, _WORD)).astype(np.int64)
        for block, part in enumerate(np.add.reduceat(low, starts)):
            found[block] += int(part) << power
        rest, power = high, power + _WORD
    return found


class Shells:
    """Draws among more posteriors than can be listed, by rejection from nested boxes around the truth.

    Box j holds the r of which d - 1 counts (all but that with the largest true count) are each in an interval
    that has all r_i with h_i(c_i, r_i) <= t_j. As no h_i is negative, the distance outside of it is more than
    that of t_j, and the weight at most m_{j+1}, the weight at t_j; m_0 = 2^bits bounds all. So m_j on box j
    without box j - 1, and the last m on all posteriors that are in no box, is an envelope of the weights. It
    is a sum of uniform layers, box j with height m_j - m_{j+1} and all posteriors with the last m: a layer is
    drawn by its volume, a point of it uniformly, and kept with probability weight/m of its shell, all in
    integers. What is kept has exactly the probabilities of the weights, whatever the boxes are.

    Parameters
    ----------
    law : ExponentialMechanism
        Of at least two categories.
    counts : sequence of int
        True counts.
    """

    def __init__(self, law: ExponentialMechanism, counts: Sequence[int]) -> None:
        of = law.posteriors
        self.law = law
        self.apart = of.apart(counts)
        self.rate = law.rate(counts)
        self.last = int(np.argmax(counts))
        self.free = [i for i in range(of.dimension) if i != self.last]
        limits = self._limits()
        self.lows, self.highs = self._boxes(counts, limits)
        tops = [int(law.top)]
        for limit in limits:
            above = math.floor(self.weight(limit) * (1 + 2.0**-30)) + 1  # whatever rounding does to the order
            tops.append(min(tops[-1], above))
        self.tops = tops
        volumes = [math.prod((self.highs[:, j] - self.lows[:, j] + 1).tolist()) for j in range(len(limits))]
        heights = [high - low for high, low in itertools.pairwise(tops)]
        masses = [v * h for v, h in zip(volumes, heights, strict=True)]
        self.ends = list(itertools.accumulate([*masses, of.size * tops[-1]]))

    def weight(self, apart: int) -> float:
        """Return the integer weight at a distance in units of the tables."""
        found: float = weight_loops.weight(apart, self.law.posteriors.unit, self.rate, self.law.top)
        return found

    def _limits(self) -> list[int]:
        """Return t_0 < t_1 < ..: weights fall by a quarter in the exponent each, until they hardly fall."""
        unit, found = self.law.posteriors.unit, []
        for j in itertools.count(1):
            reach = j * _STEP / self.rate
            if reach >= 1 or (j - 1) * _STEP > (self.law.bits + 1) * math.log(2):
                break
            found.append(int(min(-math.log1p(-reach * reach) / unit, _MOST)))
        return found

    def _boxes(self, counts: Sequence[int], limits: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and last r_i of each free category (row) in each box (column)."""
        lows = np.empty((len(self.free), len(limits)), dtype=np.int64)
        highs = np.empty_like(lows)
        for row, i in enumerate(self.free):
            own, c = self.apart[i], counts[i]
            left = np.minimum.accumulate(own[: c + 1])[::-1]  # the least from 0 to c - k: falls towards c
            right = np.minimum.accumulate(own[c:][::-1])[::-1]  # the least from c + k to n
            lows[row] = c + 1 - np.searchsorted(left, limits, side="right")
            highs[row] = c - 1 + np.searchsorted(right, limits, side="right")
        return lows, highs

    def draw(self, source: Source) -> tuple[int, ...]:
        """Return counts drawn with probability proportional to their weight.

        Raises
        ------
        PrivacyError
            Never, unless the bound on the weights is wrong.
        """
        while True:
            found = self._propose(source)
            if found is None:
                continue
            own = int(self.weight(sum(int(self.apart[i, r]) for i, r in enumerate(found))))
            bound = self.tops[self._shell(found)]
            if own > bound:
                raise PrivacyError("the bound on the weights of posteriors does not hold")
            if below(bound, source) < own:
                return found

    def _propose(self, source: Source) -> tuple[int, ...] | None:
        """Draw a point of the layers, or None where its last count would be below 0."""
        of = self.law.posteriors
        layer = bisect.bisect_right(self.ends, below(self.ends[-1], source))
        if layer == len(self.ends) - 1:
            return _any(of.n, of.dimension, source)
        found = [0] * of.dimension
        for row, i in enumerate(self.free):
            low, high = int(self.lows[row, layer]), int(self.highs[row, layer])
            found[i] = low + below(high - low + 1, source)
        found[self.last] = of.n - sum(found)
        return tuple(found) if found[self.last] >= 0 else None

    def _shell(self, found: tuple[int, ...]) -> int:
        """Return the first box that holds all free counts; the number of boxes where none does."""
        shell = 0
        for row, i in enumerate(self.free):
            shell = max(shell, int(np.searchsorted(-self.lows[row], -found[i])))
            shell = max(shell, int(np.searchsorted(self.highs[row], found[i])))
        return shell


def _any(n: int, dimension: int, source: Source) -> tuple[int, ...]:
    """Draw counts uniformly among all: d - 1 different places of n + d - 1 are bars, the others records."""
    while True:
        bars = sorted(below(n + dimension - 1, source) for _ in range(dimension - 1))
        if all(one < other for one, other in itertools.pairwise(bars)):
            ends = [-1, *bars, n + dimension - 1]
            return tuple(right - left - 1 for left, right in itertools.pairwise(ends))
