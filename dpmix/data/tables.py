"""Tables of numbers from csv, csv.gz, npy and h5 files, checked cell by cell.

An error names the file, the column and the record, never a value: a message may be shown to others.
"""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dpmix.errors import DataError
from dpmix.spec.limits import MOST_PER_BYTE_OF_TEXT, ROOM_OF_TEXT

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
import csv
import difflib
import math
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.missing import Missing, advice
from dpmix.spec.data_section import MARKS
from dpmix.spec.limits import MOST_RECORDS, MOST_VALUES
from dpmix.spec.standard_input import StandardInput, TableSource, source_of

__all__ = ["open_packed"]


# Packed text that is unpacked as far as its size on the disk makes plausible.

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
                "numbers does; unpack it and give the .csv file, if that is what you want to read"
            )
        return size

    def close(self) -> None:
        if not self.closed:
            self._bytes.close()
            self._packed.close()
        super().close()


Table = tuple[NDArray[np.float64], tuple[str, ...]]
Take = Callable[[int, int, dict[str, str]], None]  # record, line, and the wanted cells by name


def load_table(
    path: TableSource,
    columns: Sequence[str] | None,
    *,
    least: int = 1,
    public: bool = False,
    missing: Missing | None = None,
) -> Table:
    """Read the named columns of a table.

    Parameters
    ----------
    path : Path
        A csv, csv.gz, npy or h5 file, told apart by its suffix; - for a CSV table on standard input.
    columns : sequence of str or None
        Their names. An npy file has none: there they name its columns in order. None takes all columns.
    least : int
        The smallest number of records that is accepted.
    public : bool
        Whether an error may show the first line, which is a record where there is no header.
    missing : Missing, optional
        What stands for missing values.

    Returns
    -------
    ndarray of float64, shape (n, d), and tuple of d names
        All finite.

    Raises
    ------
    DataError
        In one sentence, for a missing, empty or damaged file, a missing column, ragged records, cells that
        are text, infinite, or missing values that nothing stands for, and too few records.
    """
    path = source_of(path)
    name = path.name.lower()
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if path.is_dir():
        raise DataError(f"{path} is a directory, not a table")
    try:
        if isinstance(path, StandardInput) or name.endswith((".csv", ".csv.gz")):
            values, names = _from_csv(path, columns, public, missing)
        elif name.endswith(".npy"):
            values, names = _from_npy(path, columns)
        elif name.endswith(".h5"):
            values, names = _from_h5(path, columns, public)
        else:
            raise DataError(f"{path} is none of csv, csv.gz, npy and h5")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or 'the file is damaged'}") from None
    if len(values) < least:
        records = "no records" if not len(values) else f"{len(values)} record{'s' * (len(values) > 1)}"
        raise DataError(f"{path} has {records}; at least {least} are needed")
    if missing is not None:
        missing.fill(values, names)
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        what = "" if public or not np.isnan(values[row, column]) else f"; {advice(names[column])}"
        raise DataError(
            f"{path}: column {names[column]!r} has no finite number in record {row + 1} "
            f"(and {int(bad.sum()) - 1} more){what}"
        )
    return values, names


def load_text(
    path: TableSource,
    columns: Sequence[str],
    *,
    least: int = 1,
    public: bool = False,
    missing: Missing | None = None,
) -> tuple[tuple[str, ...], ...]:
    """Read the named columns of a csv or csv.gz table as text, spaces around it taken off.

    Parameters
    ----------
    path : Path
        The table.
    columns : sequence of str
        Names of the columns.
    least : int
        The smallest number of records that is accepted.
    public : bool
        As in `load_table`; labels of tables that are not may be no marks of missing values, either.
    missing : Missing, optional
        What stands for missing values, and which categories look like them.

    Returns
    -------
    tuple of tuple of str
        The cells of each column.

    Raises
    ------
    DataError
        As `load_table`; for files of numbers alone.
    """
    path = source_of(path)
    if path.is_file() and not path.name.lower().endswith((".csv", ".csv.gz")):
        raise DataError(
            f"{path} holds numbers: give data.domain for {columns[0]}, or a csv file where it is a label"
        )
    if not path.is_file():
        raise DataError(f"{path} {'is a directory, not a table' if path.is_dir() else 'does not exist'}")
    try:
        found = _text_columns(path, columns, public, Missing() if missing is None else missing)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or 'the file is damaged'}") from None
    if len(found[0]) < least:
        records = f"{len(found[0])} record{'s' * (len(found[0]) != 1)}"
        raise DataError(f"{path} has {records}; at least {least} are needed")
    return found


