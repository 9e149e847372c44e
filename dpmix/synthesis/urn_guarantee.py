"""Guarantees of the Pitman-Yor posterior predictive, from public numbers alone and rounded to the safe side.

One confidential record among n is replaced; m records are released. With discount 0 <= d < 1 (methods,
section 5) the predictive laws of two neighbouring databases differ in total variation by at most
1/(theta + n + i) at step i, whatever d is and however negative theta > -d: replacing a record moves a mass
of one from its value (d of it from new values' account, if no record of the value is left: the value loses
1 - d, and new values lose d) to another (1 - d and d likewise, if it is the first record of its value). A
draw that is the same for both leaves neighbouring databases of n + i + 1 records, so that the urns can be run
together until they part, which they never do with probability prod_i (theta + n + i - 1)/(theta + n + i) =
(theta + n - 1)/(theta + n + m - 1). The release is (0, delta)-DP, and so (epsilon, delta)-DP for every
epsilon, with

    delta = m/(theta + n + m - 1).

At d = 0 the only record of its value is released with this probability, and under a database without it
never: no smaller delta holds, at any epsilon. The product needs theta + n >= 1, which fails, if at all, for a
single record and theta < 0; the formula exceeds 1 there, and 1 is stated.

With d = -a < 0 and theta = K a the law is the Dirichlet-multinomial of K public categories: the likelihood
ratio is at most 1 + m/a, attained by m releases of a category whose only record is the one replaced.

Parameters are rational numbers: `fractions.Fraction`, `decimal.Decimal`, and `int` or `float` for the very
number that they hold. A guarantee that is stated as a double counts as the decimal that it is written as, as
budgets do: a delta of 3/100 is 0.03.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from dpmix.privacy.budget import upward
from dpmix.privacy.exact import digits, expm1, log1p, round_up

Rational = Fraction | Decimal | int | float

_LARGEST_EPSILON = Decimal(200)  # e^200 records are more than anyone has


def global_delta(n: int, concentration: Rational, records: int) -> Fraction:
    """Return delta = m/(theta + n + m - 1) of `records` draws, exactly, for every discount in [0, 1).

    At most 1; `dpmix.privacy.budget.upward` makes it a double.
    """
    theta = _checked(n, concentration, records)
    return min(Fraction(records) / (theta + n + records - 1), Fraction(1)) if records else Fraction(0)


def largest_records(n: int, concentration: Rational, delta: Rational) -> int:
    """Return the largest m whose `global_delta` is at most delta: floor(delta (theta + n - 1)/(1 - delta)).

    Raises
    ------
    ValueError
        When delta is not in [0, 1).
    """
    theta, bound = _checked(n, concentration), _checked_delta(delta)
    return max(0, math.floor(bound * (theta + n - 1) / (1 - bound)))


def smallest_concentration(n: int, delta: Rational, records: int) -> Fraction:
    """Return the smallest theta for which `records` draws have at most this delta, exactly.

    That is m (1 - delta)/delta - (n - 1). Where it is not above minus the discount, every concentration does.

    Raises
    ------
    ValueError
        When delta is not in (0, 1).
    """
    bound = _checked_delta(delta)
    if bound == 0:
        raise ValueError("no concentration has delta 0")
    return records * (1 - bound) / bound - (n - 1)


def theorem_delta(n: int, concentration: Rational, records: int, epsilon: Rational) -> float:
    """Return the delta of the paper's Theorem 2 (discount 0), for comparison, rounded up.

    The larger of m/(theta + n + m - 1) and 2 m/((theta + n) (e^epsilon - 1)), and 1 at most.
    """
    theta = _checked(n, concentration, records)
    least = upward(global_delta(n, concentration, records))
    if records == 0 or epsilon == 0:
        return float(records > 0)
    with localcontext(digits()):
        growth = expm1(min(_decimal(Fraction(epsilon)), _LARGEST_EPSILON))
        return min(max(least, _stated(_decimal(2 * records / (theta + n)) / growth)), 1.0)


def theorem_records(n: int, concentration: Rational, epsilon: Rational, delta: Rational) -> int:
    """Return the largest m whose `theorem_delta` is at most delta (below 1)."""
    theta, bound = _checked(n, concentration), _checked_delta(delta)
    by_markov = _floor_of_growth(bound * (theta + n) / 2, epsilon)
    return min(largest_records(n, theta, bound), by_markov)


def dm_epsilon(a: Rational, records: int) -> float:
    """Return epsilon = log(1 + m/a) of `records` draws of a Dirichlet-multinomial, rounded up."""
    weight = _checked_weight(a)
    if records == 0:
        return 0.0
    with localcontext(digits()):
        return _stated(log1p(_decimal(records / weight)))


def dm_records(a: Rational, epsilon: Rational) -> int:
    """Return the largest m whose `dm_epsilon` is at most epsilon: floor(a (e^epsilon - 1))."""
    return _floor_of_growth(_checked_weight(a), epsilon)


def dm_concentration(epsilon: Rational, records: int) -> float:
    """Return the smallest double a whose `dm_epsilon` is at most epsilon: m/(e^epsilon - 1), rounded up.

    Raises
    ------
    ValueError
        When epsilon is not positive, or so small that no double will do.
    """
    if not epsilon > 0:
        raise ValueError("no prior count has epsilon 0")
    with localcontext(digits()):
        growth = expm1(min(_decimal(Fraction(epsilon)), _LARGEST_EPSILON))
        a = round_up(records / growth) if records else math.ulp(0.0)
    if math.isinf(a):
        raise ValueError("no prior count has an epsilon so small")
    return a


@dataclass(frozen=True)
class Offers:
    """What would meet a request that cannot be met, one change at a time; None where nothing would.

    Parameters
    ----------
    records : int or None
        The most records, where it is 1 at least.
    delta : Decimal or None
        A delta in few digits, not far above the smallest.
    concentration : Decimal or None
        A concentration in few digits, not far above the smallest.
    """

    records: int | None
    delta: Decimal | None
    concentration: Decimal | None


def offers(n: int, concentration: Rational, delta: Rational, records: int) -> Offers:
    """Return what would meet a request of `records` draws (1 where it is `auto`) at this delta.

    A delta or concentration offered does when it is read as the decimal that it is and as the nearest double.
    """
    most = min(largest_records(n, concentration, delta), records)
    larger = _in_few_digits(
        global_delta(n, concentration, records), lambda d: largest_records(n, concentration, d) >= records
    )
    theta = (
        _in_few_digits(
            smallest_concentration(n, delta, records), lambda t: largest_records(n, t, delta) >= records
        )
        if delta > 0
        else None
    )
    return Offers(most or None, larger if larger is not None and larger < 1 else None, theta)


@dataclass(frozen=True)
class DirichletMultinomialOffers:
    """What would meet a request that cannot be met, as `Offers`: records, or an epsilon or prior count."""

    records: int | None
    epsilon: Decimal
    concentration: Decimal


def dm_offers(a: Rational, epsilon: Rational, records: int) -> DirichletMultinomialOffers:
    """Return what would meet a request of `records` draws (1 where it is `auto`) at this epsilon > 0."""
    larger = _in_few_digits(Fraction(dm_epsilon(a, records)), lambda e: dm_records(a, e) >= records)
    weight = _in_few_digits(
        Fraction(dm_concentration(epsilon, records)), lambda w: dm_records(w, epsilon) >= records
    )
    assert larger is not None and weight is not None  # both are positive
    return DirichletMultinomialOffers(min(dm_records(a, epsilon), records) or None, larger, weight)


def _in_few_digits(least: Fraction, meets: Callable[[Rational], bool]) -> Decimal | None:
    """Return a positive decimal number of 4 digits, or more, just above `least`; None where least <= 0."""
    if least <= 0:
        return None
    for precision in (4, 8, 12, 17):
        with localcontext(prec=precision, rounding=ROUND_CEILING):
            # a quotient of exact numbers, so that it is rounded once
            offered = Decimal(least.numerator) / Decimal(least.denominator)
            below_one = offered < 1 or least >= 1
            for _ in range(3):
                if below_one and meets(offered) and meets(float(offered)):
                    return offered.normalize()
                offered = offered.next_plus()
                below_one = offered < 1 or least >= 1
    return None


def _floor_of_growth(factor: Fraction, epsilon: Rational) -> int:
    """Return floor(factor (e^epsilon - 1)), never one too many."""
    if factor <= 0 or not epsilon > 0:
        return 0
    with localcontext(digits()):
        growth = expm1(min(_decimal(Fraction(epsilon)), _LARGEST_EPSILON))
        return math.floor(_decimal(factor) * growth * (1 - Decimal(10) ** -100))


def _stated(value: Decimal) -> float:
    """Return the double that is written as a number known to 100 digits, or the one above."""
    return upward(Fraction(value * (1 + Decimal(10) ** -100)))


def _decimal(value: Fraction) -> Decimal:
    """Return a rational number in the decimal arithmetic in force."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def _checked(n: int, concentration: Rational, records: int = 0) -> Fraction:
    """Return the concentration as a fraction, the arguments being in range."""
    theta = Fraction(concentration)
    if n < 1 or records < 0 or not theta > -1:
        raise ValueError(f"n {n} must be 1 at least, records {records} not negative, theta {theta} above -1")
    return theta


def _checked_delta(delta: Rational) -> Fraction:
    bound = Fraction(delta)
    if not 0 <= bound < 1:
        raise ValueError(f"delta {delta} must be in [0, 1)")
    return bound


def _checked_weight(a: Rational) -> Fraction:
    weight = Fraction(a)
    if not weight > 0:
        raise ValueError(f"prior count {a} must be positive")
    return weight
