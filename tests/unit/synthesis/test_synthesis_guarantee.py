"""Stated guarantees of urns against the enumeration of all releases of all neighbouring databases."""

from __future__ import annotations

import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmix.privacy.budget import upward
from dpmix.synthesis.generator_choice import written
from dpmix.synthesis.urn_guarantee import (
    dm_concentration,
    dm_epsilon,
    dm_offers,
    dm_records,
    global_delta,
    largest_records,
    offers,
    smallest_concentration,
    theorem_delta,
    theorem_records,
)
from tests.oracles import urns

RATIOS = (Fraction(1), Fraction(11, 10), Fraction(2), Fraction(20))  # of e^epsilon
law = functools.cache(urns.law_of)


def worst(n: int, d: Fraction, theta: Fraction, m: int, ratio: Fraction) -> Fraction:
    """Largest hockey-stick divergence over all pairs of neighbours, in both directions."""
    found = Fraction(0)
    for data in urns.databases(n):
        p = law(data, d, theta, m)
        for other in urns.open_neighbours(data):
            q = law(other, d, theta, m)
            found = max(found, urns.hockey_stick(p, q, ratio), urns.hockey_stick(q, p, ratio))
    return found


@pytest.mark.parametrize("theta", [Fraction(1, 10), Fraction(3)])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (2, 3), (3, 3), (4, 2), (5, 2), (3, 4)])
def test_discount_zero_costs_exactly_the_stated_delta_at_every_epsilon(
    n: int, m: int, theta: Fraction
) -> None:
    stated = global_delta(n, theta, m)
    for ratio in RATIOS:
        assert worst(n, Fraction(0), theta, m, ratio) == stated
    single, other = tuple(range(n)), (*range(n - 1), "unseen")
    attained = urns.hockey_stick(law(single, 0, theta, m), law(other, 0, theta, m), RATIOS[-1])
    assert attained == stated == urns.singular_mass(n, Fraction(0), theta, m)


@pytest.mark.parametrize(
    ("d", "theta"),
    [("1/4", "-1/5"), ("1/4", "1"), ("1/2", "-49/100"), ("1/2", "0"), ("9/10", "-89/100"), ("9/10", "4")],
)
@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 1), (2, 4), (3, 3), (5, 2)])
def test_discounts_never_cost_more_than_stated(n: int, m: int, d: str, theta: str) -> None:
    stated = global_delta(n, Fraction(theta), m)
    by_ratio = [worst(n, Fraction(d), Fraction(theta), m, ratio) for ratio in RATIOS]
    assert all(found <= stated for found in by_ratio)
    # and not much less: in total variation, but for a single record, which goes to a new value only
    assert n == 1 or by_ratio[0] > Fraction(4, 5) * stated
    assert by_ratio[-1] >= urns.singular_mass(n, Fraction(d), Fraction(theta), m)


def test_total_variation_of_one_draw_is_the_stated_delta_whatever_the_discount() -> None:
    for d, theta in (("1/4", "-1/5"), ("1/2", "0"), ("9/10", "4")):
        found = worst(4, Fraction(d), Fraction(theta), 1, Fraction(1))
        assert found == global_delta(4, Fraction(theta), 1)


def test_a_single_record_and_a_negative_concentration() -> None:
    assert global_delta(1, Fraction(-1, 4), 3) == 1
    assert largest_records(1, Fraction(-1, 4), Fraction(99, 100)) == 0
    assert largest_records(2, Fraction(-1, 4), Fraction(99, 100)) == 74


