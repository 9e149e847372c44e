"""Tables that know the types of their columns: Parquet and Arrow files, and DataFrames and arrays of Python.

What is made of a column is what would be made of it as a column of a CSV table, so that the ledger knows one
table in all formats: numbers are doubles, dates are days since 1970-01-01, and text is what would be written.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.text_tables import cannot_be, complaint, no_column, no_value, object_text, parser_of, too_many
from dpmix.errors import DataError, UsageError
from dpmix.spec.limits import MOST_PER_BYTE, MOST_RECORDS, MOST_VALUES, ROOM
from dpmix.spec.table_source import MARKS, InMemory
from dpmix.store.frames import days_of

if TYPE_CHECKING:
    from dpmix.data.missing import Missing

# Columns

Floats = NDArray[np.float64]
Array = NDArray[Any]


def as_floats(array: NDArray[Any]) -> Floats:
    """Return numbers as doubles; those of less precision as the double of their shortest decimal form.

    0.1 in single precision is written 0.1, and not 0.10000000149011612.
    """
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        distinct, places = np.unique(array, return_inverse=True)
        return np.array([float(str(value)) for value in distinct], dtype=np.float64)[places].reshape(
            array.shape
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def in_columns(part: object, array: Array) -> Array:
    """Return an array of one or two dimensions as one of columns, (n, columns).

    Raises
    ------
    DataError
        For other dimensions, and no columns.
    """
    if array.ndim not in (1, 2):
        raise DataError(f"{part} has {array.ndim} dimensions; (n,) or (n, columns) is needed")
    if array.ndim == 2 and not array.shape[1]:
        raise DataError(f"{part} has no columns")
    return array[:, None] if array.ndim == 1 else array


@dataclass(frozen=True, eq=False)
class Typed:
    """A column, or a piece of one.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Of integers, floats, booleans, datetime64, or objects.
    gone : ndarray of bool, shape (n,), optional
        Which are missing, beside NaN, NaT and None.
    """

    values: NDArray[Any]
    gone: NDArray[np.bool_] | None = None

    def numbers(
        self, part: object, name: str, *, dates: bool, public: bool, holes: Collection[str], first: int = 0
    ) -> Floats:
        """Return the column as numbers, or days where it has dates; NaN where it may lack some (`holes`).

        In a `public` table NaN is a number that is not finite, rather than a missing value. Errors name the
        table `part`, the column and the record, of which `first` stand before this piece.

        Raises
        ------
        DataError
            For a column that holds something else, and missing values.
        """
        kind = self.values.dtype.kind
        if kind == "M" and not dates:
            raise DataError(
                f"{part}: column {name!r} holds dates; give its public bounds as dates, such as "
                f"{{{name}: [2020-01-01, 2024-12-31]}} in data.domain"
            )
        if kind in "iufb" and dates:
            raise DataError(f"{part}: column {name!r} holds numbers, and its public bounds are dates")
        if kind == "b":
            raise DataError(
                f"{part}: column {name!r} holds truth values, and no numbers; list data.categories, such as "
                '["False", "True"], or give 0 and 1'
            )
        if kind in "iuf":
            found = as_floats(self.values)
        elif kind == "M":
            found = days_of(self.values)
        else:
            return self._parsed(part, name, dates, public, holes, first)
        if self.gone is not None:
            found = np.where(self.gone, np.nan, found)
        if name not in holes and (not public or kind == "M" or self.gone is not None):
            hole = np.isnan(found)
            if self.gone is not None and public:
                hole = self.gone
            if hole.any():
                raise no_value(part, name, first + int(np.argmax(hole)) + 1, None, "", public)
        return found

    def _parsed(
        self, part: object, name: str, dates: bool, public: bool, holes: Collection[str], first: int
    ) -> Floats:
        """Read the numbers, or dates, that objects are or that text writes."""
        parse = parser_of(".", dates=dates)
        distinct, places = self._distinct(part, name)
        found = np.empty(len(distinct))
        for i, value in enumerate(distinct):
            text = _text(part, name, value)
            number = None if _is_number(value) and dates else parse(text)
            if number is not None and (public or not math.isnan(number)):
                found[i] = number
                continue
            record = first + int(np.argmax(places == i)) + 1
            if text in MARKS and (not public or not text):
                if name not in holes:
                    raise no_value(part, name, record, None, text, public)
                found[i] = math.nan
                continue
            if isinstance(value, bool):
                raise cannot_be(part, name, record, None, "is a truth value, and no number")
            raise cannot_be(part, name, record, None, complaint(text, ".", dates=dates))
        return found[places]

    def texts(
        self, part: object, name: str, *, public: bool, missing: Missing, first: int = 0
    ) -> list[str | None]:
        """Return the column as text; None where a value that something stands for is missing.

        Raises
        ------
        DataError
            For missing values that nothing stands for, and objects that are no text.
        """
        distinct, places = self._distinct(part, name)
        labels: list[str | None] = []
        for i, value in enumerate(distinct):
            text = _text(part, name, value)
            if text and (public or not missing.marks(name, text)):
                labels.append(text)
            elif name in missing.stand:
                labels.append(None)
            else:
                record = first + int(np.argmax(places == i)) + 1
                raise no_value(part, name, record, None, text, public)
        return [labels[place] for place in places.tolist()]

    def cells(self, part: object, name: str) -> list[str]:
        """Return the column as the cells of a CSV table would be, empty where a value is missing."""
        distinct, places = self._distinct(part, name)
        texts = [_text(part, name, value) for value in distinct]
        return [texts[place] for place in places.tolist()]

    def _distinct(self, part: object, name: str) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the different values, None for missing ones, and the place of each value among them."""
        values = self.values
        if values.dtype.kind == "M":
            values = values.astype("datetime64[us]")
        if values.dtype.kind == "f" and values.dtype.itemsize < 8:
            values = as_floats(values)
        if values.dtype.kind != "O":
            known, inverse = np.unique(values, return_inverse=True)
            distinct, places = known.tolist(), inverse.astype(np.int64)
        else:
            seen: dict[Any, int] = {}
            try:
                # 1, 1.0 and True are equal, and not the same text
                found = [seen.setdefault((type(value), value), len(seen)) for value in values.tolist()]
            except TypeError:
                raise DataError(
                    f"{part}: column {name!r} holds lists or mappings; text, numbers or dates are read"
                ) from None
            distinct, places = [value for _, value in seen], np.array(found, dtype=np.int64)
        if self.gone is not None and self.gone.any():
            places = np.where(self.gone, len(distinct), places)
            distinct.append(None)
        return distinct, places


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def _text(part: object, name: str, value: Any) -> str:
    try:
        return object_text(value)
    except DataError as error:
        raise DataError(f"{part}: column {name!r} {error}") from None


