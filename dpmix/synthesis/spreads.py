"""Figures of a comparison over runs, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.spec.days import day_text

__all__ = ["Spread", "number", "spread", "spreads"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spread:
    """A figure over independent runs.

    Parameters
    ----------
    values : ndarray of float64, shape (runs,)
    """

    values: Floats

    @property
    def mean(self) -> float:
        """Mean over runs."""
        return float(self.values.mean())

    @property
    def sd(self) -> float | None:
        """Standard deviation over runs, divided by runs - 1; None of one run."""
        return float(self.values.std(ddof=1)) if self.values.size > 1 else None

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Quartiles over runs."""
        low, middle, high = np.quantile(self.values, (0.25, 0.5, 0.75))
        return float(low), float(middle), float(high)

    def to_json(self, *, whole: bool = False) -> dict[str, Any]:
        """Return mean and sd, with `whole` also quartiles and the runs themselves."""
        found: dict[str, Any] = {"mean": self.mean, "sd": self.sd}
        if whole:
            found |= {"quartiles": list(self.quartiles), "values": self.values.tolist()}
        return found


def number(value: float | None, *, date: bool = False) -> str:
    """Write a figure in four digits, one of days since 1970 as its date, or a dash where there is none."""
    if value is None:
        return "-"
    if date:
        return day_text(value)
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"


def spread(value: Spread | None, *, date: bool = False) -> str:
    """Write mean and standard deviation over runs, to two digits of the latter; that of a date in days."""
    if value is None:
        return "-"
    if date:
        return day_text(value.mean) + ("" if value.sd is None else f" +- {value.sd:.2g}")
    if not value.sd:
        return number(value.mean) + ("" if value.sd is None else " +- 0")
    places = max(0, 1 - math.floor(math.log10(value.sd)))
    if places > 8:
        return f"{value.mean:.3g} +- {value.sd:.2g}"
    return f"{value.mean:.{places}f} +- {value.sd:.{places}f}"


def spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Return the figures of runs by name; one that a run lacks is left out."""
    return {
        name: Spread(np.array([run[name] for run in runs]))
        for name in runs[0]
        if all(name in run for run in runs)
    }
