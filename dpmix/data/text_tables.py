"""Tables of text: CSV and TSV, plain or packed, and standard input; checked cell by cell.

An error names the file, the column and the record, and says in words what a cell holds, never its value: a
message may be shown to others. Tables that know the types of their columns have the same errors.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import difflib
import gzip
import io
import math
import re
import unicodedata
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.spec.days import day_of
from dpmix.spec.limits import MOST_PER_BYTE_OF_TEXT, MOST_RECORDS, MOST_VALUES, ROOM_OF_TEXT
from dpmix.spec.table_source import MARKS, TEXT_SUFFIXES, Dialect, Part, StandardInput, TableFiles

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from dpmix.data.missing import Missing

# Errors: they name file, column, record and line, and show nothing of confidential data


def place(record: int, line: int | None) -> str:
    """Name a record of a table, and its line where it has one."""
    return f"record {record}" if line is None else f"record {record} (line {line})"


def no_value(part: object, name: str, record: int, line: int | None, text: str, public: bool) -> DataError:
    """Return the error of a cell that is a missing value."""
    problem = "is missing" if text else "is empty"
    more = "" if public else f"; {advice(name)}"
    return DataError(f"{part}: the cell of column {name!r} in {place(record, line)} {problem}{more}")


def cannot_be(part: object, name: str, record: int, line: int | None, why: str) -> DataError:
    """Return the error of a cell that does not hold what its column is of."""
    return DataError(f"{part}: the cell of column {name!r} in {place(record, line)} {why}")


def empty_end(part: object, line: int, public: bool) -> DataError:
    """Return the error of empty lines at the end of one column, which may be missing values or no records."""
    what = "remove it" if public else "write NA in it if it is a missing value, and remove it only"
    return DataError(f"{part} ends in an empty line (line {line}); {what} if it is no record")


def too_many(path: object, width: int) -> DataError:
    """Return the error of a table that has more records than are read."""
    most = min(MOST_RECORDS, MOST_VALUES // max(1, width))
    wide = f"{width} column{'s' * (width != 1)}"
    return DataError(f"{path} has more than {most:,} records of {wide}, the most that are read")


def no_column(
    path: object, name: str, known: Sequence[str], *, public: bool, sure: Sequence[str] = ()
) -> DataError:
    """Return the error of a missing column.

    `known` is the first line of the table, or its names of columns; those that are names for `sure` among
    them. `public`: whether these may be shown. The first line of a confidential table may be a record: of it
    only what differs by capitals and marks from what was asked for is shown.
    """
    alike = [k for k in known if _bare(k) == _bare(name)]
    close = alike or difflib.get_close_matches(name, known if public else sure, n=1, cutoff=0.5)
    if close:
        same = unicodedata.normalize("NFC", close[0]) == unicodedata.normalize("NFC", name)
        how = ", whose letters are encoded otherwise" if same else ""
        return DataError(f"{path} has no column {name!r}; did you mean {close[0]!r}{how}?")
    if not public:
        among = f"among its {len(known)} columns" if len(known) != 1 else "in its one column"
        return DataError(
            f"{path} has no column {name!r} {among}; give it as the first line does, which must be a header"
        )
    listed = ", ".join(repr(k) for k in known[:8]) + (", .." if len(known) > 8 else "")
    return DataError(f"{path} has no column {name!r}; it has {listed or 'none'}")


def _bare(name: str) -> str:
    """Return a name without capitals, spaces and marks."""
    return "".join(filter(str.isalnum, name.casefold()))


def advice(name: str) -> str:
    """Say what to do about a missing value of a column."""
    return (
        f"say in data.missing what stands for it, as in {{{name}: value}}; dropping records is not free: "
        "their number n is published, and would tell of one person's missing value"
    )


# From the cells of a table to numbers: decimal marks, thousands separators, dates


Parse = Callable[[str], float | None]
"""Of a cell without spaces around it: its number, NaN for one that is not finite, None for no number."""

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:([,.' \u00a0\u202f\u2019])\d{3})(?:\1\d{3})*(?:[.,]\d*)?")
_ZONE = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+ ?(?:Z|[+-]\d\d:?(?:\d\d)?|[A-Z]{3,4})")


def number_in(text: str) -> float | None:
    """Return the number a cell holds, NaN for one that is not finite, None for no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    if "_" in text:  # Python's own digit separator
        return None
    return value


