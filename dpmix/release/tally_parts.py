"""Parts of a release, counted where they lie: in pieces, by processes, on a Dask cluster, or by a SQL query.

A piece is what one process counts at a time: rows of an HDF5 dataset, row groups of a Parquet file, or a CSV
file as a whole. It is read in batches, so that memory does not grow with it. pyarrow reads CSV and Parquet.
Counts are whole numbers, so that their sum depends neither on the order of pieces nor on who counted them. A
piece that was lost with its process is counted again.

The SQL query compares with literal edges, as `numpy.searchsorted` does: a value on an edge is in the cell
above it; no arithmetic of an engine decides. Rows that have no finite number, or no output of the mechanism,
have the cell -1, so that none is left out in silence. Its result is read as a CSV table of cells.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import math
import multiprocessing
import signal
import sys
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix._version import __version__
from dpmix.errors import DataError, DpmixError, UsageError
from dpmix.release.tallies import MOST, check_room, count_outputs, tally
from dpmix.spec.table_source import Dialect
from dpmix.store import h5
from dpmix.store.atomic import HDF5, reason
from dpmix.store.frames import DAY_US, days_of

Floats = NDArray[np.float64]

BATCH = 1 << 20
"""Values in memory at a time."""
_ROWS = 1 << 24  # of a piece of HDF5 or Parquet
_BYTES = 1 << 22  # of text parsed at a time
_SUFFIXES = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".pq": "parquet"}
_EMPTY = ["", "NA", "NaN", "nan", "null"]  # what stands for no value: refused, as in a release read whole


class TallyGrid(NamedTuple):
    """Where values are counted.

    edges (cells - 1,): finite ones, of dates in days since 1970-01-01; outputs: of a mechanism with finitely
    many, else 0; dates: whether values are dates.
    """

    edges: Floats
    outputs: int
    width: float
    dates: bool = False


class TallyPart(NamedTuple):
    """A file of released values.

    Its path, its format, which column (place in HDF5, name elsewhere), whether that is written as dates, and
    how its text is written.
    """

    path: str
    format: str
    column: int | str
    dates: bool = False
    dialect: Dialect = Dialect()


class Piece(NamedTuple):
    """Rows, or row groups, [start, stop) of a part; of a CSV file all. `label` is what messages call it."""

    part: TallyPart
    start: int
    stop: int
    label: str


def format_of(path: Path) -> str:
    """Return hdf5, csv or parquet, by the name of a file.

    Raises
    ------
    UsageError
        For another name.
    """
    name = path.name.lower()
    if name.endswith(HDF5):
        return "hdf5"
    for suffix, kind in _SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    raise UsageError(
        f"{path}: parts of a release are HDF5 ({', '.join(HDF5)}), CSV (.csv, .csv.gz) or Parquet files "
        "(.parquet, .pq)"
    )


def column_of(path: Path, kind: str, wanted: str | None, dialect: Dialect) -> str:
    """Return the column of a CSV or Parquet file that is counted, its text written as `dialect` says.

    Raises
    ------
    UsageError
        When pyarrow is not there.
    DataError
        When there is no such column, or none is named of several.
    """
    with _reading(path):
        names = _names(path, kind, dialect)
    if wanted is None:
        if len(names) != 1:
            raise DataError(f"{path} has the columns {', '.join(names)}; name one in SPEC: release.column")
        return names[0]
    if wanted not in names:
        raise DataError(f"{path} has no column {wanted!r}; it has {', '.join(names)}")
    if names.count(wanted) > 1:
        raise DataError(f"{path} has several columns {wanted!r}")
    return wanted


def pieces_of(part: TallyPart) -> list[Piece]:
    """Return the pieces of a part, in order.

    Raises
    ------
    UsageError, DataError
        When the file cannot be read.
    """
    path = Path(part.path)
    if part.format == "csv":
        return [Piece(part, 0, 1, part.path)]
    if part.format == "hdf5":
        with h5.reading(path) as root:
            rows = root.group("release")["values"].shape[0]
        starts = range(0, rows, _ROWS)
        return [Piece(part, a, min(a + _ROWS, rows), part.path) for a in starts]
    with _reading(path):
        about = _arrow("parquet").ParquetFile(path).metadata
        sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
    found, start, held = [], 0, 0
    for i, size in enumerate(sizes):
        if held and held + size > _ROWS:
            found.append(Piece(part, start, i, part.path))
            start, held = i, 0
        held += size
    return [*found, Piece(part, start, len(sizes), part.path)]


def count_piece(piece: Piece, grid: TallyGrid) -> tuple[NDArray[np.int64], str]:
    """Count one piece, wherever this process runs.

    The counts (cells,) are zero where there are no rows; beside them is the version of dpmix that counted.

    Raises
    ------
    DataError
        For a file that cannot be read, and values that are missing, not finite, or no output.
    """
    counts = np.zeros(len(grid.edges) + 1, dtype=np.int64)
    with _reading(Path(piece.part.path), dates=piece.part.dates):
        for values in _batches(piece):
            for start in range(0, len(values), BATCH):
                some = values[start : start + BATCH]
                try:
                    counted = (
                        count_outputs(some, grid.outputs)
                        if grid.outputs
                        else tally(some, grid.edges, grid.width)
                    )
                except ValueError as error:
                    raise DataError(f"{piece.label}: {error}") from None
                counts += counted.counts
    return counts, __version__


def _batches(piece: Piece) -> Iterator[Floats]:
    part, path = piece.part, Path(piece.part.path)
    if part.format == "hdf5":
        with h5.reading(path) as root:
            table = root.group("release")["values"]
            for start in range(piece.start, piece.stop, BATCH):
                yield table.numbers((slice(start, min(start + BATCH, piece.stop)), part.column))
        return
    if part.format == "parquet":
        file = _arrow("parquet").ParquetFile(path, pre_buffer=False, buffer_size=_BYTES)
        groups = list(range(piece.start, piece.stop))
        for batch in file.iter_batches(BATCH, row_groups=groups, columns=[part.column], use_threads=False):
            yield _numbers(batch.column(0), part)
        return
    yield from _batches_of_csv(part, path)


def _batches_of_csv(part: TallyPart, path: Path) -> Iterator[Floats]:
    """Read a column of text; an empty line is a missing value, and at the end of several columns nothing.

    Raises
    ------
    DataError
        Where a value is missing, or none is a number.
    """
    arrow, csv = importlib.import_module("pyarrow"), _arrow("csv")
    problem = DataError(f"{path}: a value of {part.column} is missing, or a line is empty")
    convert = csv.ConvertOptions(
        include_columns=[part.column],
        column_types={part.column: arrow.timestamp("us") if part.dates else arrow.float64()},
        null_values=_EMPTY,
        strings_can_be_null=True,
        decimal_point=part.dialect.decimal,
    )
    read, parse = _options(path, part.dialect, block_size=_BYTES)
    missing = 0  # values after which none came
    with csv.open_csv(path, read_options=read, parse_options=parse, convert_options=convert) as text:
        for batch in text:
            column = batch.column(0)
            there = len(column) - column.null_count
            if (there and missing) or column.slice(0, there).null_count:
                raise problem
            missing += column.null_count
            yield _numbers(column.slice(0, there), part)
    if missing and (
        len(_names(path, "csv", part.dialect)) == 1 or missing != _empty_at_end(path, part.dialect)
    ):
        raise problem


def _options(path: Path, dialect: Dialect, **read: Any) -> tuple[Any, Any]:
    """Return how pyarrow reads and parses text."""
    csv = _arrow("csv")
    parse = csv.ParseOptions(delimiter=dialect.delimiter_of(path.name), ignore_empty_lines=False)
    return csv.ReadOptions(encoding=dialect.encoding, **read), parse


def _empty_at_end(path: Path, dialect: Dialect) -> int:
    """Return the number of empty lines that a file of text ends in."""
    count = 0
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    with opened(path, "rt", encoding=dialect.codec) as text:
        for line in text:
            count = 0 if line.strip("\r\n") else count + 1
    return count


def _numbers(column: Any, part: TallyPart) -> Floats:
    """Return a column of a batch as numbers.

    Raises
    ------
    DataError
        Where a value is missing, or none is a number.
    """
    arrow = importlib.import_module("pyarrow")
    if column.null_count:
        raise DataError(f"{part.path}: a value of {part.column} is missing")
    types = arrow.types
    if part.dates:
        if not (types.is_date(column.type) or types.is_timestamp(column.type)) or getattr(
            column.type, "tz", None
        ):
            raise DataError(
                f"{part.path}: the column {part.column} does not hold dates without a time zone, as its "
                "public bounds are"
            )
        return days_of(np.asarray(column.cast(arrow.timestamp("us"), safe=False)))
    if not any(
        is_kind(column.type)
        for is_kind in (types.is_floating, types.is_integer, types.is_decimal, types.is_null)
    ):
        what = ": its public bounds are dates where it holds dates" if types.is_temporal(column.type) else ""
        raise DataError(f"{part.path}: the column {part.column} does not hold numbers{what}")
    return np.asarray(column.cast(arrow.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _names(path: Path, kind: str, dialect: Dialect) -> list[str]:
    if kind == "parquet":
        return list(_arrow("parquet").ParquetFile(path).schema_arrow.names)
    read, parse = _options(path, dialect)
    with _arrow("csv").open_csv(path, read_options=read, parse_options=parse) as text:
        return list(text.schema.names)


def _arrow(module: str) -> Any:
    try:
        return importlib.import_module(f"pyarrow.{module}")
    except ImportError:
        raise UsageError("CSV and Parquet parts are read by pyarrow, which is not installed") from None


@contextlib.contextmanager
def _reading(path: Path, *, dates: bool = False) -> Iterator[None]:
    """Turn the errors of pyarrow and of the file system into a sentence that names the file."""
    try:
        yield
    except (DataError, UsageError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        if "conversion error" in str(error):
            what = "date such as 2024-02-29, as its public bounds are" if dates else "number"
            raise DataError(f"{path}: a value is no {what}") from error
        raise DataError(
            f"{path} cannot be read as its name says: it is damaged, or another format"
        ) from error


# Counting the pieces of a release: one after the other, by processes, or on a Dask cluster


Found = tuple[int, NDArray[np.int64]]

_PATIENCE = "10s"  # for a scheduler to answer


def count(
    pieces: Sequence[Piece], grid: TallyGrid, *, jobs: int = 1, scheduler: str | None = None
) -> Iterator[Found]:
    """Yield place and counts (cells,) of each piece, in no particular order.

    They are counted here, by `jobs` processes, or by the workers of the Dask `scheduler` at an address, which
    see the files under the same names.

    Raises
    ------
    DataError
        As `count_piece`, and where workers were lost again and again.
    UsageError
        When distributed is not installed, or no scheduler answers.
    """
    if scheduler is not None:
        yield from _on_cluster(pieces, grid, scheduler)
    elif jobs == 1 or len(pieces) < 2:
        for place, piece in enumerate(pieces):
            yield place, count_piece(piece, grid)[0]
    else:
        yield from _by_processes(pieces, grid, min(jobs, len(pieces)))


def _by_processes(pieces: Sequence[Piece], grid: TallyGrid, jobs: int) -> Iterator[Found]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_deaf) as pool:
        try:
            with _without_main():  # processes are started as they get their first pieces
                places = {pool.submit(count_piece, piece, grid): place for place, piece in enumerate(pieces)}
            for future in as_completed(places):
                yield places[future], future.result()[0]
        except BrokenProcessPool as error:
            raise DataError(
                "a process that counted was ended from outside; fewer --jobs need less"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Start processes that do not run the caller's script again, in which releases may be made, and paid for.

    A spawned process imports the script that is ``__main__``, where it has a file; what is counted here needs
    nothing of it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _deaf() -> None:
    """Leave Ctrl-C, and a terminal that goes, to the process that waits for this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _on_cluster(pieces: Sequence[Piece], grid: TallyGrid, address: str) -> Iterator[Found]:
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UsageError("--scheduler: needs the package distributed, which is not installed") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise UsageError(f"--scheduler {address}: no Dask scheduler answers there") from error
    with client:
        places = {}
        try:
            for place, piece in enumerate(pieces):
                places[client.submit(count_piece, piece, grid, pure=False)] = place
            for future in distributed.as_completed(places, loop=client.loop):
                counts, version = future.result()
                if version != __version__:
                    raise DataError(
                        f"--scheduler {address}: a worker has dpmix {version}, and here is {__version__}; "
                        "install the same everywhere"
                    )
                yield places[future], counts
        except DpmixError:
            raise
        except Exception as error:
            raise DataError(f"--scheduler {address}: {_lost(error)}") from error
        finally:
            client.cancel(list(places))


