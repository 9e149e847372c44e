"""A result as text for a terminal, in at most 96 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from dpmix.numerics.in_words import printable
from dpmix.results.nodes import Answer, Block, Items, Table, Tree, Words, notes_of

WIDTH = 96
_LEAST = 12  # letters of a name that always stands before its figures
_NAME = 44  # letters of a name at the head


def to_text(tree: Tree) -> str:
    """Return what sections say in brief, what they show, the guarantee, and warnings.

    No name in it can do anything at a terminal, or begin a line.
    """
    shown = tree.ordered(tree.text_order)
    parts = [] if tree.answer is None else [_answer(tree.answer, tree.level)]
    parts += [[line for section in shown for piece in section.brief for line in _lines(piece)]]
    parts += [[line for block in group for line in _lines(block)] for s in shown for group in s.text]
    parts.append(textwrap.wrap(tree.guarantee, WIDTH))
    if tree.warnings:
        parts.append(["Warnings:", *(line for text in tree.warnings for line in _lines(f"- {text}"))])
    return "\n\n".join("\n".join(printable(line, "") for line in part) for part in parts if part)


def _answer(answer: Answer, level: float) -> list[str]:
    """Return what stands first: what it is of, its figures, the verdict."""
    of = f"{answer.of}, {answer.in_words}" if answer.of else answer.in_words
    rows = [
        (
            figure.name if len(figure.name) <= _NAME else f"{figure.name[: _NAME - 1]}…",
            figure.value,
            f"({figure.low} to {figure.high})",
            figure.unit,
        )
        for figure in answer.figures
    ]
    found = textwrap.wrap(f"{of}; {100 * level:g}% intervals in brackets" if rows else of, WIDTH)
    if rows:
        found += [f"  {line.rstrip()}" for line in aligned(rows, (0, 3))]
    said = f"Verdict: {answer.verdict}. {' '.join(answer.reasons)}"
    return [*found, *textwrap.wrap(said, WIDTH, subsequent_indent="  ")]


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


def _room_of_head(words: Sequence[str]) -> int:
    """Return how wide a heading may be on several lines: as its figures, or a word of it."""
    head, *figures = words
    return max([_LEAST, *map(len, figures), *(min(len(word), 2 * _LEAST) for word in head.split())])


def _table(table: Table) -> list[str]:
    shown = [
        column
        for column in table.columns
        if column.label
        and "text" in column.where
        and not (column.if_any and all(value is None for value in column.values))
    ]
    cells = [["", *table.names], *([column.label, *column.cells()] for column in shown)]
    for column in [column for column in shown if column.spare]:
        if sum(max(map(len, words)) + 2 for words in cells) - 2 > WIDTH:
            place = shown.index(column)
            del shown[place], cells[place + 1]
    if sum(max(map(len, words)) + 2 for words in cells[1:]) + _LEAST > WIDTH:  # by names of groups, say
        heads = [textwrap.wrap(words[0], _room_of_head(words)) for words in cells]
        high = max(map(len, heads))
        cells = [
            [*[""] * (high - len(head)), *head, *words[1:]] for head, words in zip(heads, cells, strict=True)
        ]
    left = [place + 1 for place, column in enumerate(shown) if column.left]
    room = WIDTH - sum(max(map(len, words)) + 2 for words in cells[1:])
    rows: list[Sequence[str]] = []
    alone: dict[int, str] = {}  # names too long to stand before their figures
    for name, *figures in zip(*cells, strict=True):
        if len(name) > max(room, _LEAST):
            alone[len(rows)] = name
        rows.append(["" if len(name) > max(room, _LEAST) else name, *figures])
    lines = [line.rstrip() for line in aligned(rows, [0, *left])]
    found = [
        part
        for place, line in enumerate(lines)
        for part in (*([alone[place]] if place in alone else []), line)
    ]
    notes = textwrap.wrap(notes_of(shown), WIDTH, subsequent_indent="  ")
    return [*found, "", *notes] if notes else found