# Tables, in pieces

Piece = dict[str, Typed]
_BATCH = 1 << 16
"""Records of a Parquet file that are read at a time."""


def pieces(part: Path | InMemory, columns: Sequence[str] | None, public: bool) -> Iterator[Piece]:
    """Yield the named columns of a table, all of them where none is named, in pieces of some records.

    Raises
    ------
    DataError
        For a file that is damaged or too large, a column that is missing or there twice, and an object that
        is no table; where pyarrow is not installed.
    """
    if isinstance(part, InMemory):
        yield _held(part, columns, public)
        return
    with _reading(part) as arrow:
        for names, batch in _batches(arrow, part, columns, public):
            yield {name: _arrow(arrow, part, name, batch.column(i)) for i, name in enumerate(names)}


def _chosen(
    part: object, known: Sequence[str], columns: Sequence[str] | None, public: bool, own_names: bool = True
) -> list[int]:
    """Return the places of the wanted columns."""
    names = [name.strip() for name in known]
    if not names:
        raise DataError(f"{part} has no columns")
    found = []
    for name in names if columns is None else columns:
        if names.count(name) > 1:
            raise DataError(f"{part} has {names.count(name)} columns called {name!r}")
        if name not in names:
            raise no_column(part, name, names, public=public or own_names, sure=names)
        found.append(names.index(name))
    return found


