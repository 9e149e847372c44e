"""What can be drawn of a release behind a density: only what is on the data's scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmix.mechanisms.binomial.law import BinomialLaw
from dpmix.mechanisms.perturbed_histogram.law import PerturbedHistogramLaw
from dpmix.mechanisms.smoothed_histogram.law import SmoothedHistogramLaw
from dpmix.mechanisms.square_wave.law import SquareWaveLaw
from dpmix.release.cells import Counts
from dpmix.summary.families.family import Floats
from dpmix.summary.summary_result import Summary

__all__ = ["plain"]


# Names from files as they may stand in pictures.

_LETTERS = 32


def plain(name: str, letters: int = _LETTERS) -> str:
    """Shorten a name, and keep matplotlib from reading mathematics in it."""
    short = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return short.replace("$", r"\$")


_NOISY = (
    "The histogram shows the released values, which carry the mechanism's noise: the posterior mean "
    "is what is left once that noise is accounted for."
)
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

    For the binomial mechanism it is the unbiased estimate of the record, for the square wave the middle of
    the cell that the output stands for.
    """
    law, released = summary.provenance.mechanism, summary.released
    if isinstance(law, BinomialLaw):
        return law.estimates(released.ravel())
    if isinstance(law, SquareWaveLaw):
        return law.places(released.ravel())
    if not law.on_data_scale:
        return None
    table = released.reshape(released.shape[0], -1)
    place = list(summary.densities).index(column)
    if summary.densities[column].group:  # the second column has the codes of the groups
        return np.asarray(table[table[:, 1] == place, 0])
    return np.asarray(table[:, place])


def shown(summary: Summary, column: str) -> DrawnSteps | None:
    """Return what to draw behind the density of a column, None for a release that is not on its scale."""
    law, grid = summary.provenance.mechanism, summary.densities[column].grid
    if isinstance(law, PerturbedHistogramLaw):
        return _counts(summary, column, law)
    if summary.tally is not None:
        return _tallied(summary, summary.tally, grid)
    values = values_of(summary, column)
    if values is None or values.size == 0:
        return None
    inside = np.count_nonzero((values >= grid[0]) & (values <= grid[-1]))
    step = law.step if isinstance(law, BinomialLaw) else 0.0
    if isinstance(law, SmoothedHistogramLaw):
        edges = np.linspace(*law.domain[0], law.bins + 1)
    else:
        edges = np.linspace(grid[0], grid[-1], _BINS + 1)
        if step > edges[1] - edges[0]:  # few possible values: a bin for each
            low = values.min() - 0.5 * step
            edges = low + step * np.arange(round(np.ptp(values) / step) + 2)
    heights = np.histogram(values, edges)[0] / (values.size * np.diff(edges))
    outside = 1.0 - inside / values.size
    if not law.protects:
        return DrawnSteps(edges, heights, "data", "The histogram shows the data.", "data", outside)
    if isinstance(law, SmoothedHistogramLaw):
        sentence = (
            "The histogram shows the released draws, which are from a smoothed histogram of the records."
        )
        return DrawnSteps(edges, heights, "released draws", sentence, "released draws", outside)
    if isinstance(law, SquareWaveLaw):
        sentence = (
            "The histogram shows the released outputs at the cells that they stand for, some beyond the "
            "bounds: they carry the mechanism's noise, which is even but for what is near a record."
        )
        return DrawnSteps(
            edges, heights, "released outputs, noise included", sentence, "released outputs", outside
        )
    if isinstance(law, BinomialLaw):
        sentence = (
            "The histogram shows the released numbers of successes, each turned into an estimate of its "
            "record that is right on average; these carry the mechanism's noise."
        )
        return DrawnSteps(edges, heights, "released values, rescaled", sentence, "rescaled values", outside)
    return DrawnSteps(edges, heights, "released values, noise included", _NOISY, "released values", outside)


def _tallied(summary: Summary, tally: Counts, grid: Floats) -> DrawnSteps:
    """Return the counts of a tally: neighbouring cells together, or the outputs turned into estimates."""
    law = summary.provenance.mechanism
    if isinstance(law, BinomialLaw):
        places, step = law.estimates(np.arange(len(tally.counts), dtype=np.float64)), law.step
        edges, counts = np.append(places, places[-1] + step) - 0.5 * step, tally.counts
        sentence = (
            "The steps show the released numbers of successes, each turned into an estimate of its record "
            "that is right on average; these carry the mechanism's noise."
        )
        return DrawnSteps(edges, counts / (tally.n * step), "released values, rescaled", sentence)
    inside = np.flatnonzero((tally.edges >= grid[0] - tally.width) & (tally.edges <= grid[-1] + tally.width))
    kept = inside[:: max(1, len(inside) // _BINS)]
    if len(kept) < 2:
        kept = np.array([0, len(tally.edges) - 1])
    edges = tally.edges[kept]
    below = np.cumsum(tally.counts)
    counts = np.diff(below[kept])
    outside = 1.0 - float(counts.sum()) / tally.n
    heights = counts / (tally.n * np.diff(edges))
    if not law.protects:
        return DrawnSteps(edges, heights, "data", "The histogram shows the data.", "", outside)
    return DrawnSteps(edges, heights, "released values, noise included", _NOISY, "", outside)


def _counts(summary: Summary, column: str, law: PerturbedHistogramLaw) -> DrawnSteps | None:
    counts = summary.released.ravel()
    records, over = float(summary.n), f"over the {summary.n:,} records"
    if summary.densities[column].group:
        table = counts.reshape(len(summary.densities), -1)
        counts = table[list(summary.densities).index(column)]
        records, over = max(float(counts.sum()), 1.0), "over their sum, for the group's size is not released"
    if counts.size == 0 or summary.n <= 0:
        return None
    edges = np.linspace(*law.domain[0], counts.size + 1)
    heights = np.maximum(counts, 0.0) / (records * np.diff(edges))
    below = int((counts < 0).sum())
    sentence = f"The steps show the released counts, with their noise, {over}"
    if below:
        sentence += f"; {below} below zero {'is' if below == 1 else 'are'} drawn as zero"
    return DrawnSteps(edges, heights, "released counts, noise included", sentence + ".")
