"""The ledger of a spec: releases are entered before anything is drawn and after they are written, and shown.

What is shown of a ledger, to people and to programs, is without its key and fingerprints.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpmix._version import __version__
from dpmix.errors import DataError, DpmixError, PrivacyError, SpecError, UsageError, say, truth_of
from dpmix.numerics.in_words import printable
from dpmix.privacy.budget import Budget, in_words, not_proved, total
from dpmix.privacy.ledger import guarantee_of
from dpmix.store.atomic import check_output
from dpmix.store.ledger_file import changing, check_start, check_writable, ledger_path, lock_of, read_ledger

if TYPE_CHECKING:
    from dpmix.api.arguments import PathLike
    from dpmix.privacy.accounting import Guarantee
    from dpmix.privacy.fingerprint import Marks
    from dpmix.privacy.ledger import Account, Book
    from dpmix.spec import RunSpec

_SHOWN = ("kind", "generator", "noise", "scale", "calibration", "requested", "groups")
"""What an entry says of the mechanism, besides the names of the columns."""
_KEPT = (
    *("number", "type", "time", "mechanism", "guarantee", "composition"),
    *("dpmix_version", "budget", "accountant"),
)
"""What is shown of an entry; what else it has is for the ledger alone."""

# What releases enter


@dataclass(frozen=True)
class Entering:
    """How a release is entered in the ledger of its spec.

    Parameters
    ----------
    new : bool
        Start the ledger, which must not be there; else it must be.
    bypass : bool
        Enter nothing, which the release records.
    yes : bool
        Go on in spite of warnings that ask for it; enter another table under a known name, as a new edition.
    """

    new: bool = False
    bypass: bool = False
    yes: bool = False

    def __post_init__(self) -> None:
        """Check that none is text, by which a ledger would be bypassed that "False" is said to keep."""
        for given, name in ((self.new, "new_ledger"), (self.bypass, "no_ledger"), (self.yes, "yes")):
            truth_of(given, name)

    def check(self, ledger: PathLike | None) -> None:
        """Check that nothing is asked for that goes against the other.

        Raises
        ------
        UsageError
            When a ledger is named, or started, and bypassed.
        """
        if self.bypass and (self.new or ledger is not None):
            other = "--new-ledger" if self.new else "--ledger"
            raise UsageError(f"--no-ledger: enters nothing, and {other} asks for an entry; give one of them")

    def skipped(self, spec: RunSpec) -> str | None:
        """Say what bypassing the ledger of a spec means; None where none is bypassed."""
        if not self.bypass or spec.privacy is None or spec.simulated:
            return None
        return (
            f"enter nothing in {spec.privacy.ledger or 'a ledger'} (--no-ledger), and record that in the "
            "release"
        )

    def said_of(self, spec: RunSpec) -> str | None:
        """Say on standard error that the ledger of a spec is bypassed; return what the release records."""
        if self.skipped(spec) is None or spec.privacy is None:
            return None
        say(
            f"warning: --no-ledger: nothing is entered in {spec.privacy.ledger or 'a ledger'}: what this "
            "release costs is counted nowhere, and it records that"
        )
        return "bypassed"


def spending_of(
    spec: RunSpec, outputs: Sequence[PathLike | None] = (), entering: Entering | None = None
) -> Spending | None:
    """Return the spending of a spec's ledger, None where it has none, after checking that it can be entered.

    `outputs` are the files that the release writes, none of which may be the ledger.

    Raises
    ------
    SpecError
        When there is a section ``privacy`` and no ledger.
    UsageError
        When the ledger is named as another file too; when a new one is asked for where none is named.
    DataError, PrivacyError
        As `Spending.foresee`.
    """
    section = spec.privacy
    how = Entering() if entering is None else entering
    how.check(None)
    if section is None or how.bypass:
        if how.new:
            raise UsageError("--new-ledger: names no file; say which by --ledger FILE or privacy.ledger")
        return None
    if section.ledger is None:
        raise SpecError(
            "privacy.ledger: missing; name the file that releases are entered in, or --ledger FILE"
        )
    if not spec.simulated:
        check_start(section.ledger, how.new)
    final = ledger_path(section.ledger)
    taken = [Path(os.path.realpath(path)) for path in outputs if path is not None]
    if spec.data is not None:
        taken += [Path(os.path.realpath(path)) for path in spec.data.files]
    if final in taken or lock_of(final) in taken:
        raise UsageError(f"{section.ledger} is named twice, as ledger and as another file")
    if spec.simulated:
        return None
    stated = section.budget
    budget = None if stated is None else Budget(stated.epsilon, stated.delta, stated.rho)
    part = None if spec.data is None else spec.data.part
    if part is not None and section.dataset is None:
        raise SpecError(
            "privacy.dataset: missing; name the part, in the spec or by --dataset NAME (data.part.of names "
            "the whole)"
        )
    whole = None if part is None else part.of
    found = Spending(section.ledger, section.dataset, budget, whole, section.accountant, how)
    found.foresee()
    return found


def entry_steps(
    spec: RunSpec, spending: Spending | None, entering: Entering | None, guarantee: Guarantee
) -> list[str]:
    """Say what a release would enter in the ledger of its spec, or that it is bypassed; nothing without one.

    Raises DataError, PrivacyError and UsageError as `Spending.foresee`.
    """
    if spending is not None:
        return [spending.plan(guarantee)]
    skipped = None if entering is None else entering.skipped(spec)
    return [] if skipped is None else [skipped]


@contextlib.contextmanager
def counting(spending: Spending | None) -> Iterator[None]:
    """Draw and write a release that was reserved: what fails from there on has cost it all the same.

    Raises
    ------
    DpmixError
        What the block raises, with a word of the ledger; of other errors, and of interruptions, that word is
        said on standard error.
    """
    counts = (
        None
        if spending is None
        else f"the release is entered in {spending.path} all the same, and counts there"
    )
    try:
        yield
    except DpmixError as error:
        if counts is None:
            raise
        raise type(error)(f"{error}; {counts}") from error
    except BaseException:
        if counts is not None:
            say(f"warning: {counts}")
        raise


class Spending:
    """The cost of one release, from before it is drawn until it is written.

    Parameters
    ----------
    path : Path
        The ledger.
    dataset : str or None
        Name of the confidential data; None where the spec gives none.
    budget : Budget or None
        As the spec states it.
    whole : str or None
        Name of the table that the data are a public part of.
    accountant : str or None
        As the spec states it.
    entering : Entering
    """

    def __init__(
        self,
        path: Path,
        dataset: str | None,
        budget: Budget | None,
        whole: str | None = None,
        accountant: str | None = None,
        entering: Entering | None = None,
    ) -> None:
        self.path, self.budget = path, budget
        self.whole, self.accountant = whole, accountant
        self.entering = Entering() if entering is None else entering
        self._stated = dataset
        self._number: int | None = None

    @property
    def part(self) -> str | None:
        """Name of the part, where the data are one."""
        return None if self.whole is None else self._stated

    def foresee(self, guarantee: Guarantee | None = None) -> Account:
        """Return the account of the data set, or of its whole, after a release, and enter nothing.

        Raises
        ------
        DataError
            When the ledger cannot be read, is damaged or was changed.
        PrivacyError
            When the budget does not cover the release, or is not the one that the ledger has; when there is
            no such ledger, or it knows the data set as a part of another, or as none.
        UsageError
            When the name of the data set is missing, or a new ledger is asked for and there.
        """
        check_start(self.path, self.entering.new)
        account = self._agreed(read_ledger(self.path))
        return account if guarantee is None else account.allow(guarantee, self.part)

    def name(self) -> str:
        """Return the name under which a release would be entered.

        Raises DataError and UsageError as `foresee`.
        """
        return read_ledger(self.path).name(self._stated)

    def plan(self, guarantee: Guarantee) -> str:
        """Say what a release would enter, and what would remain, and enter nothing.

        Raises DataError, PrivacyError and UsageError as `foresee`.
        """
        check_writable(self.path)
        start = "start the ledger" if self.entering.new else "enter this in the ledger"
        return f"{start} {self.path}: {self._words(self.foresee(guarantee))}"

    def reserve(
        self,
        mechanism: Mapping[str, Any],
        columns: Sequence[str],
        guarantee: Guarantee,
        marks: Marks | None = None,
        *,
        output: Path | None = None,
        force: bool = False,
    ) -> None:
        """Enter a release that is about to be drawn; it counts from here on, whatever becomes of it.

        By its marks the table is known again.

        Raises
        ------
        DataError, PrivacyError, UsageError
            As `foresee`, and when the ledger cannot be written, knows the data under another name, or other
            data under this one, or somebody has written the output since. Nothing is entered then.
        """
        with changing(self.path, self.entering.new) as book:
            if output is not None:
                check_output(output, force=force)
            self._number = self.enter(book, mechanism, columns, guarantee, marks)

    def draft(self) -> Book:
        """Return a copy of the ledger, in which releases can be entered and are never written.

        Raises DataError as `foresee`.
        """
        return read_ledger(self.path)

    def enter(
        self,
        book: Book,
        mechanism: Mapping[str, Any],
        columns: Sequence[str],
        guarantee: Guarantee,
        marks: Marks | None,
    ) -> int:
        """Enter a release in an open ledger, or in a draft of it to see whether it and later ones could be.

        Raises PrivacyError and UsageError as `reserve`.
        """
        name = book.name(self._stated)  # before anything is entered under it
        agreed = self._agreed(book)
        if agreed.budget != book.account(agreed.dataset).budget and self.budget is not None:
            book.set_budget(agreed.dataset, self.budget, _now())
        about = {key: mechanism[key] for key in _SHOWN if key in mechanism} | {"columns": list(columns)}
        return book.spend(
            name,
            about,
            guarantee,
            _now(),
            __version__,
            whole=self.whole,
            marks=marks,
            anew=self.entering.yes,
            accountant=self.accountant,
        )

    def finish(self, output: Path | None) -> str:
        """Enter that the release, and its output if any, is written; say what is spent and what remains.

        Raises
        ------
        DataError
            When that cannot be entered; the release counts all the same.
        """
        assert self._number is not None  # a release is reserved before it is drawn
        try:
            found = None if output is None else {"file": output.name, "sha256": _digest(output)}
            with changing(self.path, False) as book:
                book.finish(self._number, found, _now())
        except (DataError, PrivacyError, OSError) as error:
            done = "the release was drawn" if output is None else f"{output} is written"
            raise DataError(f"{done} and counts in the ledger, but not as finished there: {error}") from error
        name = book.entries[self._number - 1]["dataset"]
        return f"ledger {self.path.name}: {self._words(book.account(name))}"

    def _words(self, account: Account) -> str:
        if self.part is None:
            return account.in_words()
        return f"{account.in_words()}; part {account.part_in_words(self.part)}"

    def _agreed(self, book: Book) -> Account:
        """Return the account with the budget that holds: the ledger's, or the spec's where it has none."""
        name = book.name(self._stated)
        if self.whole is not None:
            book.check_told(self.whole, "data.part.of")
        book.check_place(name, self.whole)
        account = book.counted(self.whole or name, self.accountant)
        if self.budget is None or account.budget == self.budget:
            return account
        if account.budget is None:
            return replace(account, budget=self.budget)
        raise PrivacyError(
            f"privacy.budget: is {self.budget.in_words()}, but {account.dataset} has "
            f"{account.budget.in_words()} in {self.path}; correct the spec, or change that by `dpmix ledger "
            "budget`"
        )


def set_budget(
    ledger: PathLike,
    dataset: str | None,
    budget: Budget,
    quiet: bool = False,
    *,
    new_ledger: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Set or change the budget of a data set; the ledger keeps the one before, too.

    A dry run changes a copy alone, and says what the ledger would say.

    Raises DataError, PrivacyError and UsageError as `Spending.reserve`; for a part of a table, whose budget
    is the whole's.
    """
    if dry_run:
        check_start(ledger, new_ledger)
    with contextlib.nullcontext(read_ledger(ledger)) if dry_run else changing(ledger, new_ledger) as book:
        dataset = book.name(dataset)
        if dataset != book.whole_of(dataset) or book.account(dataset).budget != budget:
            book.set_budget(dataset, budget, _now())
    name = Path(ledger).name + " would say" * dry_run
    say(f"ledger {name}: {book.account(dataset).in_words()}", quiet)
    return book.account(dataset).to_json()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# What a ledger says


