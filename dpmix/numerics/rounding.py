"""Numbers of a guarantee in words: what is spent is rounded up, and what remains is rounded down.

A number is the decimal that it is written as (its shortest one, for a double), as in `dpmix.privacy.budget`:
a tenth is "0.1", though the double next to it is a little more.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

__all__ = ["figure", "figure_below", "permits_verbatim", "stated"]


def figure(value: float, digits: int = 6) -> str:
    """Write a number that must not be understated, rounded up to some significant digits."""
    return _rounded(value, digits, ROUND_CEILING)


def figure_below(value: float, digits: int = 6) -> str:
    """Write a number that must not be overstated, rounded down to some significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def permits_verbatim(delta: float | None, n: int | None) -> str:
    """Say what a delta of 1/n or more permits (methods, section 1); empty where there is nothing to say.

    Parameters
    ----------
    delta : float or None
        Of a guarantee; NaN or None where it has none.
    n : int or None
        Number of records, where it is known.
    """
    if delta is None or not delta > 0:  # NaN where it does not apply
        return ""
    if n is None:
        return (
            f"with more than {math.ceil(1 / delta) - 1} records, delta = {figure(delta)} is 1/n or more and "
            "permits publishing somebody's record verbatim"
        )
    if delta * n < 1:
        return ""
    return (
        f"delta = {figure(delta)} is not below 1/n = {1 / n:.3g}: a guarantee this weak permits publishing "
        "somebody's record verbatim"
    )


def stated(value: float) -> str:
    """Write a number that somebody stated, as it is, with as many digits as it has."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(exact):.{digits}g}"
