"""From the spec of a mixture and a release to its counts: in public cells, or in the bins of a histogram."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.observation import Observation, pairs_of
from dpmix.errors import DataError, SpecError
from dpmix.kernels.learned_base import LearnedBase
from dpmix.mechanisms.channels.all_channels import NoNoise
from dpmix.mechanisms.laws.every import expect
from dpmix.mechanisms.laws.histogram import HistogramLaw
from dpmix.models.counts.cell_counts import histogram_likelihood
from dpmix.models.counts_mixture.model import CountsMixture
from dpmix.models.counts_mixture.source import HistogramCounts
from dpmix.numerics.mixing import PitmanYor
from dpmix.release.cells import Counts, count_outputs, default_width, edges_of, tally
from dpmix.release.sanitized import Release
from dpmix.release.tallies import wide_grid
from dpmix.spec import BetaMixture, RunSpec

__all__ = ["check_tally", "count_release", "counts_of", "observe_bins"]


def observe_bins(release: Release) -> Observation | None:
    """Return what counts take of a histogram, whatever the number of records; None for other releases."""
    law = release.mechanism
    if law.released != "histogram":
        return None
    column = np.ascontiguousarray(release.values[:, 0], dtype=np.float64)
    return Observation(np.empty(0), NoNoise(), column, ("released",), expect(law, HistogramLaw).noise_scale)


def counts_of(
    spec: RunSpec,
    release: Release,
    seen: Observation,
    kernel: Any,
    mixing: PitmanYor,
    column: int,
    learned: LearnedBase | None = None,
) -> CountsMixture:
    """Return the model of ``sampler.kind: counts``.

    Raises
    ------
    SpecError, DataError
        As `count_release`.
    """
    counts: Counts | HistogramCounts
    if release.mechanism.released == "histogram":
        edges = release.mechanism.edges()
        counts = HistogramCounts(histogram_likelihood(release), release.n, edges)
    else:
        counts = count_release(spec, release, seen, column)
    return CountsMixture(counts, seen.channel, kernel, mixing, learned)


def count_release(spec: RunSpec, release: Release, seen: Observation, column: int) -> Counts:
    """Count a column of a release in the cells that the spec's width and the public quantities make.

    A tally is counted already.

    Raises
    ------
    SpecError
        When the width makes no cells, or too many, or is another than a tally's; when the public bounds are
        missing.
    DataError
        When values are missing or not finite, or no outputs.
    """
    if release.tally is not None:
        _check_width(spec, release, release.tally)
        return release.tally
    law, outputs = release.mechanism, release.mechanism.outputs
    values = np.ascontiguousarray(seen.observed, dtype=np.float64).ravel()
    try:
        if outputs is not None:
            return count_outputs(values, outputs)
        edges = _edges(spec, release, seen, column)
        return tally(values, edges, float(edges[1] - edges[0]))
    except ValueError as error:
        raise DataError(f"the release by {law.kind} cannot be counted: {error}") from None


def _edges(spec: RunSpec, release: Release, seen: Observation, column: int) -> NDArray[np.float64]:
    pairs = pairs_of(spec, release)
    if column >= len(pairs):
        raise SpecError("mechanism.domain: missing; this release and kernel need the public bounds")
    lo, hi = pairs[column]
    scale = 0.0 if math.isnan(float(seen.noise_scale)) else float(seen.noise_scale)
    asked = spec.sampler.width
    width = default_width(release.kind, scale, lo, hi) if asked == "auto" else float(asked)
    bounded = isinstance(spec.model, BetaMixture)
    try:
        return edges_of(release.kind, scale, lo, hi, width, bounded=bounded)
    except ValueError as error:
        raise SpecError(f"sampler.width: {error}; give a larger one, or leave it out") from None


def check_tally(spec: RunSpec, release: Release) -> None:
    """Refuse what a tally does not tell.

    Raises
    ------
    SpecError
        For another sampler than counts, and a base measure that is made of released values.
    """
    if release.tally is None:
        return
    if spec.sampler.kind != "counts":
        raise SpecError(
            f"sampler.kind: {spec.sampler.kind} moves record by record, and a tally holds counts alone; use "
            "counts, or leave it out"
        )
    if getattr(getattr(spec.model, "base", None), "empirical", False):
        raise SpecError(
            "model.base.empirical: is made of released values, and a tally holds counts alone; leave out "
            "model.base, or give its numbers"
        )


def _check_width(spec: RunSpec, release: Release, counted: Counts) -> None:
    """Refuse another width than the tally's."""
    asked = spec.sampler.width
    if asked == "auto":
        return
    edges, width = wide_grid(release.mechanism, asked)
    if not np.array_equal(edges, counted.edges):
        raise SpecError(
            f"sampler.width: {asked:g} makes cells of width {width:.6g}, and the tally's have "
            f"{counted.width:.6g}; leave it out, or tally the release again"
        )
