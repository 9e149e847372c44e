"""Tables of arrays: npy and h5 files."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.refusals import no_column, too_many
from dpmix.data.typed_tables import as_floats, days_of
from dpmix.errors import DataError
from dpmix.spec.limits import MOST_RECORDS, MOST_VALUES

__all__ = ["check_shape", "from_h5", "from_npy"]

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
    if array.ndim not in (1, 2):
        raise DataError(f"{path} has {array.ndim} dimensions; (n,) or (n, columns) is needed")
    table = array.reshape(len(array), -1 if array.size else 1)
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


def from_h5(path: Path, columns: Sequence[str] | None, public: bool) -> Table:
    """Read columns of an h5 file: datasets of one dimension, or those of a release; dates are days there.

    Raises
    ------
    DataError
        For a missing column, and datasets that are no columns of numbers.
    """
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
                raise no_column(path, name, known, public=public, sure=known)
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
        for name, table in tables.items():
            found = table.numbers()
            series |= {label: found[:, i] for i, label in enumerate(known)} if inside else {name: found}
    return np.column_stack([series[name] for name in chosen]), tuple(chosen)
