"""Conjugate posteriors by their definitions: distances, sensitivities and guarantees by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from scipy.special import gammaln

Counts = tuple[int, ...]


def databases(n: int, d: int) -> list[Counts]:
    """Return all counts of d categories and n records, in lexical order."""
    return [c for c in itertools.product(range(n + 1), repeat=d) if sum(c) == n]


def neighbours(counts: Counts) -> Iterator[Counts]:
    """Yield the counts after one record is replaced by another."""
    for i, j in itertools.permutations(range(len(counts)), 2):
        if counts[i]:
            moved = list(counts)
            moved[i] -= 1
            moved[j] += 1
            yield tuple(moved)


def log_beta(a: Sequence[float]) -> float:
    return float(sum(gammaln(x) for x in a) - gammaln(sum(a)))


def hellinger(prior: Sequence[float], x: Counts, r: Counts) -> float:
    a, b = ([p + k for p, k in zip(prior, c, strict=True)] for c in (x, r))
    middle = [(s + t) / 2 for s, t in zip(a, b, strict=True)]
    return math.sqrt(max(0.0, -math.expm1(log_beta(middle) - (log_beta(a) + log_beta(b)) / 2)))


def local_sensitivity(prior: Sequence[float], x: Counts) -> float:
    """Return the largest change of any score H(x, r) by a neighbour, over neighbours and r."""
    every = databases(sum(x), len(x))
    return max(abs(hellinger(prior, x, r) - hellinger(prior, y, r)) for y in neighbours(x) for r in every)


def smooth_sensitivity(prior: Sequence[float], x: Counts, gamma: float) -> float:
    """Return max over x' of LS(x') exp(-gamma d), d = records that differ, LS over neighbours alone."""
    return max(
        max(hellinger(prior, y, z) for z in neighbours(y))
        * math.exp(-gamma * sum(max(s - t, 0) for s, t in zip(x, y, strict=True)))
        for y in databases(sum(x), len(x))
    )


def exponential(epsilon: float) -> Fraction:
    """Return e^eps, rounded down in the 50th digit."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(epsilon).exp()) * (1 - Fraction(1, 10**50))


def divergence(weights: Sequence[int], others: Sequence[int], growth: Fraction) -> Fraction:
    """Return sum_r (P(r) - e^eps Q(r))_+ of two laws that are given by integer weights."""
    total, other = sum(weights), sum(others)
    ratio = growth * Fraction(total, other)
    parts = (w - ratio * v for w, v in zip(weights, others, strict=True))
    return sum((part for part in parts if part > 0), Fraction(0)) / total


def largest_divergence(weights: dict[Counts, list[int]], epsilon: float) -> Fraction:
    """Return the largest divergence over all ordered pairs of neighbours."""
    growth = exponential(epsilon)
    return max(divergence(own, weights[y], growth) for x, own in weights.items() for y in neighbours(x))