def load_mixed(
    path: TableSource,
    numeric: Sequence[str],
    textual: Sequence[str],
    *,
    least: int = 1,
    public: bool = False,
    missing: Missing | None = None,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, tuple[str, ...]]]:
    """Read some columns of a table as numbers and others as text, by name.

    Parameters
    ----------
    path : Path
        The table.
    numeric, textual : sequence of str
        Names of the columns.
    least : int
        The smallest number of records that is accepted.
    public, missing
        As in `load_table`.

    Raises
    ------
    DataError
        As `load_table` and `load_text`; when the file changes meanwhile.
    """
    path = source_of(path)
    numbers: dict[str, NDArray[np.float64]] = {}
    texts: dict[str, tuple[str, ...]] = {}
    if numeric:
        columns = load_table(path, numeric, least=least, public=public, missing=missing)[0].T
        numbers = dict(zip(numeric, columns, strict=True))
    if textual:
        found = load_text(path, textual, least=least, public=public, missing=missing)
        texts = dict(zip(textual, found, strict=True))
    if len({*map(len, numbers.values()), *map(len, texts.values())}) > 1:
        raise DataError(f"{path} changed while it was read")
    return numbers, texts


def scan_table(path: TableSource, columns: Sequence[str], take: Take) -> None:
    """Hand over the named cells of each record of a csv or csv.gz table, as text, one record after the other.

    Parameters
    ----------
    path : Path
        The table, whose header an error may show.
    columns : sequence of str
        Names of the columns.
    take : callable
        Takes the number of a record, its line, and its cells by name.

    Raises
    ------
    DataError
        For a missing, empty or damaged file, a missing column, and ragged records.
    """
    if not path.is_file():
        raise DataError(f"{path} {'is a directory, not a table' if path.is_dir() else 'does not exist'}")
    try:
        _read_csv(path, columns, take, True)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or 'the file is damaged'}") from None


def _text_columns(
    path: TableSource, columns: Sequence[str], public: bool, missing: Missing
) -> tuple[tuple[str, ...], ...]:
    found: list[list[str]] = [[] for _ in columns]
    known: dict[str, str] = {}  # texts that are equal take their room once

    def take(record: int, line: int, cells: dict[str, str]) -> None:
        if record * len(cells) > MOST_VALUES or record > MOST_RECORDS:
            raise _too_many(path, len(cells))
        for (name, cell), column in zip(cells.items(), found, strict=True):
            text = cell.strip()
            if not text or (not public and missing.marks(name, text)):
                stand = missing.label(name, record - 1)
                if stand is None:
                    raise _no_value(path, name, record, line, text, public)
                text = stand
            column.append(known.setdefault(text, text))

    _read_csv(path, columns, take, public)
    return tuple(tuple(column) for column in found)


def _no_value(path: TableSource, name: str, record: int, line: int, text: str, public: bool) -> DataError:
    """Return the error of a cell that is a missing value."""
    problem = "is missing" if text else "is empty"
    more = "" if public else f"; {advice(name)}"
    return DataError(f"{path}: the cell of column {name!r} in record {record} (line {line}) {problem}{more}")


def _too_many(path: TableSource, width: int) -> DataError:
    most = min(MOST_RECORDS, MOST_VALUES // max(1, width))
    wide = f"{width} column{'s' * (width != 1)}"
    return DataError(f"{path} has more than {most:,} records of {wide}, the most that are read")


def _missing(path: TableSource, name: str, known: Sequence[str], public: bool) -> DataError:
    """Return the error of a missing column; of data that are not public without what may be a record."""
    if not public:
        among = f"among its {len(known)} columns" if len(known) != 1 else "in its one column"
        return DataError(
            f"{path} has no column {name!r} {among}; give it as the first line does, which must be a header"
        )
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if not close:
        close = [k for k in known if k.strip().lower() == name.strip().lower()][:1]
    if close:
        return DataError(f"{path} has no column {name!r}; did you mean {close[0]!r}?")
    listed = ", ".join(repr(k) for k in known[:8]) + (", .." if len(known) > 8 else "")
    return DataError(f"{path} has no column {name!r}; it has {listed or 'none'}")


def _from_csv(
    path: TableSource, columns: Sequence[str] | None, public: bool, missing: Missing | None = None
) -> Table:
    found = array("d")
    stand = () if missing is None else missing.stand

    def number(name: str, cell: str, record: int, line: int) -> float:
        value, text = number_in(cell), cell.strip()
        if value is not None and (public or not math.isnan(value)):
            return value
        if text in MARKS and (not public or not text):
            if name in stand:
                return math.nan
            raise _no_value(path, name, record, line, text, public)
        raise DataError(
            f"{path}: the cell of column {name!r} in record {record} (line {line}) is not a number"
        )

    def take(record: int, line: int, cells: dict[str, str]) -> None:
        if record * len(cells) > MOST_VALUES or record > MOST_RECORDS:
            raise _too_many(path, len(cells))
        found.extend([number(name, cell, record, line) for name, cell in cells.items()])

    names = _read_csv(path, columns, take, public)
    return np.array(found, dtype=np.float64).reshape(-1, len(names)), names


def _read_csv(path: TableSource, columns: Sequence[str] | None, take: Take, public: bool) -> tuple[str, ...]:
    """Hand over the wanted cells of each record with its number and line; return the names of the columns."""
    try:
        with _open_text(path) as stream:
            return _parse_csv(path, csv.reader(stream, strict=True), columns, take, public)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is damaged or not a gzip file") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a text file in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path} is not a well-formed CSV file: {error}") from None


def _open_text(path: TableSource) -> IO[str]:
    if isinstance(path, StandardInput):
        return path.open()
    if path.name.lower().endswith(".gz"):
        return open_packed(path, "utf-8-sig")
    return path.open(encoding="utf-8-sig", newline="")


def _parse_csv(
    path: TableSource,
    reader: Any,
    columns: Sequence[str] | None,
    take: Take,
    public: bool,
) -> tuple[str, ...]:
    header = [cell.strip() for cell in next(reader, [])]
    if not any(header):
        raise DataError(f"{path} is empty: it has no header")
    wanted = list(header if columns is None else columns)
    for name in wanted:
        if header.count(name) > 1:
            raise DataError(f"{path} has {header.count(name)} columns called {name!r}")
        if name not in header:
            if len(header) == 1 and any(mark in header[0] for mark in ";\t|"):
                raise DataError(f"{path} has no column {name!r}: its columns are not separated by commas")
            if any(_is_number(cell) for cell in header):
                raise DataError(f"{path} has no column {name!r}: its first line holds numbers, not names")
            raise _missing(path, name, header, public)
    places = {name: header.index(name) for name in wanted}
    for record, line, cells in _records(reader):
        if len(cells) != len(header):
            where = f"record {record} (line {line}) has {len(cells)} cells"
            raise DataError(f"{path}: {where}, but the header has {len(header)}")
        take(record, line, {name: cells[place] for name, place in places.items()})
    return tuple(wanted)


def _records(reader: Any) -> Iterator[tuple[int, int, list[str]]]:
    """Yield (record, line, cells); an empty line is a record unless nothing follows it."""
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


def number_in(text: str) -> float | None:
    """Return the number a cell holds, NaN for one that is not finite, None for no number."""
    try:
        value = float(text)
    except ValueError:
        return None
    if "_" in text:  # Python's own digit separator
        return None
    return value


def _is_number(text: str) -> bool:
    value = number_in(text)
    return value is not None and not math.isnan(value)


_NPY_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _check_shape(path: TableSource, shape: Sequence[int]) -> None:
    """Refuse a table that is too large, before it is read."""
    if len(shape) > 0 and (shape[0] > MOST_RECORDS or math.prod(shape) > MOST_VALUES):
        raise _too_many(path, shape[1] if len(shape) > 1 else 1)


def _from_npy(path: Path, columns: Sequence[str] | None) -> Table:
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            header = _NPY_HEADERS.get(version)
            if header is not None:
                _check_shape(path, header(stream)[0])
            stream.seek(0)
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, TypeError, SyntaxError, OverflowError):
        raise DataError(f"{path} is not an npy file of numbers, or is damaged") from None
    if array.dtype.kind not in "iuf":
        raise DataError(f"{path} holds {array.dtype} values; numbers are needed")
    if array.ndim not in (1, 2):
        raise DataError(f"{path} has {array.ndim} dimensions; (n,) or (n, columns) is needed")
    values = np.ascontiguousarray(array.reshape(len(array), -1 if array.size else 1), dtype=np.float64)
    width = values.shape[1]
    names = tuple(columns) if columns else tuple(f"column_{i + 1}" for i in range(width))
    if len(names) != width:
        raise DataError(f"{path} has {width} columns, but {len(names)} are named: npy columns go by order")
    return values, names


def _from_h5(path: Path, columns: Sequence[str] | None, public: bool) -> Table:
    from dpmix.store import h5

    series: dict[str, NDArray[Any]] = {}
    with h5.reading(path) as root:
        inside = "release" in root.names()[1] and "values" in root.group("release")
        if not inside and "release" in root.names()[1] and "counts" in root.group("release"):
            raise DataError(f"{path} is a tally, of counts in cells without any record's value")
        group = root.group("release") if inside else root
        known = [str(name) for name in group["column"][()]] if inside else list(root.names()[0])
        chosen = list(known if columns is None else columns)
        if not chosen:
            raise DataError(f"{path} has no columns")
        for name in chosen:
            if name not in known:
                raise _missing(path, name, known, public)
        tables = {"values": group["values"]} if inside else {name: root[name] for name in chosen}
        for name, table in tables.items():
            if table.kind not in "iuf" or len(table.shape) != 1 + inside:
                what = "table" if inside else "column"
                raise DataError(f"{path}: the dataset {name!r} is not one {what} of numbers")
            if table.shape[0] != tables[next(iter(tables))].shape[0]:
                raise DataError(f"{path}: the datasets {chosen[0]!r} and {name!r} have different lengths")
            _check_shape(path, table.shape if inside else (table.shape[0], len(chosen)))
        if inside and tables["values"].shape[1] != len(known):
            raise DataError(f"{path} is damaged: its release does not name every column")
        for name, table in tables.items():
            found = table.numbers()
            series |= {label: found[:, i] for i, label in enumerate(known)} if inside else {name: found}
    return np.column_stack([series[name] for name in chosen]), tuple(chosen)
