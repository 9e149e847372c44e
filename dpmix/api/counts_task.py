"""From the spec of a mixture and a release to its counts: in public cells, or in the bins of a histogram."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmix.api.observation import Observation, bounds_of
from dpmix.errors import DataError, SpecError
from dpmix.kernels.learned_base import LearnedBase
from dpmix.mechanisms.channels.every import NoNoise
from dpmix.mechanisms.laws.histogram import HistogramLaw
from dpmix.models.counts.cell_counts import histogram_likelihood
from dpmix.models.counts_mixture.grid import Counts, default_width, edges_of, tally
from dpmix.models.counts_mixture.histogram import HistogramCounts
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.sanitized import Release
from dpmix.spec import BetaMixture, RunSpec

__all__ = ["count_release", "counts_of", "observe_bins"]


def observe_bins(release: Release) -> Observation | None:
    """Return what counts take of a histogram, whatever the number of records; None for other releases."""
    law = release.mechanism
    if not isinstance(law, HistogramLaw):
        return None
    column = np.ascontiguousarray(release.values[:, 0], dtype=np.float64)
    return Observation(np.empty(0), NoNoise(), column, ("released",), law.noise_scale)


def counts_of(
    spec: RunSpec,
    release: Release,
    seen: Observation,
    kernel: Any,
    mixing: PitmanYor,
    learned: LearnedBase | None = None,
    column: int = 0,
) -> CountsMixture:
    """Return the model of ``sampler.kind: counts``.

    Raises
    ------
    SpecError, DataError
        As `count_release`.
    """
    counts: Counts | HistogramCounts
    if isinstance(release.mechanism, HistogramLaw):
        edges = release.mechanism.edges()
        counts = HistogramCounts(histogram_likelihood(release), release.n, edges)
    else:
        counts = count_release(spec, release, seen, column)
    return CountsMixture(counts, seen.channel, kernel, mixing, learned)


def count_release(spec: RunSpec, release: Release, seen: Observation, column: int = 0) -> Counts:
    """Count a column of a release in the cells that the spec's width and the public quantities make.

    Raises
    ------
    SpecError
        When the width makes no cells, or too many; when the public bounds are missing.
    DataError
        When values are missing or not finite, or no outputs.
    """
    lo, hi = bounds_of(spec, release, column)
    values = np.ascontiguousarray(seen.observed, dtype=np.float64).ravel()
    law = release.mechanism
    if law.finite_outputs:
        last = law.outputs - 1
        if not np.isin(values, np.arange(last + 1)).all():
            raise DataError(f"a released value is no output 0 .. {last} of {release.kind}")
        edges, width = np.arange(last) + 0.5, 0.0
    else:
        scale = 0.0 if math.isnan(float(seen.noise_scale)) else float(seen.noise_scale)
        asked = spec.sampler.width
        width = default_width(release.kind, scale, lo, hi) if asked == "auto" else float(asked)
        bounded = isinstance(spec.model, BetaMixture)
        try:
            edges = edges_of(release.kind, scale, lo, hi, width, bounded=bounded)
        except ValueError as error:
            raise SpecError(f"sampler.width: {error}; give a larger one, or leave it out") from None
        width = float(edges[1] - edges[0])
    try:
        return tally(values, np.asarray(edges, dtype=np.float64), width)
    except ValueError as error:
        raise DataError(f"the release cannot be counted: {error}") from None
