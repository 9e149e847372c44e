"""A result as HTML: one page with everything in it, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from dpmix.results.nodes import (
    Answer,
    Block,
    Code,
    Facts,
    Items,
    Note,
    ResultSection,
    Table,
    Tile,
    Tree,
    Words,
    notes_of,
)

_EMPHASIS = re.compile(r"\*\*(.+?)\*\*")


def to_page(tree: Tree, pictures: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return the whole page; the same result always gives the same.

    Parameters
    ----------
    tree : Tree
    pictures : mapping of str to sequence of str
        HTML of the pictures of a section, by its key.
    """
    from dpmix.store.html import page  # late: matplotlib takes its time

    return page(f"{tree.name} - dpmix", sections(tree, pictures or {}))


def sections(tree: Tree, pictures: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what a page consists of: its head, and each section that it shows."""
    shown = tree.ordered(tree.page_order)
    if tree.answer is not None:
        return _answered(tree, tree.answer, shown, pictures)
    found = [_section(section, pictures) for section in shown]
    tiles = _tiles([tile for section in shown for tile in section.tiles])
    head = f'<h1>{escape(tree.heading)}</h1>\n<p class="lead">{escape(tree.guarantee)}</p>\n'
    head += f"<p>{escape(tree.lead)}</p>\n" if tree.lead else ""
    return [f"{head}{_warnings(tree)}\n{tiles}", *filter(None, found)]


_ANSWERS = {"usable": "Usable", "with care": "Usable with care", "not yet": "Not usable yet"}


def _answered(
    tree: Tree, answer: Answer, shown: Sequence[ResultSection], pictures: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return a page that begins with the answer, and ends with the diagnostics, folded."""
    folded = [section for section in shown if section.key in tree.folded]
    open_ = [section for section in shown if section.key not in tree.folded]
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in answer.reasons)
    kind = answer.verdict.replace(" ", "-")
    said = (
        f'<div class="verdict {kind}" role="note"><strong>{_ANSWERS[answer.verdict]}</strong>'
        f"<ul>{reasons}</ul></div>"
    )
    level = f"{100 * tree.level:g}%"
    tiles = _tiles(
        [
            Tile(
                figure.name[:1].upper() + figure.name[1:],
                f"{figure.value} {figure.unit}".strip(),
                f"{level}: {figure.low} to {figure.high}",
            )
            for figure in answer.figures
        ]
    )
    of = f"<b>{escape(answer.of)}</b>, " if answer.of else ""
    head = (
        f'<h1>{escape(tree.heading)}</h1>\n<p class="lead">{of}{answer.in_words}. '
        f"{escape(answer.guarantee)}</p>"
    )
    lead = f"<p>{escape(tree.lead)}</p>" if tree.lead else ""
    parts = [_section(section, pictures) for section in open_]
    more = _tiles([tile for section in open_ for tile in section.tiles])
    inner = [_section(section, pictures) for section in folded]
    fold = "\n".join(
        [
            '<details class="fold">',
            f'<summary>Diagnostics and provenance <span class="badge {kind}">{escape(answer.badge)}</span>'
            "</summary>",
            f'<p class="lead">{escape(tree.guarantee)}</p>',
            _tiles([tile for section in folded for tile in section.tiles]),
            *filter(None, inner),
            "</details>",
        ]
    )
    if tree.warnings:
        lead += f'<p class="note"><a href="#warnings">{len(tree.warnings)} '
        lead += "warning</a> below.</p>" if len(tree.warnings) == 1 else "warnings</a> below.</p>"
    return [f"{head}\n{said}\n{tiles}\n{lead}", *filter(None, parts), more, _warnings(tree), fold]


def _warnings(tree: Tree) -> str:
    if tree.warnings:
        title = "Warning" if len(tree.warnings) == 1 else f"{len(tree.warnings)} warnings"
        items = "".join(f"<li>{escape(text)}</li>" for text in tree.warnings)
        kind = 'class="box warning" id="warnings" role="note"'
        return f"<div {kind}><strong>{title}</strong><ul>{items}</ul></div>"
    return f'<div class="box" role="note"><p>{escape(tree.calm)}</p></div>' if tree.calm else ""


def _tiles(tiles: Sequence[Tile]) -> str:
    body = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{body}</dl>' if body else ""


def _section(section: ResultSection, pictures: Mapping[str, Sequence[str]], level: int = 2) -> str:
    shown = [*pictures.get(section.key, ()), *(_block(block) for block in section.on_page)]
    shown += [_section(part, pictures, level + 1) for part in section.parts]
    if not shown or not (section.title or level > 2):
        return ""
    title = f"<h{level}>{escape(section.title)}</h{level}>" if section.title else ""
    return "\n".join(filter(None, [title, *shown]))


def _block(block: Block) -> str:
    match block:
        case Table():
            return _table(block)
        case Items(texts, small):
            kind = ' class="note"' if small else ""
            return f"<ul{kind}>{''.join(f'<li>{_emphasized(text)}</li>' for text in texts)}</ul>"
        case Note(text):
            return f'<p class="note">{_emphasized(text)}</p>'
        case Facts(facts):
            rows = (
                f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in facts.items()
            )
            return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'
        case Code(title, text):
            return f"<h3>{escape(title)}</h3>\n<pre>{escape(text)}</pre>"
        case Words(text=text) | text:
            return f"<p>{escape(text)}</p>"


def _emphasized(text: str) -> str:
    return _EMPHASIS.sub(r"<b>\1</b>", escape(text))


def _table(table: Table) -> str:
    shown = [column for column in table.columns if column.label and "page" in column.where]
    head = [table.title or table.dim, *(column.label for column in shown)]
    header = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    rows = [f'<tr><th scope="row">{escape(name)}</th>' for name in table.names]
    for column in shown:
        for place, cell in enumerate(column.cells(page=True)):
            kind = ' class="bad"' if column.bad and column.bad[place] else ""
            rows[place] += f"<td{kind}>{escape(cell).replace('+-', '&plusmn;')}</td>"
    body = "".join(f"{row}</tr>" for row in rows)
    notes = notes_of(shown)
    below = f"<p>{escape(notes)}</p>" if notes else ""
    whole = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{whole}</div>{below}'
