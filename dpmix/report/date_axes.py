"""Axes of days since 1970-01-01, labelled as dates."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

__all__ = ["on_dates"]

_YEARS = (-719_162.0, 2_932_896.0)  # days of the years 1 to 9999, which calendars have


def on_dates(axes: Axes, most: int = 9) -> None:
    """Label the horizontal axis, whose numbers are days, as dates; as it is where the calendar has none.

    `most` is how many labels there is room for.
    """
    label = axes.get_xlabel().replace(", in the data's units", "")
    axes.set_xlabel(label)
    low, high = axes.get_xlim()
    if low < _YEARS[0] or high > _YEARS[1]:
        axes.set_xlabel(f"{label}, in days since 1970-01-01")
        return
    locator: Any = AutoDateLocator(minticks=3, maxticks=most)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
