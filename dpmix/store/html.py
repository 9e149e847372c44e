"""What all HTML pages share: their frame and style, and figures as pictures within them.

Colours are Okabe and Ito's, which colour-blind readers tell apart; lines differ in style as well.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import resources
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmix.store.fitting import fitted, narrowed, wide_enough
from dpmix.store.inline_svg import inlined

__all__ = ["BLUE", "COLOURS", "GREEN", "GREY", "INK", "ORANGE", "STYLES"]
__all__ += ["captioned", "drawing", "drawing_at", "drawings", "image", "page", "picture", "svg"]

BLUE, ORANGE, GREEN, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#E2E2E2", "#222222"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
STYLES = ("-", "--", "-.", ":")
_PATH = re.compile(rb' d="[^"]*"')
_DIGITS = re.compile(rb"(\.\d\d)\d+")
_STYLE: Any = {  # matplotlib types the keys one by one
    "svg.fonttype": "none",
    "svg.hashsalt": "dpmix",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "axes.titlesize": 9.5,
    "axes.edgecolor": "#777777",
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "text.color": INK,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def page(title: str, sections: Iterable[str]) -> str:
    """Return a whole HTML page, with its style in it; empty sections are left out."""
    css = resources.files("dpmix.store").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def captioned(figure: Figure, alt: str, caption: str, kind: str = "wide") -> str:
    """Return a figure with its caption, in a form for wide pages and one for telephones.

    Parameters
    ----------
    figure : Figure
        Of `drawing` or `drawings`; it is changed.
    alt : str
        What it shows, the finding first.
    caption : str
    kind : str
        A class of the style, which sets the width.
    """
    shown = f'<div class="{kind}">{image(figure, alt)}</div>'
    with rc_context(_STYLE):
        narrowed(figure)
    shown += f'<div class="narrow">{image(figure, alt)}</div>'
    return f"<figure>{shown}<figcaption>{escape(caption)}</figcaption></figure>"


def image(figure: Figure, alt: str) -> str:
    """Return a figure as SVG within the page."""
    return inlined(svg(figure).decode("utf-8"), alt)


def svg(figure: Figure) -> bytes:
    """Return a figure as SVG, the same bytes for the same figure, coordinates to a hundredth of a point."""
    drawn = _PATH.sub(lambda path: _DIGITS.sub(rb"\1", path[0]), picture(figure, "svg"))
    return drawn.replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")


def picture(figure: Figure, kind: str) -> bytes:
    """Return a figure as "svg" or "png", without a date."""
    buffer = io.BytesIO()
    with rc_context(_STYLE):
        if kind == "svg":
            figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        else:
            figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()


@contextmanager
def drawing(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of `size` inches in the pages' style, and its axes."""
    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, figure.add_subplot()
        fitted(figure)


@contextmanager
def drawings(size: tuple[float, float], columns: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give a figure of `size` inches in the pages' style, and several axes side by side."""
    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, [figure.add_subplot(1, columns, place + 1) for place in range(columns)]
        fitted(figure)


@contextmanager
def drawing_at(size: tuple[float, float], place: tuple[float, float, float, float]) -> Iterator[Axes]:
    """Give axes at a fixed place of a figure, so that several figures line up (and are drawn faster)."""
    with rc_context(_STYLE):
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        axes = figure.add_axes(place)
        yield axes
        fitted(figure)
        wide_enough(axes, place[0])
