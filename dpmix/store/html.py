"""What all HTML pages share: their frame and style, and figures as pictures within them.

Colours are Okabe and Ito's, which colour-blind readers tell apart; lines differ in style as well.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import resources
from itertools import pairwise
from textwrap import fill
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, FixedLocator, FuncFormatter, MaxNLocator, ScalarFormatter

from dpmix.spec.days import day_text

# Pictures within a page: SVG whose text can be selected, and whose colours follow the reader's theme


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
_STYLE_ELEMENT = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
_STYLED = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]*)"')
_FONT = re.compile(r"font-family: [^;\"]*; ?")  # the style's
_UNTURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
_BLANK = re.compile(r">\s+<")
_BREAK = re.compile(r" *\n *")
_USED = re.compile(r'(?:href="#|url\(#)([^")]*)')


def inlined(svg: str, alt: str) -> str:
    """Return an SVG file, with text as text, as an element of a page; `alt` says what it shows.

    Its colours become variables of the style, its ids those of this picture alone, and what a page does not
    need (declarations, comments, names of parts) goes.
    """
    head = _HEAD.search(svg)
    size = None if head is None else _SIZE.search(head[0])
    if head is None or size is None:
        raise ValueError("not an SVG of a picture")
    body = _METADATA.sub("", svg[head.end() :])
    body = _STYLE_ELEMENT.sub("", body).replace("xlink:href", "href")
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


# Pictures that fit their width: tick labels and legends that nothing clips, and a form for telephones


NARROW = 4.1
"""Width of the form for telephones, in inches."""
_POINTS = 72.0
_LETTER = 0.64  # width of a figure as a share of the size of the letters, in DejaVu Sans
_BETWEEN = 14.0  # points between neighbouring tick labels
_BESIDE = 20.0  # points beside axes and the names at them
_MOST_TICKS = 9
_WRAP = 36  # letters of a line below axes of the narrow form
_SHORTEST, _NAME = 12, 21  # letters of such a line at least, and of a name beside them at most
_TALL = 0.85  # of the height of a panel, for the name of its axis
_PANEL = 2.5  # inches, height of one of several panels below each other


def plain_number(value: float, place: object = None, step: float = 0.0) -> str:
    """Write a number at an axis: -200000 as −200,000, small ones with an exponent.

    A `step` between ticks, where it is given, is told apart also far from 0.
    """
    large = 1e4 <= abs(value) < 1e15
    digits = max(10, math.ceil(math.log10(abs(value) / step)) + 2) if 0.0 < step < abs(value) else 10
    text = f"{value:,.15g}" if large and float(value).is_integer() else f"{value:.{min(digits, 15)}g}"
    return text.replace("-", "\N{MINUS SIGN}")


def _telling_apart(axis: Axis) -> FuncFormatter:
    """Return what writes the numbers of an axis by `plain_number`, told apart as its ticks are."""

    def written(value: float, place: object = None) -> str:
        places = axis.get_majorticklocs()
        return plain_number(value, step=float(places[1] - places[0]) if len(places) > 1 else 0.0)

    return FuncFormatter(written)


def fitted(figure: Figure) -> None:
    """Write numbers at axes as `plain_number` does, as many as have room, and legends in so many columns."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if type(axis.get_major_formatter()) is ScalarFormatter:
                axis.set_major_formatter(_telling_apart(axis))
        _thin(figure, axes)
        _wrap(figure, axes)
    for legend in list(figure.legends):
        _relaid(figure, legend)


def _wrap(figure: Figure, axes: Axes) -> None:
    """Put the name of a vertical axis on so many lines that it keeps to its own axes."""
    spec, label = axes.get_subplotspec(), axes.yaxis.label
    if spec is None:
        return
    height = _POINTS * figure.get_figheight() / spec.get_gridspec().nrows
    letters = int(_TALL * height / (_LETTER * float(label.get_fontsize())))
    if len(label.get_text()) > letters:
        longest = max(map(len, label.get_text().split()))  # a little more than fits, rather than broken
        label.set_text(fill(label.get_text(), max(letters, _SHORTEST, min(longest, int(1.2 * letters)))))


def narrowed(figure: Figure) -> None:
    """Change a figure to the form for telephones: panels below each other, legends in fewer columns."""
    height = figure.get_figheight()
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    if len(panels) > 1:
        grid = figure.add_gridspec(len(panels), 1)
        for place, axes in enumerate(panels):
            axes.set_subplotspec(grid[place])
        height = max(height, _PANEL * len(panels) + 0.4)
    figure.set_size_inches(NARROW, height)
    for axes in panels:
        _shorten(axes.yaxis)
        label = axes.xaxis.label
        letters = int(_room(figure, axes, 1) / (_LETTER * float(label.get_fontsize())))
        label.set_text(fill(label.get_text(), max(min(letters, _WRAP), _SHORTEST)))
        if axes is not panels[0] and not axes.yaxis.get_tick_params().get("labelleft", True):
            axes.tick_params(labelleft=True)  # the one that it had them from is no longer beside it
            axes.set_ylabel(panels[0].get_ylabel())
    fitted(figure)


def wide_enough(axes: Axes, least: float = 0.125) -> None:
    """Move the left edge of axes at a fixed place so that no tick label is clipped."""
    figure = axes.figure
    labels = _labels(axes.yaxis)
    size = _points(axes.yaxis)
    assert isinstance(figure, Figure)
    room = (max(map(len, labels), default=0) + 0.6) * _LETTER * size + 9.0
    box = axes.get_position()
    left = min(max(least, room / (_POINTS * figure.get_figwidth())), 0.5)
    axes.set_position((left, box.y0, box.x1 - left, box.height))