def _with_comma(text: str) -> float | None:
    return None if "." in text else number_in(text.replace(",", ".", 1))


def parser_of(decimal_mark: str, *, dates: bool) -> Parse:
    """Return what reads the cells of a column, with the decimal mark ``"."`` or ``","``.

    In a column of `dates` they are days since 1970-01-01.
    """
    if dates:
        return day_of
    return number_in if decimal_mark == "." else _with_comma


def complaint(text: str, decimal_mark: str, *, dates: bool) -> str:
    """Say what a cell is that is not read as a number, or as a date where the column has dates."""
    if dates:
        if _ZONE.fullmatch(text):
            return "has a time zone, by which its day is not settled; give the date alone, such as 2024-02-29"
        return "is not a date such as 2024-02-29"
    thousands = _THOUSANDS.fullmatch(text)
    if thousands is not None and (thousands[1] not in ",." or thousands[1] == decimal_mark):
        return "is not a number: it has a thousands separator; write numbers without"
    other = "," if decimal_mark == "." else "."
    if thousands is not None and text.count(other) > 1:
        return "is not a number: it has thousands separators; write numbers without"
    if thousands is not None and decimal_mark in text:
        return "is not a number: it has a thousands separator; write numbers without"
    if other in text and number_in(text.replace(",", ".")) is not None:
        where = "comma" if other == "," else "point"
        return (
            f"is not a number: it has a {where}, and the decimal mark is {decimal_mark!r}; say data.decimal, "
            "or write numbers without thousands separators"
        )
    if day_of(text) is not None:
        return "is not a number but written as a date; columns of dates have public bounds that are dates"
    return "is not a number"


