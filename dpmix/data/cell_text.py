"""From the cells of a table to numbers: decimal marks, thousands separators, dates.

What a cell holds is said of it in words, and never shown.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmix.errors import DataError
from dpmix.spec.days import day_of

__all__ = ["Parse", "complaint", "number_in", "object_text", "parser_of"]

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
    """Return what reads the cells of a column.

    Parameters
    ----------
    decimal_mark : str
        ``"."`` or ``","``.
    dates : bool
        Whether the column holds dates: days since 1970-01-01.
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
