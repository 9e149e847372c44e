"""Numbers and guarantees in words: what is spent is rounded up, and what remains is rounded down.

A number is the decimal that it is written as (its shortest one, for a double), as in `dpmix.privacy.budget`:
a tenth is "0.1", though the double next to it is a little more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_DIGITS, _MOST_DIGITS = 6, 12
_PLAIN = 1e15  # below it numbers are written without an exponent


def figure(value: float, digits: int = 6) -> str:
    """Write a number that must not be understated, rounded up to some significant digits."""
    return _rounded(value, digits, ROUND_CEILING)


def figure_below(value: float, digits: int = 6) -> str:
    """Write a number that must not be overstated, rounded down to some significant digits."""
    return _rounded(value, digits, ROUND_FLOOR)


def figures(values: Iterable[float]) -> list[str]:
    """Write numbers: all their digits where twelve or six decimals do, else six or what tells them apart."""
    numbers = [float(value) for value in values]

    def exact(names: list[str]) -> bool:
        return [float(name) for name in names] == numbers

    names = [f"{number:.{_DIGITS}g}" for number in numbers]
    if exact(names):
        return names
    if all(abs(number) < _PLAIN for number in numbers):
        names = [f"{number:.{_DIGITS}f}".rstrip("0").rstrip(".") for number in numbers]
        if exact(names):
            return names
    for digits in range(_DIGITS + 1, _MOST_DIGITS + 1):
        names = [f"{number:.{digits}g}" for number in numbers]
        if exact(names):
            return names
    for digits in range(_DIGITS, 18):
        names = [f"{number:.{digits}g}" for number in numbers]
        if len(set(names)) == len(names):
            break
    return names


def plainly(text: str, mark: str = ",") -> str:
    """Write a large number without the exponent that it was written with: 10,000 for 1e+04."""
    number = float(text) if "e+" in text else math.inf
    if abs(number) >= _PLAIN:
        return text
    return f"{number:,.0f}".replace(",", mark if abs(number) >= 1e4 else "")


def brief(value: float, digits: int) -> str:
    """Write a number rounded to some significant digits, a large one `plainly`."""
    return plainly(f"{value:.{digits}g}")


def all_of(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def printable(text: str, kept: str = "\n\t") -> str:
    """Return text whose letters, but those `kept`, do nothing at a terminal: names may be somebody else's."""
    return "".join(c if c.isprintable() or c in kept else "?" for c in text)


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


_NEIGHBOURS = {
    "replacement": "the replacement of one record",
    "replacement, public parts": "the replacement of one record that stays in its part of the table",
    "replacement, private groups": "the replacement of one record, its group included",
    "replacement, public parts, private groups": "the replacement of one record, its group included, that "
    "stays in its part of the table",
}


_REPLACING = {
    "replacement": "replacing any one record",
    "replacement, public parts": "replacing any one record by another of its part of the table",
    "replacement, private groups": "replacing any one record and its group",
    "replacement, public parts, private groups": "replacing any one record and its group by another of its "
    "part of the table",
}


_OF_GROUPS = {"replacement, public parts": "replacement, public parts, private groups"}
"""Relations that are said in other words of a release of groups whose sizes are private."""


def replacing_in_words(adjacency: str, *, grouped: bool = False) -> str:
    """Say a neighbouring relation as in "with respect to replacing any one record".

    Parameters
    ----------
    adjacency : str
    grouped : bool
        Whether it is of a release of groups whose sizes are private, of which a part of a table may be, too.
    """
    return _REPLACING[_OF_GROUPS.get(adjacency, adjacency) if grouped else adjacency]


def neighbours_in_words(adjacency: str, *, grouped: bool = False) -> str:
    """Say a neighbouring relation, such as "the replacement of one record"; as `replacing_in_words`."""
    return _NEIGHBOURS[_OF_GROUPS.get(adjacency, adjacency) if grouped else adjacency]


def guarantee_in_words(
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    trust: str,
    adjacency: str = "replacement",
    *,
    grouped: bool = False,
) -> str:
    """Say a guarantee in one clause, such as "(epsilon = 5, delta = 0)-DP for the replacement of one record".

    Parameters
    ----------
    epsilon, delta, rho : float or None
        The guarantee; None where it does not apply. They are rounded up.
    trust : str
        ``"local"`` or ``"global"``.
    adjacency : str
        The neighbouring relation.
    grouped : bool
        As `replacing_in_words`.
    """
    parts = []
    if epsilon is not None and math.isfinite(epsilon):
        parts.append(f"(epsilon = {figure(epsilon)}, delta = {figure(delta or 0.0)})-DP")
    if rho is not None and math.isfinite(rho):
        parts.append(f"{figure(rho)}-zCDP")
    if not parts:
        return "no privacy guarantee"
    return f"{' and '.join(parts)} for {neighbours_in_words(adjacency, grouped=grouped)}, {trust} model"


def _rounded(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    exact = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    return f"{float(exact):.{digits}g}"
