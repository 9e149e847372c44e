"""The privacy loss at the database that is there: a diagnostic for its curator (methods, section 5).

Everything here depends on the confidential records. It goes to the curator's terminal, never into a release,
and decides nothing: not how many records are released, nor whether any are.

Of the n records n_j have the j-th of k values; a release has m_j copies of it and K distinct new values. Only
the n_j matter, and values with equal n_j are alike. One record of value a is replaced by one of value b; the
likelihood ratio L = p/p' of the release is, with b old or new,

    n_a >= 2, old:  (n_a-1-d+m_a)/(n_a-1-d) (n_b-d)/(n_b-d+m_b)
    n_a >= 2, new:  (n_a-1-d+m_a)/(n_a-1-d) (theta+d k)/(theta+d (k+K))
    n_a = 1,  old:  infinite if m_a > 0, else (theta+d (k+K-1))/(theta+d (k-1)) (n_b-d)/(n_b-d+m_b)
    n_a = 1,  new:  infinite if m_a > 0, else 1.

Forward, the delta of the paper's Theorem 1 is the largest P(L > e^eps) over a and b, and the smallest delta
with P <= e^eps P' + delta the largest E(1 - e^eps/L)_+. In the other direction, P' <= e^eps P + delta, b new
alone costs S = 1 - prod_i (theta+n-1+d+i)/(theta+n+i), the probability that a value of one record is
released, and no neighbour more than m/(theta+n+m-1); the two are equal at d = 0.

At d = 0 the ratio is largest for b new, and all is a sum over one beta-binomial. At d > 0 the draws are
simulated: the number from the prior mass theta + d k is beta-binomial, K the number of blocks of as many
records under PY(d, theta + d k), and the m_j Dirichlet-multinomial. Given m_a = 0 for n_a = 1 the urn is
that of the other n - 1 records with concentration theta + d, so that S is never simulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from dpmix.numerics.jit import njit
from dpmix.privacy.budget import upward
from dpmix.privacy.exact import digits, expm1
from dpmix.synthesis.urn_guarantee import dm_epsilon, global_delta

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORK = 3e9  # nanoseconds, roughly
_MOST_DRAWS = 20_000
_FEWEST_DRAWS = 200
_CHUNK = 500  # draws at once


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Privacy loss at the observed database; confidential, and no ground for any decision.

    Parameters
    ----------
    epsilon : float
        That the deltas go with.
    delta : float
        One-sided: the paper's delta, the largest P(L > e^epsilon) over the neighbours of the database, for
        releases of the database itself. Says nothing of releases of a neighbour; see `reverse`.
    delta_upper : float
        Upper confidence bound on `delta`; `delta` itself where that is exact.
    exact : bool
        Whether all deltas are sums rather than estimates from draws.
    hockey_stick : float
        One-sided, as `delta`: the smallest delta with P(S) <= e^epsilon P'(S) + delta for all sets S of
        releases and all neighbours. The largest of several estimates where it is not exact.
    hockey_stick_upper : float
        Upper confidence bound on `hockey_stick`.
    reverse : float
        Upper bound on the smallest delta with P'(S) <= e^epsilon P(S) + delta: the other direction.
    reverse_lower : float
        Lower bound, without a confidence level: that of a neighbour with a value that no record here has.
    confidence : float
        Probability with which all three upper bounds hold together; 1 where nothing is estimated.
    draws : int
        Simulated releases behind the estimates; 0 where all is exact.
    """

    epsilon: float
    delta: float
    delta_upper: float
    exact: bool
    hockey_stick: float
    hockey_stick_upper: float
    reverse: float
    reverse_lower: float
    confidence: float
    draws: int


def instance(
    counts: Sequence[int] | Ints,
    discount: Fraction | float,
    concentration: Fraction | float,
    records: int,
    epsilon: float,
    *,
    rng: np.random.Generator,
    draws: int | None = None,
    confidence: float = 0.95,
) -> Instance:
    """Return the privacy loss of a Pitman-Yor release, 0 <= discount < 1, at the observed database.

    One-sided as far as `delta` and `hockey_stick` go; confidential; must never decide anything.

    Parameters
    ----------
    counts : sequence of int, shape (k,)
        Number of records of each value, all positive.
    discount, concentration : Fraction or float
        Parameters of the process; concentration above minus the discount.
    records : int
        Draws m, 1 at least.
    epsilon : float
        Not negative.
    rng : Generator
        For the simulation at discount > 0; what it yields is seen by the curator alone.
    draws : int, optional
        Number of simulated releases; left out, as many as take some seconds, 20,000 at most.
    confidence : float
        Of the upper bounds together.

    Raises
    ------
    ValueError
        When an argument is out of range.
    """
    sizes, numbers = np.unique(np.asarray(counts, dtype=np.int64), return_counts=True)
    if len(sizes) == 0 or sizes[0] < 1 or records < 1 or not epsilon >= 0 or not 0 < confidence < 1:
        raise ValueError("counts and records must be positive, epsilon not negative, confidence in (0, 1)")
    if not (0 <= discount < 1 and concentration > -discount):
        raise ValueError("the discount must be in [0, 1), the concentration above minus the discount")
    urn = InstanceUrn(sizes, numbers, float(discount), float(concentration), records, epsilon)
    bound = upward(global_delta(urn.n, Fraction(concentration), records))
    if discount == 0:
        return _sums(urn, bound)
    return _simulated(urn, bound, rng, draws, confidence)


