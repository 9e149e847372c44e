"""What releases cost together: sums exact to the decimal, conversions never below what is known to hold."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Adjacency, Guarantee, Spent
from dpmix.privacy.budget import Account, Budget, check, covers, epsilon_at, remaining, total, worst, zcdp
from dpmix.privacy.conversions import gaussian_delta, gaussian_epsilon, response_rho


def pure(epsilon: float) -> Guarantee:
    return Guarantee(epsilon, 0.0, None)


def gaussian(rho: float, delta: float) -> Guarantee:
    return Guarantee(gaussian_epsilon(math.sqrt(2 * rho), delta), delta, rho)


SYNTHETIC = Guarantee(0.0, 1e-7, None, "global")


def test_sums_are_those_of_the_decimals() -> None:
    assert total([pure(0.1)] * 3).epsilon == 0.3  # which 0.1 + 0.1 + 0.1 is not
    assert covers(Budget(0.3, 0.0), [pure(0.1)] * 3)
    assert not covers(Budget(0.3, 0.0), [pure(0.1)] * 3 + [pure(1e-300)])
    assert total([Guarantee(0.5, 1e-6, 0.1), Guarantee(0.25, 2e-6, 0.2)]) == total(
        [Guarantee(0.25, 2e-6, 0.2), Guarantee(0.5, 1e-6, 0.1)]
    )
    both = total([Guarantee(0.5, 1e-6, 0.1), Guarantee(0.25, 2e-6, 0.2)])
    assert (both.releases, both.epsilon, both.delta, both.rho) == (2, 0.75, 3e-6, 0.3)
    assert total([]) == total([])  # nothing costs nothing
    assert (total([]).epsilon, total([]).delta, total([]).rho) == (0.0, 0.0, 0.0)


def test_what_has_no_common_notion_is_not_summed() -> None:
    only_rho = Guarantee(None, None, 0.1)
    assert total([pure(1.0), only_rho]).epsilon is None
    assert total([pure(1.0), SYNTHETIC]).rho is None
    assert total([pure(1.0), only_rho]).rho == pytest.approx(0.1 + response_rho(1.0), rel=1e-11)
    assert zcdp(Guarantee(1.0, 0.0, 0.3)) == Fraction("0.3")  # its own is less than what epsilon implies
    assert zcdp(Guarantee(0.1, 0.0, 0.3)) == pytest.approx(response_rho(0.1), rel=1e-11)
    assert zcdp(SYNTHETIC) is None
    assert epsilon_at([only_rho], 0.0) is None
    assert not covers(Budget(9.0, 0.0), [only_rho]) and covers(Budget(9.0, 1e-6), [only_rho])
    assert not covers(Budget(rho=9.0), [SYNTHETIC])


@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.3), (5, 0.2), (40, 0.1), (100, 0.05), (400, 0.02)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_pure_releases_cost_no_less_than_the_worst_ones_do(count: int, epsilon: float, delta: float) -> None:
    """Hold the bound against randomized response, whose composition is known exactly (Kairouz 2015)."""
    found = epsilon_at([pure(epsilon)] * count, delta)
    assert found is not None and found <= Fraction(repr(epsilon)) * count
    e, p = float(found), math.exp(epsilon) / (1 + math.exp(epsilon))
    actual = sum(
        math.comb(count, k)
        * max(0.0, p**k * (1 - p) ** (count - k) - math.exp(e) * (1 - p) ** k * p ** (count - k))
        for k in range(count + 1)
    )
    assert actual <= delta
    if count == 400:
        assert float(found) < 0.5 * count * epsilon  # and it is worth converting


def test_gaussian_releases_cost_no_less_than_one_with_all_their_rho() -> None:
    for count in (1, 2, 10, 100):
        rho, delta = 0.02, 1e-6
        found = epsilon_at([gaussian(rho, 1e-8)] * count, delta)
        assert found is not None
        assert gaussian_delta(float(found), math.sqrt(2 * rho * count)) <= delta
        assert float(found) < 1.5 * gaussian_epsilon(math.sqrt(2 * rho * count), delta) + 1e-3


def test_what_is_added_and_what_is_converted_is_chosen_for_each() -> None:
    """One release is better added, a hundred better converted, and both at once better than either way."""
    large, small = [pure(3.0)], [pure(0.02)] * 300
    delta = 1e-6
    mixed = epsilon_at([*large, *small, pure(0.02)], delta)
    converted = epsilon_at([*small, pure(0.02)], delta)
    assert mixed is not None and converted is not None
    assert mixed <= converted + 3
    assert mixed < min(3 + Fraction("6.02"), Fraction(epsilon_of_all(301, delta)))
    assert epsilon_at([*large, SYNTHETIC], delta) == 3
    assert epsilon_at([SYNTHETIC] * 11, delta) is None  # their deltas alone are more


def epsilon_of_all(count: int, delta: float) -> float:
    rho = response_rho(3.0) + count * response_rho(0.02)
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


costs = st.one_of(
    st.sampled_from([0.1, 0.2, 0.3, 0.5, 1.0]).map(pure),
    st.floats(1e-6, 2.0).map(pure),
    st.floats(1e-5, 0.3).map(lambda rho: gaussian(rho, 1e-7)),
    st.floats(1e-5, 0.3).map(lambda rho: Guarantee(None, None, rho)),
    st.just(SYNTHETIC),
)
budgets = st.one_of(
    st.builds(Budget, st.floats(0.1, 5.0), st.just(0.0)),
    st.builds(Budget, st.floats(0.1, 5.0), st.sampled_from([1e-8, 1e-6, 0.01])),
    st.floats(0.01, 3.0).map(lambda rho: Budget(rho=rho)),
)


@given(budgets, st.lists(costs, max_size=8))
@settings(deadline=None, max_examples=40)
def test_what_is_said_to_remain_may_be_spent_and_no_more(budget: Budget, offers: list[Guarantee]) -> None:
    spent: list[Guarantee] = []
    for offer in offers:
        if covers(budget, [*spent, offer]):
            spent.append(offer)
    assert covers(budget, spent)
    left = remaining(budget, spent)
    kinds = {"epsilon": pure, "delta": lambda v: Guarantee(0.0, v, None)}
    kinds["rho"] = lambda v: Guarantee(None, None, v)
    for name, value in left.items():
        assert value >= 0
        if value > 0:
            assert covers(budget, [*spent, kinds[name](value)]), name
            assert not covers(budget, [*spent, kinds[name](value * 1.0001 + 1e-12)]), name


@given(st.lists(st.integers(1, 40), max_size=30))
@settings(deadline=None, max_examples=40)
def test_pure_sums_agree_with_decimal_arithmetic(tenths: list[int]) -> None:
    budget, spent, decimal = Budget(3.3, 0.0), [], Decimal(0)
    for tenth in tenths:
        fits = decimal + Decimal(tenth) / 100 <= Decimal("3.3")
        assert covers(budget, [*spent, pure(tenth / 100)]) is fits
        if fits:
            spent.append(pure(tenth / 100))
            decimal += Decimal(tenth) / 100
    assert Decimal(repr(total(spent).epsilon)) == decimal
    assert Decimal(repr(remaining(budget, spent)["epsilon"])) == Decimal("3.3") - decimal


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({}, "a budget is epsilon and delta, or rho"),
        ({"epsilon": 1.0}, "a budget is epsilon and delta, or rho"),
        ({"epsilon": 1.0, "delta": 0.0, "rho": 1.0}, "a budget is epsilon and delta, or rho"),
        ({"epsilon": 0.0, "delta": 0}, "the epsilon of a budget must be positive and at most 1e+100, not 0"),
        ({"rho": math.inf}, "the rho of a budget must be positive and at most 1e+100, not inf"),
        ({"epsilon": 1.0, "delta": 1.0}, "the delta of a budget must be 0 at least and below 1, not 1"),
    ],
)
def test_wrong_budgets_are_refused(numbers: dict[str, float], said: str) -> None:
    with pytest.raises(PrivacyError) as caught:
        Budget(**numbers)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("guarantee", "said"),
    [
        (Guarantee(math.inf, None, None), "there is no finite guarantee"),
        (Guarantee(None, None, None), "there is no guarantee"),
        (Guarantee(1.0, math.nan, None), "there is no finite guarantee"),
        (Guarantee(-1.0, 0.0, None), "there is no finite guarantee"),
    ],
)
def test_what_cannot_be_added_is_refused(guarantee: Guarantee, said: str) -> None:
    with pytest.raises(PrivacyError) as caught:
        check(guarantee)
    assert str(caught.value).startswith(said)


def test_a_guarantee_for_other_neighbours_cannot_be_stated_and_so_not_added() -> None:
    with pytest.raises(PrivacyError) as caught:
        Guarantee(1.0, 0.0, None, "local", "removal")  # type: ignore[arg-type]  # as from a file
    assert str(caught.value).startswith("adjacency is removal, and not replacement or replacement, public")


@pytest.mark.parametrize(
    ("budget", "spent", "left"),
    [
        (Budget(10.0, 0.01), Guarantee(1.0, 1e-4, None), {"epsilon": 9.0, "delta": 0.0099}),
        (Budget(0.3, 1e-6), Guarantee(0.1, 0.0, None), {"epsilon": 0.2}),
        (Budget(3.0, 1e-6), Guarantee(0.7, 4e-7, None), {"epsilon": 2.3, "delta": 6e-7}),
        (Budget(1.0, 1e-6), SYNTHETIC, {"epsilon": 1.0, "delta": 9e-7}),
    ],
)
def test_where_a_difference_of_sums_remains_it_is_exact_and_may_be_spent(
    budget: Budget, spent: Guarantee, left: dict[str, float]
) -> None:
    found = remaining(budget, [spent])
    assert {name: found[name] for name in left} == left
    account = Account("d", budget=budget).allow(spent).allow(Guarantee(left["epsilon"], 0.0, None))
    assert covers(budget, account.spent)


UNPROVED = Guarantee(1.0, 0.25, None, "global", proved=False)


def test_sums_are_proved_where_each_of_their_guarantees_is() -> None:
    account = Account("d", budget=Budget(8.0, 0.25)).allow(Guarantee(1.0, 0.0, None))
    assert "proved" not in account.in_words() and account.to_json()["proved"] is True
    account = account.allow(UNPROVED)
    assert total(account.spent.whole).unproved == worst(account.spent).unproved == 1
    assert account.to_json()["proved"] is False
    spent, left = account.in_words().split("; ")
    assert spent.endswith(
        "(epsilon = 2, delta = 0.25)-DP, which is not proved, as the guarantee of 1 release is not"
    )
    assert left.endswith("delta = 0.25, epsilon = 6 remains if what is not proved holds")
    with pytest.raises(PrivacyError) as caught:
        account.allow(UNPROVED)
    left, more = str(caught.value).split("; ")
    assert left.endswith("epsilon = 6 remains if what is not proved holds")
    assert more.startswith("a release under (epsilon = 1, delta = 0.25)-DP, which is not proved, exceeds it")
    alone = Account("d").allow(UNPROVED)
    assert alone.in_words().endswith("(epsilon = 1, delta = 0.25)-DP, which is not proved; no budget is set")
    assert (
        "guarantees of 2 releases are not"
        in alone.allow(UNPROVED).allow(Guarantee(1.0, 0.0, None)).in_words()
    )


def test_of_parts_each_says_whether_its_own_is_proved() -> None:
    spent = Spent().adding(Guarantee(1.0, 0.0, None).of_public_part(), "men")
    account = Account("d", spent.adding(UNPROVED.of_public_part(), "women"), Budget(8.0, 0.5))
    assert worst(account.spent).adjacency == Adjacency.PUBLIC_PARTS
    found = account.to_json()
    assert [found["proved"], *(part["proved"] for part in found["parts"])] == [False, True, False]
    words = [part["words"] for part in found["parts"]]
    assert ["proved" in each for each in words] == [False, True]
    assert (
        words[1].count("which is not proved;") == words[1].count("remains if what is not proved holds") == 1
    )
    assert (
        "that stays in its part), which is not proved, as the guarantee of 1 release is not" in found["words"]
    )