def show_ledger(ledger: PathLike, dataset: str | None = None) -> dict[str, Any]:
    """Return what a ledger says, for strict JSON: entries, and each data set's sums, budget and remainder.

    Given a part of a table, it is the account of the table, whose budget counts.

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
    if dataset is not None and dataset not in book.names:
        raise DataError(f"{ledger}: has no data set {dataset}; it has {', '.join(book.names) or 'none'}")
    names = book.datasets if dataset is None else (book.whole_of(dataset),)
    return {
        "ledger": str(ledger),
        "entries": len(book.entries),
        "head": book.head,
        "datasets": [book.account(name).to_json() | {"history": _history(book, name)} for name in names],
    }


def ledger_text(shown: Mapping[str, Any]) -> str:
    """Write what `show_ledger` returns for people."""
    count = shown["entries"]
    lines = [
        f"{shown['ledger']}: {count} {'entry' if count == 1 else 'entries'}, unbroken to {shown['head']}"
    ]
    for part in shown["datasets"]:
        lines += ["", part["words"]]
        lines += [f"  part {each['words']}" for each in part.get("parts", ())]
        for each in part["history"]:
            lines.append(f"  {each['number']:>4}  {each['time']}  {each['words']}")
    return "\n".join(printable(line, "") for line in lines)


def _history(book: Book, dataset: str) -> list[dict[str, Any]]:
    """Return the budgets and releases of a data set in order, each release with its output."""
    outputs = book.outputs()
    found = []
    for entry in book.entries:
        if book.whole_of(entry["dataset"]) != dataset or entry["type"] == "release":
            continue
        kept = {k: entry[k] for k in _KEPT if k in entry}
        if entry.get("whole") is not None:
            kept["part"] = entry["dataset"]
        if entry.get("edition", 1) > 1:
            kept["edition"] = entry["edition"]
        if entry["type"] == "spend":
            end = outputs.get(entry["number"])
            kept |= {"finished": end is not None, "output": None if end is None else end["output"]}
        found.append(kept | {"words": _entry_in_words(kept)})
    return found


def _entry_in_words(entry: Mapping[str, Any]) -> str:
    if entry["type"] == "budget":
        return f"budget of {Budget(**entry['budget']).in_words()}"
    mechanism, guarantee = entry["mechanism"], guarantee_of(entry)
    kind = mechanism.get("generator") or mechanism.get("kind")
    columns = " by ".join([", ".join(mechanism.get("columns", ())), *mechanism.get("groups", ())])
    output = entry["output"]
    where = "not finished, counts all the same" if not entry["finished"] else "kept in memory"
    if output is not None:
        where = f"{output['file']} (sha256 {output['sha256'][:12]})"
    of = f"part {entry['part']}, " if "part" in entry else ""
    of += f"edition {entry['edition']}, " if "edition" in entry else ""
    cost = total([guarantee])
    words = in_words(cost) + not_proved(cost)
    return f"{of}{kind} of {columns}: {words}, {guarantee.trust} model; {where}"