# Files


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Give pyarrow, and put its errors in words that show nothing of the file."""
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            f"{path} is read by the package pyarrow (pip install 'dpmix[tables]'), which is not installed"
        ) from None
    try:
        yield pyarrow
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError):
        raise DataError(
            f"{path} is damaged, or no {path.suffix.lower().lstrip('.')} file that pyarrow reads"
        ) from None


def _batches(
    arrow: Any, path: Path, columns: Sequence[str] | None, public: bool
) -> Iterator[tuple[list[str], Any]]:
    """Yield batches of a file with the wanted columns alone, in their order, and their names."""
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path, pre_buffer=False) as file:
            known = list(file.schema_arrow.names)
            places = _chosen(path, known, columns, public)
            _check_size(path, file.metadata.num_rows, len(places))
            wanted = [known[place] for place in places]
            names = [name.strip() for name in wanted]
            empty = True
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                empty = False
                yield names, batch.select(wanted)
            if empty:
                yield names, file.schema_arrow.empty_table().select(wanted)
        return
    with arrow.OSFile(str(path)) as stream:
        try:
            reader = arrow.ipc.open_file(stream)
            batches: Iterator[Any] = (reader.get_batch(i) for i in range(reader.num_record_batches))
        except arrow.ArrowInvalid:
            stream.seek(0)
            reader = arrow.ipc.open_stream(stream)
            batches = iter(reader)
        places = _chosen(path, reader.schema.names, columns, public)
        names = [reader.schema.names[place].strip() for place in places]
        total = 0
        yield names, reader.schema.empty_table().select(places)
        for batch in batches:
            total += batch.num_rows
            _check_size(path, total, len(places))
            yield names, batch.select(places)


def _check_size(path: Path, rows: int, width: int) -> None:
    """Refuse a table that is too large, or unpacks to more than its size makes plausible."""
    if rows > MOST_RECORDS or rows * width > MOST_VALUES:
        raise too_many(path, width)
    if rows * width * 8 > max(ROOM, MOST_PER_BYTE * path.stat().st_size):
        raise DataError(
            f"{path} unpacks to more than {MOST_PER_BYTE} times its size; write it without packing, if it is "
            "what you want to read"
        )


def _arrow(arrow: Any, part: object, name: str, column: Any) -> Typed:
    """Return a column of Arrow."""
    if isinstance(column, arrow.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, arrow.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else arrow.array([], column.type)
    if isinstance(column.type, arrow.BaseExtensionType):
        column = column.storage
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind, types = column.type, arrow.types
    gone = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        filler = False if types.is_boolean(kind) else 0
        if types.is_float16(kind) or not column.null_count:
            return Typed(column.to_numpy(zero_copy_only=False), gone)
        return Typed(column.fill_null(filler).to_numpy(zero_copy_only=False), gone)
    if types.is_timestamp(kind) or types.is_date(kind):
        if types.is_timestamp(kind) and kind.tz is not None:
            raise _zone(part, name)
        found = column.cast(arrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
        return Typed(found.astype("datetime64[us]"))
    if types.is_decimal(kind) or types.is_null(kind) or _is_string(types, kind):
        return Typed(_objects(column.to_pylist()))
    raise DataError(f"{part}: column {name!r} is of the type {kind}; text, numbers or dates are read")


def _is_string(types: Any, kind: Any) -> bool:
    view = getattr(types, "is_string_view", lambda _: False)
    return bool(types.is_string(kind) or types.is_large_string(kind) or view(kind))


def _zone(part: object, name: str) -> DataError:
    return DataError(
        f"{part}: column {name!r} has times with a time zone, by which their days are not settled; take the "
        "zone off, or give dates"
    )


# What Python holds


def _held(part: InMemory, columns: Sequence[str] | None, public: bool) -> Piece:
    """Return the columns of a table that Python holds."""
    table = part.table
    if not part.named:
        # a mask is kept
        try:
            array = table if isinstance(table, np.ma.MaskedArray) else np.asarray(table)
        except ValueError:
            raise DataError(f"{part} has rows of different lengths") from None
        return _of_array(part, array, columns)
    series = _series_of(part, table)
    places = _chosen(part, [name for name, _ in series], columns, public)
    found = {series[place][0].strip(): _column(part, *series[place]) for place in places}
    lengths = {len(column.values) for column in found.values()}
    if len(lengths) > 1:
        raise DataError(f"{part}: its columns have different lengths")
    return found


def _series_of(part: InMemory, table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a table with their names, in order."""
    if isinstance(table, Mapping):
        return [(str(name), column) for name, column in table.items()]
    if isinstance(table, np.ndarray):  # of records
        return [(name, table[name].reshape(-1)) for name in table.dtype.names or ()]
    if hasattr(table, "iloc"):  # pandas
        if table.ndim == 1:
            return [(str(table.name), table)]
        return [(str(name), table.iloc[:, i]) for i, name in enumerate(table.columns)]
    for method in ("to_arrow", "read_all"):  # polars, duckdb; readers of batches
        if hasattr(table, method) and not hasattr(table, "column_names"):
            table = part.table = getattr(table, method)()  # batches are there once, and tables read twice
    names = getattr(table, "column_names", None) or getattr(getattr(table, "schema", None), "names", None)
    if names is None or not hasattr(table, "column"):
        raise UsageError(
            f"{part}: must be a DataFrame, a table of Arrow, a mapping of columns or an array, not "
            f"{type(table).__name__}"
        )
    return [(str(name), table.column(i)) for i, name in enumerate(names)]


