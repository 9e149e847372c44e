"""Histogram releases as log-likelihoods of the numbers of records in their bins, in all groups."""

from __future__ import annotations

import numpy as np

from dpmix.equal_cells import cell_of
from dpmix.laws import expect
from dpmix.laws.perturbed_histogram import PerturbedHistogramLaw
from dpmix.laws.smoothed_histogram import SmoothedHistogramLaw
from dpmix.models.cell_counts import NOISES, NoisyCounts, SmoothedDraws, released
from dpmix.release import Release

__all__ = ["group_names", "histogram_likelihood"]


def group_names(release: Release) -> tuple[str, ...]:
    """Return the public names of the groups of a release; empty where it is of none."""
    return release.mechanism.group_names


def histogram_likelihood(release: Release) -> NoisyCounts | SmoothedDraws:
    """Return the log-likelihoods of the counts of a perturbed or smoothed histogram.

    With m bins in each of G groups there are G m cells, that of bin j in group g being g m + j.
    """
    law, values = release.mechanism, release.values
    if isinstance(law, PerturbedHistogramLaw):
        return NoisyCounts(np.ascontiguousarray(values[:, 0]), NOISES[law.noise], law.scale[0])
    law = expect(law, SmoothedHistogramLaw)
    bins, groups = law.bins, max(1, len(law.group_names))
    cells = cell_of(values[:, 0], law.edges())
    if law.groups:
        cells = values[:, 1].astype(np.int64) * bins + cells
    slope = (1.0 - law.weight) * groups * bins / release.n
    return SmoothedDraws(released(cells, groups * bins), slope, law.weight)
