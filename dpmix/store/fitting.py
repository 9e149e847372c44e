"""Pictures that fit their width: tick labels and legends that nothing clips, and a form for telephones."""

from __future__ import annotations

from itertools import pairwise
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, FuncFormatter, MaxNLocator, ScalarFormatter

__all__ = ["NARROW", "fitted", "narrowed", "plain_number", "wide_enough"]

NARROW = 4.1
"""Width of the form for telephones, in inches."""
_POINTS = 72.0
_LETTER = 0.64  # width of a figure as a share of the size of the letters, in DejaVu Sans
_BETWEEN = 14.0  # points between neighbouring tick labels
_MOST_TICKS = 9
_WRAP = 36  # letters of a line below axes of the narrow form
_PANEL = 2.5  # inches, height of one of several panels below each other


def plain_number(value: float, place: object = None) -> str:
    """Write a number at an axis: -200000 as −200,000, small ones with an exponent."""
    large = 1e4 <= abs(value) < 1e15
    text = f"{value:,.15g}" if large and float(value).is_integer() else f"{value:.10g}"
    return text.replace("-", "\N{MINUS SIGN}")


def fitted(figure: Figure) -> None:
    """Write numbers at axes as `plain_number` does, as many as have room, and legends in so many columns."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if type(axis.get_major_formatter()) is ScalarFormatter:
                axis.set_major_formatter(FuncFormatter(plain_number))
        _thin(figure, axes)
    for legend in list(figure.legends):
        _relaid(figure, legend)


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
        label = axes.xaxis.label
        label.set_text(fill(label.get_text(), _WRAP))
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
    width = 0.85 * _POINTS * figure.get_figwidth() / columns
    longest = max(map(len, _labels(axis)), default=1)
    room = int(width / (longest * _LETTER * _points(axis) + _BETWEEN))
    locator.set_params(nbins=max(2, min(room, _MOST_TICKS)))


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
