"""The ledger's entries: what was released of each data set, in order, each bound to those before it.

Three kinds of entry, numbered from 1 without gaps:

- ``budget``: what the releases of a data set may cost together, from here on;
- ``spend``: one release is about to be drawn: its mechanism and guarantee, of which whole its data are a part
  (if they are), the fingerprint of the table, and all of the data set's releases together after it. It counts
  from here on, whatever becomes of the release;
- ``release``: the output of a ``spend`` is written, with its digest.

Nothing in an entry comes from the confidential values, but for fingerprints, which say nothing without the
key beside the entries (`dpmix.privacy.fingerprint`): the ledger is the curator's. ``previous`` is the digest
of the entry before, and ``digest`` that of the entry itself: a change of any entry shows unless all that
follow are made anew. Times are for people; the order is that of the numbers, so that a clock may go back.

Version 1 had no key, no parts and no fingerprints; it is read, and gets a key at its next entry.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from dpmix.errors import DataError, PrivacyError, UsageError
from dpmix.privacy.accounting import Guarantee, check_known
from dpmix.privacy.budget import ACCOUNTANTS, Account, Budget, budget_dict, check, sums, worst
from dpmix.privacy.fingerprint import Marks, key_mark, new_key

__all__ = [
    "Account",
    "Book",
    "Entry",
    "FIRST",
    "FORMAT",
    "START",
    "digest_of",
    "guarantee_of",
]


# The document that a ledger is written as, and what is checked of each of its entries.

FORMAT, VERSION = "dpmix ledger", 2
START = "0" * 64
"""What stands for the digest before the first entry."""
Entry = dict[str, Any]
_KEYS = {
    "budget": {"budget"},
    "spend": {"mechanism", "guarantee", "composition", "dpmix_version"},
    "release": {"spend", "output"},
}
_SINCE_2 = {"whole", "edition", "fingerprint", "accountant"}
"""What a ``spend`` has besides, since version 2."""
_KEY = re.compile(r"[0-9a-f]{64}")
_COMMON = {"number", "type", "dataset", "time", "previous", "digest"}


def checked_entries(text: str) -> tuple[list[Entry], str | None]:
    """Return the entries of a ledger's text, each in its place and as it was written, and its key.

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
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        newer = isinstance(version, int) and version > VERSION
        why = "made by a newer dpmix; use that one" if newer else "which is none"
        raise DataError(f"is a ledger of version {version!s:.20}, {why} (this one knows {VERSION})")
    entries = found.get("entries")
    own = {"key"} if version > 1 else set()
    if not isinstance(entries, list) or set(found) != {"format", "version", "entries"} | own:
        raise DataError("is damaged: it does not hold a list of entries")
    key = found.get("key")
    if own and not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise DataError("is damaged: its key is none")
    previous = START
    finished: set[int] = set()
    for number, entry in enumerate(entries, 1):
        _check_entry(entries, number, entry, previous, finished, key)
        previous = entry["digest"]
    return entries, key


def _check_entry(
    entries: Sequence[Any], number: int, entry: Any, previous: str, finished: set[int], key: str | None
) -> None:
    """Check that an entry is whole, in its place, and as it was written; note the release it finishes.

    Raises
    ------
    DataError
        Naming it.
    """
    kind = entry.get("type") if isinstance(entry, dict) else None
    known = _KEYS.get(kind) if isinstance(kind, str) else None
    later = kind == "spend" and key is not None and "whole" in entry
    if known is None or set(entry) != _COMMON | known | (_SINCE_2 if later else set()):
        raise DataError(f"is damaged: entry {number} is none")
    if entry["number"] != number or entry["previous"] != previous:
        raise DataError(f"was changed: entry {number} does not follow the one before it")
    if entry["digest"] != digest_of({k: v for k, v in entry.items() if k != "digest"}):
        raise DataError(f"was changed: entry {number} is not what was written")
    whole = all(_is_text(entry[key]) for key in ("dataset", "time"))
    stated = kind != "spend" or _is_mechanism(entry["mechanism"])
    if not whole or not stated or not _is_output(entry.get("output")):
        raise DataError(f"is damaged: entry {number} is none")
    if later and not _is_since_2(entry, key):
        raise DataError(f"is damaged: entry {number} is none")
    try:
        if kind == "spend":
            guarantee = guarantee_of(entry)
            check(guarantee)
            if not (_is_text(guarantee.trust) and isinstance(guarantee.gaussian, bool)):
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
    if not isinstance(value, dict) or not _is_text(value.get("generator") or value.get("kind")):
        return False
    columns = value.get("columns", [])
    return isinstance(columns, list) and all(map(_is_text, columns))


