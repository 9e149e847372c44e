"""Exact draws: every random word accounted for, and roundings on the stated side."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpmix.privacy.exact import bernoulli, binomial, expm1, integers, log1p, round_down, round_up


def fed(*parts: bytes) -> Callable[[int], bytes]:
    """A source that gives these bytes, in pieces of the lengths asked for."""
    rest = iter(parts)

    def give(count: int) -> bytes:
        part = next(rest)
        assert len(part) == count
        return part

    return give


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


EVERY = np.arange(65536, dtype=np.uint16).tobytes()


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(0.1), Fraction(1, 65536), Fraction(5, 7)])
def test_the_first_word_and_its_tie_have_exactly_the_probability(chance: Fraction) -> None:
    head = math.floor(chance * 65536)
    rest = chance * 65536 - head
    threshold = math.floor(rest * 2**64)
    last = math.floor((rest * 2**64 - threshold) * 2**64)
    for extra, tie in (
        ([threshold - 1], True),
        ([threshold + 1], False),
        ([threshold, last - 1], True),
        ([threshold, last + 1], False),
    ):
        if rest == 0 or min(extra) < 0:
            continue
        words = [word(e) for e in extra]
        got = binomial([(chance.numerator, chance.denominator)], 65536, fed(EVERY, *words))
        assert got[0] == head + tie
        same = bernoulli((chance.numerator * 3, chance.denominator * 3), 65536, fed(EVERY, *words))
        assert same.sum() == head + tie
    if rest == 0:
        assert binomial([(chance.numerator, chance.denominator)], 65536, fed(EVERY))[0] == head


def test_certain_and_impossible_outcomes() -> None:
    assert binomial([(0, 1), (7, 7)], 1000, os.urandom).tolist() == [0, 1000]
    assert bernoulli((1, 1), 100, os.urandom).all()


def test_ties_belong_to_their_own_record() -> None:
    chances = [(1, 3), (0, 1), (2, 3)]
    words = np.array([[0, 21845], [5, 0], [43690, 65535]], dtype=np.uint16).tobytes()
    got = binomial(chances, 2, fed(words, word(2**64 - 1), word(0)))
    assert got.tolist() == [1, 0, 1]


def test_binomial_counts_have_their_law() -> None:
    """Operating-system randomness: false alarm 1e-9."""
    chances = [Fraction(1, 3), Fraction(0.9), Fraction(1, 100)]
    drawn = binomial([(p.numerator, p.denominator) for p in chances for _ in range(20000)], 6, os.urandom)
    for p, counts in zip(chances, drawn.reshape(3, -1), strict=True):
        expected = 20000 * stats.binom.pmf(range(7), 6, float(p))
        seen = np.bincount(counts, minlength=7)
        keep = expected > 5
        statistic = float(((seen - expected)[keep] ** 2 / expected[keep]).sum())
        assert stats.chi2.sf(statistic, keep.sum()) > 3e-10
        assert seen[~keep].sum() <= stats.poisson.isf(1e-11, max(expected[~keep].sum(), 1e-9))


@pytest.mark.parametrize("bound", [1, 2, 3, 100, 2**40 + 1])
def test_integers_are_uniform(bound: int) -> None:
    """Operating-system randomness: false alarm 1e-10 each."""
    drawn = integers(bound, 20000, os.urandom)
    assert 0 <= drawn.min() <= drawn.max() < bound
    parts = min(bound, 100)
    seen = np.bincount(drawn * parts // bound, minlength=parts)
    if parts > 1:
        assert stats.chisquare(seen).pvalue > 1e-10


def test_integers_reject_and_draw_again() -> None:
    first = np.array([7, 2, 9 << 8], dtype=np.uint64).tobytes()
    assert integers(5, 3, fed(first, word(4))).tolist() == [2, 0, 4]


@given(st.floats(1e-30, 1e3))
def test_logarithms_and_roundings(x: float) -> None:
    with mpmath.workdps(150):
        exact = mpmath.log1p(mpmath.mpf(x))
        for mine, true in ((log1p(Decimal(x)), exact), (expm1(Decimal(x)), mpmath.expm1(mpmath.mpf(x)))):
            assert abs(mpmath.mpf(str(mine)) / true - 1) < mpmath.mpf(10) ** -99
        up, down = round_up(log1p(Decimal(x))), round_down(log1p(Decimal(x)))
        assert mpmath.mpf(down) <= exact <= mpmath.mpf(up)
        assert up <= math.nextafter(down, math.inf)
