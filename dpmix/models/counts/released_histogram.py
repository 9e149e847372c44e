"""What a released histogram says of the numbers of records in its bins, in all groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmix.laws.every import expect
from dpmix.mechanisms.perturbed_histogram.law import PerturbedHistogramLaw
from dpmix.mechanisms.smoothed_histogram.law import SmoothedHistogramLaw
from dpmix.models.counts.cell_counts import NOISES, CountsWithNoise, SmoothedDraws, released
from dpmix.numerics.equal_cells import cell_of

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release


def histogram_likelihood(release: Release) -> CountsWithNoise | SmoothedDraws:
    """Return the log-likelihoods of the counts of a perturbed or smoothed histogram.

    With m bins in each of G groups there are G m cells, that of bin j in group g being g m + j.
    """
    law, values = release.mechanism, release.values
    if law.counts_bins:
        law = expect(law, PerturbedHistogramLaw)
        return CountsWithNoise(np.ascontiguousarray(values[:, 0]), NOISES[law.noise], law.scale[0])
    law = expect(law, SmoothedHistogramLaw)
    bins, groups = law.bins, max(1, len(law.group_names))
    cells = cell_of(values[:, 0], law.edges())
    if law.groups:
        cells = values[:, 1].astype(np.int64) * bins + cells
    slope = (1.0 - law.weight) * groups * bins / release.n
    return SmoothedDraws(released(cells, groups * bins), slope, law.weight)
