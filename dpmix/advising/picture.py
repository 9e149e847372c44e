"""The picture of advice: a quantity against epsilon, a panel for each number of records."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from dpmix.advising.advice import Advice
from dpmix.advising.asked import BAND
from dpmix.release.column_units import labelled
from dpmix.results.as_html import to_page
from dpmix.store.atomic import write_bytes
from dpmix.store.html import COLOURS, INK, STYLES, captioned, drawings, picture

__all__ = ["SUFFIXES", "draw", "write"]

SUFFIXES = (".html", ".htm", ".svg", ".png")
_MARKS = ("o", "s", "^", "D", "v", "P")
_PANELS = 4
_MOST_SAID = 6


def draw(advice: Advice) -> Figure:
    """Return the figure: logarithmic axes, a line a mechanism, a dashed line at what is wanted."""
    sizes = sorted({row.n for row in advice.rows})
    if len(sizes) > _PANELS:
        sizes = [sizes[round(i * (len(sizes) - 1) / (_PANELS - 1))] for i in range(_PANELS)]
    kinds = list(dict.fromkeys(row.mechanism for row in advice.rows))
    name = advice.quantity
    values = [row.expected(name) for row in advice.rows if row.n in sizes]
    wanted = advice.target.get(name)
    every = [*values, *([] if wanted is None else [wanted])]
    with drawings((max(4.4, 2.5 * len(sizes) + 0.6), 3.3), len(sizes)) as (figure, panels):
        handles = []
        for axes, n in zip(panels, sizes, strict=True):
            lines = []
            for place, kind in enumerate(kinds):
                own = sorted(
                    (row for row in advice.rows if row.mechanism == kind and row.n == n),
                    key=lambda row: row.epsilon,
                )
                (line,) = axes.plot(
                    [row.epsilon for row in own],
                    [row.expected(name) for row in own],
                    color=COLOURS[place % len(COLOURS)],
                    ls=STYLES[place // len(COLOURS) % len(STYLES)],
                    marker=_MARKS[place % len(_MARKS)],
                    markersize=4.5,
                    lw=1.4,
                    label=kind,
                )
                lines.append(line)
            if wanted is not None:
                axes.axhline(wanted, color=INK, ls="--", lw=0.9)
                axes.annotate(
                    "wanted",
                    (0.02, wanted),
                    (0, 3),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    fontsize=8,
                )
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            ticks = sorted({row.epsilon for row in advice.rows})
            axes.set_xticks(ticks if len(ticks) <= 6 else ticks[:: len(ticks) // 5], minor=False)
            axes.set_xticklabels([f"{tick:g}" for tick in axes.get_xticks()])
            axes.minorticks_off()
            axes.set_ylim(0.8 * min(every), 1.25 * max(every))
            axes.set(xlabel="epsilon", title=f"n = {n:,}")
            if axes is not panels[0]:
                axes.tick_params(labelleft=False)
            handles = lines
        what = "width of the bands" if name == BAND else labelled(f"posterior sd of {name}", advice.unit)
        panels[0].set_ylabel(what)
        figure.legend(handles=handles, loc="outside upper left", ncols=min(3, len(kinds)), handlelength=2.4)
    return figure


def write(advice: Advice, path: Path, *, force: bool) -> None:
    """Write the picture, or a page with it and the table, as the name of the file says.

    Raises
    ------
    DataError
        When it cannot be written.
    """
    figure, kind = draw(advice), path.suffix.lower().lstrip(".")
    if kind in ("svg", "png"):
        write_bytes(path, picture(figure, kind), force=force)
        return
    name = advice.quantity
    what = "integrated width of the density's bands" if name == BAND else f"posterior sd of {name}"
    words = f"Expected {what} against epsilon, for {advice.population}."
    page = to_page(advice.tree, {"advice": [captioned(figure, f"{words} {_finding(advice)}", words)]})
    write_bytes(path, page.encode("utf-8"), force=force)


def _finding(advice: Advice) -> str:
    """Say which mechanism tells most, for each epsilon and number of records that is drawn."""
    least = [row for row in advice.rows if row.best]
    return " ".join(
        f"Least at epsilon = {row.epsilon:g}, n = {row.n:,}: {row.mechanism}, "
        f"{row.expected(advice.quantity):.3g}{f' {advice.unit}' if advice.unit else ''}."
        for row in least[:_MOST_SAID]
    )
