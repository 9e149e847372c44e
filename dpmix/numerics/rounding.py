"""Numbers of a guarantee in words: what is spent is rounded up, and what remains is rounded down.

A number is the decimal that it is written as (its shortest one, for a double), as in `dpmix.privacy.budget`:
a tenth is "0.1", though the double next to it is a little more.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["figure", "figure_below", "stated"]


def figure(value: float, digits: int = 6) -> str:
    """Write a number that must not be understated, rounded up to some significant digits."""
    return _rounded(value, digits, ROUND_CEILING)


def figure_below(value: float, digits: int = 6) -> str:
    """Write a number that must not be overstated, rounded down to some significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def stated(value: float) -> str:
    """Write a number that somebody stated, as it is, with as many digits as it has."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(exact):.{digits}g}"
