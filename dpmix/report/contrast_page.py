"""The comparison of two fits as an HTML page: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, GREY, captioned, drawing, page
from dpmix.summary.contrast_result import Contrast, last_cell, last_column, meaning, records
from dpmix.summary.result import figure as number

__all__ = ["contrast_figure", "render"]


def render(found: Contrast) -> str:
    """Return the comparison as one HTML page; the same comparison always gives the same page."""
    return page("Two groups compared - dpmix", [_head(found), _picture(found), _table(found)])


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


def _head(found: Contrast) -> str:
    groups = "".join(
        f"<li><b>{escape(group.label)}</b>: {escape(group.file)}, {records(group)}, by "
        f"{escape(group.method)}</li>"
        for group in found.groups
    )
    box = ""
    if found.warnings:
        title = "Warning" if len(found.warnings) == 1 else f"{len(found.warnings)} warnings"
        items = "".join(f"<li>{escape(text)}</li>" for text in found.warnings)
        box = f'<div class="box warning" role="note"><strong>{title}</strong><ul>{items}</ul></div>'
    return (
        f'<h1>Two groups compared</h1>\n<p class="lead">{escape(found.guarantee.words)}</p>\n'
        f"<ul>{groups}</ul>\n{box}"
    )


def _picture(found: Contrast) -> str:
    alt = f"Difference of {found.title} between the groups, with intervals and the margin"
    return f"<h2>Differences</h2>\n{captioned(contrast_figure(found), alt, meaning(found))}"


def _table(found: Contrast) -> str:
    a, b = (group.label for group in found.groups)
    last = last_column(found)
    names = (f"in {a}", f"in {b}", f"{a} - {b}", "sd", f"{100 * found.level:g}% interval", "MCSE", last)
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = ""
    for place, part in enumerate(found.differences):
        cells = (
            *(number(group.mean[place]) for group in found.groups),
            number(part.mean),
            number(part.sd),
            f"{number(part.lower)} to {number(part.upper)}",
            number(part.mcse, ".2g"),
            last_cell(found, part),
        )
        rows += f'<tr><th scope="row">{escape(part.name)}</th>'
        rows += "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return (
        f'<div class="scroll"><table><thead><tr><th scope="col">{escape(found.title)}</th>{header}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )
