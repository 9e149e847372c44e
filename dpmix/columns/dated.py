"""Which figures of a fit are dates: of columns that are days since 1970-01-01.

Numbers stay numbers, wherever programs read them; where people do, they are written as the nearest date. A
`Day` is such a number: it formats itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.numerics.in_words import figures
from dpmix.spec.days import Day, day_text, placed

Floats = NDArray[np.float64]
_PREDICTIONS = ("prediction", "prediction_clamped", "predictive")
_PLACES = ("mean", "quantile")
_POINTS = ("density", "tail", "cdf")


@dataclass(frozen=True)
class Dated:
    """Which of a fit's figures are dates.

    Parameters
    ----------
    columns : frozenset of str
        Names of the columns that are.
    only : bool
        Whether the one column that is fitted is one of them.
    response : bool or None
        Of a regression, whether its response is one; None of other models.
    """

    columns: frozenset[str] = frozenset()
    only: bool = False
    response: bool | None = None

    def is_date(self, name: str) -> bool:
        """Whether a scalar of this name, such as ``quantile[admitted,0.5]``, is a date."""
        title, _, inner = name.removesuffix("]").partition("[")
        if self.response is not None:
            return self.response if title in _PREDICTIONS else title == "x_mean" and self._ends(inner)
        if title not in _PLACES:
            return False
        return self.only or self._ends(inner if title == "mean" else inner.rpartition(",")[0])

    def point(self, name: str) -> str | None:
        """Return the date of the point that a scalar is at, as ``tail[18690]``; None where it is at none."""
        title, _, inner = name.removesuffix("]").partition("[")
        mark = "=" if title == "density" else ","
        before, _, last = inner.rpartition(mark)
        if title not in _POINTS or self.response is not None or not (self.only or self._ends(before)):
            return None
        try:
            about = "~" if title == "density" else ""  # of which the name has four digits
            date = f"{about}{day_text(float(last))}"
            return f"{before}, {date}" if before else date
        except ValueError:
            return None

    def points(self, names: Iterable[str]) -> dict[str, str]:
        """Return the dates of the points that scalars are at, by their names."""
        return {name: point for name in names if (point := self.point(name)) is not None}

    def is_curve(self, column: str) -> bool:
        """Whether a curve is over dates: of this column, or of the only one where it has no name."""
        return self.only or column in self.columns

    def _ends(self, inner: str) -> bool:
        return any(inner == name or inner.endswith(f",{name}") for name in self.columns)

    def pair(self, column: str, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        """Return public bounds of a column, as dates where they are."""
        return bounds if bounds is None or not self.is_curve(column) else (Day(bounds[0]), Day(bounds[1]))

    def check(self, column: str, given: Mapping[str, Iterable[float]]) -> None:
        """Refuse dates that are asked for of a column of numbers.

        Raises
        ------
        SpecError
            Naming the key of `given` and the date.
        """
        for key, points in given.items():
            bad = next((point for point in points if isinstance(point, Day)), None)
            if bad is not None and not self.is_curve(column):
                of = f" {column}" if column else ""
                raise SpecError(
                    f"summary.{key}: {bad} is a date, and the column{of} is of numbers; give a number"
                )


NONE = Dated()
"""No dates."""


def dates_or_figures(values: Iterable[float]) -> list[str]:
    """Write dates as they are, and other numbers with the digits that tell them apart."""
    places = list(values)
    return [str(place) for place in places] if any(isinstance(p, Day) for p in places) else figures(places)


def days(values: Floats | Sequence[float]) -> list[Day]:
    """Return numbers that write themselves as dates."""
    return [Day(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def bins_in_words(edges: Floats | Sequence[float], *, date: bool = False, ends: str = "[)") -> list[str]:
    """Return what bins between these edges are called: "[10000, 15000)", or between dates.

    The outermost bins have the ends of the range.
    """
    step = float(np.diff(np.asarray(edges, dtype=np.float64)).min()) / 10.0
    places = days(edges) if date else np.asarray(edges, dtype=np.float64).tolist()
    words = [placed(place, step, 6) for place in places]
    last = len(words) - 2
    return [
        f"{'[' if i == 0 else ends[0]}{a}, {b}{']' if i == last else ends[1]}"
        for i, (a, b) in enumerate(zip(words, words[1:], strict=False))
    ]
