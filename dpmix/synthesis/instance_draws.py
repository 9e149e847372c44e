"""Draws of releases behind the figures of `instance`, and the closed forms that bound them.

The ratios and the notation are those of `instance`. Confidential throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpmix.numerics.jit import njit
from dpmix.privacy.exact import digits, expm1

__all__ = ["InstanceUrn", "Simulation", "beta_binomial_tail", "fill_new", "upper_bounds"]

# The loops of `instance`: sums over a beta-binomial, numbers of new values, and pairs of counts


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit
def beta_binomial_tail(
    m: int, r: float, rest: float, start: int, half: float, bar: float
) -> tuple[float, float]:
    """Sum probabilities of a beta-binomial M over M >= start, plain and times 1 - bar/(half + M).

    M counts m draws from an urn with weight r >= 1 for one value and `rest` > 0 for all others, each draw
    adding one. Terms follow from one another by their ratios, from the mode outwards, and are divided by
    their sum, so that nothing cancels. They are left out where all that follow are below 1e-17 of the sums.

    Returns
    -------
    tail : float
        P(M >= start).
    weighted : float
        E((1 - bar/(half + M))_+; M >= start).
    """
    # p(i + 1) - p(i) has the sign of m r - m + 1 - rest + i (2 - r - rest), which is linear in i
    slope = r + rest - 2.0
    at_zero = m * (r - 1.0) + 1.0 - rest
    if slope <= 0.0:
        mode = m if at_zero >= 0.0 else 0
    else:
        mode = int(min(max(math.ceil(at_zero / slope), 0.0), float(m)))
    total, tail, weighted = 1.0, 0.0, 0.0
    if mode >= start:
        tail, weighted = 1.0, max(0.0, 1.0 - bar / (half + mode))
    term, i = 1.0, mode
    while i < m and term > 0.0:
        term *= (m - i) * (r + i) / ((i + 1.0) * (m - i - 1.0 + rest))
        i += 1
        total += term
        if i >= start:
            tail += term
            weighted += term * max(0.0, 1.0 - bar / (half + i))
            if weighted > 0.0 and term * (m - i) <= 1e-17 * weighted:
                break
    term, i = 1.0, mode
    while i > 0 and term * i > 1e-17 * total:
        term *= i * (m - i + rest) / ((m - i + 1.0) * (r + i - 1.0))
        i -= 1
        total += term
        if i >= start:
            tail += term
            weighted += term * max(0.0, 1.0 - bar / (half + i))
    return tail / total, weighted / total


@njit
def fill_new(
    rng: np.random.Generator, discount: float, concentration: float, sizes: Ints, found: Ints
) -> None:
    """Draw, for each size, the number of blocks of a Pitman-Yor partition of so many records.

    Where a new block is rare the next one is looked for at once: its probability only falls until then, so
    that a geometric gap under the present one is accepted with the ratio of the two.
    """
    for r in range(len(sizes)):
        size = sizes[r]
        blocks = 0
        i = 0
        while i < size:
            chance = (concentration + blocks * discount) / (concentration + i)
            if chance > 0.2:
                if rng.random() < chance:
                    blocks += 1
            else:
                gap = math.floor(math.log(1.0 - rng.random()) / math.log1p(-chance))
                if gap >= size - i:
                    break
                i += int(gap)
                there = (concentration + blocks * discount) / (concentration + i)
                if rng.random() * chance < there:
                    blocks += 1
            i += 1
        found[r] = blocks


@njit
def tally_pairs(raised: Floats, lowered: Floats, count: Floats, total: Floats) -> None:
    """Add to `count` and `total`, shape (A, B), draws where raised/lowered exceeds 1, and 1 - lowered/raised.

    Parameters
    ----------
    raised : ndarray, shape (R, A)
        Factor of the likelihood ratio that the replaced value brings.
    lowered : ndarray, shape (R, B)
        e^epsilon over the factor that the value in its place brings.
    """
    for r in range(raised.shape[0]):
        for a in range(raised.shape[1]):
            inverse = 1.0 / raised[r, a]
            for b in range(lowered.shape[1]):
                excess = 1.0 - lowered[r, b] * inverse
                more = excess > 1e-12  # equal, but for rounding, is not more
                count[a, b] += more
                total[a, b] += excess if more else 0.0


# Draws of releases behind the figures of `instance`, and the closed forms that bound them


_CHUNK = 500


class InstanceUrn:
    """The database by classes of values with equal counts, and what has a closed form.

    Parameters
    ----------
    sizes, numbers : ndarray of int, shape (C,)
        Counts, increasing, and how many values have them.
    d, theta : float
        Discount and concentration.
    m : int
        Draws.
    epsilon : float
        Privacy loss.
    """

    def __init__(self, sizes: Ints, numbers: Ints, d: float, theta: float, m: int, epsilon: float) -> None:
        self.sizes, self.numbers = sizes, numbers
        self.d, self.theta, self.m, self.epsilon = d, theta, m, epsilon
        self.n, self.k = int(sizes @ numbers), int(numbers.sum())
        self.ratio = math.exp(min(epsilon, 700.0))
        with localcontext(digits()):
            self._growth = expm1(Decimal(min(epsilon, 700.0))) if epsilon > 0 else Decimal(0)
        self.single = bool(sizes[0] == 1)

    def singular(self) -> float:
        """Probability S that a value of one record is released."""
        if self.d == 0:
            return self.m / (self.theta + self.n + self.m - 1)
        kept = 0.0
        for start in range(0, self.m, 1 << 20):
            i = np.arange(start, min(self.m, start + (1 << 20)))
            kept += float(np.log1p(-(1 - self.d) / (self.theta + self.n + i)).sum())
        return -math.expm1(kept)

    def replaced(self, size: int) -> tuple[float, float]:
        """P(L > e^eps) and E(1 - e^eps/L)_+ for L = (size-1-d+m_a)/(size-1-d), size >= 2.

        These are the deltas of a value of so many records that is replaced, if its own copies alone told; no
        other factor of L exceeds 1, so that they are upper bounds, attained at d = 0.
        """
        half = size - 1 - self.d
        with localcontext(digits()):  # no rounding may move the threshold
            start = math.floor((size - 1 - Decimal(self.d)) * self._growth) + 1
        if start > self.m:
            return 0.0, 0.0
        tail, weighted = beta_binomial_tail(
            self.m, size - self.d, self.theta + self.n - size + self.d, start, half, self.ratio * half
        )
        return float(tail), float(weighted)


@dataclass
class _Tally:
    """Draws of which the ratio exceeds e^eps, and sums of (1 - e^eps/L)_+, per pair of classes."""

    count: Floats
    total: Floats

    @classmethod
    def empty(cls, *shape: int) -> _Tally:
        return cls(np.zeros(shape), np.zeros(shape))

    def add(self, raised: NDArray[Any], lowered: NDArray[Any]) -> None:
        """Add draws: factors of replaced values (R, A), and e^eps over the other factors (R, B)."""
        raised, lowered = (np.ascontiguousarray(x, dtype=np.float64) for x in (raised, lowered))
        tally_pairs(raised, lowered, self.count, self.total)


class Simulation:
    """Releases in the cases that have no closed form, d > 0, as `_Tally`s.

    ``pairs`` and ``fresh``: a value of a class in `kept` is replaced by an old, or a new, value; ``single``:
    the only record of a value, unreleased, by an old value; ``back``: in the other direction, from a
    neighbour with a new value, unreleased, in place of a record of a class in `several`.
    """

    def __init__(self, urn: InstanceUrn, kept: Ints) -> None:
        self.urn, self.kept = urn, kept
        self.several = np.flatnonzero(urn.sizes > 1)
        # another value than the replaced one: of the same class, if there are two in it
        self.has_other = urn.numbers > 1
        classes = len(urn.sizes)
        self.pairs, self.fresh = _Tally.empty(len(kept), classes), _Tally.empty(len(kept), 1)
        self.twins = _Tally.empty(len(kept), 1)
        self.single = _Tally.empty(1, classes)
        self.back = _Tally.empty(1, len(self.several))
        self.single_cases = (
            np.flatnonzero((urn.sizes > 1) | self.has_other) if urn.single else np.zeros(0, dtype=np.int64)
        )

    @property
    def comparisons(self) -> int:
        """Number of pairs of classes in both directions that an estimate is made of."""
        same = int(self.has_other[self.kept].sum()) - len(self.kept)
        return self.pairs.count.size + same + len(self.kept) + len(self.single_cases) + len(self.several)

    def cost(self) -> float:
        """Rough nanoseconds of one draw."""
        u = self.urn
        prior = u.m * (u.theta + u.d * u.k) / (u.theta + u.n)
        return 1.5 * self.pairs.count.size + 400.0 * 4 * len(u.sizes) + 30.0 * prior + 1000.0

    def run(self, rng: np.random.Generator, draws: int) -> None:
        """Simulate."""
        for start in range(0, draws, _CHUNK):
            size = min(_CHUNK, draws - start)
            if len(self.kept):
                self._replace_several(rng, size)
            if len(self.single_cases):
                self._replace_single(rng, size)
            if len(self.several):
                self._bring_back(rng, size)

    def _replace_several(self, rng: np.random.Generator, size: int) -> None:
        u = self.urn
        left, new = self._prior_part(rng, size, u.theta + u.d * u.k, u.n, u.k)
        ones, twos = np.zeros((size, len(u.sizes))), np.zeros((size, len(u.sizes)))
        n, k = u.n, u.k
        for j, (count, number) in enumerate(zip(u.sizes.tolist(), u.numbers.tolist(), strict=True)):
            for copies in (ones, twos)[: min(number, 2)]:
                n, k = n - count, k - 1
                share = rng.beta(count - u.d, n - k * u.d, size) if k else 1.0
                drawn = rng.binomial(left, share)
                left = left - drawn
                copies[:, j] = drawn
        raised = 1 + ones[:, self.kept] / ((u.sizes[self.kept] - 1) - u.d)
        lowered, twin = (u.ratio * (1 + copies / (u.sizes - u.d)) for copies in (ones, twos))
        self.pairs.add(raised, lowered)
        for row, j in enumerate(self.kept):
            here = _Tally(self.twins.count[row : row + 1], self.twins.total[row : row + 1])
            here.add(raised[:, row : row + 1], twin[:, j : j + 1])
        self.fresh.add(raised, u.ratio * (1 + u.d * new / (u.theta + u.d * u.k))[:, None])

    def _replace_single(self, rng: np.random.Generator, size: int) -> None:
        u = self.urn
        left, new = self._prior_part(rng, size, u.theta + u.d * u.k, u.n - 1, u.k - 1)
        raised = 1 + u.d * new / (u.theta + u.d * (u.k - 1))
        lowered = np.full((size, len(u.sizes)), np.inf)
        for j in self.single_cases:
            drawn = self._copies(rng, left, int(u.sizes[j]), u.n - 1, u.k - 1)
            lowered[:, j] = u.ratio * (1 + drawn / (u.sizes[j] - u.d))
        self.single.add(raised[:, None], lowered)

    def _bring_back(self, rng: np.random.Generator, size: int) -> None:
        u = self.urn
        left, new = self._prior_part(rng, size, u.theta + u.d * (u.k + 1), u.n - 1, u.k)
        raised = 1 + u.d * new / (u.theta + u.d * u.k)
        lowered = np.empty((size, len(self.several)))
        for column, j in enumerate(self.several):
            drawn = self._copies(rng, left, int(u.sizes[j]) - 1, u.n - 1, u.k)
            lowered[:, column] = u.ratio * (1 + drawn / ((u.sizes[j] - 1) - u.d))
        self.back.add(raised[:, None], lowered)

    def _prior_part(
        self, rng: np.random.Generator, size: int, mass: float, n: int, k: int
    ) -> tuple[Ints, Ints]:
        """Draw the number of releases of the k values of n records, and of new values that go with it."""
        u = self.urn
        prior = rng.binomial(u.m, rng.beta(mass, n - k * u.d, size))
        new = np.empty(size, dtype=np.int64)
        fill_new(rng, u.d, mass, prior, new)
        return u.m - prior, new

    def _copies(self, rng: np.random.Generator, left: Ints, count: int, n: int, k: int) -> Ints:
        """Draw the copies of one value of so many records among `left` releases of k values of n records."""
        if k == 1:
            return left
        drawn: Ints = rng.binomial(
            left, rng.beta(count - self.urn.d, n - count - (k - 1) * self.urn.d, len(left))
        )
        return drawn

    def best_of_pairs(self) -> Floats:
        """Return for each class kept the largest count and total over what replaces it, shape (A, 2)."""
        kept, rows = self.kept, np.arange(len(self.kept))
        best = []
        for pairs, twins, fresh in (
            (self.pairs.count, self.twins.count, self.fresh.count),
            (self.pairs.total, self.twins.total, self.fresh.total),
        ):
            all_pairs = pairs.copy()
            all_pairs[rows, kept] = np.where(self.has_other[kept], twins[:, 0], 0.0)
            best.append(np.maximum(all_pairs.max(axis=1), fresh[:, 0]))
        return np.stack(best, axis=1)


def upper_bounds(best: Floats, draws: int, level: float) -> Floats:
    """Return upper confidence bounds, shape (.., 2), for a share of draws and a mean of numbers in [0, 1].

    Clopper and Pearson's for the share; for the mean the Chernoff-Hoeffding bound, by which draws with
    expectation q have a mean of p or less with probability exp(-draws KL(p, q)) at most.
    """
    count, mean = best[:, 0], best[:, 1] / draws
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(count < draws, betaincinv(count + 1, np.maximum(draws - count, 0.5), 1 - level), 1.0)
    low, high = mean.copy(), np.ones_like(mean)
    allowed = -math.log(level) / draws
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = np.where(mean > 0, mean * np.log(mean / middle), 0.0) + np.where(
                mean < 1, (1 - mean) * np.log((1 - mean) / (1 - middle)), 0.0
            )
        low, high = np.where(divergence > allowed, low, middle), np.where(divergence > allowed, middle, high)
    return np.stack([share, high], axis=1)
