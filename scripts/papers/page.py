"""Puts what came out into the page: numbers between two marks, and small pictures beside it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

__all__ = ["fill"]

_COLOURS = 64


def fill(page: Path, paper: str, words: str, pictures: Sequence[str], folder: Path) -> None:
    """Write findings between the marks of a paper, and its tables and pictures to the folder of the page.

    Parameters
    ----------
    page : Path
        Markdown, with the lines ``<!-- p1: numbers -->`` and ``<!-- p1: end -->``; pictures go to a folder
        beside it of its name.
    paper : str
        As ``p1``.
    words : str
        The findings.
    pictures : sequence of str
        Names of the figures shown; those that are not drawn are left as they are.
    folder : Path
        Of the results.

    Raises
    ------
    ValueError
        Where a mark is missing.
    """
    first, last = f"<!-- {paper}: numbers -->\n", f"<!-- {paper}: end -->\n"
    text = page.read_text(encoding="utf-8")
    if first not in text or last not in text:
        raise ValueError(f"{page} has no lines {first.strip()} and {last.strip()}")
    before, rest = text.split(first, 1)
    after = rest.split(last, 1)[1]
    page.write_text(f"{before}{first}\n{words.strip()}\n\n{last}{after}", encoding="utf-8")
    place = page.with_suffix("")
    for name in pictures:
        drawn = folder / f"{name}.png"
        if drawn.exists():
            called = drawn.name if paper == "p1" else f"{paper}_{drawn.name}"
            small = Image.open(drawn).convert("RGB").quantize(_COLOURS)
            small.save(place / called, optimize=True)
    for table in folder.glob(f"{paper}_*.csv"):
        shutil.copyfile(table, place / table.name)
