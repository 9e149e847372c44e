"""The one reader of tables, from whatever they come: checked cell by cell, in one sentence where it refuses.

An error names the file, the column and the record, never a value: a message may be shown to others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.missing import Missing
from dpmix.data.text_tables import (
    Take,
    advice,
    is_text,
    no_column,
    number_in,
    numbers_in_text,
    read_text,
    records_in_text,
    texts_in_text,
    too_many,
)
from dpmix.data.typed_tables import as_floats, in_columns, pieces
from dpmix.errors import DataError
from dpmix.numerics.in_words import printable
from dpmix.spec.limits import MOST_RECORDS, MOST_VALUES
from dpmix.spec.table_source import TABLE_SUFFIXES, InMemory, Part, StandardInput, TableFiles
from dpmix.store.atomic import check_copies
from dpmix.store.frames import days_of

if TYPE_CHECKING:
    from dpmix.store.h5 import Dataset, Group

__all__ = [
    "TableSource",
    "check_shape",
    "count_records",
    "holds_text",
    "load_mixed",
    "load_table",
    "load_text",
    "number_in",
    "scan_table",
]

# Tables of arrays: npy and h5 files


Table = tuple[NDArray[np.float64], tuple[str, ...]]

_NPY_HEADERS: dict[tuple[int, int], Callable[[IO[bytes]], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def check_shape(path: object, shape: Sequence[int]) -> None:
    """Refuse a table that is too large, before it is read."""
    if len(shape) > 0 and (shape[0] > MOST_RECORDS or math.prod(shape) > MOST_VALUES):
        raise too_many(path, shape[1] if len(shape) > 1 else 1)


def from_npy(path: Path, columns: Sequence[str] | None, dates: Collection[str] = ()) -> Table:
    """Read an npy file of numbers, or of datetime64 where all its columns hold `dates`.

    Raises
    ------
    DataError
        For a file that is damaged, or of something else; and where other columns are named than it has.
    """
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            header = _NPY_HEADERS.get(version)
            if header is not None:
                check_shape(path, header(stream)[0])
            stream.seek(0)
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, MemoryError, TypeError, SyntaxError, OverflowError):
        raise DataError(f"{path} is not an npy file of numbers, or is damaged") from None
    moments = array.dtype.kind == "M" and bool(dates)
    if array.dtype.kind not in "iuf" and not moments:
        raise DataError(f"{path} holds {array.dtype} values; numbers are needed")
    table = in_columns(path, array)
    values = days_of(table) if moments else as_floats(table)
    width = values.shape[1]
    names = tuple(columns) if columns else tuple(f"column_{i + 1}" for i in range(width))
    if len(names) != width:
        raise DataError(f"{path} has {width} columns, but {len(names)} are named: npy columns go by order")
    for name in names:
        if moments != (name in dates):
            own, bounds = ("dates", "numbers") if moments else ("numbers", "dates")
            raise DataError(f"{path} holds {own}, and the public bounds of {name} are {bounds}")
    return values, names


def from_h5(path: Path, columns: Sequence[str] | None, dates: Collection[str] = ()) -> Table:
    """Read columns of an h5 file: datasets of one dimension, or those of a release; dates are days there.

    Raises
    ------
    DataError
        For a missing column, and datasets that are no columns of numbers, or of others than they hold.
    """
    from dpmix.store import h5

    series: dict[str, NDArray[Any]] = {}
    with h5.reading(path) as root:
        tables, known, chosen = _tables_of(path, root, columns)
        for name, table in tables.items():
            found = as_floats(table[()])
            _check_meant(path, name, table.conventions, found, days=name in dates)
            series |= (
                {name: found} if known is None else {label: found[:, i] for i, label in enumerate(known)}
            )
    return np.column_stack([series[name] for name in chosen]), tuple(chosen)


def records_in_h5(path: Path, columns: Sequence[str] | None) -> int:
    """Return the number of records of an h5 file that has these columns, by their shapes alone.

    Raises
    ------
    DataError
        For a missing column, and datasets that are no columns of numbers.
    """
    from dpmix.store import h5

    with h5.reading(path) as root:
        tables, _, _ = _tables_of(path, root, columns)
        return next(iter(tables.values())).shape[0]


def _tables_of(
    path: Path, root: Group, columns: Sequence[str] | None
) -> tuple[dict[str, Dataset], list[str] | None, list[str]]:
    """Return the datasets that hold the wanted columns, and these; of a release all columns of its one."""
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
            raise no_column(path, name, known, public=True)  # names of datasets are no records
    tables = {"values": group["values"]} if inside else {name: root[name] for name in chosen}
    for name, table in tables.items():
        if table.kind not in "iuf" or len(table.shape) != 1 + inside:
            what = "table" if inside else "column"
            raise DataError(f"{path}: the dataset {name!r} is not one {what} of numbers")
        if table.shape[0] != tables[next(iter(tables))].shape[0]:
            raise DataError(f"{path}: the datasets {chosen[0]!r} and {name!r} have different lengths")
        check_shape(path, table.shape if inside else (table.shape[0], len(chosen)))
    if inside and tables["values"].shape[1] != len(known):
        raise DataError(f"{path} is damaged: its release does not name every column")
    return tables, known if inside else None, chosen


_UNPACKED = {"scale_factor": 1.0, "add_offset": 0.0}
_SINCE_1970 = re.compile(r"days since 1970-0?1-0?1(?:[ T]0?0:00(?::00(?:\.0+)?)?)?(?: ?(?:UTC|Z))?")


def _check_meant(
    path: Path, name: str, stated: Mapping[str, Any], found: NDArray[np.float64], *, days: bool
) -> None:
    """Refuse numbers of a dataset that stand for others by the conventions of netCDF, which xarray follows.

    Raises
    ------
    DataError
        For packed numbers, marks of missing values, and days since another day than 1970-01-01.
    """
    this = f"{path}: the dataset {name!r}"
    if any(np.any(stated[key] != plain) for key, plain in _UNPACKED.items() if key in stated):
        raise DataError(f"{this} holds packed numbers (scale_factor, add_offset); write it unpacked")
    for mark in ("_FillValue", "missing_value"):
        if any(np.any(found == value) for value in np.ravel(stated.get(mark, []))):
            raise DataError(f"{this} marks missing values by a number ({mark}); write NaN for them")
    unit = str(stated.get("units", ""))
    if days and " since " in unit and not _SINCE_1970.fullmatch(unit):
        raise DataError(f"{this} counts {printable(unit)}; write dates as days since 1970-01-01")


# Tables of every kind


TableSource = Path | StandardInput | TableFiles


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
    path : Path, StandardInput or Source
        A file, its format told by its suffix; - for a CSV table on standard input; or whatever `TableFiles`
        says, of several files, or held by Python.
    columns : sequence of str or None
        Their names. An npy file, or array, has none: there they name its columns in order. None
        takes all columns.
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
    source = _source_of(path)
    found: list[NDArray[np.float64]] = []
    names: tuple[str, ...] = ()
    for part in source.parts:
        with _reading(part):
            values, own = _numbers_of(part, source, columns, public, missing)
        if found and own != names:
            raise DataError(
                f"{part} {_differing(own, names, public)} than {source.parts[0]}, but is of one table"
            )
        names = own
        found.append(values)
    values = np.concatenate(found) if len(found) > 1 else found[0]
    if len(values) > MOST_RECORDS or values.size > MOST_VALUES:
        raise too_many(source, values.shape[1])
    if len(values) < least:
        records = "no records" if not len(values) else f"{len(values)} record{'s' * (len(values) > 1)}"
        raise DataError(f"{source} has {records}; at least {least} are needed")
    if missing is not None:
        missing.fill(values, names)
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        what = "" if public or not np.isnan(values[row, column]) else f"; {advice(names[column])}"
        others = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
        raise DataError(
            f"{source}: column {names[column]!r} has no finite number in record {row + 1}{others}{what}"
        )
    return values, names


def _differing(own: Sequence[str], names: Sequence[str], public: bool) -> str:
    """Say in what columns differ, by name where these are public."""
    if not public:
        return "has other columns"
    more, less = ([repr(n) for n in a if n not in b] for a, b in ((own, names), (names, own)))
    if not more and not less:
        return f"has its columns in another order ({', '.join(map(repr, own))})"
    parts = [f"{what} {', '.join(some[:8])}" for what, some in (("has", more), ("lacks", less)) if some]
    return f"has other columns ({', '.join(parts)})"


def load_text(
    path: TableSource,
    columns: Sequence[str],
    *,
    least: int = 1,
    public: bool = False,
    missing: Missing | None = None,
) -> tuple[tuple[str, ...], ...]:
    """Return the cells of the named columns of a table as text, spaces around it taken off.

    Parameters
    ----------
    path, columns, least
        As in `load_table`.
    public : bool
        As there; labels of tables that are not may be no marks of missing values, either.
    missing : Missing, optional
        What stands for missing values, and which categories look like them.

    Raises DataError as `load_table`; for files of numbers alone.
    """
    source = _source_of(path)
    stand = Missing() if missing is None else missing
    found: list[list[str | None]] = [[] for _ in columns]
    for part in source.parts:
        with _reading(part):
            own = _texts_of(part, source, columns, public, stand)
        for column, more in zip(found, own, strict=True):
            column.extend(more)
    n = len(found[0])
    if n > MOST_RECORDS or n * len(columns) > MOST_VALUES:
        raise too_many(source, len(columns))
    if n < least:
        raise DataError(f"{source} has {n} record{'s' * (n != 1)}; at least {least} are needed")
    return tuple(
        tuple(stand.label(name, row) if text is None else text for row, text in enumerate(column))
        for name, column in zip(columns, found, strict=True)
    )


def load_mixed(
    path: TableSource,
    numeric: Sequence[str],
    textual: Sequence[str],
    *,
    least: int = 1,
    public: bool = False,
    missing: Missing | None = None,
) -> tuple[dict[str, NDArray[np.float64]], dict[str, tuple[str, ...]]]:
    """Read columns of a table by name, some as numbers and others as text, as `load_table` and `load_text`.

    Raises DataError as `load_table` and `load_text`; when the file changes meanwhile.
    """
    path = _source_of(path)
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


def count_records(path: TableSource, columns: Sequence[str] | None) -> int:
    """Return the number of records of a table that has these columns, without a look at what its cells hold.

    Raises
    ------
    DataError
        For a missing, empty or damaged file, a missing column, and fewer than two records; it says nothing of
        any record.
    """
    source = _source_of(path)
    count = 0
    for part in source.parts:
        with _reading(part):
            if is_text(part):
                count += records_in_text(part, source.dialect, columns)
            elif isinstance(part, Path) and part.suffix.lower() == ".h5":
                count += records_in_h5(part, columns)
            elif isinstance(part, Path) and part.suffix.lower() == ".npy":
                count += len(_numbers_of(part, source, columns, False, None)[0])
            else:
                found = pieces(_typed(part, ()), columns, False)
                count += sum(len(next(iter(piece.values())).values) for piece in found)
    if count > MOST_RECORDS:
        raise too_many(source, 1)
    if count < 2:
        raise DataError(f"{source} has {count} record{'s' * (count != 1)}; at least 2 are needed")
    return count


def scan_table(path: TableSource, columns: Sequence[str], take: Take) -> None:
    """Hand over the named cells of each record of a table, as text, one record after the other.

    `take` has the number of a record, its line (its number again where there are no lines), and its cells by
    name. An error may show the header.

    Raises
    ------
    DataError
        For a missing, empty or damaged file, a missing column, and ragged records.
    """
    source = _source_of(path)
    for part in source.parts:
        with _reading(part):
            if is_text(part):
                read_text(part, source.dialect, columns, take, True)
                continue
            record = 0
            for piece in pieces(_typed(part, columns), columns, True):
                cells = {name: column.cells(part, name) for name, column in piece.items()}
                for row in zip(*(cells[name] for name in columns), strict=True):
                    record += 1
                    take(record, record, dict(zip(columns, row, strict=True)))


def _source_of(path: TableSource) -> TableFiles:
    source = path if isinstance(path, TableFiles) else TableFiles.of(path)
    check_copies([part for part in source.parts if isinstance(part, Path)])
    return source


@contextmanager
def _reading(part: Part) -> Iterator[None]:
    """Refuse a file that is not there, of no known format, or that the block cannot read."""
    if isinstance(part, Path):
        if not part.exists():
            raise DataError(f"{part} does not exist")
        if part.is_dir():
            raise DataError(f"{part} is a directory, not a table")
        if not part.name.lower().endswith(TABLE_SUFFIXES):
            raise DataError(f"{part} is none of {', '.join(TABLE_SUFFIXES)}")
    try:
        yield
    except OSError as error:
        raise DataError(f"cannot read {part}: {error.strerror or 'the file is damaged'}") from None


def holds_text(path: TableSource) -> bool:
    """Whether the columns of a table may hold text: not those of npy and h5 files."""
    return all(map(_may_hold_text, _source_of(path).parts))


def _may_hold_text(part: Part) -> bool:
    return not (isinstance(part, Path) and part.suffix.lower() in (".npy", ".h5"))


def _typed(part: Part, columns: Sequence[str]) -> Path | InMemory:
    """Return a part whose columns have names, and may hold text.

    Raises
    ------
    DataError
        For a file of numbers alone.
    """
    if not _may_hold_text(part):
        raise DataError(
            f"{part} holds numbers: give data.domain for {columns[0]}, or a csv file where it is a label"
        )
    assert not isinstance(part, StandardInput)  # which is text
    return part


def _numbers_of(
    part: Part, source: TableFiles, columns: Sequence[str] | None, public: bool, missing: Missing | None
) -> Table:
    """Return the columns of a part as numbers, NaN where something stands for missing ones."""
    holes = () if missing is None else tuple(missing.stand)
    if is_text(part):
        return numbers_in_text(part, source, columns, public, holes)
    if isinstance(part, Path) and part.suffix.lower() == ".npy":
        return from_npy(part, columns, source.dates)
    if isinstance(part, Path) and part.suffix.lower() == ".h5":
        return from_h5(part, columns, source.dates)
    assert not isinstance(part, StandardInput)  # which is text
    blocks: list[NDArray[np.float64]] = []
    names: tuple[str, ...] = ()
    first = 0
    for piece in pieces(part, columns, public):
        names = tuple(piece)
        parts = [
            column.numbers(part, name, dates=name in source.dates, public=public, holes=holes, first=first)
            for name, column in piece.items()
        ]
        blocks.append(np.column_stack(parts))
        first += len(blocks[-1])
    return np.concatenate(blocks), names


def _texts_of(
    part: Part, source: TableFiles, columns: Sequence[str], public: bool, missing: Missing
) -> list[list[str | None]]:
    """Return the columns of a part as text, None where something stands for a missing one."""
    if is_text(part):
        return texts_in_text(part, source, columns, public, missing)
    found: list[list[str | None]] = [[] for _ in columns]
    for piece in pieces(_typed(part, columns), columns, public):
        first = len(found[0])
        for column, (name, values) in zip(found, piece.items(), strict=True):
            column.extend(values.texts(part, name, public=public, missing=missing, first=first))
    return found
