"""The document that a ledger is written as, and what is checked of each of its entries."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from dpmix.errors import DataError, PrivacyError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import ACCOUNTANTS, Budget, check
from dpmix.privacy.fingerprint import key_mark

__all__ = ["FORMAT", "START", "VERSION", "Entry", "canonical", "checked_entries", "digest_of"]

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
    if not whole or not _is_mechanism(entry.get("mechanism")) or not _is_output(entry.get("output")):
        raise DataError(f"is damaged: entry {number} is none")
    if later and not _is_since_2(entry, key):
        raise DataError(f"is damaged: entry {number} is none")
    try:
        if kind == "spend":
            guarantee = Guarantee(**entry["guarantee"])
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
    if value is None:  # of another kind of entry
        return True
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
