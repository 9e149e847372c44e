"""The comparison of two fits as text for a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dpmix.summary.text import WIDTH, figure

if TYPE_CHECKING:
    from dpmix.summary.contrast_result import Contrast, Difference, Group

__all__ = ["last_cell", "last_column", "meaning", "records", "text"]


def text(found: Contrast) -> str:
    """Return groups, differences, guarantee and warnings, in at most 96 columns."""
    lines = []
    for group in found.groups:
        lines += _wrapped(f"{group.label}: {group.file} ({records(group)}, {group.method})", "   ")
    lines += ["", *_table(found), "", *_wrapped(meaning(found)), "", *_wrapped(found.guarantee.words)]
    if found.warnings:
        lines += ["", "Warnings:"]
        for warning in found.warnings:
            lines += _wrapped(f"- {warning}", "  ")
    return "\n".join(lines)


def records(group: Group) -> str:
    """Say how many records a group has: about how many of all, where that is private."""
    return f"{group.n:,} records" if group.size is None else f"about {group.size:,.0f} of {group.n:,} records"


def meaning(found: Contrast) -> str:
    """Say what the columns of the comparison are."""
    level = f"{100 * found.level:g}%"
    first, second = (group.label for group in found.groups)
    what = f"{first} - {second} is the difference of {found.title}, with its {level}"
    if found.is_bootstrap:
        return (
            f"{what} confidence interval from pairs of refits. 'beyond' says whether that lies outside of "
            f"[-{found.margin:g}, {found.margin:g}], each component by itself."
        )
    if found.by_sign:
        return (
            f"{what} credible interval. Pr(> 0) is the posterior probability that it is positive, each row "
            "by itself."
        )
    return (
        f"{what} credible interval. Pr(beyond) is the posterior probability that it is larger than "
        f"{found.margin:g} in absolute value, each component by itself."
    )


def last_column(found: Contrast) -> str:
    """Name the last column of the table."""
    return "beyond" if found.is_bootstrap else "Pr(> 0)" if found.by_sign else "Pr(beyond)"


def last_cell(found: Contrast, part: Difference) -> str:
    """Return what it says of a difference."""
    if part.probability is None:
        return "yes" if part.excludes_margin else "no"
    return figure(part.above if found.by_sign else part.probability, ".3f")


def _table(found: Contrast) -> list[str]:
    level = f"{100 * found.level:g}%"
    last = last_column(found)
    first, second = found.groups
    a, b = first.label, second.label
    rows = [("", f"{found.title} in {a}", f"in {b}", f"{a} - {b}", f"{level} interval", last)]
    for place, part in enumerate(found.differences):
        ending = last_cell(found, part)
        interval = f"{figure(part.lower)} to {figure(part.upper)}"
        cells = (figure(first.mean[place]), figure(second.mean[place]), figure(part.mean), interval, ending)
        rows.append((part.name, *cells))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
