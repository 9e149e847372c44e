"""Plain tables of named columns, their files (CSV and Parquet) and looks; without knowing what they hold.

A column is numbers (NaN where there is none), days since 1970-01-01 that are dates, or text (None where there
is none). In CSV numbers have as many digits as tell them apart, and what is not there is an empty cell.

What holds tables (`Tabulated`) shows a few of their rows in a notebook, gives programmers one line, and a
DataFrame to whom asks.
"""

from __future__ import annotations

import codecs
import csv
import importlib
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, UsageError
from dpmix.store.atomic import check_output, fsync, reason, replacing

if TYPE_CHECKING:
    import pandas

SUFFIXES = (".csv", ".parquet")
"""How names of files of tables end."""

DAY_US = 86_400_000_000
"""Microseconds of a day."""
_FIRST, _LAST = -719_162, 2_932_896  # days since 1970-01-01 of the years 1 to 9999


@dataclass(frozen=True, eq=False)
class Frame:
    """A table.

    Parameters
    ----------
    columns : mapping of str to array or sequence
        Of one length, by name: arrays of numbers or of dates (`dates_of`), or sequences of text and None.
    """

    columns: Mapping[str, NDArray[Any] | Sequence[str | None]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def first(self, count: int) -> Frame:
        """Return the first rows."""
        return Frame({name: column[:count] for name, column in self.columns.items()})

    def cells(self) -> list[list[str]]:
        """Return the cells of each column as CSV has them."""
        return [_cells(column) for column in self.columns.values()]

    def rows(self) -> list[dict[str, Any]]:
        """Return one object a row for strict JSON: numbers, text, dates as text, None for nothing."""
        held = [_plain(column) for column in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*held, strict=True)]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas DataFrame.

        Raises
        ------
        UsageError
            Where pandas is not installed.
        """
        made: pandas.DataFrame = needed("pandas", "to_dataframe").DataFrame(
            {
                name: column if isinstance(column, np.ndarray) else list(column)
                for name, column in self.columns.items()
            }
        )
        return made


@dataclass(frozen=True, eq=False)
class Pieces:
    """A table in pieces, of which one is in memory at a time.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    pieces : callable
        Gives the pieces in order, all with these columns and of the same types; there is one at least.
    rows : int
        How many rows there are.
    """

    columns: Sequence[str]
    pieces: Callable[[], Iterator[Frame]]
    rows: int

    @classmethod
    def of(cls, frame: Frame) -> Pieces:
        """Return a table that is in memory as one piece."""
        return cls(tuple(frame.columns), lambda: iter([frame]), len(frame))

    def frame(self) -> Frame:
        """Return the whole table."""
        found = list(self.pieces())
        if len(found) == 1:
            return found[0]
        return Frame({name: _joined([piece.columns[name] for piece in found]) for name in self.columns})


def _joined(parts: Sequence[NDArray[Any] | Sequence[str | None]]) -> NDArray[Any] | Sequence[str | None]:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    return np.concatenate(arrays) if len(arrays) == len(parts) else [text for part in parts for text in part]


def dates_of(days: NDArray[np.float64]) -> NDArray[Any]:
    """Return days since 1970-01-01 as dates, with the time of day, to the microsecond, where one has any.

    Where one lies beyond the years 1 to 9999, as noise may put it, or is not there, numbers are returned.
    """
    if not np.isfinite(days).all() or ((days < _FIRST) | (days >= _LAST + 1)).any():
        return days
    if (days == np.floor(days)).all():
        return days.astype(np.int64).astype("datetime64[D]")
    whole = np.floor(days)
    inside = np.rint((days - whole) * DAY_US).astype(np.int64)
    return (whole.astype(np.int64) * DAY_US + inside).astype("datetime64[us]")


def days_of(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return datetime64 as days since 1970-01-01, to a microsecond; NaN for those that are none."""
    gone = np.isnat(array)
    counts = array.astype("datetime64[us]").astype(np.int64)
    days, rest = np.divmod(counts, DAY_US)
    found = days + rest / DAY_US
    found[gone] = np.nan
    return np.asarray(found, dtype=np.float64)


def _cells(column: NDArray[Any] | Sequence[str | None]) -> list[str]:
    if not isinstance(column, np.ndarray):
        return ["" if text is None else text for text in column]
    if column.dtype.kind == "M":
        texts = np.datetime_as_string(column).tolist()
        return ["" if text == "NaT" else text.replace("T", " ") for text in texts]
    if column.dtype.kind in "iub":
        return [str(int(value)) for value in column.tolist()]
    return [_short(number) for number in column.tolist()]


def _short(number: float) -> str:
    if number != number:
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _plain(column: NDArray[Any] | Sequence[str | None]) -> list[Any]:
    if not isinstance(column, np.ndarray):
        return list(column)
    if column.dtype.kind == "M":
        return _cells(column)
    if column.dtype.kind == "f":
        return [value if np.isfinite(value) else None for value in column.tolist()]
    return list(column.tolist())


