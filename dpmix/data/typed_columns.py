"""Columns of tables that know their types: of Parquet and Arrow, of DataFrames, of arrays.

What is made of a column is what would be made of it as a column of a CSV table, so that the ledger knows one
table in all formats: numbers are doubles, dates are days since 1970-01-01, and text is what would be written.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.cell_text import complaint, object_text, parser_of
from dpmix.data.missing import Missing
from dpmix.data.refusals import cannot_be, no_value
from dpmix.errors import DataError
from dpmix.spec.data_section import MARKS

__all__ = ["Typed", "as_floats", "days_of"]

Floats = NDArray[np.float64]
_DAY_US = 86_400_000_000


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


def days_of(array: NDArray[Any]) -> Floats:
    """Return datetime64 as days since 1970-01-01, to a microsecond; NaN for those that are none."""
    gone = np.isnat(array)
    counts = array.astype("datetime64[us]").astype(np.int64)
    days, rest = np.divmod(counts, _DAY_US)
    found = days + rest / _DAY_US
    found[gone] = np.nan
    return found


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
        self,
        part: object,
        name: str,
        mark: str = ".",
        *,
        dates: bool,
        public: bool,
        holes: Collection[str],
        first: int = 0,
    ) -> Floats:
        """Return the column as numbers, or days where it has dates; NaN where `holes` may be missing.

        Parameters
        ----------
        part : object
            The table, for errors.
        name : str
            The column.
        mark : str
            Decimal mark of numbers that are text.
        dates : bool
        public : bool
            Whether NaN is a number that is not finite, rather than a missing value.
        holes : collection of str
            Columns that may have missing values.
        first : int
            Number of records before this piece.

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
            return self._parsed(part, name, mark, dates, public, holes, first)
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
        self,
        part: object,
        name: str,
        mark: str,
        dates: bool,
        public: bool,
        holes: Collection[str],
        first: int,
    ) -> Floats:
        """Read the numbers, or dates, that objects are or that text writes."""
        parse = parser_of(mark, dates=dates)
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
            raise cannot_be(part, name, record, None, complaint(text, mark, dates=dates))
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
