"""The comparison of two fits as text for a terminal."""

from __future__ import annotations

import textwrap

from dpmix.summary.contrast_result import Contrast
from dpmix.summary.text import WIDTH, figure

__all__ = ["meaning", "text"]


def text(found: Contrast) -> str:
    """Return groups, differences, guarantee and warnings, in at most 96 columns."""
    lines = []
    for group in found.groups:
        lines += _wrapped(f"{group.label}: {group.file} ({group.n} records, {group.method})", "   ")
    lines += ["", *_table(found), "", *_wrapped(meaning(found)), "", *_wrapped(found.guarantee.words)]
    if found.warnings:
        lines += ["", "Warnings:"]
        for warning in found.warnings:
            lines += _wrapped(f"- {warning}", "  ")
    return "\n".join(lines)


def meaning(found: Contrast) -> str:
    """Say what the columns of the comparison are."""
    level = f"{100 * found.level:g}%"
    what = f"A - B is the difference of {found.title}, with its {level}"
    if found.is_bootstrap:
        return (
            f"{what} confidence interval from pairs of refits. 'beyond' says whether that lies outside of "
            f"[-{found.margin:g}, {found.margin:g}], each component by itself."
        )
    return (
        f"{what} credible interval. Pr(beyond) is the posterior probability that it is larger than "
        f"{found.margin:g} in absolute value, each component by itself."
    )


def _table(found: Contrast) -> list[str]:
    level = f"{100 * found.level:g}%"
    last = "beyond" if found.is_bootstrap else "Pr(beyond)"
    rows = [("", f"{found.title} in A", "in B", "A - B", f"{level} interval", last)]
    first, second = found.groups
    for place, part in enumerate(found.differences):
        ending = (
            ("yes" if part.excludes_margin else "no")
            if part.probability is None
            else figure(part.probability, ".3f")
        )
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
