"""What can be drawn of a release behind a density: only what is on the data's scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.release.tallies import Counts
    from dpmix.summary.summary_result import Summary

__all__ = ["plain"]


# Names from files as they may stand in pictures.

_LETTERS = 32


def plain(name: str, letters: int = _LETTERS) -> str:
    """Shorten a name, and keep matplotlib from reading mathematics in it."""
    short = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return short.replace("$", r"\$")


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
    else:
        edges = np.linspace(grid[0], grid[-1], _BINS + 1)
        if law.step > edges[1] - edges[0]:  # few possible values: a bin for each
            low = values.min() - 0.5 * law.step
            edges = low + law.step * np.arange(round(np.ptp(values) / law.step) + 2)
    heights = np.histogram(values, edges)[0] / (values.size * np.diff(edges))
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
