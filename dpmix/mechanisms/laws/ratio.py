"""How many times as likely one output is as another: a ratio of whole numbers, as releases state it."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator

from dpmix.mechanisms.laws.law_base import Says

__all__ = ["Ratio", "fraction_of"]

_DIGITS = 400  # of the numbers of a ratio
_WRONG = "does not state its ratio as p/q, two whole numbers of which the first is larger"


def fraction_of(value: Any) -> Fraction:
    """Return a ratio above 1 written as ``"p/q"``.

    Raises
    ------
    ValueError
        For anything else.
    """
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", value) if isinstance(value, str) else None
    if found is None or len(value) > 2 * _DIGITS or not int(found[1]) > int(found[2]) > 0:
        raise ValueError("no ratio")
    return Fraction(int(found[1]), int(found[2]))


def _a_ratio(value: str) -> str:
    try:
        float(fraction_of(value))
    except (ValueError, OverflowError):
        raise ValueError(_WRONG) from None
    return value


Ratio = Annotated[str, AfterValidator(_a_ratio), Says(_WRONG)]
