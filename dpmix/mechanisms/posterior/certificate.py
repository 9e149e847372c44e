"""What a law of integer weights guarantees: its hockey-stick divergences over all neighbouring databases."""

from __future__ import annotations

import abc
import itertools
import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit
from dpmix.posteriors import hellinger_law
from dpmix.posteriors.hellinger_law import (
    LISTED,
    ExponentialMechanism,
    Integers,
    Posteriors,
    folded,
    row_of_two,
    states,
)

# Compiled loops: hockey-stick divergences between neighbours, of integer weights


@njit
def divergences_of_two(
    table: Integers, unit: float, rates: Floats, top: float, rows: Integers, growth: float
) -> tuple[Floats, Floats]:
    """Return hockey-stick divergences between neighbours c, c + 1, and mean Hellinger errors.

    Parameters
    ----------
    table, unit, top
        As `weights_of_two`.
    rates : ndarray, shape (n + 1,)
        Of every database.
    rows : ndarray of int64, shape (k,)
        Databases c, increasing.
    growth : float
        e^eps.

    Returns
    -------
    deltas, errors : ndarray, shape (k,)
        The larger of the two directions, 0 for c = n; the error at c.
    """
    n = (table.size - 1) // 2
    deltas, errors = np.zeros(rows.size), np.zeros(rows.size)
    here, there = np.empty(n + 1), np.empty(n + 1)
    before = -2
    first = last = 0
    flat = total = error = 0.0
    for place in range(rows.size):
        c = rows[place]
        if c != before + 1:
            first, last, flat, total, error = row_of_two(table, unit, c, rates[c], top, here)
        errors[place] = error
        if c == n:
            break
        first_2, last_2, flat_2, total_2, error_2 = row_of_two(table, unit, c + 1, rates[c + 1], top, there)
        start, stop = min(first, first_2), max(last, last_2)
        here[start:first] = flat
        here[last + 1 : stop + 1] = flat
        there[start:first_2] = flat_2
        there[last_2 + 1 : stop + 1] = flat_2
        p, q = flat / total, flat_2 / total_2
        others = n - (stop - start)
        ahead, back = others * max(p - growth * q, 0.0), others * max(q - growth * p, 0.0)
        for r in range(start, stop + 1):
            p, q = here[r] / total, there[r] / total_2
            ahead += max(p - growth * q, 0.0)
            back += max(q - growth * p, 0.0)
        deltas[place] = max(ahead, back)
        here, there = there, here
        first, last, flat, total, error = first_2, last_2, flat_2, total_2, error_2
        before = c
    return deltas, errors


@njit
def divergences_of_pairs(weights: Floats, totals: Floats, pairs: Integers, growth: float) -> Floats:
    """Return the larger hockey-stick divergence of the two directions of each pair (p, 2) of databases.

    `weights` (k, k) are those of every posterior (column) under every database (row), and `growth` is e^eps.
    """
    found = np.empty(pairs.shape[0])
    for place in range(pairs.shape[0]):
        x, y = pairs[place, 0], pairs[place, 1]
        ahead = back = 0.0
        for r in range(weights.shape[1]):
            p, q = weights[x, r] / totals[x], weights[y, r] / totals[y]
            ahead += max(p - growth * q, 0.0)
            back += max(q - growth * p, 0.0)
        found[place] = max(ahead, back)
    return found


# What a law of integer weights guarantees: its hockey-stick divergences over all neighbouring databases


Floats = NDArray[np.float64]

MARGIN = 2.0**-48
"""Above what a divergence can lose in doubles: its sum is over p > e^eps q, both known to 4 roundings, and p
adds up to 1 at most. Sums of non-negative terms lose 2^-53 of themselves per term: `certified` allows for it.
"""
FEW_MOST = 4_000_000
"""Largest number of weights of three categories or more that is certified: the squared number of posteriors,
over d! where the prior has equal entries."""
_NEAR, _SPREAD = 40, 220