def needed(module: str, what: str) -> Any:
    """Import a library that is an extra.

    Raises
    ------
    UsageError
        Where it is not installed, saying what needs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        extra = "tables" if name in ("pandas", "pyarrow") else "arviz"
        raise UsageError(
            f"{what} needs {name}, which is not installed: pip install 'dpmix[{extra}]'"
        ) from None


def check_frame_output(path: str | Path, *, force: bool = False) -> None:
    """Refuse before any work an output that is neither CSV nor Parquet, or may not be written.

    Raises
    ------
    UsageError
        Naming the suffixes; for Parquet without pyarrow; and as `dpmix.store.atomic.check_output`.
    DataError
        As that.
    """
    if str(path) == "-":
        return
    if not str(path).lower().endswith(SUFFIXES):
        raise UsageError(f"-o {path}: a table is written as {' or '.join(SUFFIXES)}; choose one")
    if str(path).lower().endswith(".parquet"):
        needed("pyarrow.parquet", f"{path}: Parquet")
    check_output(path, force=force)


def write_pieces(path: str | Path, table: Pieces, *, force: bool = False, private: bool = False) -> None:
    """Write a table as .csv or .parquet, which appears complete or not at all.

    Where it is `private` only its owner may read the file.

    Raises UsageError and DataError as `check_frame_output`; when the file system refuses.
    """
    check_frame_output(path, force=force)
    with replacing(path, force=force) as temporary:
        try:
            temporary.touch(mode=0o600 if private else 0o666)
            if str(path).lower().endswith(".parquet"):
                _write_parquet(temporary, table)
            else:
                with temporary.open("w", encoding="utf-8", newline="") as stream:
                    print_csv(stream, table)
            fsync(temporary)
        except OSError as error:
            raise DataError(f"cannot write {path}: {reason(error)}") from error


def data_output() -> Any:
    """Return standard output for data, which are UTF-8 as in files, whatever the terminal's letters are."""
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # of a notebook
        return sys.stdout
    sys.stdout.flush()
    return codecs.getwriter("utf-8")(buffer, "backslashreplace")


def print_csv(stream: IO[str] | None, table: Pieces) -> None:
    """Write a table as CSV to an open file, to standard output without one."""
    target = data_output() if stream is None else stream
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(table.columns)
    for piece in table.pieces():
        writer.writerows(zip(*piece.cells(), strict=True))
    target.flush()


def _write_parquet(path: Path, table: Pieces) -> None:
    arrow, parquet = needed("pyarrow", f"{path}: Parquet"), importlib.import_module("pyarrow.parquet")
    writer: Any = None
    try:
        for piece in table.pieces():
            columns = {
                name: arrow.array(column)
                if isinstance(column, np.ndarray)
                else arrow.array(list(column), type=arrow.string())
                for name, column in piece.columns.items()
            }
            made = arrow.table(columns)
            writer = parquet.ParquetWriter(path, made.schema) if writer is None else writer
            writer.write_table(made)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise DataError(f"cannot write {path} as Parquet: {reason(error)}") from error
    finally:
        if writer is not None:
            writer.close()


# Results in a notebook: a few lines and a small table, as HTML that no name or label can break out of


FIRST = 20
"""Rows that are shown."""
_COLUMNS = 12  # that are shown


def to_notebook(title: str, lines: Sequence[str], table: Frame | None = None, rows: int | None = None) -> str:
    """Return a heading, sentences, and the first rows of a table, of `rows` where `table` has only some."""
    parts = [f"<p><strong>{escape(title)}</strong></p>", *(f"<p>{escape(line)}</p>" for line in lines)]
    if table is not None and table.columns:
        parts.append(_table(table.first(FIRST)))
        total = len(table) if rows is None else rows
        more = [f"{total - FIRST:,} more rows"] if total > FIRST else []
        wide = len(table.columns) - _COLUMNS
        more += [f"{wide:,} more column{'s' * (wide > 1)}"] if wide > 0 else []
        parts += [f"<p><small>and {' and '.join(more)}</small></p>"] if more else []
    return f'<div class="dpmix">{"".join(parts)}</div>'


def _table(table: Frame) -> str:
    names = list(table.columns)[:_COLUMNS]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    cells = Frame({name: table.columns[name] for name in names}).cells()
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_brief(cell))}</td>' for cell in row)}</tr>"
        for row in zip(*cells, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _brief(cell: str) -> str:
    """Return a number of many digits with six of them."""
    if len(cell) <= 9 or not any(mark in cell for mark in ".e"):
        return cell
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return cell


# What results and releases share: a small table in a notebook, one line for programmers, a DataFrame


class Tabulated:
    """Something that has a table."""

    @abstractmethod
    def to_frame(self) -> Frame:
        """Return its table."""

    @property
    @abstractmethod
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, and what else is said of it in a notebook."""

    def to_dataframe(self) -> pandas.DataFrame:
        """Return its table as a pandas DataFrame.

        Raises
        ------
        UsageError
            Where pandas is not installed.
        """
        return self.to_frame().to_pandas()

    def _repr_html_(self) -> str:
        title, lines = self.headline
        return to_notebook(title, lines, self.to_frame())


class TabulatedFigures(dict[str, Any], Tabulated):
    """Figures by name, as JSON has them, that a notebook shows as a table."""

    title = "Figures"

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is called."""
        return self.title, ()

    def to_frame(self) -> Frame:
        """Return a row each figure: its name, and its value as text; those within others as `one.other`."""
        flat = _leaves(self)
        return Frame({"name": list(flat), "value": [None if v is None else _text(v) for v in flat.values()]})


def _leaves(found: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in found.items():
        leaves |= (
            _leaves(value, f"{within}{key}.") if isinstance(value, Mapping) else {f"{within}{key}": value}
        )
    return leaves


def frame_of_rows(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return rows as a table; a mapping within becomes columns called `key[name]`.

    A column is of numbers where all that is there are numbers, else of text.
    """
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return Frame({name: _column([row.get(name) for row in flat]) for name in names})


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key}[{name}]": entry for name, entry in _flat(value).items()}
        else:
            found[key] = value
    return found


def _column(values: list[Any]) -> Any:
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, bool) for value in values):
        return np.asarray(values, dtype=np.int64)
    if there and all(isinstance(value, int | np.integer) and abs(int(value)) < 2**63 for value in values):
        return np.asarray(values, dtype=np.int64)
    if there and all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in there
    ):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    return [None if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
