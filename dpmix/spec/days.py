"""Dates as numbers: days since 1970-01-01, which are written as dates again."""

from __future__ import annotations

import datetime
import math
import re
from typing import Any, Final

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?")
_DAY_US: Final = 86_400_000_000


class Day(float):
    """A date: its number of days since 1970-01-01, shown as the date.

    What is computed from it is a plain number.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return day_text(self)

    def __format__(self, _: str) -> str:
        return day_text(self)


def day_text(days: float) -> str:
    """Write a number of days as the date nearest to it; as the number where the calendar has none."""
    try:
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=round(days))).isoformat()
    except (OverflowError, ValueError):
        return float.__repr__(float(days))


_RESOLVED = 16  # decimal digits of a double


def placed(value: float, step: float, digits: int = 4) -> str:
    """Write a place with some digits, or with as many as a step along the axis needs; a date as such.

    The step is what is to be told apart: a part of a grid's range, of bounds or of an interval; 0 asks for
    nothing.
    """
    if isinstance(value, Day) or not math.isfinite(value) or not 0.0 < step < abs(value):
        return f"{value:.{digits}g}"
    decimals = -math.floor(math.log10(step))
    needed = math.floor(math.log10(abs(value))) + decimals
    if not digits <= needed < _RESOLVED:  # beyond it a step tells no doubles apart
        return f"{value:.{digits}g}"
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def day_of(value: object) -> Day | None:
    """Return the days since 1970-01-01 of a date, or of text such as 2024-02-29; None for anything else.

    A time of day is a fraction of its day. A time zone is refused (None): which day it is would depend on it.
    """
    if isinstance(value, str):
        if not _DATE.fullmatch(value.strip()):
            return None
        try:
            value = datetime.datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            return None
        gone = value - _EPOCH
        return Day(gone.days + (gone.seconds * 1_000_000 + gone.microseconds) / _DAY_US)
    if isinstance(value, datetime.date):
        return Day((value - _EPOCH.date()).days)
    return None


def alike(value: float, other: float) -> float:
    """Return a number as a date where another one is a date."""
    return Day(value) if isinstance(other, Day) else value


def plain(value: Any) -> Any:
    """Return a date as text, anything else as it is: for JSON and YAML."""
    return str(value) if isinstance(value, Day) else value
