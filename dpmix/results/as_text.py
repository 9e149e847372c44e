"""A result as text for a terminal, in at most 96 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from dpmix.results.nodes import Block, Items, Table, Tree, Words

__all__ = ["WIDTH", "aligned", "to_text"]

WIDTH = 96


def to_text(tree: Tree) -> str:
    """Return what sections say in brief, what they show, the guarantee, and warnings."""
    shown = tree.ordered(tree.text_order)
    parts = [[line for section in shown for piece in section.brief for line in _lines(piece)]]
    parts += [[line for block in group for line in _lines(block)] for s in shown for group in s.text]
    parts.append(textwrap.wrap(tree.guarantee, WIDTH))
    if tree.warnings:
        parts.append(["Warnings:", *(line for text in tree.warnings for line in _lines(f"- {text}"))])
    return "\n\n".join("\n".join(part) for part in parts if part)


def aligned(rows: Sequence[Sequence[str]], left: Iterable[int] = (0,)) -> list[str]:
    """Return the lines of a table: these columns to the left, all else to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = set(left)
    return [
        "  ".join(
            cell.ljust(width) if place in places else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _lines(block: Block) -> list[str]:
    match block:
        case Table():
            return _table(block)
        case Items(texts):
            return [line for text in texts for line in textwrap.wrap(f"- {text}", WIDTH)]
        case Words(text, indent):
            return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
        case str():
            return textwrap.wrap(block, WIDTH, subsequent_indent="  ")
    return []


def _table(table: Table) -> list[str]:
    columns = [["", *table.rows]]
    spare = []
    for column in table.columns:
        if not column.label or "text" not in column.where:
            continue
        if column.if_any and all(value is None for value in column.values):
            continue
        columns.append([column.label, *column.cells()])
        if column.spare:
            spare.append(columns[-1])
    for cells in spare:
        if sum(max(map(len, column)) + 2 for column in columns) - 2 > WIDTH:
            columns = [column for column in columns if column is not cells]
    return aligned(list(zip(*columns, strict=True)))
