"""Pictures within a page: SVG whose text can be selected, and whose colours follow the reader's theme."""

from __future__ import annotations

import hashlib
import re
from html import escape

__all__ = ["THEMED", "inlined"]

THEMED = {
    "#0072b2": "blue",
    "#d55e00": "orange",
    "#009e73": "green",
    "#e69f00": "yellow",
    "#cc79a7": "pink",
    "#56b4e9": "sky",
    "#e2e2e2": "shade",
    "#222222": "ink",
    "#555555": "tick",
    "#777777": "axis",
    "#8c8c8c": "bar",
    "#a8a8a8": "dots",
    "#ffffff": "paper",
}
"""Colours of pictures by the names that they have in the pages' style, ``--fig-NAME``, light and dark."""
_HEAD = re.compile(r"<svg[^>]*>", re.DOTALL)
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_METADATA = re.compile(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", re.DOTALL)
_STYLE = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_STYLED = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')
_FONT = re.compile(r"font-family: [^;\"]*; ?")  # the style's
_UNTURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
_BLANK = re.compile(r">\s+<")
_BREAK = re.compile(r" *\n *")
_USED = re.compile(r'(?:href="#|url\(#)([^")]*)')


def inlined(svg: str, alt: str) -> str:
    """Return an SVG file as an element of a page.

    Its colours become variables of the style, its ids those of this picture alone, and what a page does not
    need (declarations, comments, names of parts) goes.

    Parameters
    ----------
    svg : str
        As matplotlib writes it, with text as text.
    alt : str
        What it shows, in words.
    """
    head = _HEAD.search(svg)
    size = None if head is None else _SIZE.search(head[0])
    if head is None or size is None:
        raise ValueError("not an SVG of a picture")
    body = _METADATA.sub("", svg[head.end() :])
    body = _STYLE.sub("", body).replace("xlink:href", "href")
    mark = hashlib.sha256((alt + body).encode()).hexdigest()[:8]
    used = set(_USED.findall(body))
    body = _ID.sub(lambda found: f' id="f{mark}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r'(href="#|url\(#)', rf"\1f{mark}-", body)
    body = _FONT.sub("", body)
    body = _UNTURNED.sub("", body)
    body = _STYLED.sub(lambda found: f' style="{_themed(found[1])}"', body)
    body = _BREAK.sub(" ", _BLANK.sub("><", body.strip()))
    width, height = (float(part) for part in size.groups())
    return (
        f'<svg role="img" aria-label="{escape(alt)}" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width * 4 / 3:.0f}" height="{height * 4 / 3:.0f}" class="figure">{body}'
    )


def _themed(style: str) -> str:
    return _COLOUR.sub(
        lambda found: f"var(--fig-{THEMED[found[0]]})" if found[0] in THEMED else found[0], style
    )
