"""Axes of days since 1970-01-01, labelled as dates."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import FuncFormatter, MaxNLocator

from dpmix.spec.days import day_text

__all__ = ["on_dates", "whole_dates"]

_YEARS = (-719_162.0, 2_932_896.0)  # days of the years 1 to 9999, which calendars have


def on_dates(axes: Axes, most: int = 9, axis: Axis | None = None) -> None:
    """Label an axis, whose numbers are days, as dates; as it is where the calendar has none.

    Parameters
    ----------
    axes : Axes
    most : int
        How many labels there is room for.
    axis : Axis, optional
        One of `axes`; the horizontal one where left out.
    """
    axis = axes.xaxis if axis is None else axis
    label = axis.label.get_text().replace(", in the data's units", "")
    axis.label.set_text(label)
    low, high = sorted(axis.get_view_interval())
    if low < _YEARS[0] or high > _YEARS[1]:
        axis.label.set_text(f"{label}, in days since 1970-01-01")
        return
    # where it must find three it finds none for two to three years with room for five
    locator: Any = AutoDateLocator(minticks=2, maxticks=most)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def whole_dates(axis: Axis) -> None:
    """Label an axis of days with a few dates, each in full: of small figures, where nothing stands beside."""
    axis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.set_major_formatter(FuncFormatter(lambda value, place: day_text(value)))
