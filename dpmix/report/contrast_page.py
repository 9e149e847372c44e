"""The comparison of two fits as an HTML page: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.results.as_html import to_page
from dpmix.store.html import BLUE, GREY, captioned, drawing
from dpmix.summary.contrast_result import Contrast, Difference
from dpmix.summary.headline import amount

__all__ = ["contrast_figure", "panels", "render"]


def render(found: Contrast) -> str:
    """Return the comparison as one HTML page; the same comparison always gives the same page."""
    pictures = [
        captioned(contrast_figure(found, axis, parts), _finding(found, axis, parts), _caption(found, place))
        for place, (axis, parts) in enumerate(panels(found).items())
    ]
    return to_page(found.tree, {"difference": pictures})


def panels(found: Contrast) -> dict[str | None, list[Difference]]:
    """Return the rows by what they are differences of: those of one picture have one scale."""
    parts: dict[str | None, list[Difference]] = {}
    for part in found.differences:
        parts.setdefault(part.axis, []).append(part)
    return parts


def contrast_figure(
    found: Contrast, axis: str | None = None, parts: Sequence[Difference] | None = None
) -> Figure:
    """Difference of each row with its interval, over the margin within which they count as equal.

    Parameters
    ----------
    found : Contrast
    axis : str, optional
        What the rows are differences of; those of "" each in posterior standard deviations of its own.
    parts : sequence of Difference, optional
        The rows; all where left out.
    """
    parts = found.differences if parts is None else parts
    rows = np.arange(len(parts))
    kind = "confidence" if found.is_bootstrap else "credible"
    scale = np.array([part.sd if axis == "" and part.sd > 0.0 else 1.0 for part in parts])
    with drawing((7.2, 1.1 + 0.34 * rows.size)) as (figure, axes):
        shades = []
        if found.margin > 0.0 and axis != "":
            label = f"up to {found.margin:g} apart"
            shades = [axes.axvspan(-found.margin, found.margin, color=GREY, lw=0, label=label)]
        axes.axvline(0.0, color="#777777", lw=0.8)
        lower, upper, mean = (
            np.array([getattr(part, name) for part in parts]) / scale for name in ("lower", "upper", "mean")
        )
        lines = axes.hlines(
            rows, lower, upper, color=BLUE, lw=2.0, label=f"{100 * found.level:g}% {kind} interval"
        )
        (dots,) = axes.plot(mean, rows, "o", color=BLUE, ms=5, label="mean")
        axes.set_yticks(rows, [plain(part.label or part.name) for part in parts])
        axes.set(ylim=(rows.size - 0.4, -0.6))
        first, second = (plain(group.label) for group in found.groups)
        axes.set_xlabel(f"difference of {plain(_of(found, axis), 60)}, {first} less {second}")
        figure.legend(handles=[dots, lines, *shades], loc="outside upper left", ncols=3)
    return figure


def _of(found: Contrast, axis: str | None) -> str:
    """Say what rows are differences of."""
    if axis is None:
        return found.title
    return axis or "each in its own posterior standard deviations"


def _finding(found: Contrast, axis: str | None, parts: Sequence[Difference]) -> str:
    """Say what a picture shows: the rows whose intervals lie beyond the margin, and all differences."""
    first, second = (group.label for group in found.groups)
    apart = [part.label or part.name for part in parts if part.excludes_margin]
    beyond = f"intervals beyond {f'{found.margin:g} of 0' if found.margin else '0'}: "
    beyond += ", ".join(apart) or "none"
    named = "; ".join(
        f"{part.label or part.name} {amount(part.mean, width)} ({amount(part.lower, width)} to "
        f"{amount(part.upper, width)}{f' {part.unit}' if part.unit else ''})"
        for part in parts
        for width in (part.upper - part.lower,)
    )
    of = found.title if axis is None else axis or "other parameters"
    return f"Difference of {of}, {first} less {second}, {beyond}: {named}"


def _caption(found: Contrast, place: int) -> str:
    return found.meaning() if place == 0 else "The same of what has another scale."
