"""Where a table comes from: files, standard input, or an object of Python; and how its text is written."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from dpmix.errors import DataError

MARKS = frozenset(("", "NA", "NaN", "nan", "null"))
"""Cells that are missing values, spaces around them taken off; of a table of numbers, NaN."""

__all__ = [
    "MARKS",
    "STREAM",
    "TABLE_SUFFIXES",
    "TEXT_SUFFIXES",
    "TYPED_SUFFIXES",
    "Dialect",
    "InMemory",
    "Part",
    "StandardInput",
    "TableFiles",
    "delimiter_of",
    "delimiter_problem",
    "is_encoding",
    "is_stream",
]

# Standard input in the place of a confidential file: ``data.path: "-"``


STREAM = "-"
"""What a spec writes for standard input."""


class StandardInput:
    """A CSV table on standard input, which can be read once; it is kept while it is looked at twice.

    It has what the readers of tables ask of a path.
    """

    name = "standard input.csv"

    def __init__(self) -> None:
        self._bytes: bytes | None = None

    def __str__(self) -> str:
        return "standard input"

    def exists(self) -> bool:
        """Whether it is there: always."""
        return True

    def is_dir(self) -> bool:
        """Whether it is a folder: never."""
        return False

    def is_file(self) -> bool:
        """Whether it can be read as one."""
        return True

    def open(self, encoding: str = "utf-8-sig") -> IO[str]:
        """Return its text from the beginning.

        Raises
        ------
        DataError
            When there is no standard input.
        """
        if self._bytes is None:
            if sys.stdin is None or sys.stdin.closed:
                raise DataError("data.path: - is standard input, and there is none")
            binary = getattr(sys.stdin, "buffer", None)
            self._bytes = sys.stdin.read().encode(encoding) if binary is None else binary.read()
        return io.TextIOWrapper(io.BytesIO(self._bytes), encoding=encoding, newline="")


def is_stream(path: object) -> bool:
    """Whether a path of a spec stands for standard input."""
    return isinstance(path, str | Path) and str(path) == STREAM


# Where a table comes from: files, standard input, or an object of Python; and how its text is written


TEXT_SUFFIXES: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
"""How names of tables of text end."""
TYPED_SUFFIXES: Final = (".parquet", ".feather", ".arrow")
"""How names of tables of typed and named columns end, which pyarrow reads."""
TABLE_SUFFIXES: Final = (*TEXT_SUFFIXES, *TYPED_SUFFIXES, ".npy", ".h5")
"""How names of tables end that are read."""

_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}


class InMemory:
    """A table that Python holds: a DataFrame, a table of Arrow, a mapping of columns, or an array.

    Parameters
    ----------
    table : object
        As given; what it is made of is looked at where it is read.
    """

    name = "the data given"

    def __init__(self, table: Any) -> None:
        self.table = table

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        """Show nothing of the data."""
        return f"InMemory({type(self.table).__name__})"

    @property
    def named(self) -> bool:
        """Whether its columns have names, as those of plain arrays have not."""
        dtype = getattr(self.table, "dtype", None)
        plain = hasattr(self.table, "ndim") and dtype is not None and not getattr(dtype, "names", None)
        return not isinstance(self.table, list | tuple) and not (plain and not hasattr(self.table, "iloc"))


Part = Path | StandardInput | InMemory


@dataclass(frozen=True)
class Dialect:
    """How the text of a table is written.

    Parameters
    ----------
    delimiter : str or None
        One character between cells. None: a tab where the name ends in .tsv, else a semicolon where the
        decimal mark is a comma, else a comma.
    decimal : str
        The decimal mark, ``"."`` or ``","``.
    encoding : str
        Of its characters.
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def delimiter_of(self, name: str) -> str:
        """Return the character between cells of a file of this name."""
        if self.delimiter is not None:
            return self.delimiter
        if name.lower().endswith((".tsv", ".tsv.gz")):
            return "\t"
        return ";" if self.decimal == "," else ","

    @property
    def codec(self) -> str:
        """Name of the encoding, a byte order mark being passed over."""
        return "utf-8-sig" if codecs.lookup(self.encoding).name == "utf-8" else self.encoding


@dataclass(frozen=True, eq=False)
class TableFiles:
    """One table.

    Parameters
    ----------
    parts : tuple of Path, StandardInput or InMemory
        Its parts, one after the other; each with all columns.
    dialect : Dialect
    dates : frozenset of str
        Names of columns that hold dates.
    """

    parts: tuple[Part, ...]
    dialect: Dialect = field(default_factory=Dialect)
    dates: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return ", ".join(str(part) for part in self.parts)

    @classmethod
    def of(
        cls,
        path: Path | Sequence[Path] | StandardInput | InMemory,
        dialect: Dialect | None = None,
        dates: frozenset[str] = frozenset(),
    ) -> TableFiles:
        """Return the source that a path of a spec stands for, - for standard input."""
        parts = path if isinstance(path, list | tuple) else (path,)
        found = tuple(
            StandardInput() if isinstance(part, Path) and is_stream(part) else part for part in parts
        )
        return cls(found, Dialect() if dialect is None else dialect, dates)


def delimiter_problem(text: str) -> str | None:
    """Say why some text separates no cells; None where it does."""
    mark = _WORDS.get(text, text)
    if len(mark) != 1 or mark.isalnum() or mark in "\"'\r\n.+-_" or mark == "\0":
        return 'must be one character such as ";", "|" or tab, not {got}'
    return None


def delimiter_of(text: str) -> str:
    """Return the character that a delimiter of a spec names."""
    return _WORDS.get(text, text)


def is_encoding(name: str) -> bool:
    """Whether Python knows an encoding of text by this name."""
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False