def _lost(error: Exception) -> str:
    if type(error).__name__ == "KilledWorker":
        return "workers were lost with the same piece again and again; do they have the memory?"
    if isinstance(error, ModuleNotFoundError):
        return f"workers do not have the module {error.name}; install dpmix there too"
    return f"the cluster was lost ({type(error).__name__})"


# The SQL query that tallies a release where it lies, and its result as a CSV table of cells


TABLE = "release"
_NONE = -1
_LARGEST = 1.7976931348623157e308
_FIRST, _LAST = -719_162, 2_932_896  # days since 1970-01-01 of the years 1 to 9999
_MOMENTS = "TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
_NEAR = 64  # microseconds: more than days are rounded by
_HEADER = ["cell", "count"]
_MOST_BYTES = 1 << 30


def query(grid: TallyGrid, column: str) -> str:
    """Return the query, of the table `release`; its result has a row for each cell that is not empty.

    Cells are found in two steps, blocks of cells first: about as many comparisons as twice the root of their
    number, in an expression that nests twice, which every engine takes.
    """
    z = '"' + column.replace('"', '""') + '"'
    if grid.outputs:
        arms = [f"      WHEN {z} = {k} THEN {k}" for k in range(grid.outputs)]
        arms.append(f"      ELSE {_NONE}")
    else:
        write = _moment if grid.dates else _literal
        least, most = _MOMENTS if grid.dates else (f"-{_literal(_LARGEST)}", _literal(_LARGEST))
        arms = [
            f"      WHEN {z} IS NULL THEN {_NONE}",
            f"      WHEN NOT ({z} >= {least} AND {z} <= {most}) THEN {_NONE}",
            *_blocks([write(edge) for edge in grid.edges.tolist()], z),
        ]
    lines = [
        "SELECT cell, COUNT(*) AS count",
        "FROM (",
        "  SELECT",
        "    CASE",
        *arms,
        "    END AS cell",
        f"  FROM {TABLE}",
        ") AS cells",
        "GROUP BY cell",
        "ORDER BY cell",
    ]
    return "\n".join(lines)