@pytest.mark.parametrize("a", [Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 4), (3, 2), (4, 3)])
def test_dirichlet_multinomial_epsilon_is_the_largest_log_ratio(
    n: int, m: int, categories: int, a: Fraction
) -> None:
    found: dict[Fraction, set[tuple[int, ...]]] = {}
    for data in itertools.combinations_with_replacement(range(categories), n):
        p = law(data, -a, categories * a, m)
        for other in urns.neighbours(data, tuple(range(categories))):
            q = law(tuple(sorted(other)), -a, categories * a, m)
            (gone,) = set(data) - set(other) or {None}
            for drawn, mass in p.items():
                singleton = (data.count(gone), drawn.count(gone)) if gone is not None else ()
                found.setdefault(mass / q[drawn], set()).add(singleton)
    largest = max(found)
    assert largest == 1 + m / a
    assert found[largest] == {
        (1, m)
    }  # m copies of the only record of a category, which the other has none of
    stated = dm_epsilon(a, m)
    assert math.log(largest) <= stated <= math.log(largest) * (1 + 1e-15)


CELLS = {"v0": Fraction(1, 5), "v1": Fraction(3, 10), "elsewhere": Fraction(1, 2)}


@pytest.mark.parametrize(("d", "theta"), [("0", "2"), ("1/2", "1"), ("1/2", "-1/4")])
def test_snapping_after_the_draws_never_costs_more(d: str, theta: str) -> None:
    lower = 0
    for n, m in ((2, 3), (3, 3)):
        for data in urns.databases(n):
            for other in urns.open_neighbours(data):
                p, q = (law(x, Fraction(d), Fraction(theta), m) for x in (data, other))
                p_moved, q_moved = urns.snapped(p, CELLS), urns.snapped(q, CELLS)
                assert sum(p_moved.values()) == 1
                for ratio in RATIOS:
                    for a, b, moved in ((p, q, (p_moved, q_moved)), (q, p, (q_moved, p_moved))):
                        before, after = urns.hockey_stick(a, b, ratio), urns.hockey_stick(*moved, ratio)
                        assert after <= before
                        lower += after < before
    assert lower > 0


@pytest.mark.parametrize("data", [("v0",), ("v0", "v2"), ("v0", "v0", "v1")])
def test_merging_within_the_urn_is_another_law_unless_the_discount_is_zero(data: urns.Data) -> None:
    for d, same in ((Fraction(0), True), (Fraction(1, 2), False)):
        merged = urns.merging_law(data, d, Fraction(1), 3, CELLS)
        assert sum(merged.values()) == 1
        assert (merged == urns.snapped(law(data, d, Fraction(1), 3), CELLS)) is same


rationals = st.fractions(Fraction(1, 1000), 1000, max_denominator=1000)
deltas = st.one_of(st.fractions(Fraction(1, 10**6), Fraction(999, 1000)), st.floats(1e-12, 0.999))


@given(st.integers(1, 10**9), rationals, deltas)
def test_records_are_as_many_as_delta_allows_and_never_one_more(
    n: int, theta: Fraction, delta: float
) -> None:
    m = largest_records(n, theta, delta)
    assert global_delta(n, theta, m) <= delta < global_delta(n, theta, m + 1)
    assert m == 0 or smallest_concentration(n, delta, m) <= theta < smallest_concentration(n, delta, m + 1)


@given(st.integers(1, 10**6), rationals, st.integers(1, 10**6))
def test_a_double_is_rounded_up(n: int, theta: Fraction, m: int) -> None:
    exact = global_delta(n, theta, m)
    stated = upward(exact)
    assert written(math.nextafter(stated, 0)) < exact <= written(stated)
    at_boundary = largest_records(n, theta, exact)
    assert at_boundary == m
    assert largest_records(n, theta, exact - Fraction(1, 10**60)) == m - 1


@pytest.mark.parametrize("tenths", range(1, 101))
def test_what_is_stated_is_no_more_than_the_decimal_that_was_asked_for(tenths: int) -> None:
    epsilon = tenths / 10
    a = dm_concentration(written(epsilon), 7)
    assert dm_epsilon(Fraction(a), 7) <= epsilon
    assert upward(Fraction(tenths, 1000)) == tenths / 1000


