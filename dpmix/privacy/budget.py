"""What the releases of one data set cost together, and whether a budget covers them.

All guarantees are for the replacement of one record of the same data set (methods, section 1), or of public
parts of it: a record is in one part, so that for each part its releases and those of the whole are what it is
in, and all releases together cost what the worst of the parts does. That is exact: `Spent.lines`. Local and
global releases compose alike: a guarantee for each record on its own is one for the replacement of a record.
What a release is of may be chosen in view of those before it; for its cost to be, too, sums are proved
(Rogers et al. 2016; for zCDP Feldman and Zrnic 2021), the best split of them is not. Two compositions are
known:

- basic: epsilons and deltas add;
- zCDP: rhos add (Bun and Steinke 2016, Lemma 2.3), and their sum is converted once at the delta that is left.

Any split of the releases between the two is valid, and the two results add; the least epsilon over some
splits is what is stated, so that it is a bound that holds, not always the smallest one.

A number is the decimal that it is written as (its shortest one, for a double): sums are exact, and three
times 0.1 meets 0.3. What is converted by formula is rounded up. The accountant ``pld`` takes the privacy loss
distribution too (`dpmix.privacy.accounting`), and states the less of the two.

`Account` holds one data set's releases so far, those of public parts of it included, against its budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpmix.errors import PrivacyError
from dpmix.numerics.in_words import figure, figure_below, stated
from dpmix.privacy.accounting import Adjacency, Guarantee, Spent, largest, loss_epsilon, weakest
from dpmix.privacy.conversions import response_rho, rho_to_epsilon

ACCOUNTANTS = ("sums", "pld")
"""Basic composition and zCDP; or privacy loss distributions, too, where they say less."""

_LARGEST = 1e100
"""Numbers beyond it are no guarantee, and their sums no numbers."""
_SPLITS = 12
_TINY = 1e-300
"""The least rho that a pure epsilon is taken to cost: below it a formula in doubles may underflow."""
_ROUNDING = 1 + 2.0**-40
"""By how much a formula in floating point may be off, and more."""


# What is spent, and what may be


@dataclass(frozen=True)
class Budget:
    """What all releases of a data set may cost together: (epsilon, delta), or rho.

    Parameters
    ----------
    epsilon, delta : float or None
        Both or none.
    rho : float or None
        Where those are None.
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises
        ------
        PrivacyError
            When they are no budget.
        """
        if (self.epsilon is None) == (self.rho is None) or (self.epsilon is None) != (self.delta is None):
            raise PrivacyError("a budget is epsilon and delta, or rho")
        for name in ("epsilon", "rho"):
            value = getattr(self, name)
            if value is not None and not 0 < (found := _number(value)) <= _LARGEST:
                raise PrivacyError(
                    f"the {name} of a budget must be positive and at most {_LARGEST:g}, not {found:.4g}"
                )
        if self.delta is not None and not 0 <= (found := _number(self.delta)) < 1:
            raise PrivacyError(f"the delta of a budget must be 0 at least and below 1, not {found:.4g}")

    def in_words(self) -> str:
        """Write it as in "epsilon = 1, delta = 0"."""
        if self.rho is not None:
            return f"rho = {stated(self.rho)}"
        assert self.epsilon is not None and self.delta is not None  # one of the two kinds
        return f"epsilon = {stated(self.epsilon)}, delta = {stated(self.delta)}"


@dataclass(frozen=True)
class Total:
    """Sums over releases, rounded up; None where some release has no such guarantee.

    Parameters
    ----------
    releases : int
        Their number.
    epsilon, delta : float or None
        By basic composition.
    rho : float or None
        By composition of zCDP.
    adjacency : Adjacency
        For which neighbours all of them hold together.
    unproved : int
        How many of the guarantees nobody has proved: with one of them the sums are none either.
    """

    releases: int
    epsilon: float | None
    delta: float | None
    rho: float | None
    adjacency: Adjacency = Adjacency.REPLACEMENT
    unproved: int = 0


def worst(spent: Spent) -> Total:
    """Return what all releases cost together: of each number the largest over the parts (methods, section 1).

    Raises
    ------
    PrivacyError
        As `total`.
    """
    found = [total(line) for line in spent.lines()]

    relation = weakest(each.adjacency for line in spent.lines() for each in line)
    every = [*spent.whole, *(each for part in spent.parts.values() for each in part)]
    epsilon, delta, rho = (largest(found, name) for name in ("epsilon", "delta", "rho"))
    return Total(spent.releases, epsilon, delta, rho, relation, _unproved(every))


def total(spent: Sequence[Guarantee]) -> Total:
    """Add up guarantees of the same data set; nothing costs nothing.

    Raises
    ------
    PrivacyError
        For a guarantee that is none, or not for the replacement of one record.
    """
    for each in spent:
        check(each)
    pairs = [(_exact(g.epsilon), _exact(g.delta or 0.0)) for g in spent if g.epsilon is not None]
    rhos = [r for g in spent if (r := zcdp(g)) is not None]
    basic = len(pairs) == len(spent)
    return Total(
        len(spent),
        upward(sum((e for e, _ in pairs), Fraction(0))) if basic else None,
        upward(sum((d for _, d in pairs), Fraction(0))) if basic else None,
        upward(sum(rhos, Fraction(0))) if len(rhos) == len(spent) else None,
        weakest(g.adjacency for g in spent),
        _unproved(spent),
    )


def _unproved(spent: Sequence[Guarantee]) -> int:
    return sum(not each.proved for each in spent)


def check(guarantee: Guarantee) -> None:
    """Check that a guarantee can be added to others.

    Raises
    ------
    PrivacyError
        When there is none, or one without numbers.
    """
    numbers = [v for v in (guarantee.epsilon, guarantee.delta, guarantee.rho) if v is not None]
    if not all(0 <= _number(v) <= _LARGEST for v in numbers) or _number(guarantee.delta or 0.0) > 1:
        raise PrivacyError("there is no finite guarantee, so that no budget can account for it")
    if guarantee.epsilon is None and guarantee.rho is None:
        raise PrivacyError("there is no guarantee, so that no budget can account for it")


def zcdp(guarantee: Guarantee) -> Fraction | None:
    """Return the rho of a guarantee: its own, or what pure epsilon implies where that is less; else None."""
    found = [] if guarantee.rho is None else [_exact(guarantee.rho)]
    if guarantee.epsilon is not None and not guarantee.delta:
        pure = guarantee.epsilon
        found.append(_exact(max(response_rho(pure) * _ROUNDING, _TINY)) if pure > 0 else Fraction(0))
    return min(found, default=None)


def epsilon_at(spent: Spent | Sequence[Guarantee], delta: float, accountant: str = "sums") -> Fraction | None:
    """Return the smallest epsilon found for which all releases together are (epsilon, delta)-DP.

    None where no epsilon is known at this delta, 0 <= delta < 1.
    """
    if isinstance(spent, Spent):
        found = [epsilon_at(line, delta, accountant) for line in spent.lines()]
        known = [each for each in found if each is not None]
        return max(known) if len(known) == len(found) else None
    if not spent:
        return Fraction(0)
    return _tighter(spent, delta, _least(_splits(spent[:-1]), spent[-1], _exact(delta)), accountant)


def _tighter(
    spent: Sequence[Guarantee], delta: float, sums: Fraction | None, accountant: str
) -> Fraction | None:
    """Return the less of an epsilon and that of the privacy loss distribution, where that is asked for."""
    if accountant == "sums":
        return sums
    found = loss_epsilon(spent, delta)
    known = [each for each in (sums, None if found is None else _exact(found)) if each is not None]
    return min(known, default=None)


def covers(budget: Budget, spent: Spent | Sequence[Guarantee], accountant: str = "sums") -> bool:
    """Whether the releases together stay within a budget."""
    if isinstance(spent, Spent):
        return all(covers(budget, line, accountant) for line in spent.lines())
    if budget.rho is not None:
        rhos = [zcdp(g) for g in spent]
        known = [r for r in rhos if r is not None]
        return len(known) == len(rhos) and sum(known, Fraction(0)) <= _exact(budget.rho)
    assert budget.delta is not None  # one of the two kinds
    most = _exact(budget.epsilon)
    found = epsilon_at(spent, budget.delta)
    if (found is None or found > most) and accountant != "sums":
        found = epsilon_at(spent, budget.delta, accountant)
    return found is not None and found <= most


def remaining(
    budget: Budget, spent: Spent | Sequence[Guarantee], accountant: str = "sums"
) -> dict[str, float]:
    """Return what one more release may cost, each on its own: the numbers of releases that `covers` accepts.

    These are ``epsilon`` of a release under pure epsilon; ``rho`` of one that states rho alone, where the
    budget is of rho or has a delta; ``delta`` of one that is (0, delta)-DP, where the budget is of epsilon.
    With parts, the release is one of the whole. Under the accountant ``pld`` epsilon is found to a 65,536th
    of the budget; delta and rho are what sums accept, and more may be.
    """
    if isinstance(spent, Spent):
        each = [remaining(budget, line, accountant) for line in spent.lines()]
        return {name: min(found[name] for found in each) for name in each[0]}
    if budget.rho is not None:
        rho = total(spent).rho
        left = Fraction(0) if rho is None else max(_exact(budget.rho) - _exact(rho), Fraction(0))
        return {"rho": _down(left), "epsilon": _largest_pure(left)}
    assert budget.epsilon is not None and budget.delta is not None
    splits, most, delta = _splits(spent), _exact(budget.epsilon), _exact(budget.delta)

    def holds(more: Guarantee) -> bool:
        found = _least(splits, more, delta)
        return found is not None and found <= most

    if not budget.delta:
        least = epsilon_at(spent, 0.0)
        return {"epsilon": 0.0 if least is None else _down(max(most - least, Fraction(0))), "delta": 0.0}
    least = _least(splits, Guarantee(0.0, 0.0, None), delta)
    pure = _largest(
        lambda v: holds(Guarantee(v, 0.0, None)),
        budget.epsilon,
        at_least=0.0 if least is None else _down(most - least),  # added, which is exact
    )
    if accountant != "sums":
        more = lambda v: covers(budget, [*spent, Guarantee(v, 0.0, None)], accountant)  # noqa: E731
        pure = max(pure, _largest(more, budget.epsilon, 16))
    return {
        "epsilon": pure,
        "delta": _largest(
            lambda v: holds(Guarantee(0.0, v, None)),
            budget.delta,
            at_least=max((_down(delta - lost) for rho, _, lost in splits if not rho), default=0.0),
        ),
        "rho": _largest(lambda v: holds(Guarantee(None, None, v)), budget.epsilon),
    }


def in_words(spent: Total) -> str:
    """Write sums as in "(epsilon = 1, delta = 0)-DP and 0.4-zCDP"."""
    parts = []
    if spent.epsilon is not None:
        parts.append(f"(epsilon = {figure(spent.epsilon)}, delta = {figure(spent.delta or 0.0)})-DP")
    if spent.rho is not None:
        parts.append(f"{figure(spent.rho)}-zCDP")
    return " and ".join(parts) or "no single notion of all of them"


def not_proved(spent: Total) -> str:
    """Say after sums that they are not proved, where a guarantee among them is not; else nothing."""
    if not spent.unproved:
        return ""
    if spent.unproved == spent.releases:
        return ", which is not proved"
    one = (
        "guarantee of 1 release is" if spent.unproved == 1 else f"guarantees of {spent.unproved} releases are"
    )
    return f", which is not proved, as the {one} not"


def sums(found: Total) -> dict[str, Any]:
    """Return sums as an entry holds them."""
    return {"epsilon": found.epsilon, "delta": found.delta, "rho": found.rho}


def budget_dict(budget: Budget) -> dict[str, float]:
    """Return a budget as an entry holds it."""
    return {k: v for k in ("epsilon", "delta", "rho") if (v := getattr(budget, k)) is not None}


# Which releases are converted, and which are added

Split = tuple[Fraction, Fraction, Fraction]
"""Sum of the rhos that are converted together; sums of the epsilons and deltas of the other releases."""


def _splits(spent: Sequence[Guarantee]) -> list[Split]:
    """Return some ways of converting the rhos of some releases, and adding the epsilons of the others."""
    pairs = [(g, zcdp(g)) for g in spent]
    # those without an epsilon can be converted only, those without a rho be added only
    rho = sum((r for g, r in pairs if g.epsilon is None and r is not None), Fraction(0))
    added = [g for g, r in pairs if r is None]
    free = [(r, g) for g, r in pairs if g.epsilon is not None and r is not None]
    free.sort(key=lambda pair: pair[0] / _exact(pair[1].epsilon) if pair[1].epsilon else Fraction(0))
    epsilon = sum((_exact(g.epsilon) for g in added), Fraction(0))
    delta = sum((_exact(g.delta) for g in added), Fraction(0))
    epsilon += sum((_exact(g.epsilon) for _, g in free), Fraction(0))
    delta += sum((_exact(g.delta) for _, g in free), Fraction(0))
    stops = _stops(len(free))
    found = []
    for count in range(len(free) + 1):
        if count in stops:
            found.append((rho, epsilon, delta))
        if count < len(free):
            cost, g = free[count]
            rho, epsilon, delta = rho + cost, epsilon - _exact(g.epsilon), delta - _exact(g.delta)
    return found


def _stops(size: int) -> set[int]:
    """Return how many of `size` releases to convert: some even shares, and all or none but a few."""
    few = {0, *(2**i for i in range(size.bit_length()))}
    even = {round(i * size / _SPLITS) for i in range(_SPLITS + 1)}
    return even | few | {size - i for i in few}


def _least(splits: Sequence[Split], last: Guarantee, delta: Fraction) -> Fraction | None:
    """Return the least epsilon over splits of earlier releases, with the last one converted or added."""
    cost = zcdp(last)
    found = []
    for rho, epsilon, spent in splits:
        if last.epsilon is not None:
            found.append(_at(rho, epsilon + _exact(last.epsilon), delta - spent - _exact(last.delta)))
        if cost is not None:
            found.append(_at(rho + cost, epsilon, delta - spent))
    return min((e for e in found if e is not None), default=None)


def _at(rho: Fraction, epsilon: Fraction, left: Fraction) -> Fraction | None:
    """Return epsilon with that of the rho at the delta that is left; None where that is not enough."""
    if left < 0:
        return None
    if rho == 0:
        return epsilon
    room = _down(left)
    return epsilon + Fraction(rho_to_epsilon(upward(rho), room) * _ROUNDING) if room > 0 else None


def _largest_pure(rho: Fraction) -> float:
    """Return the largest epsilon whose `zcdp` is at most rho, but for the last few units."""
    return _largest(
        lambda v: (zcdp(Guarantee(v, 0.0, None)) or Fraction(0)) <= rho, 2 * (float(rho) + float(rho) ** 0.5)
    )


def _largest(holds: Callable[[float], bool], most: float, halvings: int = 48, at_least: float = 0.0) -> float:
    """Return the largest number up to `most` for which a monotone condition holds, to 14 digits; else 0.

    `at_least` is one for which it holds, if for any but 0: where that is the largest, it is what is returned.
    """
    if not holds(0.0) or most <= 0:
        return 0.0
    if holds(most):
        return most
    low, high = (at_least if at_least > 0 and holds(at_least) else 0.0), most
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# Numbers, and the decimals that they are written as


def _number(value: Any) -> float:
    """Return a number, NaN for what is none, as may stand in a file, and infinity for one beyond doubles."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _exact(value: float | None) -> Fraction:
    """Return the decimal that a double is written as; None is nothing."""
    return Fraction(0) if value is None else Fraction(repr(float(value)))


