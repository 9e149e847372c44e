"""What can be drawn of a release behind a density: only what is on the data's scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmix.summary.families.base import Floats
from dpmix.summary.result import Summary

_NOISY = (
    "The histogram shows the released values, which carry the mechanism's noise: the posterior mean "
    "is what is left once that noise is accounted for."
)
_BINS = 40


@dataclass(frozen=True)
class Shown:
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

    For the binomial mechanism it is the unbiased estimate lo + width (1/2 + (z / M - 1/2) / w).
    """
    mechanism, released = summary.provenance.mechanism, summary.released
    kind = mechanism.get("kind")
    if kind in ("laplace", "gaussian", "none", "smoothed_histogram"):
        table = released.reshape(released.shape[0], -1)
        place = list(summary.densities).index(column)
        if summary.densities[column].group:  # the second column has the codes of the groups
            return np.asarray(table[table[:, 1] == place, 0])
        return np.asarray(table[:, place])
    if kind == "binomial" and {"trials", "weight"} <= set(mechanism) and _domain(mechanism) is not None:
        low, high = _domain(mechanism) or (0.0, 1.0)
        share = released.ravel() / float(mechanism["trials"])
        return np.asarray(low + (high - low) * (0.5 + (share - 0.5) / float(mechanism["weight"])))
    return None


def shown(summary: Summary, column: str) -> Shown | None:
    """Return what to draw behind the density of a column, None for a release that is not on its scale."""
    mechanism, grid = summary.provenance.mechanism, summary.densities[column].grid
    kind = mechanism.get("kind")
    if kind == "perturbed_histogram":
        return _counts(summary, column)
    values = values_of(summary, column)
    if values is None or values.size == 0:
        return None
    inside = np.count_nonzero((values >= grid[0]) & (values <= grid[-1]))
    domain = _domain(mechanism)
    if kind == "smoothed_histogram" and domain is not None and "bins" in mechanism:
        edges = np.linspace(*domain, int(mechanism["bins"]) + 1)
    else:
        edges = np.linspace(grid[0], grid[-1], _BINS + 1)
        step = _step(mechanism)
        if step > edges[1] - edges[0]:  # few possible values: a bin for each
            low = values.min() - 0.5 * step
            edges = low + step * np.arange(round(np.ptp(values) / step) + 2)
    heights = np.histogram(values, edges)[0] / (values.size * np.diff(edges))
    outside = 1.0 - inside / values.size
    if kind == "none":
        return Shown(edges, heights, "data", "The histogram shows the data.", "data", outside)
    if kind == "smoothed_histogram":
        sentence = (
            "The histogram shows the released draws, which are from a smoothed histogram of the records."
        )
        return Shown(edges, heights, "released draws", sentence, "released draws", outside)
    if kind == "binomial":
        sentence = (
            "The histogram shows the released numbers of successes, each turned into an estimate of its "
            "record that is right on average; these carry the mechanism's noise."
        )
        return Shown(edges, heights, "released values, rescaled", sentence, "rescaled values", outside)
    return Shown(edges, heights, "released values, noise included", _NOISY, "released values", outside)


def _step(mechanism: Mapping[str, Any]) -> float:
    """Distance between the values that a release of numbers of successes can have; 0 for other kinds."""
    domain = _domain(mechanism)
    if mechanism.get("kind") != "binomial" or domain is None:
        return 0.0
    return (domain[1] - domain[0]) / (float(mechanism["trials"]) * float(mechanism["weight"]))


def _counts(summary: Summary, column: str) -> Shown | None:
    domain, counts = _domain(summary.provenance.mechanism), summary.released.ravel()
    records, over = float(summary.n), f"over the {summary.n:,} records"
    if summary.densities[column].group:
        table = counts.reshape(len(summary.densities), -1)
        counts = table[list(summary.densities).index(column)]
        records, over = max(float(counts.sum()), 1.0), "over their sum, for the group's size is not released"
    if domain is None or counts.size == 0 or summary.n <= 0:
        return None
    edges = np.linspace(*domain, counts.size + 1)
    heights = np.maximum(counts, 0.0) / (records * np.diff(edges))
    below = int((counts < 0).sum())
    sentence = f"The steps show the released counts, with their noise, {over}"
    if below:
        sentence += f"; {below} below zero {'is' if below == 1 else 'are'} drawn as zero"
    return Shown(edges, heights, "released counts, noise included", sentence + ".")


def _domain(mechanism: Mapping[str, Any]) -> tuple[float, float] | None:
    domain = mechanism.get("domain")
    if domain is None:
        return None
    pair = np.asarray(domain, dtype=np.float64).reshape(-1, 2)[0]
    return float(pair[0]), float(pair[1])
