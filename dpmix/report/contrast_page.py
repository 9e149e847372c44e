"""The comparison of two fits as an HTML page: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.results.as_html import to_page
from dpmix.store.html import BLUE, GREY, captioned, drawing
from dpmix.summary.contrast_result import Contrast

__all__ = ["contrast_figure", "render"]


def render(found: Contrast) -> str:
    """Return the comparison as one HTML page; the same comparison always gives the same page."""
    first, second = (group.label for group in found.groups)
    named = "; ".join(
        f"{name} {part.mean:.3g} ({part.lower:.3g} to {part.upper:.3g})"
        for name, part in zip(found.names, found.differences, strict=True)
    )
    alt = f"Difference of {found.title}, {first} less {second}: {named}"
    return to_page(found.tree, {"difference": [captioned(contrast_figure(found), alt, found.meaning())]})


def contrast_figure(found: Contrast) -> Figure:
    """Difference of each share with its interval, over the margin within which shares count as equal."""
    rows = np.arange(len(found.differences))
    kind = "confidence" if found.is_bootstrap else "credible"
    with drawing((7.2, 1.1 + 0.34 * rows.size)) as (figure, axes):
        margin = axes.axvspan(
            -found.margin, found.margin, color=GREY, lw=0, label=f"up to {found.margin:g} apart"
        )
        axes.axvline(0.0, color="#777777", lw=0.8)
        lower = [part.lower for part in found.differences]
        upper = [part.upper for part in found.differences]
        lines = axes.hlines(
            rows, lower, upper, color=BLUE, lw=2.0, label=f"{100 * found.level:g}% {kind} interval"
        )
        (dots,) = axes.plot([p.mean for p in found.differences], rows, "o", color=BLUE, ms=5, label="mean")
        axes.set_yticks(rows, [plain(name) for name in found.names])
        axes.set(ylim=(rows.size - 0.4, -0.6))
        first, second = (plain(group.label) for group in found.groups)
        axes.set_xlabel(f"difference of {found.title}, {first} less {second}")
        figure.legend(handles=[dots, lines, margin], loc="outside upper left", ncols=3)
    return figure