def _column(part: InMemory, name: str, column: Any) -> Typed:
    """Return a column of pandas, of Arrow, or an array or list."""
    if type(column).__module__.split(".")[0] == "pyarrow":
        with _reading(Path(part.name)) as arrow:
            return _arrow(arrow, part, name, column)
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "tz", None) is not None:
        raise _zone(part, name)
    if hasattr(column, "to_numpy") and hasattr(column, "isna"):
        if isinstance(dtype, np.dtype):
            return _of_numpy(part, name, column.to_numpy())
        if hasattr(dtype, "categories"):
            column = column.astype(object)
        kind = getattr(dtype, "kind", "O")
        gone = column.isna().to_numpy()
        if kind in "iufb" and not hasattr(dtype, "categories"):  # nullable; whole numbers stay exact
            plain = {"i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}[kind]
            return Typed(column.to_numpy(dtype=plain, na_value=plain(0)), gone)
        objects = _objects(column.to_list())
        objects[gone] = None
        return Typed(objects)
    if isinstance(column, str | bytes | Mapping | Set) or not hasattr(column, "__len__"):
        raise DataError(f"{part}: column {name!r} is no list or array of values")
    return _of_numpy(part, name, column if isinstance(column, np.ndarray) else _objects(list(column)))


def _of_numpy(part: object, name: str, array: NDArray[Any]) -> Typed:
    if array.ndim != 1:
        raise DataError(f"{part}: column {name!r} has {array.ndim} dimensions; one is needed")
    if isinstance(array, np.ma.MaskedArray):
        return Typed(np.asarray(array.data), np.ma.getmaskarray(array))
    if array.dtype.kind in "iufbMO":
        return Typed(array)
    if array.dtype.kind in "UT":
        return Typed(_objects(array.tolist()))
    raise DataError(f"{part}: column {name!r} holds {array.dtype} values; text, numbers or dates are read")


def _of_array(part: InMemory, array: NDArray[Any], columns: Sequence[str] | None) -> Piece:
    """Return the columns of an array, which go by order."""
    table = in_columns(part, array)
    width = table.shape[1]
    names = tuple(columns) if columns else tuple(f"column_{i + 1}" for i in range(width))
    if len(names) != width:
        raise DataError(f"{part} has {width} columns, but {len(names)} are named, in order")
    return {name: _of_numpy(part, name, table[:, i]) for i, name in enumerate(names)}


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
