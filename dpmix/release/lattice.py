"""Points that the numbers of a column are at: a public grid, or all numbers of so many digits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Grid", "lattice_of", "starts_of_runs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_LARGEST = 2.0**52
_PRECISION = 400


@dataclass(frozen=True)
class Grid:
    """The points lo, lo + step, .., up to hi.

    Parameters
    ----------
    step : float
        Distance of neighbours.
    domain : (lo, hi)
        First point, and the bound of the last.
    """

    step: float
    domain: tuple[float, float]

    @property
    def count(self) -> int:
        """Number of points."""
        low, high = (Decimal(repr(bound)) for bound in self.domain)
        return int((high - low) / Decimal(repr(self.step))) + 1

    @property
    def points(self) -> Floats:
        """The points, shape (count,), each the double nearest to its decimal."""
        return self.at(np.arange(self.count))

    @property
    def edges(self) -> Floats:
        """Edges of the values that are nearest to each point, shape (count + 1,)."""
        points = self.points
        inner = (points[1:] + points[:-1]) / 2
        return np.concatenate(([points[0] - self.step / 2], inner, [points[-1] + self.step / 2]))

    def place(self, values: Floats) -> Ints:
        """Return the number of the point nearest to each value."""
        low = self.domain[0]
        return np.clip(np.rint((values - low) / self.step), 0, self.count - 1).astype(np.int64)

    def nearest(self, values: Floats) -> Floats:
        """Return the point nearest to each value."""
        return self.at(self.place(values))

    def holds(self, other: Grid) -> bool:
        """Whether all points of another grid are points of this one."""
        with localcontext(prec=_PRECISION):
            low, step, theirs, wide = (
                Decimal(repr(number)) for number in (self.domain[0], self.step, other.domain[0], other.step)
            )
            return not (theirs - low) % step and not wide % step

    def describe(self) -> dict[str, Any]:
        """Return the grid for JSON."""
        return {"step": self.step, "domain": list(self.domain)}

    @classmethod
    def described(cls, account: Mapping[str, Any]) -> Grid:
        """Return the grid that `describe` gave this account of."""
        low, high = account["domain"]
        return cls(float(account["step"]), (float(low), float(high)))

    def at(self, places: Ints) -> Floats:
        """Return the points of these numbers."""
        exponents = [Decimal(repr(number)).as_tuple().exponent for number in (self.domain[0], self.step)]
        digits = max(0, *(-int(exponent) for exponent in exponents))
        return np.round(self.domain[0] + self.step * places, digits) + 0.0


def lattice_of(bounds: tuple[float, float], digits: int) -> Grid | None:
    """Return all numbers of so many digits after the decimal point within bounds; None where there are none.

    Raises
    ------
    ValueError
        When doubles of that size do not have so many digits.
    """
    if max(map(abs, bounds)) * 10.0**digits >= _LARGEST:
        raise ValueError("doubles have fewer digits")
    with localcontext(prec=_PRECISION):
        step = Decimal(1).scaleb(-digits)
        low = (Decimal(repr(float(bounds[0]))) / step).to_integral_value(ROUND_CEILING)
        high = (Decimal(repr(float(bounds[1]))) / step).to_integral_value(ROUND_FLOOR)
        return Grid(float(step), (float(low * step), float(high * step))) if low <= high else None


def starts_of_runs(points: int, runs: int) -> Ints:
    """Return where runs of neighbouring points begin that are as equal as whole numbers can be.

    Parameters
    ----------
    points, runs : int
        At least as many points as runs: none is empty.

    Returns
    -------
    ndarray of int64, shape (runs + 1,)
        Run i holds the points from entry i to before entry i + 1.
    """
    return np.array([number * points // runs for number in range(runs + 1)], dtype=np.int64)
