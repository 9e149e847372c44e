"""The ledger's entries: what was released of each data set, in order, each bound to those before it.

Three kinds of entry, numbered from 1 without gaps:

- ``budget``: what the releases of a data set may cost together, from here on;
- ``spend``: one release is about to be drawn: its mechanism and guarantee, and all of the data set's releases
  together after it. It counts from here on, whatever becomes of the release;
- ``release``: the output of a ``spend`` is written, with its digest.

Nothing in an entry comes from the confidential values. ``previous`` is the digest of the entry before, and
``digest`` that of the entry itself: a change of any entry shows unless all that follow are made anew. Times
are for people; the order is that of the numbers, so that a clock may go back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dpmix.errors import DataError, PrivacyError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import Budget, check, covers, epsilon_at, in_words, remaining, total, zcdp

__all__ = ["FORMAT", "START", "VERSION", "Account", "Book"]

FORMAT, VERSION = "dpmix ledger", 1
START = "0" * 64
"""What stands for the digest before the first entry."""

Entry = dict[str, Any]
_KEYS = {
    "budget": {"budget"},
    "spend": {"mechanism", "guarantee", "composition", "dpmix_version"},
    "release": {"spend", "output"},
}
_COMMON = {"number", "type", "dataset", "time", "previous", "digest"}


@dataclass(frozen=True)
class Account:
    """One data set's releases so far.

    Parameters
    ----------
    dataset : str
        Name that the curator gave.
    spent : tuple of Guarantee
        Of every release, finished or not, in order.
    budget : Budget or None
        The last one stated.
    """

    dataset: str
    spent: tuple[Guarantee, ...] = ()
    budget: Budget | None = None

    def allow(self, more: Guarantee) -> Account:
        """Return the account after one more release.

        Raises
        ------
        PrivacyError
            When the budget does not cover it, or it cannot be accounted for.
        """
        check(more)
        after = Account(self.dataset, (*self.spent, more), self.budget)
        if self.budget is not None and not covers(self.budget, after.spent):
            raise PrivacyError(
                f"privacy.budget: {self.dataset} has a budget of {self.budget.in_words()}, of which "
                f"{self.left_in_words()}; a release under {in_words(total([more]))} "
                f"{self._why_not(self.budget, more)}, and nothing was drawn or spent"
            )
        return after

    def _why_not(self, budget: Budget, more: Guarantee) -> str:
        """Say why a budget does not cover a release."""
        if budget.rho is not None:
            if zcdp(more) is None:
                return "has no zCDP, which a budget of rho counts"
            if total(self.spent).rho is None:
                return "comes after one without zCDP, which a budget of rho counts"
        elif not budget.delta and (more.delta or more.epsilon is None):
            return "needs a budget with a delta"
        return "exceeds it"

    def left_in_words(self) -> str:
        """Say what remains of the budget, such as "epsilon = 0.4 remains"."""
        if self.budget is None:
            return "no budget is set"
        left = remaining(self.budget, self.spent)
        name = "rho" if self.budget.rho is not None else "epsilon"
        whole = getattr(self.budget, name)
        if left[name] < 1e-9 * whole and not left.get("delta"):
            return "nothing remains" if not any(left.values()) else "next to nothing remains"
        return f"{name} = {left[name]:.6g} remains"

    def in_words(self) -> str:
        """Say what is spent, and what remains where there is a budget."""
        count = len(self.spent)
        if not count:
            words = f"nothing released of {self.dataset} so far"
        else:
            one = "1 release" if count == 1 else f"{count} releases"
            words = f"{one} of {self.dataset} so far, in all {self.cost_in_words()}"
        if self.budget is None:
            return words + "; no budget is set"
        return f"{words}; of the budget of {self.budget.in_words()}, {self.left_in_words()}"

    def cost_in_words(self) -> str:
        """Write the sums, and the least epsilon known at the budget's delta."""
        words = in_words(total(self.spent))
        delta = None if self.budget is None else self.budget.delta
        epsilon = epsilon_at(self.spent, delta) if delta else None
        if delta is None or epsilon is None:
            return words
        return f"{words}, together (epsilon = {float(epsilon):.6g}, delta = {delta:.6g})-DP"

    def to_json(self) -> dict[str, Any]:
        """Return sums, budget and what remains, for strict JSON."""
        sums = total(self.spent)
        found: dict[str, Any] = {"dataset": self.dataset, "composition": _sums(self.spent)}
        found["releases"] = sums.releases
        found["budget"] = None if self.budget is None else _budget_dict(self.budget)
        found["remaining"] = None if self.budget is None else remaining(self.budget, self.spent)
        if self.budget is not None and self.budget.delta:
            epsilon = epsilon_at(self.spent, self.budget.delta)
            found["epsilon_at_delta"] = None if epsilon is None else float(epsilon)
        found["words"] = self.in_words()
        return found