def _is_since_2(entry: Mapping[str, Any], key: str | None) -> bool:
    """Whether what a ``spend`` has since version 2 is whole, its marks made under the ledger's key."""
    whole, edition, marks = entry["whole"], entry["edition"], entry["fingerprint"]
    if not (whole is None or _is_text(whole)) or entry["accountant"] not in ACCOUNTANTS:
        return False
    if isinstance(edition, bool) or not isinstance(edition, int) or edition < 1:
        return False
    if marks is None:
        return True
    if not isinstance(marks, dict) or set(marks) != {"key", "columns", "rows", "file"} or key is None:
        return False
    texts = _is_text(marks["rows"]) and (marks["file"] is None or _is_text(marks["file"]))
    columns = marks["columns"]
    return (
        texts and isinstance(columns, list) and all(map(_is_text, columns)) and marks["key"] == key_mark(key)
    )


def _is_output(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and set(value) == {"file", "sha256"} and all(map(_is_text, value.values()))


def guarantee_of(entry: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee of a ``spend``; whether it is proved is said of its mechanism.

    Before entries said it, that of the published theorem was the one without a proof, as it is now.
    """
    mechanism = entry["mechanism"]
    proved = mechanism.get("proved", mechanism.get("calibration") != "theorem")
    return Guarantee(**entry["guarantee"], proved=proved is not False)


def canonical(entry: Mapping[str, Any]) -> str:
    """Return the one way in which an entry is written."""
    return json.dumps(entry, sort_keys=True, allow_nan=False)


def digest_of(entry: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an entry without its digest, empty for what is never written."""
    try:
        return hashlib.sha256(canonical(entry).encode()).hexdigest()
    except (ValueError, RecursionError):  # a number beyond what is ever written
        return ""


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _as_read(name: str) -> str:
    """Return a name without capitals, and with its letters encoded in one way."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


FIRST = "data"
"""Name of a data set that is given none, in a ledger that has none yet."""


class Book:
    """Entries in order, checked; new ones are added to what is there, and nothing is ever changed.

    Parameters
    ----------
    entries : sequence of dict
        As `parse` checks them.
    key : str or None
        Under which fingerprints are made; None in a new ledger, or one of version 1, until its next entry.
    """

    def __init__(self, entries: Sequence[Entry] = (), key: str | None = None) -> None:
        self.entries = list(entries)
        self.key = key
        self._accounts: dict[str, Account] = {}
        self._wholes: dict[str, str] = {}
        for entry in self.entries:
            self._take(entry)

    @property
    def head(self) -> str:
        """Digest of the last entry."""
        return str(self.entries[-1]["digest"]) if self.entries else START

    @property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets, in the order of their first entries; without those of parts."""
        return tuple(self._accounts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the data sets and of their parts."""
        return (*self._accounts, *self._wholes)

    def name(self, stated: str | None) -> str:
        """Return the name of a data set, which may be left out where the ledger has none yet.

        Raises
        ------
        PrivacyError
            When it is new, and a reader would take it for one that the ledger knows.
        UsageError
            When it is left out where the ledger has one.
        """
        if stated is not None:
            self.check_told(stated, "privacy.dataset")
            return stated
        if self.names:
            raise UsageError(
                f"privacy.dataset: missing, and the ledger knows {', '.join(self.names)}; name the data set, "
                "there or by --dataset NAME"
            )
        return FIRST

    def check_told(self, name: str, key: str) -> None:
        """Check that a new name, which a `key` of the spec gives, is told from those that the ledger knows.

        Raises
        ------
        PrivacyError
            When it differs from one in capitals alone, or in how the same letters are encoded.
        """
        alike = [known for known in self.names if _as_read(known) == _as_read(name)]
        if alike and name not in alike:
            raise PrivacyError(
                f"{key}: is {name}, which differs from {alike[0]}, that the ledger knows, in capitals or "
                "in the encoding of letters alone; write it as there, or choose a name that is told from it, "
                "and nothing was drawn or spent"
            )

    def whole_of(self, dataset: str) -> str:
        """Return the data set whose account a name belongs to: that of the whole, for a part."""
        return self._wholes.get(dataset, dataset)

    def account(self, dataset: str) -> Account:
        """Return the releases so far of a data set, or of the whole that it is a part of."""
        name = self.whole_of(dataset)
        return self._accounts.get(name, Account(name))

    def check_place(self, dataset: str, whole: str | None) -> None:
        """Check that a name may be that of a part of a table, or of none.

        Raises
        ------
        PrivacyError
            When the ledger knows it otherwise.
        """
        known = self._wholes.get(dataset)
        if whole is None:
            if known is not None:
                raise PrivacyError(
                    f"data.part: missing; the ledger knows {dataset} as a part of {known}, so say "
                    f"{{of: {known}, public: true}}, or name another data set"
                )
            return
        if whole == dataset:
            raise PrivacyError(
                f"data.part.of: {dataset} cannot be a part of itself; privacy.dataset names the part"
            )
        if known is not None and known != whole:
            raise PrivacyError(
                f"data.part.of: is {whole}, but the ledger knows {dataset} as a part of {known}; a part "
                "belongs to one table"
            )
        if dataset in self._accounts:
            raise PrivacyError(
                f"data.part: the ledger knows {dataset} as a table of its own, which cannot become a part of "
                f"{whole}; name the part otherwise"
            )
        if whole in self._wholes:
            raise PrivacyError(
                f"data.part.of: the ledger knows {whole} as a part of {self._wholes[whole]}, so that it "
                f"cannot have parts; name {self._wholes[whole]}"
            )

    def set_budget(self, dataset: str, budget: Budget, time: str) -> None:
        """Add the budget of a data set, which holds from here on.

        Raises
        ------
        UsageError
            When it is a part: the budget is the whole's.
        """
        if dataset in self._wholes:
            whole = self._wholes[dataset]
            raise UsageError(
                f"--dataset: {dataset} is a part of {whole}, whose budget counts for it; name {whole}"
            )
        self._add({"type": "budget", "dataset": dataset, "time": time, "budget": budget_dict(budget)})

    def counted(self, dataset: str, accountant: str | None) -> Account:
        """Return the account of a data set, added up by one of `ACCOUNTANTS`, or as the ledger has it.

        Raises
        ------
        PrivacyError
            When a data set that was added up by sums is to be by another: that one holds where the releases'
            parameters do not depend on what came out of those before, and so from the first one on.
        """
        account = self.account(dataset)
        if accountant == "pld" and account.accountant != "pld" and account.spent.releases:
            raise PrivacyError(
                f"privacy.accountant: is pld, but releases of {account.dataset} were entered under sums; pld "
                "holds where it is chosen before the first release"
            )
        return account if accountant is None else replace(account, accountant=accountant)

    def spend(
        self,
        dataset: str,
        mechanism: Mapping[str, Any],
        more: Guarantee,
        time: str,
        version: str,
        *,
        whole: str | None = None,
        marks: Marks | None = None,
        anew: bool = False,
        accountant: str | None = None,
    ) -> int:
        """Add a release that is about to be drawn, and return the number of its entry.

        `mechanism` is what is said of it, `whole` the table that the data are a public part of, and `marks`
        are those by which the table is known again; `anew` lets another table be entered under a known name.

        Raises
        ------
        PrivacyError
            When the budget does not cover it, or it cannot be accounted for; when the ledger knows the data
            under another name, or other data under this one. Nothing is added then.
        """
        self.check_place(dataset, whole)
        edition = self._edition(dataset, marks, anew)
        account = self.counted(whole or dataset, accountant)
        if account.accountant == "pld":
            check_known(more, str(mechanism.get("generator") or mechanism.get("kind")))
        after = account.allow(more, None if whole is None else dataset)
        if self.key is None:
            self.key = new_key()
        self._add(
            {
                "type": "spend",
                "dataset": dataset,
                "time": time,
                "mechanism": {**mechanism, "proved": more.proved},
                "guarantee": {
                    "epsilon": more.epsilon,
                    "delta": more.delta,
                    "rho": more.rho,
                    "adjacency": more.adjacency,
                    "trust": more.trust,
                    "gaussian": more.gaussian,
                },
                "composition": sums(worst(after.spent)),
                "dpmix_version": version,
                "whole": whole,
                "edition": edition,
                "fingerprint": None if marks is None else marks.keyed(self.key),
                "accountant": account.accountant,
            }
        )
        return len(self.entries)

    def _edition(self, dataset: str, marks: Marks | None, anew: bool) -> int:
        """Return the number of the table among those entered under a name, from 1, a new one where it is.

        Raises
        ------
        PrivacyError
            As `spend`.
        """
        known = [entry for entry in self.entries if entry["type"] == "spend" and entry.get("fingerprint")]
        last = max((e["edition"] for e in known if e["dataset"] == dataset), default=0)
        if marks is None or self.key is None or not known:
            return max(last, 1)
        alike = [entry for entry in known if marks.agree(entry["fingerprint"], self.key)]
        other = next((entry["dataset"] for entry in alike if entry["dataset"] != dataset), None)
        if other is not None and any(entry["dataset"] == dataset for entry in alike):
            raise PrivacyError(
                f"privacy.dataset: is {dataset}, but the ledger knows the same data as {other}, too, and "
                "neither name counts all that was spent; start a new ledger, with a budget that leaves out "
                "what both have spent; nothing was drawn or spent"
            )
        if other is not None:
            raise PrivacyError(
                f"privacy.dataset: is {dataset}, but the ledger knows the same data as {other}, so that a "
                f"budget would be spent twice; say {other}, and nothing was drawn or spent"
            )
        if alike:
            return int(alike[-1]["edition"])
        if last and not anew:
            raise PrivacyError(
                f"privacy.dataset: is {dataset}, but that table is not the one released under this name "
                "before; name the data set that it is, or enter it as a new edition, which adds to the "
                "others, by --yes; nothing was drawn or spent"
            )
        return last + 1

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
        if self.key is None:
            self.key = new_key()
        lines = ",\n".join(" " + canonical(entry) for entry in self.entries)
        start = f'"format": "{FORMAT}", "version": {VERSION}, "key": "{self.key}"'
        return f'{{{start}, "entries": [\n{lines}\n]}}\n'

    def _add(self, entry: Entry) -> None:
        entry = {"number": len(self.entries) + 1, "previous": self.head, **entry}
        entry["digest"] = digest_of(entry)
        self._take(entry)
        self.entries.append(entry)

    def _take(self, entry: Entry) -> None:
        """Count an entry.

        Raises
        ------
        PrivacyError
            When it cannot be: a name is of a table and of a part, or its guarantee does not compose.
        """
        name, kind = entry["dataset"], entry["type"]
        whole = entry.get("whole")
        if kind == "spend":
            self.check_place(name, whole)
            if whole is not None:
                self._wholes[name] = whole
        account = self.account(name)
        if kind == "budget":
            account = replace(account, budget=Budget(**entry["budget"]))
        elif kind == "spend":
            if not account.spent.releases:
                account = replace(account, accountant=entry.get("accountant", "sums"))
            spent = account.spent.adding(guarantee_of(entry), None if whole is None else name)
            account = replace(account, spent=spent)
        self._accounts[account.dataset] = account

    @classmethod
    def parse(cls, text: str) -> Book:
        """Read a ledger's text.

        Raises
        ------
        DataError
            When it is none, of another version, cut short or changed; the message lacks the name of the file.
        """
        entries, key = checked_entries(text)
        try:
            return cls(entries, key)
        except PrivacyError as error:
            raise DataError(f"is damaged: {error}") from error
