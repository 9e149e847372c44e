"""What the report draws of the release: behind a density, where it is on the data's scale; and its check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dpmix.columns.dated import NONE, Dated
from dpmix.laws.cell_laws import CellsLaw
from dpmix.store.html import BLUE, ORANGE, captioned, drawing, drawings, on_dates

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.kernels.layout import Floats
    from dpmix.summary.check.check_result import Check, Curve
    from dpmix.summary.summary_result import Summary


def plain(name: str, letters: int | None = 32) -> str:
    """Shorten a name from a file, unless to None, and keep matplotlib from reading mathematics in it.

    It is cut in its middle: entries of a release, and columns with their units, differ at their ends.
    """
    short = name
    if letters is not None and len(name) > letters:
        half = (letters - 1) // 2
        short = f"{name[: letters - 1 - half]}…{name[-half:]}"
    return short.replace("$", r"\$")


# Behind a density


_BINS = 40


@dataclass(frozen=True)
class DrawnSteps:
    """Steps behind a density.

    Parameters
    ----------
    edges, heights : float64 arrays (bins + 1,), (bins,)
        In the data's units; heights are densities.
    label, sentence : str
        For the legend and the caption.
    values : str
        What the values are called; empty where there are none of single records.
    outside : float
        Share of the values outside of the steps.
    """

    edges: Floats
    heights: Floats
    label: str
    sentence: str
    values: str = ""
    outside: float = 0.0


def values_of(summary: Summary, column: str) -> Floats | None:
    """Return one number a released value on the data's scale, or None where the release has none.

    They are at the `places` of its law: for the binomial mechanism the unbiased estimate of the record, for
    the square wave the middle of the cell that the output stands for.
    """
    law, released = summary.provenance.mechanism, summary.released
    if not (law.on_data_scale or law.provides("places")):
        return None
    table = released.reshape(released.shape[0], -1)
    place = list(summary.densities).index(column)
    if summary.densities[column].group:  # the second column has the codes of the groups
        return law.places(table[table[:, 1] == place, 0], place)
    return law.places(table[:, place], place)


def shown(summary: Summary, column: str) -> DrawnSteps | None:
    """Return what to draw behind the density of a column, None for a release that is not on its scale."""
    law, grid = summary.provenance.mechanism, summary.densities[column].grid
    if law.counts_bins:
        return _counts(summary, column)
    if summary.tally is not None:
        return _tallied(summary, summary.tally, grid)
    values = values_of(summary, column)
    if values is None or values.size == 0:
        return None
    inside = np.count_nonzero((values >= grid[0]) & (values <= grid[-1]))
    if law.released == "histogram":
        edges = law.edges()
        drawn = law.cell_edges() if isinstance(law, CellsLaw) else edges  # of which draws are
        counts = np.histogram(values, drawn)[0]
    else:
        edges = np.linspace(grid[0], grid[-1], _BINS + 1)
        if law.step > edges[1] - edges[0]:  # few possible values: a bin for each
            low = values.min() - 0.5 * law.step
            edges = low + law.step * np.arange(round(np.ptp(values) / law.step) + 2)
        counts = np.histogram(values, edges)[0]
    heights = counts / (values.size * np.diff(edges))
    outside = 1.0 - inside / values.size
    label, what, name = law.pictured
    return DrawnSteps(edges, heights, label, f"The histogram shows {what}.", name, outside)


def _tallied(summary: Summary, tally: Counts, grid: Floats) -> DrawnSteps:
    """Return the counts of a tally: neighbouring cells together, or of outputs where these stand."""
    law = summary.provenance.mechanism
    label, what, _ = law.pictured
    if law.provides("places"):
        places = law.places(np.arange(len(tally.counts), dtype=np.float64))
        edges, counts = np.append(places, places[-1] + law.step) - 0.5 * law.step, tally.counts
        return DrawnSteps(edges, counts / (tally.n * law.step), label, f"The steps show {what}.")
    inside = np.flatnonzero((tally.edges >= grid[0] - tally.width) & (tally.edges <= grid[-1] + tally.width))
    kept = inside[:: max(1, len(inside) // _BINS)]
    if len(kept) < 2:
        kept = np.array([0, len(tally.edges) - 1])
    edges = tally.edges[kept]
    below = np.cumsum(tally.counts)
    counts = np.diff(below[kept])
    outside = 1.0 - float(counts.sum()) / tally.n
    heights = counts / (tally.n * np.diff(edges))
    return DrawnSteps(edges, heights, label, f"The histogram shows {what}.", "", outside)


def _counts(summary: Summary, column: str) -> DrawnSteps | None:
    counts = summary.released.ravel()
    records, over = float(summary.n), f"over the {summary.n:,} records"
    if summary.densities[column].group:
        table = counts.reshape(len(summary.densities), -1)
        counts = table[list(summary.densities).index(column)]
        records, over = max(float(counts.sum()), 1.0), "over their sum, for the group's size is not released"
    if counts.size == 0 or summary.n <= 0:
        return None
    law = summary.provenance.mechanism
    edges = law.edges()
    heights = np.maximum(counts, 0.0) / (records * np.diff(edges))
    below = int((counts < 0).sum())
    sentence = f"The steps show {law.pictured.shown}, {over}"
    if below:
        sentence += f"; {below} below zero {'is' if below == 1 else 'are'} drawn as zero"
    return DrawnSteps(edges, heights, law.pictured.label, sentence + ".")


# The release check: distribution functions over their bands, entries over their intervals


_MOST = 30
_FARTHEST = 8.0  # in standard deviations, where points are drawn at most


def check_pictures(check: Check, dated: Dated = NONE) -> list[str]:
    """Return the pictures of a check; none where there is none; `dated` of which columns are dates."""
    if check.overall is None:
        return []
    parts = []
    for name, curve in check.curves.items():
        about = f" of {name}" if name else ""
        caption = (
            f"Left, the distribution function{about} of the released values (orange) over the 95% pointwise "
            f"band of {check.replicates} releases drawn anew from the fit: records from posterior draws, "
            "then the mechanism with its noise. Right, the same less the replicates' mean. p = "
            f"{check.p_of_curves[name]:.2g} for the whole function."
        )
        alt = (
            f"Release check, p = {check.p_of_curves[name]:.2g}: distribution function{about} of the release "
            "over the band of its replicates"
        )
        parts.append(captioned(curve_figure(curve, name, date=dated.is_curve(name)), alt, caption))
    if check.entries:
        alt = f"Release check, p = {check.overall:.2g}: entries of the release over their replicates"
        parts.append(captioned(entries_figure(check), alt, _caption(check)))
    return parts


def _caption(check: Check) -> str:
    text = (
        f"Each figure of the release (orange) in standard deviations from the mean of {check.replicates} "
        f"replicates, whose 95% intervals are the bars. p = {check.overall:.2g} for all together; small "
        "values say that the model, prior included, does not describe these records, large ones that nothing "
        f"is seen. {check.visible}"
    )
    if any(abs(entry.scaled(entry.observed)) > _FARTHEST for entry in check.entries):
        text += f" Triangles at the rim are figures farther out than {_FARTHEST:g}."
    if len(check.entries) > _MOST:
        text += f" Shown are the {_MOST} of {len(check.entries)} entries that are farthest out."
    return text


def curve_figure(curve: Curve, name: str, *, date: bool = False) -> Figure:
    """Draw a distribution function over its band, and the difference from the replicates' mean."""
    with drawings((7.2, 3.1), 2) as (figure, (left, right)):
        label = "95% band of replicates"
        band = left.fill_between(
            curve.grid, curve.lower, curve.upper, color=BLUE, alpha=0.35, lw=0.6, label=label
        )
        (line,) = left.plot(curve.grid, curve.observed, color=ORANGE, lw=1.3, label="release")
        middle = curve.mean
        right.axhline(0.0, color="#777777", lw=0.7)
        right.fill_between(
            curve.grid, curve.lower - middle, curve.upper - middle, color=BLUE, alpha=0.35, lw=0
        )
        right.plot(curve.grid, curve.observed - middle, color=ORANGE, lw=1.3)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.set_xlabel(f"{plain(name)}, released" if name else "released value")
            if date:
                on_dates(axes, most=5)
        left.set(ylim=(-0.02, 1.02), ylabel="share of values up to here")
        right.set_ylabel("less the replicates' mean")
        figure.legend(handles=[line, band], loc="outside upper left", ncols=2)
    return figure


