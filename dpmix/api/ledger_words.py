"""What a ledger says, for people and for programs, without its key and fingerprints."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpmix.errors import DataError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import Budget, in_words, total
from dpmix.privacy.ledger import Book
from dpmix.store.ledger_file import ledger_path, read_ledger

__all__ = ["show", "to_text"]

_KEPT = (
    "number",
    "type",
    "time",
    "mechanism",
    "guarantee",
    "composition",
    "dpmix_version",
    "budget",
    "accountant",
)
"""What is shown of an entry; what else it has is for the ledger alone."""


def show(ledger: str | os.PathLike[str], dataset: str | None = None) -> dict[str, Any]:
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


def to_text(shown: Mapping[str, Any]) -> str:
    """Write what `show` returns for people."""
    count = shown["entries"]
    lines = [
        f"{shown['ledger']}: {count} {'entry' if count == 1 else 'entries'}, unbroken to {shown['head']}"
    ]
    for part in shown["datasets"]:
        lines += ["", part["words"]]
        lines += [f"  part {each['words']}" for each in part.get("parts", ())]
        for each in part["history"]:
            lines.append(f"  {each['number']:>4}  {each['time']}  {each['words']}")
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines)


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
    mechanism, guarantee = entry["mechanism"], Guarantee(**entry["guarantee"])
    kind = mechanism.get("generator") or mechanism.get("kind")
    columns = " by ".join([", ".join(mechanism.get("columns", ())), *mechanism.get("groups", ())])
    output = entry["output"]
    where = "not finished, counts all the same" if not entry["finished"] else "kept in memory"
    if output is not None:
        where = f"{output['file']} (sha256 {output['sha256'][:12]})"
    of = f"part {entry['part']}, " if "part" in entry else ""
    of += f"edition {entry['edition']}, " if "edition" in entry else ""
    words = in_words(total([guarantee]))
    if mechanism.get("proved") is False:
        words += ", which is not proved"
    return f"{of}{kind} of {columns}: {words}, {guarantee.trust} model; {where}"