def object_text(value: Any) -> str:
    """Write an object of a typed column as the cell of a CSV table would be, empty where it is missing.

    Raises
    ------
    DataError
        For an object that is no text, number, date or truth value; naming its type.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, np.float16 | np.float32):
        value = float(str(value))  # as it is written, like columns of that type
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f") if value.is_finite() else "" if value.is_nan() else str(value)
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    raise DataError(f"holds values of the type {type(value).__name__}; text, numbers or dates are read")


# Tables

Table = tuple[NDArray[np.float64], tuple[str, ...]]
Take = Callable[[int, int, dict[str, str]], None]  # record, line, and the wanted cells by name
_FIRST = 20
"""Records that are looked at to tell a header from a record."""


def is_text(part: Part) -> bool:
    """Whether a part of a table is text."""
    return isinstance(part, StandardInput) or (
        isinstance(part, Path) and part.name.lower().endswith(TEXT_SUFFIXES)
    )


def numbers_in_text(
    part: Part,
    source: TableFiles,
    columns: Sequence[str] | None,
    public: bool = False,
    holes: Collection[str] = (),
) -> Table:
    """Read columns of numbers, or dates, shape (n, d), and their names; NaN where `holes` may be missing.

    Raises
    ------
    DataError
        For cells that are no numbers, and what `read_text` refuses.
    """
    found = array("d")
    mark = source.dialect.decimal
    parsers: dict[str, Any] = {}

    def number(name: str, cell: str, record: int, line: int) -> float:
        parse = parsers.get(name)
        if parse is None:
            parse = parsers[name] = parser_of(mark, dates=name in source.dates)
        value: float | None = parse(cell)
        if value is not None and (public or not math.isnan(value)):
            return value
        text = cell.strip()
        if text in MARKS and (not public or not text):
            if name in holes:
                return math.nan
            raise no_value(part, name, record, line, text, public)
        raise cannot_be(part, name, record, line, complaint(text, mark, dates=name in source.dates))

    def take(record: int, line: int, cells: dict[str, str]) -> None:
        if record * len(cells) > MOST_VALUES or record > MOST_RECORDS:
            raise too_many(part, len(cells))
        found.extend([number(name, cell, record, line) for name, cell in cells.items()])

    names = read_text(part, source.dialect, columns, take, public)
    return np.array(found, dtype=np.float64).reshape(-1, len(names)), names


def texts_in_text(
    part: Part, source: TableFiles, columns: Sequence[str], public: bool, missing: Missing
) -> list[list[str | None]]:
    """Read columns of text; None where a value that something stands for is missing.

    Raises
    ------
    DataError
        For missing values that nothing stands for, and what `read_text` refuses.
    """
    found: list[list[str | None]] = [[] for _ in columns]
    known: dict[str, str] = {}  # texts that are equal take their room once

    def take(record: int, line: int, cells: dict[str, str]) -> None:
        if record * len(cells) > MOST_VALUES or record > MOST_RECORDS:
            raise too_many(part, len(cells))
        for (name, cell), column in zip(cells.items(), found, strict=True):
            text = cell.strip()
            if text and (public or not missing.marks(name, text)):
                column.append(known.setdefault(text, text))
            elif name in missing.stand:
                column.append(None)
            else:
                raise no_value(part, name, record, line, text, public)

    read_text(part, source.dialect, columns, take, public)
    return found


def read_text(
    path: Part, dialect: Dialect, columns: Sequence[str] | None, take: Take, public: bool
) -> tuple[str, ...]:
    """Hand over the wanted cells of each record with its number and line; return the names of the columns.

    Raises
    ------
    DataError
        For an empty or damaged file, a missing column, and ragged records.
    OSError
        For a file that cannot be read.
    """
    with _reading(path, dialect) as reader:
        return _parse_csv(path, reader, dialect.delimiter_of(path.name), columns, take, public)


def records_in_text(path: Part, dialect: Dialect, columns: Sequence[str] | None) -> int:
    """Return the number of records of a table of text that has these columns, whatever their cells.

    Raises
    ------
    DataError
        For an empty or damaged file, a missing column, and one column that ends in an empty line.
    OSError
        For a file that cannot be read.
    """
    with _reading(path, dialect) as reader:
        header = _header(path, reader)
        _wanted(path, reader, header, dialect.delimiter_of(path.name), columns, public=False)
        return sum(1 for _ in _records(path, reader, len(header), public=False))


@contextmanager
def _reading(path: Part, dialect: Dialect) -> Iterator[Any]:
    """Give a reader of CSV, and put its errors in words that show nothing of the file."""
    mark = dialect.delimiter_of(path.name)
    line = 0
    try:
        with _open_text(path, dialect.codec) as stream:
            reader = csv.reader(stream, strict=True, delimiter=mark, skipinitialspace=mark != "\t")
            try:
                yield reader
            finally:
                line = reader.line_num
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is damaged or not a gzip file") from None
    except UnicodeError:
        name = "UTF-8" if dialect.encoding == "utf-8" else dialect.encoding
        raise DataError(
            f"{path} is not a text file in {name}; say its encoding, such as data.encoding: latin-1"
        ) from None
    except csv.Error as error:
        text = f"{path} is not a well-formed CSV file: line {line}: {error}"
        if "expected after" in str(error):
            text += "; if another mark separates its columns, say it in delimiter"
        raise DataError(text) from None


def _open_text(path: Part, codec: str) -> IO[str]:
    if isinstance(path, StandardInput):
        return path.open(codec)
    assert isinstance(path, Path)  # the caller has looked
    if path.name.lower().endswith(".gz"):
        return open_packed(path, codec)
    return path.open(encoding=codec, newline="")


def _wanted(
    path: Part, reader: Any, header: list[str], delimiter: str, columns: Sequence[str] | None, public: bool
) -> list[str]:
    """Return the names of the columns to read, each of which the header has once."""
    wanted = list(header if columns is None else columns)
    for name in wanted:
        if header.count(name) > 1:
            raise DataError(f"{path} has {header.count(name)} columns called {name!r}")
        if name not in header:
            if len(header) == 1 and any(mark in header[0] for mark in ",;\t|" if mark != delimiter):
                by = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(delimiter, repr(delimiter))
                raise DataError(
                    f"{path} has no column {name!r}: its columns are not separated by {by}; say by what in "
                    f"{'release' if public else 'data'}.delimiter"
                )
            if any(_is_number(cell) for cell in header):
                raise DataError(f"{path} has no column {name!r}: its first line holds numbers, not names")
            raise no_column(path, name, header, public=public, sure=_headings(header, reader))
    return wanted


def _parse_csv(
    path: Part, reader: Any, delimiter: str, columns: Sequence[str] | None, take: Take, public: bool
) -> tuple[str, ...]:
    header = _header(path, reader)
    wanted = _wanted(path, reader, header, delimiter, columns, public)
    places = {name: header.index(name) for name in wanted}
    for record, line, cells in _records(path, reader, len(header), public):
        if len(cells) != len(header):
            where = f"record {record} (line {line}) has {len(cells)} cells"
            raise DataError(f"{path}: {where}, but the header has {len(header)}")
        take(record, line, {name: cells[place] for name, place in places.items()})
    return tuple(wanted)


def _header(path: Part, reader: Any) -> list[str]:
    header = [cell.strip() for cell in next(reader, [])]
    if not any(header):
        raise DataError(f"{path} is empty: it has no header")
    return header


def _headings(header: Sequence[str], reader: Any) -> list[str]:
    """Return the cells of a first line that are no numbers and stand above numbers: names of columns."""
    first = [cells for cells in islice(reader, _FIRST) if len(cells) == len(header)]
    return [
        name
        for i, name in enumerate(header)
        if not _is_number(name) and first and all(_is_number(cells[i]) for cells in first)
    ]


def _records(path: Part, reader: Any, width: int, public: bool) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (record, line, cells); an empty line is a record, and at the end of several columns none.

    Raises
    ------
    DataError
        For an empty line at the end of one column: whether it is a record decides the number of records.
    """
    record, blanks = 0, []
    for cells in reader:
        if not cells:
            blanks.append(reader.line_num)
            continue
        for line in blanks:
            record += 1
            yield record, line, [""]
        blanks = []
        record += 1
        yield record, reader.line_num, cells
    if blanks and width == 1:
        raise empty_end(path, blanks[0], public)


