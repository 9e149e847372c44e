"""Estimates without a model beside the posterior of a mixture: which a release has, and where from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpmix.errors import DataError
from dpmix.kernels.layout import Floats
from dpmix.mechanisms.laws.additive import Additive
from dpmix.mechanisms.laws.law_base import Law, expect
from dpmix.release.tallies import Counts, count_outputs, tally
from dpmix.run.chains_reader import Chains, ChainSet
from dpmix.summary.dated import dated_of
from dpmix.summary.deconvolution import Noise, deconvolution_kde
from dpmix.summary.ems import CELLS, Ems, coarse_edges, estimate, grouped
from dpmix.summary.grids import public_bounds

if TYPE_CHECKING:
    from dpmix.results.nodes import Quantity
    from dpmix.spec.summary_section import SummarySpec

__all__ = ["Curves", "baseline_curves", "count_values", "ems_of", "smoothed_histogram"]


class Curves(NamedTuple):
    """Densities (points,) by the name of the baseline, in the order asked for; bandwidth of the kernel."""

    by_name: Mapping[str, Floats]
    bandwidth: float | None


def baseline_curves(
    chains: Chains, options: SummarySpec, quantities: Mapping[str, Quantity], grid: Floats
) -> Curves:
    """Return the baselines that are asked for, at a grid.

    Raises
    ------
    DataError
        When the release does not have one.
    """
    found: dict[str, Floats] = {}
    bandwidth = None
    for name in options.baselines:
        if name == "ems":
            ems = quantities[name]
            assert isinstance(ems, Ems)  # `ems_of` has made it
            found[name] = ems.density(grid)
        else:
            found[name], bandwidth = _kernel_estimate(chains, grid)
    return Curves(found, bandwidth)


def ems_of(chains: ChainSet, options: SummarySpec) -> Ems | None:
    """Return the estimate by EM with smoothing from the release of a fit, where it is asked for.

    Values are counted first, so that its cost does not grow with their number.

    Raises
    ------
    DataError
        When a record does not release one number whose law is known, or public bounds are missing.
    """
    if "ems" not in options.baselines:
        return None
    law = chains.mechanism
    if not isinstance(chains, Chains) or not law.transitional:
        raise DataError(
            f"summary.baseline: ems needs one number a record of which the law is known, and {law.made_by} "
            "does not release that; leave it out"
        )
    if chains.tally is None and chains.observed.ndim > 1 and chains.observed.shape[1] > 1:
        raise DataError(
            f"summary.baseline: ems is for one column, and these chains are of {chains.observed.shape[1]}"
        )
    bounds = public_bounds(chains, 0, 1)
    if bounds is None:
        raise DataError(
            "summary.baseline: ems needs the public bounds of the column, mechanism.domain, which these "
            "chains do not state; leave it out"
        )
    scale = 0.0
    if isinstance(law, Additive):
        scale = float(chains.constants["noise_scale"])
    if chains.tally is None:
        counts = count_values(law, chains.observed.ravel(), scale, *bounds)
    elif isinstance(law, Additive):
        counts = grouped(chains.tally, law.noise, scale, *bounds)
    else:
        counts = chains.tally
    found = smoothed_histogram(law, counts, scale, *bounds, options.levels)
    return replace(found, date=dated_of(chains).only)


def count_values(law: Law, values: Floats, scale: float, lo: float, hi: float) -> Counts:
    """Count released values (n,) in the law's outputs, or in cells no finer than is of use."""
    if law.outputs is not None:
        return count_outputs(values, law.outputs)
    edges = coarse_edges(expect(law, Additive).noise, scale, lo, hi)
    return tally(values, edges, float(edges[1] - edges[0]))


def smoothed_histogram(
    law: Law, counts: Counts, scale: float, lo: float, hi: float, levels: Sequence[float] = ()
) -> Ems:
    """Return the estimate by EM with smoothing from counts of what a law with a transition released.

    Parameters
    ----------
    law : Law
    counts : Counts
        In the law's outputs, or in cells of released values.
    scale : float
        Scale of the noise, in the units of the data.
    lo, hi : float
        Public bounds.
    levels : sequence of float
        Of the quantiles that are reported.
    """
    edges = np.linspace(lo, hi, CELLS + 1)
    (chosen,) = np.nonzero(counts.counts)
    transition = law.transition(edges, counts.edges, chosen, scale)
    assert transition is not None  # the caller has looked
    found = estimate(transition, counts.counts[chosen].astype(np.float64), CELLS)
    return Ems(edges, found.masses, found.steps, found.settled, levels)


def _kernel_estimate(chains: Chains, grid: Floats) -> tuple[Floats, float]:
    """Return the deconvolution estimate from the released values of the column that was fitted."""
    law = chains.mechanism
    if not isinstance(law, Additive):
        raise DataError(
            "summary.baseline: deconvolution_kde is for one column released by laplace, gaussian or none, "
            f"not for {law.kind}"
        )
    if chains.tally is not None:
        raise DataError(
            "summary.baseline: deconvolution_kde is made of released values, and these chains are of a "
            "tally, which holds counts alone; leave it out"
        )
    if chains.observed.ndim > 1 and chains.observed.shape[1] > 1:
        raise DataError(
            "summary.baseline: deconvolution_kde is for one column, and these chains are of "
            f"{chains.observed.shape[1]}"
        )
    scale = float(chains.constants["noise_scale"]) if law.protects else 0.0
    return deconvolution_kde(chains.observed, Noise(law.noise, scale), grid)