class Book:
    """Entries in order, checked; new ones are added to what is there, and nothing is ever changed.

    Parameters
    ----------
    entries : sequence of dict
        As `parse` checks them.
    """

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self._accounts: dict[str, Account] = {}
        for entry in self.entries:
            self._take(entry)

    @property
    def head(self) -> str:
        """Digest of the last entry."""
        return str(self.entries[-1]["digest"]) if self.entries else START

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets, in the order of their first entries."""
        return tuple(self._accounts)

    def account(self, dataset: str) -> Account:
        """Return a data set's releases so far: none of a name that is new."""
        return self._accounts.get(dataset, Account(dataset))

    def set_budget(self, dataset: str, budget: Budget, time: str) -> None:
        """Add the budget of a data set, which holds from here on."""
        self._add({"type": "budget", "dataset": dataset, "time": time, "budget": _budget_dict(budget)})

    def spend(
        self, dataset: str, mechanism: Mapping[str, Any], more: Guarantee, time: str, version: str
    ) -> int:
        """Add a release that is about to be drawn, and return the number of its entry.

        Raises
        ------
        PrivacyError
            When the budget does not cover it, or it cannot be accounted for; nothing is added.
        """
        after = self.account(dataset).allow(more)
        self._add(
            {
                "type": "spend",
                "dataset": dataset,
                "time": time,
                "mechanism": dict(mechanism),
                "guarantee": {
                    "epsilon": more.epsilon,
                    "delta": more.delta,
                    "rho": more.rho,
                    "adjacency": more.adjacency,
                    "trust": more.trust,
                },
                "composition": _sums(after.spent),
                "dpmix_version": version,
            }
        )
        return len(self.entries)

    def finish(self, number: int, output: Mapping[str, str] | None, time: str) -> None:
        """Add that the release of an entry is written."""
        dataset = self.entries[number - 1]["dataset"]
        self._add(
            {
                "type": "release",
                "dataset": dataset,
                "time": time,
                "spend": number,
                "output": None if output is None else dict(output),
            }
        )

    def outputs(self) -> dict[int, Entry]:
        """Return the entry that finishes each release, by the number of its ``spend``."""
        return {e["spend"]: e for e in self.entries if e["type"] == "release"}

    def to_text(self) -> str:
        """Return the ledger as a JSON document, one line an entry."""
        lines = ",\n".join(" " + _canonical(entry) for entry in self.entries)
        return f'{{"format": "{FORMAT}", "version": {VERSION}, "entries": [\n{lines}\n]}}\n'

    def _add(self, entry: Entry) -> None:
        entry = {"number": len(self.entries) + 1, "previous": self.head, **entry}
        entry["digest"] = _digest(entry)
        self._take(entry)
        self.entries.append(entry)

    def _take(self, entry: Entry) -> None:
        before = self.account(entry["dataset"])
        spent, budget = before.spent, before.budget
        if entry["type"] == "budget":
            budget = Budget(**entry["budget"])
        elif entry["type"] == "spend":
            spent = (*spent, Guarantee(**entry["guarantee"]))
        self._accounts[entry["dataset"]] = Account(entry["dataset"], spent, budget)

    @classmethod
    def parse(cls, text: str) -> Book:
        """Read a ledger's text.

        Raises
        ------
        DataError
            When it is none, of another version, cut short or changed; the message lacks the name of the file.
        """
        try:
            found = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            raise DataError("is no ledger, or is cut short: it is not a whole JSON document") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise DataError("is no ledger of dpmix")
        version = found.get("version")
        if version != VERSION or isinstance(version, bool):
            newer = isinstance(version, int) and version > VERSION
            why = "made by a newer dpmix; use that one" if newer else "which is none"
            raise DataError(f"is a ledger of version {version!s:.20}, {why} (this one knows {VERSION})")
        entries = found.get("entries")
        if not isinstance(entries, list) or set(found) != {"format", "version", "entries"}:
            raise DataError("is damaged: it does not hold a list of entries")
        previous = START
        finished: set[int] = set()
        for number, entry in enumerate(entries, 1):
            _check_entry(entries, number, entry, previous, finished)
            previous = entry["digest"]
        try:
            return cls(entries)
        except PrivacyError as error:
            raise DataError(f"is damaged: {error}") from error