class Neighbours(abc.ABC):
    """All pairs of neighbouring databases of a family of posteriors, and what a law does to them.

    A database is named by a whole number below `databases`.
    """

    posteriors: Posteriors

    @property
    @abc.abstractmethod
    def databases(self) -> int:
        """Number of databases, as counts."""

    @property
    @abc.abstractmethod
    def pairs(self) -> int:
        """Number of pairs of neighbouring databases."""

    @abc.abstractmethod
    def every(self) -> Integers:
        """Return databases such that all others have the same pairs, up to the order of categories."""

    def some(self) -> Integers:
        """Return the databases that a search looks at: here all of those."""
        return self.every()

    @abc.abstractmethod
    def evaluate(self, law: ExponentialMechanism, epsilon: float, rows: Integers) -> tuple[Floats, Floats]:
        """Return delta at epsilon of the pairs of each database, and its mean Hellinger error.

        Each pair of neighbours belongs to one of its two databases; delta is the largest over the pairs of a
        database, and over both directions.
        """

    @abc.abstractmethod
    def mean_error(self, rows: Integers, errors: Floats) -> float:
        """Return the mean Hellinger error over all databases, each counts once; interpolated between rows."""

    @abc.abstractmethod
    def counts(self, rows: Integers) -> Integers:
        """Return the counts of databases, shape (len(rows), d)."""

    def error(self, law: ExponentialMechanism) -> float:
        """Return the mean Hellinger error over all databases."""
        rows = self.some()
        return self.mean_error(rows, self.evaluate(law, 0.0, rows)[1])

    def certified(self, law: ExponentialMechanism, epsilon: float) -> tuple[float, int, float]:
        """Certify a law over all pairs.

        Returned are an upper bound of the largest hockey-stick divergence at epsilon, a database where it is,
        and the mean Hellinger error.
        """
        rows = self.every()
        deltas, errors = self.evaluate(law, epsilon, rows)
        worst = int(np.argmax(deltas))
        bound = float(deltas[worst]) * (1 + (self.databases + 4) * 2.0**-52) + MARGIN
        return bound, int(rows[worst]), self.mean_error(rows, errors)


class Two(Neighbours):
    """Two categories: database c has c records in the first; neighbours are c and c + 1, in O(reach) each."""

    def __init__(self, posteriors: Posteriors) -> None:
        self.posteriors = posteriors
        self.table = folded(posteriors)
        self.mirrored = posteriors.exchangeable

    @property
    def databases(self) -> int:
        """Number of databases, n + 1."""
        return self.posteriors.n + 1

    @property
    def pairs(self) -> int:
        """Number of pairs, n."""
        return self.posteriors.n

    def _last(self) -> int:
        return self.posteriors.n // 2 if self.mirrored else self.posteriors.n

    def every(self) -> Integers:
        """Return 0, .., n, or up to the middle where the prior is symmetric."""
        return np.arange(self._last() + 1)

    def some(self) -> Integers:
        """Return all counts near the ends, and others spread evenly in their logarithms."""
        last = self._last()
        if last <= _NEAR + _SPREAD:
            return self.every()
        far = np.geomspace(_NEAR, last, _SPREAD).astype(np.int64)
        found = np.concatenate([np.arange(_NEAR), far])
        if not self.mirrored:
            half = self.posteriors.n // 2
            found = np.minimum(found, half)
            found = np.concatenate([found, self.posteriors.n - found])
        return np.unique(found)

    def counts(self, rows: Integers) -> Integers:
        """Return the counts of databases; see `Neighbours`."""
        return np.stack([rows, self.posteriors.n - rows], axis=1)

    def evaluate(self, law: ExponentialMechanism, epsilon: float, rows: Integers) -> tuple[Floats, Floats]:
        """Return deltas and errors; see `Neighbours`. Row c has the pair c, c + 1."""
        unit = self.posteriors.unit
        deltas, errors = divergences_of_two(self.table, unit, law.rates, law.top, rows, math.exp(epsilon))
        return deltas, errors

    def mean_error(self, rows: Integers, errors: Floats) -> float:
        """Return the mean over all databases; see `Neighbours`."""
        n = self.posteriors.n
        places = np.arange(n + 1)
        if self.mirrored:
            places = np.minimum(places, n - places)
        return float(np.interp(places, rows, errors).mean())


