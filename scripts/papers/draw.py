"""What the figures share: panels in one style, densities with bands, and tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from papers import truth

__all__ = [
    "COLOURS",
    "INK",
    "band",
    "curve",
    "legend",
    "panels",
    "release_steps",
    "replicates",
    "save_table",
    "true_line",
]

INK, GREY = "#222222", "#DDDDDD"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
_STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9.0,
    "axes.labelsize": 8.5,
    "axes.edgecolor": "#777777",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "legend.frameon": False,
    "legend.fontsize": 8.0,
}


@contextmanager
def panels(
    path: Path, rows: int, columns: int, title: str, cell: tuple[float, float] = (2.3, 1.8), **options: Any
) -> Iterator[tuple[Figure, NDArray[np.object_]]]:
    """Give a figure and its axes, shape (rows, columns), and write it as PNG afterwards."""
    with rc_context(_STYLE):
        size = (max(cell[0] * columns, 6.4), cell[1] * rows + 0.75)
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots(rows, columns, squeeze=False, **options)
        figure.suptitle(title, fontsize=9.5, x=0.01, ha="left")
        yield figure, axes
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, metadata={"Software": None})


def legend(figure: Figure, axes: Axes, columns: int = 5) -> None:
    """Put one legend for all panels below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def curve(axes: Axes, result: Mapping[str, Any], label: str, number: int, name: str = "mean") -> None:
    """Draw one curve of a result's density, by default the posterior mean."""
    density = result["density"]
    colour, style = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
    axes.plot(density["grid"], density[name], color=colour, ls=style, lw=1.3, label=label)


def band(axes: Axes, result: Mapping[str, Any], number: int = 0, label: str = "95% band") -> None:
    """Draw the pointwise band of a result's density."""
    density = result["density"]
    axes.fill_between(
        density["grid"],
        density["lower"],
        density["upper"],
        color=COLOURS[number],
        alpha=0.22,
        lw=0,
        label=label,
    )


def true_line(axes: Axes, result: Mapping[str, Any], name: str, room: float | None = None) -> None:
    """Draw the true density; keep the height of the panel to `room` times its maximum where that is given."""
    x = np.array(result["density"]["grid"])
    y = truth.density(name, x)
    axes.plot(x, y, color=INK, lw=0.9, alpha=0.8, label="truth")
    if room is not None:
        axes.set_ylim(0.0, room * float(y.max()))
    else:
        axes.set_ylim(bottom=0.0)


def release_steps(axes: Axes, values: Sequence[float], label: str, bins: int = 20) -> None:
    """Draw the histogram of released values."""
    axes.hist(values, bins=bins, density=True, color=GREY, edgecolor="#BBBBBB", lw=0.4, label=label)


def save_table(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of one kind as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def density_rows(result: Mapping[str, Any], **where: Any) -> list[dict[str, Any]]:
    """Return one row a grid point: `where`, the density with its band, the prior and the baseline if any."""
    density = result["density"]
    names = [n for n in ("grid", "mean", "lower", "upper", "prior", "baseline") if n in density]
    return [
        {**where, **dict(zip(names, values, strict=True))}
        for values in zip(*(density[n] for n in names), strict=True)
    ]


def replicates(results: Mapping[str, dict[str, Any]], first: str) -> list[dict[str, Any]]:
    """Return what there is of all data sets of a cell, from the name of its first one, which ends in r0."""
    found = (results.get(f"{first[:-1]}{number}") for number in range(1000))
    return [result for result in found if result is not None]