def test_the_papers_theorem_admits_two_records_where_there_are_53() -> None:
    request = (1000, Fraction(10))
    assert largest_records(*request, Fraction("0.05")) == 53
    assert theorem_records(*request, Fraction("0.1"), Fraction("0.05")) == 2
    assert theorem_records(*request, Fraction("3"), Fraction("0.05")) == 53  # the other term, from there on
    assert theorem_records(*request, 0, Fraction("0.05")) == 0
    with mpmath.workdps(60):
        for m in (2, 3, 53):
            exact = 2 * m / (1010 * mpmath.expm1(mpmath.mpf(1) / 10))
            stated = theorem_delta(*request, m, Fraction("0.1"))
            assert mpmath.mpf(repr(math.nextafter(stated, 0))) < exact <= mpmath.mpf(repr(stated))
    assert theorem_delta(*request, 53, 3) == upward(global_delta(*request, 53))
    assert theorem_delta(*request, 1000, Fraction("0.1")) == 1.0


@given(st.integers(1, 10**7), rationals, st.floats(1e-12, 0.999).map(written), st.floats(1e-6, 50))
def test_theorem_records_are_the_most(n: int, theta: Fraction, delta: Fraction, epsilon: float) -> None:
    m = theorem_records(n, theta, epsilon, delta)
    assert m <= largest_records(n, theta, delta)
    assert written(theorem_delta(n, theta, m, epsilon)) <= delta
    assert written(theorem_delta(n, theta, m + 1, epsilon)) > delta


@given(rationals, st.floats(1e-9, 30).map(written), st.integers(1, 10**7))
def test_dirichlet_multinomial_roundings(a: Fraction, epsilon: Fraction, m: int) -> None:
    most = dm_records(a, epsilon)
    assert written(dm_epsilon(a, most)) <= epsilon < written(dm_epsilon(a, most + 1))
    least = dm_concentration(epsilon, m)
    assert written(dm_epsilon(Fraction(least), m)) <= epsilon
    assert written(dm_epsilon(Fraction(math.nextafter(least, 0)), m)) > epsilon
    with mpmath.workdps(60):
        exact = mpmath.log1p(m * mpmath.mpf(a.denominator) / a.numerator)
        stated = dm_epsilon(a, m)
        assert mpmath.mpf(repr(math.nextafter(stated, 0))) < exact <= mpmath.mpf(repr(stated))


@settings(max_examples=60)
@given(st.integers(2, 10**6), rationals, deltas, st.integers(1, 10**6))
def test_what_is_offered_does(n: int, theta: Fraction, delta: float, m: int) -> None:
    found = offers(n, theta, delta, m)
    assert found.records == (min(largest_records(n, theta, delta), m) or None)
    assert found.delta is not None and found.delta < 1
    for offered in (found.delta, float(found.delta)):
        assert largest_records(n, theta, offered) >= m
    assert found.delta <= Decimal(upward(global_delta(n, theta, m))) * Decimal("1.002")
    if found.concentration is None:
        assert smallest_concentration(n, delta, m) <= 0
    else:
        for other in (found.concentration, float(found.concentration)):
            assert largest_records(n, other, delta) >= m
    categories = dm_offers(theta, delta, m)
    assert dm_records(theta, float(categories.epsilon)) >= m
    assert dm_records(float(categories.concentration), delta) >= m
    assert categories.records == (min(dm_records(theta, delta), m) or None)


def test_offers_are_short() -> None:
    found = offers(1000, Fraction(10), Fraction("0.05"), 100)
    assert (found.records, found.delta, found.concentration) == (53, Decimal("0.09018"), Decimal("901"))
    found = offers(1000, Fraction(10), Fraction("0.00001"), 1)
    assert (found.records, found.delta, found.concentration) == (None, Decimal("0.0009901"), Decimal("99000"))
    categories = dm_offers(Fraction(1), 1, 100)
    assert (categories.records, str(categories.epsilon), str(categories.concentration)) == (
        1,
        "4.616",
        "58.2",
    )


@pytest.mark.parametrize("delta", [1, 2, -0.1])
def test_a_delta_of_one_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        largest_records(10, 1, delta)
    with pytest.raises(ValueError, match="n 0"):
        global_delta(0, 1, 1)
