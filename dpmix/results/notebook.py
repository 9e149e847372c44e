"""Results in a notebook: a few lines and a small table, as HTML that no name or label can break out of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dpmix.store.frames import Frame

__all__ = ["FIRST", "to_notebook"]

FIRST = 20
"""Rows that are shown."""
_COLUMNS = 12  # that are shown


def to_notebook(title: str, lines: Sequence[str], table: Frame | None = None, rows: int | None = None) -> str:
    """Return a heading, sentences, and the first rows of a table.

    Parameters
    ----------
    title : str
    lines : sequence of str
    table : Frame, optional
        Of which the first rows are shown.
    rows : int, optional
        How many rows there are, where `table` has only some of them.
    """
    parts = [f"<p><strong>{escape(title)}</strong></p>", *(f"<p>{escape(line)}</p>" for line in lines)]
    if table is not None and table.columns:
        parts.append(_table(table.first(FIRST)))
        total = len(table) if rows is None else rows
        more = [f"{total - FIRST:,} more rows"] if total > FIRST else []
        wide = len(table.columns) - _COLUMNS
        more += [f"{wide:,} more column{'s' * (wide > 1)}"] if wide > 0 else []
        parts += [f"<p><small>and {' and '.join(more)}</small></p>"] if more else []
    return f'<div class="dpmix">{"".join(parts)}</div>'


def _table(table: Frame) -> str:
    names = list(table.columns)[:_COLUMNS]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    cells = Frame({name: table.columns[name] for name in names}).cells()
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_brief(cell))}</td>' for cell in row)}</tr>"
        for row in zip(*cells, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _brief(cell: str) -> str:
    """Return a number of many digits with six of them."""
    if len(cell) <= 9 or not any(mark in cell for mark in ".e"):
        return cell
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return cell