def _thin(figure: Figure, axes: Axes) -> None:
    """Leave so few ticks at a horizontal axis that their labels do not touch."""
    axis = axes.xaxis
    locator = axis.get_major_locator()
    if (
        not isinstance(locator, MaxNLocator)
        or type(locator) not in (AutoLocator, MaxNLocator)
        or axis.get_scale() != "linear"
    ):
        return
    spec = axes.get_subplotspec()
    columns = 1 if spec is None else spec.get_gridspec().ncols
    width = _room(figure, axes, columns)
    longest = max(map(len, _labels(axis)), default=1)
    room = int(width / (longest * _LETTER * _points(axis) + _BETWEEN))
    locator.set_params(nbins=max(2, min(room, _MOST_TICKS)))


def _room(figure: Figure, axes: Axes, columns: int) -> float:
    """Return about how wide axes are, in points: names at their left take from it."""
    whole = _POINTS * figure.get_figwidth() / columns
    names = max(map(len, _labels(axes.yaxis)), default=0) * _LETTER * _points(axes.yaxis)
    return min(0.85 * whole, whole - names - _BESIDE)


def _shorten(axis: Axis) -> None:
    """Shorten names at an axis in their middle: entries of a release differ at their ends."""
    if isinstance(axis.get_major_locator(), FixedLocator):
        places = list(axis.get_majorticklocs())
        names = axis.get_major_formatter().format_ticks(places)
        half = (_NAME - 1) // 2
        axis.set_ticks(places, labels=[n if len(n) <= _NAME else f"{n[:half]}…{n[-half:]}" for n in names])


def _labels(axis: Axis) -> list[str]:
    low, high = sorted(axis.get_view_interval())
    places = [place for place in axis.get_majorticklocs() if low <= place <= high]
    return list(axis.get_major_formatter().format_ticks(places))


def _points(axis: Axis) -> float:
    labels = axis.get_majorticklabels()
    return float(labels[0].get_fontsize()) if labels else 9.0


def _relaid(figure: Figure, legend: Any) -> None:
    """Put a legend of a figure in as many columns as have room, up to four."""
    handles, names = list(legend.legend_handles), [text.get_text() for text in legend.get_texts()]
    room = _POINTS * figure.get_figwidth() - 6.0
    columns = next(k for k in (4, 3, 2, 1) if k == 1 or _width(names, k, legend._fontsize) <= room)
    title = legend.get_title()
    words, title_size = title.get_text() or None, title.get_fontsize()
    legend.remove()
    figure.legend(
        handles,
        names,
        loc="outside upper left",
        ncols=min(columns, max(1, len(names))),
        handlelength=1.8,
        columnspacing=1.4,
        title=words,
        title_fontsize=title_size,
        alignment="left",
    )


def _width(names: list[str], columns: int, size: float) -> float:
    """Return about how wide a legend is, in points: its columns are filled one after the other."""
    columns = min(columns, max(1, len(names)))
    least, more = divmod(len(names), columns)
    ends = [0]
    for place in range(columns):
        ends.append(ends[-1] + least + (place < more))
    letters = [max(map(len, names[a:b]), default=0) for a, b in pairwise(ends)]
    return sum(letters) * 0.58 * size + columns * (1.8 + 0.8 + 1.4) * size


# Pages, and their figures


BLUE, ORANGE, GREEN, GREY, INK = "#0072B2", "#D55E00", "#009E73", "#E2E2E2", "#222222"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
STYLES = ("-", "--", "-.", ":")
_MARKS = ("o", "s", "^", "D", "v", "P")
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
    """Return a figure with its caption, in a form for wide pages and one for telephones; it is changed.

    `alt` says what it shows, the finding first; `kind` is a class of the style, which sets the width.
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
        if kind == "svg":  # whose text is drawn by the reader's fonts, which have what ours lacks
            with catch_warnings():
                filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
                figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        else:
            figure.savefig(buffer, format="png", dpi=200, metadata={"Software": None})
    return buffer.getvalue()


def line_style(number: int, *, marked: bool = False) -> dict[str, Any]:
    """Return colour and dashes, and maybe the mark, of one of several lines: each is another for a while."""
    style = {
        "color": COLOURS[number % len(COLOURS)],
        "ls": STYLES[number // len(COLOURS) % len(STYLES)],
    }
    return style | {"marker": _MARKS[number % len(_MARKS)]} if marked else style


@contextmanager
def drawing(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of `size` inches in the pages' style, and its axes."""
    with drawings(size, 1) as (figure, (axes,)):
        yield figure, axes


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


# Axes of days since 1970-01-01, labelled as dates


_YEARS = (-719_162.0, 2_932_896.0)  # days of the years 1 to 9999, which calendars have


def on_dates(axes: Axes, most: int = 9, axis: Axis | None = None) -> None:
    """Label an axis, whose numbers are days, as dates; as it is where the calendar has none.

    It is the horizontal one where none of the `axes` is named, and has room for so many labels at `most`.
    """
    axis = axes.xaxis if axis is None else axis
    label = axis.label.get_text().replace(", in the data's units", "")
    axis.label.set_text(label)
    low, high = sorted(axis.get_view_interval())
    if low < _YEARS[0] or high > _YEARS[1]:
        axis.label.set_text(f"{label}, in days since 1970-01-01")
        return
    # where it must find three it finds none for two to three years with room for five
    locator: Any = AutoDateLocator(minticks=2, maxticks=most)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def whole_dates(axis: Axis) -> None:
    """Label an axis of days with a few dates, each in full: of small figures, where nothing stands beside."""
    axis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
    axis.set_major_formatter(FuncFormatter(lambda value, place: day_text(value)))