def categories_instance(counts: Sequence[int] | Ints, categories: int, a: Fraction, records: int) -> Instance:
    """Return the privacy loss of a Dirichlet-multinomial release at the observed database: pure epsilon.

    That is log(1 + m/(a + max(0, n_min - 1))), n_min over all categories, 0 where one is empty: it holds in
    both directions, for this database and its neighbours. Empty categories may be left out of `counts`.
    Confidential; must never decide anything.
    """
    found = [int(count) for count in counts if count > 0]
    if not found or len(found) > categories or records < 1:
        raise ValueError("there must be records, no more values than categories, and draws")
    least = min(found) if len(found) == categories else 0
    epsilon = dm_epsilon(Fraction(a) + max(0, least - 1), records) if categories > 1 else 0.0
    return _exact(epsilon, 0.0, 0.0, 0.0)


def _exact(epsilon: float, delta: float, hockey_stick: float, reverse: float) -> Instance:
    return Instance(
        epsilon=epsilon,
        delta=delta,
        delta_upper=delta,
        exact=True,
        hockey_stick=hockey_stick,
        hockey_stick_upper=hockey_stick,
        reverse=reverse,
        reverse_lower=reverse,
        confidence=1.0,
        draws=0,
    )


def _sums(urn: InstanceUrn, bound: float) -> Instance:
    """Discount 0: the largest over classes, each a sum; the other direction is the global delta."""
    forward = [(bound, bound) if size == 1 else urn.replaced(int(size)) for size in urn.sizes]
    return _exact(urn.epsilon, max(f[0] for f in forward), max(f[1] for f in forward), bound)


def _simulated(
    urn: InstanceUrn, bound: float, rng: np.random.Generator, draws: int | None, confidence: float
) -> Instance:
    """Estimate from draws where there is no closed form, and bounds over all pairs of classes."""
    singular = urn.singular()
    several = np.flatnonzero(urn.sizes > 1)
    caps = np.array([urn.replaced(int(urn.sizes[j])) for j in several]).reshape(-1, 2)
    floor = singular if urn.single else 0.0
    # what can at most be as large as the singular part is not simulated
    candidates = np.flatnonzero(caps[:, 0] > floor)
    kept, caps = several[candidates], caps[candidates]
    simulation = Simulation(urn, kept)
    comparisons = simulation.comparisons
    if comparisons == 0:
        return _exact(urn.epsilon, singular, singular, singular)
    if draws is None:
        draws = int(min(max(_WORK / simulation.cost(), _FEWEST_DRAWS), _MOST_DRAWS))
    simulation.run(rng, draws)
    level = (1 - confidence) / (3 * comparisons)

    found, upper = [np.array([floor, floor])], [np.array([floor, floor])]
    if len(kept):
        best = simulation.best_of_pairs()
        found.append(np.minimum(best / draws, caps).max(axis=0))
        upper.append(np.minimum(upper_bounds(best, draws, level), caps).max(axis=0))
    if len(simulation.single_cases):
        best = np.array([[simulation.single.count.max(), simulation.single.total.max()]])
        found.append(singular + (1 - singular) * best[0] / draws)
        upper.append(singular + (1 - singular) * upper_bounds(best, draws, level)[0])
    delta, hockey_stick = np.max(found, axis=0)
    delta_upper, hockey_stick_upper = np.max(upper, axis=0)

    # the other direction: by an old value at most what that value's own copies tell, by a new one simulated
    reverse = singular
    old = urn.sizes if urn.k > 1 else urn.sizes[:0]
    reverse = max([reverse, *(urn.replaced(int(size) + 1)[1] for size in old)])
    if len(several):
        most = np.array([[0.0, simulation.back.total.max()]])
        reverse = max(reverse, singular + (1 - singular) * float(upper_bounds(most, draws, level)[0, 1]))
    return Instance(
        epsilon=urn.epsilon,
        delta=float(delta),
        delta_upper=float(delta_upper),
        exact=False,
        hockey_stick=min(float(hockey_stick), bound),
        hockey_stick_upper=min(float(hockey_stick_upper), bound),
        reverse=min(reverse, bound),
        reverse_lower=singular,
        confidence=confidence,
        draws=draws,
    )


# What has a closed form, and bounds


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


# Draws of releases in the cases that have none


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


# Compiled loops: sums over a beta-binomial, numbers of new values, and pairs of counts


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

    `raised` (R, A) are the factors of the likelihood ratio that the replaced values bring, `lowered` (R, B)
    e^epsilon over those that the values in their place bring.
    """
    for r in range(raised.shape[0]):
        for a in range(raised.shape[1]):
            inverse = 1.0 / raised[r, a]
            for b in range(lowered.shape[1]):
                excess = 1.0 - lowered[r, b] * inverse
                more = excess > 1e-12  # equal, but for rounding, is not more
                count[a, b] += more
                total[a, b] += excess if more else 0.0