def entries_figure(check: Check) -> Figure:
    """Draw entries in standard deviations from the replicates' mean, over their intervals."""
    scaled = np.array(
        [
            [entry.scaled(value) for value in (entry.observed, entry.lower, entry.upper)]
            for entry in check.entries
        ]
    )
    order = np.argsort(-np.abs(scaled[:, 0]), kind="stable")[:_MOST]
    chosen = np.sort(order)
    with drawing((7.2, 1.0 + 0.24 * chosen.size)) as (figure, axes):
        rows = np.arange(chosen.size)
        at, low, high = scaled[chosen].T
        bars = axes.hlines(
            rows, low, high, color=BLUE, alpha=0.45, lw=6.0, label="95% interval of replicates"
        )
        axes.axvline(0.0, color="#777777", lw=0.7)
        far = np.abs(at) > _FARTHEST
        points = axes.plot(np.clip(at[~far], -_FARTHEST, _FARTHEST), rows[~far], "o", color=ORANGE, ms=5.0)
        for side, marker in ((-1.0, "<"), (1.0, ">")):
            beyond = far & (np.sign(at) == side)
            axes.plot(np.full(beyond.sum(), side * _FARTHEST), rows[beyond], marker, color=ORANGE, ms=7.0)
        points[0].set_label("release")
        axes.set_yticks(rows, [plain(check.entries[i].name, 44) for i in chosen])
        widest = max(4.0, float(np.minimum(np.abs(at), _FARTHEST).max()) + 0.5)
        axes.set(xlim=(-widest, widest), ylim=(chosen.size - 0.4, -0.6))
        axes.set_xlabel("standard deviations of the replicates from their mean")
        figure.legend(handles=[points[0], bars], loc="outside upper left", ncols=2)
    return figure