def _check_entry(entries: Sequence[Any], number: int, entry: Any, previous: str, finished: set[int]) -> None:
    """Check that an entry is whole, in its place, and as it was written; note the release it finishes.

    Raises
    ------
    DataError
        Naming it.
    """
    kind = entry.get("type") if isinstance(entry, dict) else None
    known = _KEYS.get(kind) if isinstance(kind, str) else None
    if known is None or set(entry) != _COMMON | known:
        raise DataError(f"is damaged: entry {number} is none")
    if entry["number"] != number or entry["previous"] != previous:
        raise DataError(f"was changed: entry {number} does not follow the one before it")
    if entry["digest"] != _digest({k: v for k, v in entry.items() if k != "digest"}):
        raise DataError(f"was changed: entry {number} is not what was written")
    whole = all(_is_text(entry[key]) for key in ("dataset", "time"))
    if not whole or not _is_mechanism(entry.get("mechanism")) or not _is_output(entry.get("output")):
        raise DataError(f"is damaged: entry {number} is none")
    try:
        if kind == "spend":
            guarantee = Guarantee(**entry["guarantee"])
            check(guarantee)
            if not (_is_text(guarantee.trust) and _is_text(guarantee.adjacency)):
                raise TypeError
        elif kind == "budget":
            Budget(**entry["budget"])
        else:
            _end(entries, number, entry, finished)
    except (TypeError, PrivacyError) as error:
        raise DataError(f"is damaged: entry {number} states no guarantee") from error


def _end(entries: Sequence[Any], number: int, entry: Mapping[str, Any], finished: set[int]) -> None:
    """Note that an entry finishes a release: one of the same data set, and for the first time."""
    spend = entry["spend"]
    known = isinstance(spend, int) and not isinstance(spend, bool) and 0 < spend < number
    start = entries[spend - 1] if known else {"type": "", "dataset": ""}
    if start["type"] != "spend" or start["dataset"] != entry["dataset"] or spend in finished:
        raise DataError(f"is damaged: entry {number} finishes no release")
    finished.add(spend)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_mechanism(value: Any) -> bool:
    if value is None:  # of another kind of entry
        return True
    if not isinstance(value, dict) or not _is_text(value.get("generator") or value.get("kind")):
        return False
    columns = value.get("columns", [])
    return isinstance(columns, list) and all(map(_is_text, columns))


def _is_output(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and set(value) == {"file", "sha256"} and all(map(_is_text, value.values()))


def _sums(spent: Sequence[Guarantee]) -> dict[str, Any]:
    found = total(spent)
    return {"epsilon": found.epsilon, "delta": found.delta, "rho": found.rho}


def _budget_dict(budget: Budget) -> dict[str, float]:
    return {k: v for k in ("epsilon", "delta", "rho") if (v := getattr(budget, k)) is not None}


def _canonical(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, allow_nan=False)


def _digest(entry: Mapping[str, Any]) -> str:
    try:
        return hashlib.sha256(_canonical(entry).encode()).hexdigest()
    except (ValueError, RecursionError):  # a number beyond what is ever written
        return ""


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