def upward(value: Fraction) -> float:
    """Return the double that is next to a number, or the one above."""
    nearest = float(value)
    return nearest if _exact(nearest) >= value else math.nextafter(nearest, math.inf)


def _down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if _exact(nearest) <= value else math.nextafter(nearest, 0.0)


# One data set


@dataclass(frozen=True)
class Account:
    """One data set's releases so far.

    Parameters
    ----------
    dataset : str
        Name that the curator gave; of the whole table, where parts of it are released.
    spent : Spent
        Of every release, finished or not, in order; of all records, and by part.
    budget : Budget or None
        The last one stated: of the whole.
    accountant : str
        By which releases are added up: one of `ACCOUNTANTS`.
    """

    dataset: str
    spent: Spent = Spent()
    budget: Budget | None = None
    accountant: str = "sums"

    def allow(self, more: Guarantee, part: str | None = None) -> Account:
        """Return the account after one more release, of all records or of a part.

        Raises
        ------
        PrivacyError
            When the budget does not cover it, or it cannot be accounted for.
        """
        check(more)
        after = replace(self, spent=self.spent.adding(more, part))
        line = after.spent if part is None else after.spent.line(part)  # the other parts are as they were
        if self.budget is not None and not covers(self.budget, line, self.accountant):
            left = self.left_in_words(part)
            of = self.dataset if part is None else f"{self.dataset}, whose part {part} is,"
            cost = total([more])
            words = in_words(cost) + (f"{not_proved(cost)}," if cost.unproved else "")
            raise PrivacyError(
                f"privacy.budget: {of} has a budget of {self.budget.in_words()}, of which "
                f"{left}{'' if part is None else ' for that part'}; a release under "
                f"{words} {self._why_not(self.budget, more, part)}, and nothing was drawn or spent"
            )
        return after

    def _why_not(self, budget: Budget, more: Guarantee, part: str | None) -> str:
        """Say why a budget does not cover a release."""
        before = worst(self.spent) if part is None else total(self.spent.line(part))
        if budget.rho is not None:
            if zcdp(more) is None:
                return "has no zCDP, which a budget of rho counts"
            if before.rho is None:
                return "comes after one without zCDP, which a budget of rho counts"
        elif not budget.delta and (more.delta or more.epsilon is None):
            return "needs a budget with a delta"
        return "exceeds it"

    def left(self, part: str | None = None) -> dict[str, float] | None:
        """Return what one more release, of all records or of a part, may cost; None without a budget."""
        if self.budget is None:
            return None
        return remaining(self.budget, self.spent if part is None else self.spent.line(part), self.accountant)

    def left_in_words(self, part: str | None = None) -> str:
        """Say what remains of the budget, such as "epsilon = 0.4 remains"."""
        left = self.left(part)
        if self.budget is None or left is None:
            return "no budget is set"
        name = "rho" if self.budget.rho is not None else "epsilon"
        whole = getattr(self.budget, name)
        if left[name] < 1e-9 * whole and not left.get("delta"):
            return "nothing remains" if not any(left.values()) else "next to nothing remains"
        line = worst(self.spent) if part is None else total(self.spent.line(part))
        return f"{name} = {figure_below(left[name])} remains" + " if what is not proved holds" * bool(
            line.unproved
        )

    def in_words(self) -> str:
        """Say what is spent, and what remains where there is a budget."""
        count = self.spent.releases
        if not count:
            words = f"nothing released of {self.dataset} so far"
        else:
            one = "1 release" if count == 1 else f"{count} releases"
            words = f"{one} of {self.dataset} so far, in all {self.cost_in_words()}"
        if self.budget is None:
            return words + "; no budget is set"
        words = f"{words}; of the budget of {self.budget.in_words()}, {self.left_in_words()}"
        return f"{words} for all records" if self.spent.parts else words

    def part_in_words(self, part: str) -> str:
        """Say what is spent of a part, and what remains for it."""
        own = self.spent.parts.get(part, ())
        count = f"{len(own)} release{'s' * (len(own) != 1)}"
        words = f"{part}: {count}, {in_words(total(own))}{not_proved(total(own))}"
        return words if self.budget is None else f"{words}; {self.left_in_words(part)} for it"

    def cost_in_words(self) -> str:
        """Write the sums, and the least epsilon known at the budget's delta."""
        found = worst(self.spent)
        words = in_words(found)
        delta = None if self.budget is None else self.budget.delta
        epsilon = epsilon_at(self.spent, delta, self.accountant) if delta else None
        if delta is not None and epsilon is not None:
            words = f"{words}, together (epsilon = {figure(upward(epsilon))}, delta = {figure(delta)})-DP"
            words += "" if self.accountant == "sums" else " by privacy loss distributions"
        return words + _relation_in_words(found, self.spent) + not_proved(found)

    def to_json(self) -> dict[str, Any]:
        """Return sums, budget and what remains, for strict JSON."""
        cost = worst(self.spent)
        found: dict[str, Any] = {"dataset": self.dataset, "composition": sums(cost)}
        found["proved"] = not cost.unproved
        found["releases"] = self.spent.releases
        found["budget"] = None if self.budget is None else budget_dict(self.budget)
        found["remaining"] = self.left()
        found["accountant"] = self.accountant
        if self.budget is not None and self.budget.delta:
            epsilon = epsilon_at(self.spent, self.budget.delta, self.accountant)
            found["epsilon_at_delta"] = None if epsilon is None else upward(epsilon)
        if self.spent.parts:
            found["adjacency"] = str(cost.adjacency)
            found["parts"] = [
                {
                    "part": name,
                    "releases": len(spent),
                    "composition": sums(total(spent)),
                    "proved": not total(spent).unproved,
                    "remaining": self.left(name),
                    "words": self.part_in_words(name),
                }
                for name, spent in self.spent.parts.items()
            ]
        found["words"] = self.in_words()
        return found


def _relation_in_words(found: Total, spent: Spent) -> str:
    """Say for which neighbours it is, where that is not the replacement of a record of one table."""
    if found.adjacency != Adjacency.PUBLIC_PARTS:
        return ""
    parts: Sequence[str] = list(spent.parts)
    count = f"its part {parts[0]}" if len(parts) == 1 else f"the largest over its {len(parts)} parts"
    return f" ({count}, for the replacement of one record that stays in its part)"