class Few(Neighbours):
    """Three categories or more, all posteriors listed: every pair, in O(number of posteriors) each.

    Where all entries of the prior are equal, an order of the categories brings the counts of one database of
    a pair into increasing order: pairs of such databases with all their neighbours stand for all pairs.
    """

    def __init__(self, posteriors: Posteriors) -> None:
        self.posteriors = posteriors
        self.states = states(posteriors.n, posteriors.dimension)
        ordered = (np.diff(self.states, axis=1) >= 0).all(axis=1)
        self.own = np.nonzero(ordered | (not posteriors.exchangeable))[0]
        self.chosen, self._pairs = self._neighbours()
        self._distances = np.empty((len(self.chosen), len(self.states)))
        for row, counts in zip(self._distances, self.states[self.chosen].tolist(), strict=True):
            hellinger_law.distances_of_states(posteriors.apart(counts), self.states, posteriors.unit, row)
        self._room = np.empty_like(self._distances)

    @property
    def databases(self) -> int:
        """Number of databases."""
        return len(self.states)

    @property
    def pairs(self) -> int:
        """Number of pairs: databases of n - 1 records, times pairs of categories for the other record."""
        n, d = self.posteriors.n, self.posteriors.dimension
        return math.comb(n + d - 2, d - 1) * math.comb(d, 2)

    def every(self) -> Integers:
        """Return the databases in order, all of them where the prior has different entries."""
        return self.own

    def _neighbours(self) -> tuple[Integers, Integers]:
        """Return the databases that are needed, and pairs of places among them: the first is in `own`."""
        places = {counts: place for place, counts in enumerate(map(tuple, self.states.tolist()))}
        own = set(self.own.tolist())
        found = []
        for place in self.own.tolist():
            counts = self.states[place].tolist()
            for i, j in itertools.permutations(range(len(counts)), 2):
                if counts[i]:
                    moved = list(counts)
                    moved[i] -= 1
                    moved[j] += 1
                    other = places[tuple(moved)]
                    if other not in own or other > place:
                        found.append((place, other))
        pairs = np.array(found, dtype=np.int64)
        chosen = np.unique(np.concatenate([pairs.ravel(), self.own]))
        return chosen, np.searchsorted(chosen, pairs)

    def evaluate(self, law: ExponentialMechanism, epsilon: float, rows: Integers) -> tuple[Floats, Floats]:
        """Return deltas and errors of `own`, whichever rows are asked for; see `Neighbours`."""
        rates = np.array([law.rate(counts) for counts in self.states[self.chosen]])
        totals, errors = hellinger_law.weights_of_distances(self._distances, rates, law.top, self._room)
        found = divergences_of_pairs(self._room, totals, self._pairs, math.exp(epsilon))
        deltas = np.zeros(len(self.chosen))
        np.maximum.at(deltas, self._pairs[:, 0], found)
        places = np.searchsorted(self.chosen, self.own)
        return deltas[places], errors[places]

    def counts(self, rows: Integers) -> Integers:
        """Return the counts of databases; see `Neighbours`."""
        return self.states[rows]

    def error(self, law: ExponentialMechanism) -> float:
        """Return the mean error; see `Neighbours`. No divergences are summed."""
        places = np.searchsorted(self.chosen, self.own)
        rates = np.array([law.rate(counts) for counts in self.states[self.own]])
        room = self._room[: len(places)]
        errors = hellinger_law.weights_of_distances(self._distances[places], rates, law.top, room)[1]
        return self.mean_error(self.own, errors)

    def mean_error(self, rows: Integers, errors: Floats) -> float:
        """Return the mean over all databases; see `Neighbours`."""
        if not self.posteriors.exchangeable:
            return float(errors.mean())
        orders = [_orders(counts) for counts in self.states[self.own].tolist()]
        return float(np.average(errors, weights=orders))


def _orders(counts: list[int]) -> int:
    """Return in how many orders the counts can stand."""
    return math.factorial(len(counts)) // math.prod(math.factorial(k) for k in Counter(counts).values())


def can_be_certified(posteriors: Posteriors) -> bool:
    """Return whether the pairs of neighbours of a family are few enough for a certificate."""
    orders = math.factorial(posteriors.dimension) if posteriors.exchangeable else 1
    few = posteriors.size <= LISTED and posteriors.size**2 <= FEW_MOST * orders
    return few or posteriors.dimension == 2


def neighbours(posteriors: Posteriors) -> Neighbours | None:
    """Return the pairs of neighbours of a family, None where they are too many for a certificate."""
    if not can_be_certified(posteriors):
        return None
    return Two(posteriors) if posteriors.dimension == 2 else Few(posteriors)
