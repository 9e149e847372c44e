"""By what the ledger knows a confidential table again, and says nothing of it to whoever lacks the key.

Two marks: HMAC-SHA256, under a key that stands in the ledger alone, of the SHA-256 of

- the bytes of the file, unpacked: the same file, whatever its name and whichever columns are taken;
- its rows in sorted order, of the columns that were read: the same records, in whatever order and format.

Two tables are the same when either agrees; rows are comparable where the same columns were read. Somebody
with the key could confirm a guess at a small table: the ledger is the curator's.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64] | Sequence[str]
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Marks:
    """Digests of one table, before the key is applied; they never leave the process.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns that were read, sorted.
    rows : bytes
        Of `rows_digest`.
    file : bytes or None
        Of `file_digest`; None where the table is no one file.
    former : tuple of bytes
        Of `rows_digest`, as earlier versions took the rows: a ledger may know them by one of these.
    """

    columns: tuple[str, ...]
    rows: bytes
    file: bytes | None = None
    former: tuple[bytes, ...] = ()

    def keyed(self, key: str) -> dict[str, Any]:
        """Return the fingerprint that an entry holds, under a key in hexadecimal digits."""
        return {
            "key": key_mark(key),
            "columns": list(self.columns),
            "rows": _mark(key, b"rows", self.rows),
            "file": None if self.file is None else _mark(key, b"file", self.file),
        }

    def agree(self, known: Mapping[str, Any], key: str) -> bool:
        """Whether they are of the table that an entry's fingerprint is of, as far as they tell."""
        own = self.keyed(key)
        if own["file"] is not None and own["file"] == known["file"]:
            return True
        rows = (own["rows"], *(_mark(key, b"rows", digest) for digest in self.former))
        return bool(own["columns"] == known["columns"] and known["rows"] in rows)

    def __repr__(self) -> str:
        """Show the names of the columns alone."""
        return f"Marks(columns={self.columns})"


def new_key() -> str:
    """Return a key of 32 random bytes, in hexadecimal digits."""
    import secrets

    return secrets.token_hex(32)


def key_mark(key: str) -> str:
    """Return what binds an entry to the key under which its marks were made."""
    return _mark(key, b"key", b"")


def _mark(key: str, what: bytes, digest: bytes) -> str:
    return hmac.new(bytes.fromhex(key), what + b"\0" + digest, hashlib.sha256).hexdigest()


def file_digest(path: Path) -> bytes | None:
    """Return the SHA-256 of a file's bytes, unpacked where it is packed; None where it is no ordinary file.

    Raises
    ------
    OSError
        When it cannot be read.
    """
    if not path.is_file():
        return None
    found = hashlib.sha256()
    packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.digest()


def rows_digest(columns: Mapping[str, Column]) -> bytes:
    """Return the SHA-256 of the rows of a table, whatever their order and that of the columns.

    A cell is a number where it is written as one ("1.0" and "1" are the same), else text.

    Parameters
    ----------
    columns : mapping of str to float64 array (n,), or sequence of n str
        At least one.
    """
    found = hashlib.sha256()
    codes = []
    for name in sorted(columns):
        numbers, texts, code = _coded(columns[name])
        codes.append(code)
        _take(found, name.encode())
        _take(found, numbers.astype("<f8").tobytes())
        _take(found, struct.pack("<Q", len(texts)))
        for text in texts:
            _take(found, text.encode())
    order = np.lexsort(codes[::-1])
    for code in codes:
        found.update(code[order].astype("<i8").tobytes())
    return found.digest()


def _take(found: Any, data: bytes) -> None:
    found.update(struct.pack("<Q", len(data)) + data)


def _coded(column: Column) -> tuple[NDArray[np.float64], list[str], NDArray[np.int64]]:
    """Return the different numbers and texts of a column, sorted, and the place of each cell among them."""
    if isinstance(column, np.ndarray):
        gone = np.isnan(column)  # as an empty text
        numbers = np.unique(column[~gone] + 0.0)  # + 0.0 makes one zero of two
        places = np.searchsorted(numbers, column).astype(np.int64)
        places[gone] = len(numbers)
        return numbers, [""] * bool(gone.any()), places
    known: dict[str, int] = {}
    places = np.array([known.setdefault(text, len(known)) for text in column], dtype=np.int64)
    cells = [_cell(text) for text in known]
    numbers = np.unique(np.array([cell for cell in cells if isinstance(cell, float)], dtype=np.float64))
    texts = sorted(cell for cell in cells if isinstance(cell, str))
    later = {text: len(numbers) + place for place, text in enumerate(texts)}
    ranks = [later[c] if isinstance(c, str) else int(np.searchsorted(numbers, c)) for c in cells]
    return numbers, texts, np.array(ranks, dtype=np.int64)[places]


def _cell(text: str) -> float | str:
    """Return the number that is written as text, or the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    return text if math.isnan(number) else number + 0.0
