"""Exact laws of released sequences, by enumerating all of them in rational arithmetic.

A database is a tuple of values, any hashable that is not a `New`. A released sequence is a tuple of old
values and of new ones `New(0), New(1), ..` numbered in the order of their first appearance: under a
non-atomic base measure new values are distinct and never equal to one that somebody has thought of, so that
two databases give their new values the same numbers. Laws are dictionaries from sequences to `Fraction`.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from typing import NamedTuple

Sequence = tuple[Hashable, ...]
Law = dict[Sequence, Fraction]
Data = tuple[Hashable, ...]


class New(NamedTuple):
    """The `number`-th new value to appear."""

    number: int


def pitman_yor_law(data: Data, d: Fraction, theta: Fraction, m: int) -> Law:
    """Law of m draws from the predictive of PY(d, theta) with a non-atomic base measure, given the data."""
    return _grow(m, lambda drawn: _pitman_yor_step(data + drawn, d, theta, sum_new(drawn)))


def _pitman_yor_step(seen: Data, d: Fraction, theta: Fraction, new: int) -> Law:
    counts = Counter(seen)
    step = {(value,): (count - d) / (theta + len(seen)) for value, count in counts.items()}
    step[(New(new),)] = (theta + len(counts) * d) / (theta + len(seen))
    return {value: p for value, p in step.items() if p}


def sum_new(drawn: Sequence) -> int:
    """Number of distinct new values."""
    return len({value for value in drawn if isinstance(value, New)})


def dirichlet_multinomial_law(data: Data, a: Fraction, categories: int, m: int) -> Law:
    """Law of m draws from the predictive of a Dirichlet(a, .., a) over the categories 0, 1, .."""

    def step(drawn: Sequence) -> Law:
        counts = Counter(data + drawn)
        total = len(data) + len(drawn) + categories * a
        return {(j,): (counts[j] + a) / total for j in range(categories)}

    return _grow(m, step)


def _grow(m: int, step: Callable[[Sequence], Law]) -> Law:
    law: Law = {(): Fraction(1)}
    for _ in range(m):
        law = {drawn + one: p * q for drawn, p in law.items() for one, q in step(drawn).items()}
    return law


def law_of(data: Data, discount: Fraction, concentration: Fraction, m: int) -> Law:
    """Law of the release in every regime: discount -a < 0, concentration K a has the categories 0..K-1."""
    if discount >= 0:
        return pitman_yor_law(data, discount, concentration, m)
    categories = concentration / -discount
    assert categories.denominator == 1
    return dirichlet_multinomial_law(data, -discount, int(categories), m)


def hockey_stick(p: Law, q: Law, ratio: Fraction) -> Fraction:
    """Largest P(S) - e^eps Q(S) over all sets S, e^eps being `ratio`."""
    return sum((max(mass - ratio * q.get(drawn, Fraction(0)), 0) for drawn, mass in p.items()), Fraction(0))


def excess(p: Law, q: Law, ratio: Fraction) -> Fraction:
    """P(p/q > e^eps), e^eps being `ratio`."""
    return sum((mass for drawn, mass in p.items() if mass > ratio * q.get(drawn, Fraction(0))), Fraction(0))


def neighbours(data: Data, values: tuple[Hashable, ...]) -> Iterator[Data]:
    """Databases that have one record replaced by one of `values`; one of each value is enough to replace."""
    for value in dict.fromkeys(data):
        place = data.index(value)
        for other in values:
            if other != value:
                yield (*data[:place], other, *data[place + 1 :])


def open_neighbours(data: Data) -> Iterator[Data]:
    """Neighbours where any value is possible: every old one, and one that no record has."""
    yield from neighbours(data, (*dict.fromkeys(data), "unseen"))


def databases(n: int) -> Iterator[Data]:
    """One database for each multiset of counts that sum to n."""

    def split(total: int, largest: int) -> Iterator[tuple[int, ...]]:
        if total == 0:
            yield ()
        for first in range(min(total, largest), 0, -1):
            for rest in split(total - first, first):
                yield (first, *rest)

    for counts in split(n, n):
        yield tuple(f"v{j}" for j, count in enumerate(counts) for _ in range(count))


def snapped(law: Law, cells: dict[Hashable, Fraction]) -> Law:
    """Law after each new value was moved to a public cell, drawn from `cells`, that may be an old value."""
    found: Law = {}
    for drawn, mass in law.items():
        for places, share in _placements(sum_new(drawn), cells):
            moved = tuple(places[v.number] if isinstance(v, New) else v for v in drawn)
            found[moved] = found.get(moved, Fraction(0)) + mass * share
    return found


def _placements(
    count: int, cells: dict[Hashable, Fraction]
) -> Iterator[tuple[tuple[Hashable, ...], Fraction]]:
    if count == 0:
        yield (), Fraction(1)
        return
    for rest, share in _placements(count - 1, cells):
        for cell, weight in cells.items():
            yield (*rest, cell), share * weight


def merging_law(data: Data, d: Fraction, theta: Fraction, m: int, cells: dict[Hashable, Fraction]) -> Law:
    """Law of an urn that moves each new value to its cell at once, and counts it as that from then on."""

    def step(drawn: Sequence) -> Law:
        seen = data + drawn
        law = _pitman_yor_step(seen, d, theta, 0)
        fresh = law.pop((New(0),), Fraction(0))
        for cell, weight in cells.items():
            law[(cell,)] = law.get((cell,), Fraction(0)) + fresh * weight
        return law

    return _grow(m, step)


class Released(NamedTuple):
    """What the likelihood ratio of a replacement depends on."""

    first: int
    """Copies of the value that is replaced."""
    second: int
    """Copies of the value that replaces it."""
    new: int
    """Distinct new values."""


def released(drawn: Sequence, replaced: Hashable, by: Hashable) -> Released:
    """Count in a sequence."""
    return Released(drawn.count(replaced), drawn.count(by), sum_new(drawn))


def singular_mass(n: int, d: Fraction, theta: Fraction, m: int) -> Fraction:
    """Probability that a value of one record is released at all."""
    return 1 - math.prod(((theta + n - 1 + d + i) / (theta + n + i) for i in range(m)), start=Fraction(1))


def compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to write n as an ordered sum of whole numbers from 0 on."""
    for bars in itertools.combinations(range(n + parts - 1), parts - 1):
        ends = (-1, *bars, n + parts - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def rising(a: float, count: int) -> float:
    """Return a (a + 1) .. (a + count - 1)."""
    return math.prod(a + i for i in range(count))
