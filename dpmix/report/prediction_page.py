"""The section of a report on the records that were to be predicted."""

from __future__ import annotations

from html import escape

from dpmix.summary.result import Summary

__all__ = ["section"]


def section(summary: Summary) -> str:
    """Return the table of the first records with what is predicted of them; empty where there are none."""
    found = summary.predictions
    if found is None:
        return ""
    header, *rows = found.shown()
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("record", *header[1:]))
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    more = f" Shown are the first of {len(found):,} records." if found.more else ""
    return (
        f'<h2>Predictions</h2>\n<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
        f'<p class="note">{escape(found.what[0].upper() + found.what[1:])}.{more}</p>'
    )