def _is_number(text: str) -> bool:
    value = number_in(text)
    if value is None:
        value = number_in(text.replace(",", ".", 1))
    return value is not None and not math.isnan(value)


# Packed text is unpacked as far as its size on the disk makes plausible.

_BLOCK = 1 << 16


def open_packed(path: Path, encoding: str) -> IO[str]:
    """Open a gzip file of text, line ends as they are.

    Raises
    ------
    DataError
        While it is read, when it unpacks to more than `MOST_PER_BYTE_OF_TEXT` times what was read of it.
    OSError, EOFError, zlib.error
        When it cannot be read, or is damaged.
    """
    return io.TextIOWrapper(io.BufferedReader(_Unpacked(path), _BLOCK), encoding=encoding, newline="")


class _Unpacked(io.RawIOBase):
    """The bytes that a gzip file unpacks to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._packed = path.open("rb")
        self._bytes = gzip.GzipFile(fileobj=self._packed)
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        size = self._bytes.readinto(buffer)
        self._count += size
        if self._count > max(ROOM_OF_TEXT, MOST_PER_BYTE_OF_TEXT * self._packed.tell()):
            raise DataError(
                f"{self._path} unpacks to more than {MOST_PER_BYTE_OF_TEXT} times its size, as no table of "
                "numbers does; unpack it and give that, if that is what you want to read"
            )
        return size

    def close(self) -> None:
        if not self.closed:
            self._bytes.close()
            self._packed.close()
        super().close()
