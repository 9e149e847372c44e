"""Where a table comes from: files, standard input, an object; how its text is written, and their keys."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo

from dpmix.errors import DataError
from dpmix.spec.fields import ONE_OR_SEVERAL, Section, Text, refusal, wrong

MARKS = frozenset(("", "NA", "NaN", "nan", "null"))
"""Cells that are missing values, spaces around them taken off; of a table of numbers, NaN."""

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


def _path(value: object, info: ValidationInfo) -> object:
    """Resolve a relative path against the folder of the spec."""
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or value.strip() in ("", STREAM) or "\0" in value:
        raise wrong("must be the path of a file, not {got}", value)
    folder = (info.context or {}).get("folder", Path())
    return os.path.abspath(os.path.join(folder, value))


FilePath = Annotated[Path, BeforeValidator(_path), Field(json_schema_extra={"format": "path"})]
"""The path of a file, made absolute: relative paths count from the folder of the spec."""


def _table(path: Path) -> Path:
    if not path.name.lower().endswith(TABLE_SUFFIXES):
        raise wrong(
            "{got} is no known type of data file; give one of " + ", ".join(TABLE_SUFFIXES), path.name
        )
    return path


TablePath = Annotated[FilePath, AfterValidator(_table)]
"""The path of a table, of a format that is told by its suffix."""


def _stream_or_path(value: object, info: ValidationInfo) -> object:
    if isinstance(value, list) and value == [None]:  # what YAML makes of a lone -
        return STREAM
    return STREAM if isinstance(value, (str, Path)) and str(value).strip() == STREAM else _path(value, info)


def _stream_or_table(path: Path) -> Path:
    return path if is_stream(path) else _table(path)


StreamPath = Annotated[
    Path,
    BeforeValidator(_stream_or_path),
    AfterValidator(_stream_or_table),
    Field(json_schema_extra={"format": "path"}),
]
"""The path of a table, or - for a CSV table on standard input."""


def _several(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    if len(set(paths)) < len(paths):
        raise wrong("names a file twice, whose records would count twice", paths)
    return paths


TablePaths = Annotated[
    Annotated[StreamPath, Tag("one")]
    | Annotated[tuple[TablePath, ...], Field(min_length=1), AfterValidator(_several), Tag("several")],
    Discriminator(lambda value: "several" if isinstance(value, list | tuple) and value != [None] else "one"),
]
"""The path of a table, those of several files that are one table, or - for standard input."""


FilePaths = Annotated[
    Annotated[TablePath, Tag("one")]
    | Annotated[tuple[TablePath, ...], Field(min_length=1), AfterValidator(_several), Tag("several")],
    ONE_OR_SEVERAL,
]
"""The path of a table, or those of several files that are one table."""


DIALECT_KEYS = ("delimiter", "decimal", "encoding")


def _delimiter(text: str) -> str:
    problem = delimiter_problem(text)
    if problem is not None:
        raise wrong(problem, text)
    return delimiter_of(text)


def _encoding(name: str) -> str:
    if not is_encoding(name):
        raise wrong("{got} is no encoding that Python knows; give one such as latin-1 or utf-16", name)
    return name


Delimiter = Annotated[Text, AfterValidator(_delimiter)]
Decimal = Literal[".", ","]
Encoding = Annotated[Text, AfterValidator(_encoding)]


def dialect_in(section: Section) -> Dialect:
    """Return what the keys of a section say, which has all three of them."""
    delimiter, decimal, encoding = (getattr(section, key) for key in DIALECT_KEYS)
    return Dialect(delimiter, decimal or ".", encoding or "utf-8")


def check_text(section: Section, paths: Sequence[Path]) -> None:
    """Refuse what a section says of text where its table is none.

    Raises
    ------
    SpecError
        Naming the key.
    """
    for key in DIALECT_KEYS:
        if getattr(section, key) is None:
            continue
        if not paths:
            raise refusal(key, "is for a table in a file of text, and path names none; leave it out")
        for path in paths:
            if not is_stream(path) and not path.name.lower().endswith(TEXT_SUFFIXES):
                kinds = ", ".join(TEXT_SUFFIXES)
                raise refusal(key, f"is for text ({kinds}), which {path.name} is not; leave it out")
