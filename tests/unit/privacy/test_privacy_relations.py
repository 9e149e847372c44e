"""Guarantees carry their neighbours: what composes to what, and that words never understate a number."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dpmix.errors import PrivacyError
from dpmix.numerics.in_words import (
    figure,
    figure_below,
    guarantee_in_words,
    neighbours_in_words,
    replacing_in_words,
    stated,
)
from dpmix.privacy.accounting import Adjacency, Guarantee, Spent, in_parallel, weakest
from dpmix.privacy.budget import Budget, Total, covers, epsilon_at, remaining, total, worst

PARTS, GROUPS, ONE = Adjacency.PUBLIC_PARTS, Adjacency.PRIVATE_GROUPS, Adjacency.REPLACEMENT


def pure(epsilon: float) -> Guarantee:
    return Guarantee(epsilon, 0.0, None)


def part(epsilon: float, delta: float = 0.0, rho: float | None = None) -> Guarantee:
    return Guarantee(epsilon, delta, rho).of_public_part()


def test_parts_compose_to_the_largest_of_each_number_and_only_where_they_are_public() -> None:
    assert in_parallel([part(1.0, 1e-6, 0.2), part(0.5, 1e-5, 0.3)]) == Guarantee(
        1.0, 1e-5, 0.3, "local", PARTS
    )
    assert in_parallel([part(1.0), part(0.5, 0.0, 0.1)]).rho is None
    assert in_parallel([part(1.0), Guarantee(1.0, 0.0, None, "global", PARTS)]).trust == "global"
    for relation in (ONE, GROUPS):
        with pytest.raises(PrivacyError, match="state nothing together for two parts of one table"):
            in_parallel([part(1.0), Guarantee(1.0, 0.0, None, "local", relation)])
    with pytest.raises(PrivacyError, match="nothing to compose"):
        in_parallel([])


def test_what_holds_for_one_table_is_the_weakest_relation() -> None:
    assert weakest([]) == weakest([ONE, ONE]) == ONE
    assert weakest([ONE, GROUPS]) == GROUPS
    assert weakest([ONE, GROUPS, PARTS]) == PARTS
    assert total([pure(1.0), part(0.5)]).adjacency == PARTS
    assert total([pure(1.0)]).adjacency == ONE


def test_a_table_and_its_parts_are_kept_apart_by_type() -> None:
    spent = Spent().adding(pure(0.1)).adding(part(0.5), "women").adding(part(0.25), "men")
    spent = spent.adding(part(0.25), "men").adding(part(0.125), "women")
    assert spent.releases == 5 and spent.line("men") == (pure(0.1), part(0.25), part(0.25))
    assert spent.line("children") == spent.line(None) == (pure(0.1),)
    assert worst(spent) == Total(5, 0.725, 0.0, worst(spent).rho, PARTS)
    for more, name in ((pure(1.0), "women"), (Guarantee(1.0, 0.0, None, "local", GROUPS), "women")):
        with pytest.raises(PrivacyError, match="is none for women, a part of a table, together with its oth"):
            spent.adding(more, name)
    with pytest.raises(PrivacyError, match="none for a whole table"):
        spent.adding(part(1.0))


RESPONSES = st.lists(st.sampled_from([0.1, 0.25, 0.5, 1.0]), max_size=2)


def ratio(
    epsilons: list[list[float]], whole: list[float], before: tuple[int, int], after: tuple[int, int]
) -> float:
    """Return the largest log ratio of all releases of two records, each a part, each bit answered at random.

    Parameters
    ----------
    epsilons : list of two lists
        Of randomized responses about the record of each part.
    whole : list of float
        Of those about both records, each on its own.
    before, after : pair of int
        The records.
    """
    answers = [(who, e) for who in (0, 1) for e in (*epsilons[who], *whole)]
    most = 0.0
    for said in itertools.product((0, 1), repeat=len(answers)):
        logs = [
            sum((0.0 if bit == table[who] else -e) for (who, e), bit in zip(answers, said, strict=True))
            for table in (before, after)
        ]
        most = max(most, abs(logs[0] - logs[1]))
    return most


@given(RESPONSES, RESPONSES, RESPONSES)
def test_the_worst_over_parts_is_exact(first: list[float], second: list[float], whole: list[float]) -> None:
    """Hold it against enumeration: randomized response of every record, a record replaced in its part."""
    spent = Spent(tuple(map(pure, whole)), {"a": tuple(map(part, first)), "b": tuple(map(part, second))})
    tables = list(itertools.product((0, 1), repeat=2))
    near = [(x, y) for x in tables for y in tables if sum(a != b for a, b in zip(x, y, strict=True)) == 1]
    actual = max(ratio([first, second], whole, x, y) for x, y in near)
    stated_ = worst(spent).epsilon
    assert stated_ is not None
    assert actual == pytest.approx(stated_, abs=1e-12)
    assert stated_ == float(epsilon_at(spent, 0.0) or 0)


def test_budgets_count_the_worst_part_and_remaining_is_what_they_accept() -> None:
    budget = Budget(1.0, 0.0)
    spent = Spent((pure(0.1),), {"a": (part(0.8),), "b": (part(0.5),)})
    assert remaining(budget, spent)["epsilon"] == 0.1
    assert remaining(budget, spent.line("b"))["epsilon"] == 0.4
    for more, name, fits in (
        (pure(0.1), None, True),
        (pure(0.11), None, False),
        (part(0.4), "b", True),
        (part(0.41), "b", False),
        (part(0.9), "c", True),
        (part(0.91), "c", False),
    ):
        assert covers(budget, spent.adding(more, name)) is fits
    rho = Spent((), {"a": (Guarantee(None, None, 0.3, "local", PARTS),), "b": (part(1.0),)})
    assert worst(rho).epsilon is None and epsilon_at(rho, 0.0) is None
    assert covers(Budget(rho=0.5), rho) and not covers(Budget(rho=0.4), rho)


@given(st.floats(1e-300, 1e300), st.integers(1, 15))
@example(1.0004, 4)
@example(0.30000000000000004, 6)
@example(9.9999999, 3)
def test_figures_are_rounded_up_and_remainders_down(value: float, digits: int) -> None:
    exact = Fraction(repr(value))  # the decimal that it is written as
    up, down = figure(value, digits), figure_below(value, digits)
    assert Fraction(up) >= exact >= Fraction(down)
    assert float(up) >= value >= float(down)
    step = Fraction(10) ** (math.floor(math.log10(value)) - digits + 2)
    assert Fraction(up) - Fraction(down) <= step
    assert float(stated(value)) == value


def test_figures_as_they_are_written() -> None:
    assert [figure(1.0004), figure(1.0004, 4), figure(0.1), figure(5.0)] == ["1.0004", "1.001", "0.1", "5"]
    assert [figure_below(1.0006, 4), figure_below(2 / 3)] == ["1", "0.666666"]
    assert [figure(math.inf), figure(0.0), stated(1e-6), stated(0.1234567)] == [
        "inf",
        "0",
        "1e-06",
        "0.1234567",
    ]


@pytest.mark.parametrize("relation", Adjacency)
def test_every_relation_is_said(relation: Adjacency) -> None:
    words = guarantee_in_words(1.0004, 0.0, None, "local", relation)
    assert words.startswith("(epsilon = 1.0004, delta = 0)-DP for the replacement of one record")
    assert neighbours_in_words(relation) in words and replacing_in_words(relation).startswith("replacing any")
