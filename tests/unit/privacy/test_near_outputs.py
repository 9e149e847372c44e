"""Responses of whole numbers: ratios against intervals, draws against the law, rho over all orders."""

from __future__ import annotations

import itertools
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpmix.errors import PrivacyError
from dpmix.privacy.near_outputs import LARGEST_EPSILON, NearOutputs, ratio_below


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-7, LARGEST_EPSILON), st.integers(1, 7))
def test_the_ratio_is_just_below_the_power(asked: float, columns: int) -> None:
    each = Fraction(asked) / columns
    ratio = ratio_below(each)
    mpmath.iv.dps = 400
    log = mpmath.iv.log(mpmath.iv.mpf(ratio.numerator) / mpmath.iv.mpf(ratio.denominator))
    gap = mpmath.iv.mpf(each.numerator) / mpmath.iv.mpf(each.denominator) - log
    assert gap.a > 0 and gap.b < 1e-9 * float(each)
    # the same divided by what is spent in all: what is recorded does not exceed what is asked for
    assert ratio > 1 and ratio.denominator & (ratio.denominator - 1) == 0
    guarantee = NearOutputs(1, 1, ratio, 1).guarantee(columns)
    assert guarantee.epsilon is not None and asked * (1 - 1e-9) < guarantee.epsilon <= asked


@pytest.mark.parametrize("asked", [1e-300, 1e-20, 9e-9, 500.1, 1e300])
def test_what_has_no_ratio_is_refused(asked: float) -> None:
    with pytest.raises(PrivacyError, match="mechanism.epsilon: .* ask for"):
        ratio_below(Fraction(asked))
    with pytest.raises(PrivacyError, match="a ratio above 1"):
        NearOutputs(1, 2, Fraction(1), 1)


def law(response: NearOutputs, own: int) -> list[Fraction]:
    """Return the exact chances of all outputs of an input."""
    u, v = response.ratio.numerator, response.ratio.denominator
    weights = [u if own <= j < own + response.near else v for j in range(response.near + response.far)]
    return [Fraction(weight, response.total) for weight in weights]


@pytest.mark.parametrize(
    ("near", "far", "ratio"), [(1, 1, Fraction(3)), (5, 6, Fraction(7, 2)), (1, 4, Fraction(90, 7))]
)
def test_draws_have_their_exact_law(near: int, far: int, ratio: Fraction) -> None:
    """Operating-system noise: false alarm below 1e-8."""
    response = NearOutputs(near, far, ratio, min(near, far))
    for own in range(far + 1):
        chances = law(response, own)
        assert sum(chances) == 1
        drawn = response.draw(np.full(20_000, own), os.urandom)
        expected = 20_000 * np.array(chances, dtype=float)
        assert stats.chisquare(np.bincount(drawn, minlength=near + far), expected).pvalue > 1e-10
    with pytest.raises(PrivacyError, match="in its range"):
        response.draw(np.array([far + 1]), os.urandom)


def test_a_draw_takes_exactly_the_chances_of_its_bits() -> None:
    """All first words of 16 bits once: as many are near as the chance says, by the next word at the edge."""
    response = NearOutputs(1, 2, Fraction(5), 1)  # near with chance 5/7, which is no multiple of 2^-16
    words = np.arange(65536, dtype=np.uint16).tobytes()
    edge = 65536 * 5 // 7
    for second, extra in ((0, 1), (2**64 - 1, 0)):
        fed = itertools.chain([words, second.to_bytes(8, "little")], itertools.repeat(bytes(8 * 65536)))
        drawn = response.draw(np.zeros(65536, dtype=np.int64), lambda size, fed=fed: next(fed)[:size])
        assert np.count_nonzero(drawn == 0) == edge + extra


@pytest.mark.parametrize(
    ("near", "far", "ratio", "moved"),
    [
        (1, 3, Fraction(3), 1),
        (7, 9, Fraction(21, 8), 7),
        (1, 1023, Fraction(20), 1),
        (1, 5000, Fraction(3), 1),
        (9, 9, Fraction(150), 9),
        (11, 20, Fraction(1001, 1000), 11),
    ],
)
def test_rho_is_the_supremum_over_all_orders(near: int, far: int, ratio: Fraction, moved: int) -> None:
    response = NearOutputs(near, far, ratio, moved)
    one, two = law(response, 0), law(response, far)
    assert sum(p > q for p, q in zip(one, two, strict=True)) == moved
    with mpmath.workdps(50):
        pairs = [
            (mpmath.mpf(p.numerator) / p.denominator, mpmath.mpf(q.numerator) / q.denominator)
            for p, q in zip(one, two, strict=True)
            if p != q
        ]
        same = sum((p for p, q in zip(one, two, strict=True) if p == q), Fraction(0))
        rest = mpmath.mpf(same.numerator) / same.denominator

        def each(order: mpmath.mpf) -> mpmath.mpf:
            total = rest + sum(p * (p / q) ** (order - 1) for p, q in pairs)
            return mpmath.log(total) / (order - 1) / order

        divergence = mpmath.fsum(p * mpmath.log(p / q) for p, q in pairs)
        orders = [1 + mpmath.mpf(10) ** (k / mpmath.mpf(8)) for k in range(-24, 25)]
        best = max(orders, key=each)
        for turn in range(60):  # a finer and finer grid around the best
            step = (best - 1) * mpmath.mpf("0.7") ** turn
            best = max((best - step / 3, best, best + step / 3), key=each)
        largest = max(each(best), divergence)
        recorded = response.guarantee(1).rho
        assert recorded is not None
        assert largest <= recorded <= float(largest) * (1 + (2e-10 if ratio > 2 else 1e-7))
    three = response.guarantee(3)
    assert three.rho is not None and three.rho == pytest.approx(3 * recorded, rel=1e-12)


def test_rho_of_one_near_output_of_two_is_that_of_randomized_response() -> None:
    from dpmix.privacy.conversions import response_rho

    found = NearOutputs(1, 1, ratio_below(Fraction(2)), 1).guarantee(1)
    assert found.rho == pytest.approx(response_rho(2.0), rel=1e-9)