def _blocks(edges: Sequence[str], z: str) -> list[str]:
    size = max(2, math.isqrt(len(edges)))
    lines = []
    for start in range(0, len(edges), size):
        block = edges[start : start + size]
        inner = " ".join(f"WHEN {z} < {e} THEN {start + i}" for i, e in enumerate(block[:-1]))
        last = start + len(block) - 1
        found = f"CASE {inner} ELSE {last} END" if inner else str(last)
        lines.append(f"      WHEN {z} < {block[-1]} THEN {found}")
    return [*lines, f"      ELSE {len(edges)}"]


def _literal(value: float) -> str:
    """Return a number as an approximate literal, which is read back to the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _moment(days: float) -> str:
    """Return the first microsecond that is not before so many days since 1970-01-01, as a literal.

    A time is before it if and only if its days, as `days_of` has them, are less.
    """
    if not _FIRST <= days < _LAST + 1:
        raise UsageError(
            "--sql: the cells reach beyond the years 1 to 9999, which dates in SQL do not; tally the files"
        )
    whole = math.floor(days)
    near = whole * DAY_US + round((days - whole) * DAY_US) + np.arange(-_NEAR, _NEAR + 1)
    moment = near[days_of(near.astype("datetime64[us]")) >= days][0].astype("datetime64[us]")
    return f"TIMESTAMP '{str(moment).replace('T', ' ')}'"


def read_counts(path: Path, grid: TallyGrid) -> NDArray[np.int64]:
    """Return the counts (cells,) of a query's result, a CSV table with the header ``cell,count``.

    Raises
    ------
    DataError
        Naming the line that is not as the query makes it; when rows of the release had no number.
    """
    counts = np.zeros(len(grid.edges) + 1, dtype=np.int64)
    seen = set()
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DataError(f"{path} is larger than the counts of all cells can be")
        with path.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.reader(text)
            header = [name.strip() for name in next(rows, [])]
            if header != _HEADER:
                raise DataError(
                    f"{path}: the header must be cell,count, as the query of --sql names its columns"
                )
            for row in rows:
                if not row:
                    continue
                cell, count = _row(path, rows.line_num, row)
                if cell == _NONE and count:
                    what = "no number of the mechanism's outputs" if grid.outputs else "missing or not finite"
                    raise DataError(f"{path}: {count:,} values are {what} (cell {_NONE})")
                if cell in seen:
                    raise DataError(f"{path}: line {rows.line_num}: cell {cell} is there twice")
                if cell != _NONE and not 0 <= cell < len(counts):
                    raise DataError(
                        f"{path}: line {rows.line_num}: there is no cell {cell}; cells of this grid are 0 to "
                        f"{len(counts) - 1:,}"
                    )
                seen.add(cell)
                if cell != _NONE:
                    counts[cell] = count
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is not a text file in UTF-8; give the result of the query of --sql"
        ) from None
    except (OSError, csv.Error) as error:
        raise DataError(f"cannot read {path}: {reason(error)}") from error
    check_room(sum(counts.tolist()))
    return counts


def _row(path: Path, line: int, row: list[str]) -> tuple[int, int]:
    try:
        cell, count = (int(text.strip()) for text in row)
        if not 0 <= count < MOST:
            raise ValueError
    except ValueError:
        raise DataError(
            f"{path}: line {line}: must be the number of a cell and a whole count from 0"
        ) from None
    return cell, count
