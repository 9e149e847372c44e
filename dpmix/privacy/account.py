"""One data set's releases so far, those of public parts of it included, against its budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmix.errors import PrivacyError
from dpmix.numerics.rounding import figure, figure_below
from dpmix.privacy.accounting import Adjacency, Guarantee, Spent
from dpmix.privacy.budget import (
    Budget,
    Total,
    check,
    covers,
    epsilon_at,
    in_words,
    remaining,
    total,
    upward,
    worst,
    zcdp,
)

__all__ = ["Account", "budget_dict", "sums"]


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
        By which releases are added up: one of `dpmix.privacy.budget.ACCOUNTANTS`.
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
        # the other parts are as they were
        if self.budget is not None and not self._covers(after, part):
            left = self.left_in_words(part)
            of = self.dataset if part is None else f"{self.dataset}, whose part {part} is,"
            raise PrivacyError(
                f"privacy.budget: {of} has a budget of {self.budget.in_words()}, of which "
                f"{left}{'' if part is None else ' for that part'}; a release under "
                f"{in_words(total([more]))} {self._why_not(self.budget, more, part)}, and nothing was drawn "
                "or spent"
            )
        return after

    def _covers(self, after: Account, part: str | None) -> bool:
        assert self.budget is not None  # the caller has looked
        spent = after.spent if part is None else after.spent.line(part)
        return covers(self.budget, spent, self.accountant)

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
        return f"{name} = {figure_below(left[name])} remains"

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
        words = f"{part}: {count}, {in_words(total(own))}"
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
        return words + _relation_in_words(found, self.spent)

    def to_json(self) -> dict[str, Any]:
        """Return sums, budget and what remains, for strict JSON."""
        found: dict[str, Any] = {"dataset": self.dataset, "composition": sums(worst(self.spent))}
        found["releases"] = self.spent.releases
        found["budget"] = None if self.budget is None else budget_dict(self.budget)
        found["remaining"] = self.left()
        found["accountant"] = self.accountant
        if self.budget is not None and self.budget.delta:
            epsilon = epsilon_at(self.spent, self.budget.delta, self.accountant)
            found["epsilon_at_delta"] = None if epsilon is None else upward(epsilon)
        if self.spent.parts:
            found["adjacency"] = str(worst(self.spent).adjacency)
            found["parts"] = [
                {
                    "part": name,
                    "releases": len(spent),
                    "composition": sums(total(spent)),
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


def sums(found: Total) -> dict[str, Any]:
    """Return sums as an entry holds them."""
    return {"epsilon": found.epsilon, "delta": found.delta, "rho": found.rho}


def budget_dict(budget: Budget) -> dict[str, float]:
    """Return a budget as an entry holds it."""
    return {k: v for k in ("epsilon", "delta", "rho") if (v := getattr(budget, k)) is not None}
