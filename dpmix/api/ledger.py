"""The ledger of a spec: what a release spends is entered before anything is drawn, and its output after."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dpmix
from dpmix.errors import DataError, PrivacyError, SpecError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import Budget
from dpmix.privacy.ledger import Account, Book
from dpmix.spec import RunSpec
from dpmix.store.ledger import changing, ledger_path, lock_of, read_ledger

__all__ = ["Spending", "set_budget", "show", "spending_of", "to_text"]

_SHOWN = ("kind", "generator", "noise", "scale", "calibration", "requested", "groups")
"""What an entry says of the mechanism, besides the names of the columns."""


class Spending:
    """The cost of one release, from before it is drawn until it is written.

    Parameters
    ----------
    path : Path
        The ledger.
    dataset : str
        Name of the confidential data.
    budget : Budget or None
        As the spec states it.
    """

    def __init__(self, path: Path, dataset: str, budget: Budget | None) -> None:
        self.path, self.dataset, self.budget = path, dataset, budget
        self._number: int | None = None

    def foresee(self, guarantee: Guarantee | None = None) -> Account:
        """Return the data set's account, after a release under `guarantee`, and enter nothing.

        Raises
        ------
        DataError
            When the ledger cannot be read, is damaged or was changed.
        PrivacyError
            When the budget does not cover the release, or is not the one that the ledger has.
        """
        account = self._agreed(read_ledger(self.path).account(self.dataset))
        return account if guarantee is None else account.allow(guarantee)

    def plan(self, guarantee: Guarantee) -> str:
        """Say what a release would enter, and what would remain, and enter nothing.

        Raises
        ------
        DataError, PrivacyError
            As `foresee`.
        """
        after = self.foresee(guarantee).in_words()
        return f"enter this in the ledger {self.path}: {after}"

    def reserve(self, mechanism: Mapping[str, Any], columns: Sequence[str], guarantee: Guarantee) -> None:
        """Enter a release that is about to be drawn; it counts from here on, whatever becomes of it.

        Raises
        ------
        DataError, PrivacyError
            As `foresee`, and when the ledger cannot be written. Nothing is entered then.
        """
        with changing(self.path) as book:
            account = book.account(self.dataset)
            if self._agreed(account) != account and self.budget is not None:
                book.set_budget(self.dataset, self.budget, _now())
            about = {key: mechanism[key] for key in _SHOWN if key in mechanism} | {"columns": list(columns)}
            self._number = book.spend(self.dataset, about, guarantee, _now(), dpmix.__version__)

    def finish(self, output: Path | None) -> str:
        """Enter that the release is written, and say what is spent and what remains.

        Parameters
        ----------
        output : Path or None
            The file that was written, if any.

        Raises
        ------
        DataError
            When that cannot be entered; the release counts all the same.
        """
        assert self._number is not None  # a release is reserved before it is drawn
        try:
            found = None if output is None else {"file": output.name, "sha256": _digest(output)}
            with changing(self.path) as book:
                book.finish(self._number, found, _now())
        except (DataError, OSError) as error:
            done = "the release was drawn" if output is None else f"{output} is written"
            raise DataError(f"{done} and counts in the ledger, but not as finished there: {error}") from error
        return f"ledger {self.path.name}: {book.account(self.dataset).in_words()}"

    def _agreed(self, account: Account) -> Account:
        """Return the account with the budget that holds: the ledger's, or the spec's where it has none."""
        if self.budget is None or account.budget == self.budget:
            return account
        if account.budget is None:
            return Account(account.dataset, account.spent, self.budget)
        raise PrivacyError(
            f"privacy.budget: is {self.budget.in_words()}, but {account.dataset} has "
            f"{account.budget.in_words()} in {self.path}; correct the spec, or change that by `dpmix ledger "
            "budget`"
        )


def spending_of(spec: RunSpec, outputs: Sequence[str | os.PathLike[str] | None] = ()) -> Spending | None:
    """Return the spending of a spec's ledger, None where it has none, after checking that it can be entered.

    Parameters
    ----------
    spec : RunSpec
        Checked.
    outputs : sequence of path
        What the release writes, none of which may be the ledger.

    Raises
    ------
    SpecError
        When there is a section ``privacy`` and no ledger.
    UsageError
        When the ledger is named as another file too.
    DataError, PrivacyError
        As `Spending.foresee`.
    """
    section = spec.privacy
    if section is None:
        return None
    if section.ledger is None:
        raise SpecError(
            "privacy.ledger: missing; name the file that releases are entered in, or --ledger FILE"
        )
    final = ledger_path(section.ledger)
    taken = [Path(os.path.realpath(path)) for path in outputs if path is not None]
    if spec.data is not None and spec.data.path is not None:
        taken.append(Path(os.path.realpath(spec.data.path)))
    if final in taken or lock_of(final) in taken:
        raise UsageError(f"{section.ledger} is named twice, as ledger and as another file")
    if spec.data is not None and spec.data.simulate is not None:
        return None
    stated = section.budget
    budget = None if stated is None else Budget(stated.epsilon, stated.delta, stated.rho)
    found = Spending(section.ledger, section.dataset, budget)
    found.foresee()
    return found


def show(ledger: str | os.PathLike[str], dataset: str | None = None) -> dict[str, Any]:
    """Return what a ledger says, for strict JSON: entries, and each data set's sums, budget and remainder.

    Raises
    ------
    DataError
        When there is no such ledger, it is damaged or was changed, or has no such data set.
    """
    if not Path(ledger).exists():
        ledger_path(ledger)
        read_ledger(ledger)  # says so where one is missing that was there
        raise DataError(f"{ledger}: no such ledger")
    book = read_ledger(ledger)
    if dataset is not None and dataset not in book.datasets:
        raise DataError(f"{ledger}: has no data set {dataset}; it has {', '.join(book.datasets) or 'none'}")
    names = book.datasets if dataset is None else (dataset,)
    return {
        "ledger": str(ledger),
        "entries": len(book.entries),
        "head": book.head,
        "datasets": [book.account(name).to_json() | {"history": _history(book, name)} for name in names],
    }


def to_text(shown: Mapping[str, Any]) -> str:
    """Write what `show` returns for people."""
    count = shown["entries"]
    lines = [
        f"{shown['ledger']}: {count} {'entry' if count == 1 else 'entries'}, unbroken to {shown['head']}"
    ]
    for part in shown["datasets"]:
        lines += ["", part["words"]]
        for each in part["history"]:
            lines.append(f"  {each['number']:>4}  {each['time']}  {each['words']}")
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)


def set_budget(
    ledger: str | os.PathLike[str], dataset: str, budget: Budget, quiet: bool = False
) -> dict[str, Any]:
    """Set or change the budget of a data set; the ledger keeps the one before, too.

    Raises
    ------
    DataError
        As `Spending.reserve`.
    """
    with changing(ledger) as book:
        if book.account(dataset).budget != budget:
            book.set_budget(dataset, budget, _now())
    if not quiet:
        print(f"dpmix: ledger {Path(ledger).name}: {book.account(dataset).in_words()}", file=sys.stderr)
    return book.account(dataset).to_json()


def _history(book: Book, dataset: str) -> list[dict[str, Any]]:
    """Return the budgets and releases of a data set in order, each release with its output."""
    outputs = book.outputs()
    found = []
    for entry in book.entries:
        if entry["dataset"] != dataset or entry["type"] == "release":
            continue
        kept = {k: v for k, v in entry.items() if k not in ("dataset", "previous", "digest")}
        if entry["type"] == "spend":
            end = outputs.get(entry["number"])
            kept |= {"finished": end is not None, "output": None if end is None else end["output"]}
        found.append(kept | {"words": _entry_in_words(kept)})
    return found


def _entry_in_words(entry: Mapping[str, Any]) -> str:
    if entry["type"] == "budget":
        return f"budget of {Budget(**entry['budget']).in_words()}"
    mechanism, guarantee = entry["mechanism"], Guarantee(**entry["guarantee"])
    kind = mechanism.get("generator") or mechanism.get("kind")
    columns = " by ".join([", ".join(mechanism.get("columns", ())), *mechanism.get("groups", ())])
    output = entry["output"]
    where = "not finished, counts all the same" if not entry["finished"] else "kept in memory"
    if output is not None:
        where = f"{output['file']} (sha256 {output['sha256'][:12]})"
    words = Account("", (guarantee,)).cost_in_words()
    return f"{kind} of {columns}: {words}, {guarantee.trust} model; {where}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
