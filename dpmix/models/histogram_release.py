"""Histogram releases as log-likelihoods of the numbers of records in their bins, in all groups."""

from __future__ import annotations

import numpy as np

from dpmix.equal_cells import cell_of
from dpmix.models.cell_counts import NOISES, NoisyCounts, SmoothedDraws, released
from dpmix.release import Release

__all__ = ["group_names", "histogram_likelihood"]


def group_names(release: Release) -> tuple[str, ...]:
    """Return the public names of the groups of a release; empty where it is of none."""
    return next(iter(release.groups.values()), ())


def histogram_likelihood(release: Release) -> NoisyCounts | SmoothedDraws:
    """Return the log-likelihoods of the counts of a perturbed or smoothed histogram.

    With m bins in each of G groups there are G m cells, that of bin j in group g being g m + j.
    """
    mechanism, values = release.mechanism, release.values
    if release.kind == "perturbed_histogram":
        noise, scale = NOISES[str(mechanism["noise"])], float(release.scales[0])
        return NoisyCounts(np.ascontiguousarray(values[:, 0]), noise, scale)
    bins, groups = int(mechanism["bins"]), max(1, len(group_names(release)))
    cells = cell_of(values[:, 0], release.mechanism.edges())
    if release.groups:
        cells = values[:, 1].astype(np.int64) * bins + cells
    weight = float(mechanism["weight"])
    slope = (1.0 - weight) * groups * bins / release.n
    return SmoothedDraws(released(cells, groups * bins), slope, weight)
