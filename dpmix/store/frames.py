"""Plain tables of named columns, and their files: CSV and Parquet; without knowing what they hold.

A column is numbers (NaN where there is none), days since 1970-01-01 that are dates, or text (None where there
is none). In CSV numbers have as many digits as tell them apart, and what is not there is an empty cell.
"""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, UsageError
from dpmix.store.atomic import check_output, fsync, reason, replacing

if TYPE_CHECKING:
    import pandas

__all__ = [
    "DAY_US",
    "Frame",
    "Pieces",
    "check_frame_output",
    "dates_of",
    "days_of",
    "needed",
    "print_csv",
    "write_pieces",
]

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
    """Write a table, which appears complete or not at all.

    Parameters
    ----------
    path : str or Path
        A file whose name ends in .csv or .parquet.
    table : Pieces
    force : bool
        Whether to overwrite.
    private : bool
        Whether only its owner may read the file.

    Raises
    ------
    UsageError, DataError
        As `check_frame_output`; when the file system refuses.
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


def print_csv(stream: IO[str] | None, table: Pieces) -> None:
    """Write a table as CSV to an open file, to standard output without one."""
    target = sys.stdout if stream is None else stream
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
                name: arrow.array(
                    column if isinstance(column, np.ndarray) else list(column), **_type(arrow, column)
                )
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


def _type(arrow: Any, column: NDArray[Any] | Sequence[str | None]) -> dict[str, Any]:
    return {} if isinstance(column, np.ndarray) else {"type": arrow.string()}
