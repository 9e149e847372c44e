"""What the report draws of naive Bayes: the values of each feature within each class."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import COLOURS, INK, captioned, drawing
from dpmix.summary.row_labels import ByClass
from dpmix.summary.summary_result import Summary

__all__ = ["bars_figure", "pictures"]

_MOST = 40  # values of a feature that are drawn


def pictures(summary: Summary) -> list[str]:
    """Return bars of the levels of each feature by class, of naive Bayes; none of other models."""
    parts = []
    for found in summary.by_class:
        about = f" in {found.group}" if found.group else ""
        name = found.class_column or "class"
        apart = np.abs(found.mean.max(axis=0) - found.mean.min(axis=0))
        most = int(np.argmax(apart))
        caption = (
            f"{found.column}{about} within each {name}: posterior mean of the share of each value, with "
            f"{100 * summary.level:g}% intervals."
        )
        first, last = int(np.argmax(found.mean[:, most])), int(np.argmin(found.mean[:, most]))
        alt = (
            f"{found.column}{about} by {name}: most apart at {found.column} = {found.levels[most]}, which "
            "has "
            f"{100 * found.mean[first, most]:.0f}% where {name} = {found.classes[first]} and "
            f"{100 * found.mean[last, most]:.0f}% where {name} = {found.classes[last]}"
        )
        parts.append(captioned(bars_figure(found), alt, caption))
    return parts


def bars_figure(found: ByClass) -> Figure:
    """Draw the shares of a feature's values as bars with intervals, one colour a class."""
    chosen = np.sort(np.argsort(-found.mean.max(axis=0), kind="stable")[:_MOST])
    thick = 0.84 / len(found.classes)
    places = np.arange(chosen.size)
    with drawing((7.2, 0.9 + chosen.size * (0.08 + 0.13 * len(found.classes)))) as (figure, axes):
        handles = []
        for number, name in enumerate(found.classes):
            at = places + (number - (len(found.classes) - 1) / 2) * thick
            label = plain(f"{found.class_column or 'class'} = {name}")
            colour = COLOURS[number % len(COLOURS)]
            handles.append(
                axes.barh(
                    at, found.mean[number, chosen], height=0.92 * thick, color=colour, alpha=0.75, label=label
                )
            )
            axes.hlines(at, found.lower[number, chosen], found.upper[number, chosen], color=INK, lw=0.9)
        axes.set_yticks(places, [plain(found.levels[place]) for place in chosen])
        axes.set(xlim=(0.0, None), ylim=(chosen.size - 0.5, -0.5))
        axes.set_ylabel(plain(found.column))
        axes.set_xlabel(f"share within each {plain(found.class_column) or 'class'}")
        figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure
