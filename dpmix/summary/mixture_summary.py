"""From the chains of a mixture to a summary."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.baselines import baseline_curves
from dpmix.summary.chains_account import acceptance_of, ess_per_second, provenance_of
from dpmix.summary.clustering import cluster
from dpmix.summary.dated import dated_of
from dpmix.summary.density import posterior_density
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.family_of_fit import columns_of, family_of
from dpmix.summary.grids import choose_grids, public_bounds
from dpmix.summary.prior import held_up, mixture_prior, prior_of, sds_with_floor
from dpmix.summary.quantities import Beyond, CellShares
from dpmix.summary.quantity_registry import Basis, reported
from dpmix.summary.remarks import (
    convergence_remarks,
    floor_remarks,
    learning_remarks,
    prior_remarks,
    release_remarks,
)
from dpmix.summary.row_labels import shown_name
from dpmix.summary.summary_result import ClusterCounts, Summary
from dpmix.summary.variance import mixture_shares
from dpmix.summary.wanted import wanted_of

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import Chains
    from dpmix.spec.summary_section import SummarySpec


def summarize_chains(
    chains: Chains, options: SummarySpec, *, truth: NDArray[np.int64] | None = None
) -> Summary:
    """Compute everything that is reported of a mixture's posterior (methods, section 4, "Reported").

    Parameters
    ----------
    chains : Chains
        What `dpmix.run.chains_reader.read_chains` gives.
    options : SummarySpec
        Grid, level, loss of the partition, and whether to set a baseline beside the posterior.
    truth : int64 array (n,), optional
        True labels of the records, where the data are simulated.

    Raises
    ------
    DataError
        When the chains hold bad components or give no grid; when a baseline is asked for that this release
        does not have.
    SpecError
        When quantities are asked for that the columns do not have.
    """
    source, dated = family_of(chains), dated_of(chains)
    columns = columns_of(chains, source)
    wanted = wanted_of(chains, columns, options)
    grids = choose_grids(chains, options.grids())
    posterior = posterior_density(chains, grids, options.level, wanted)
    prior = mixture_prior(chains, source, grids, wanted)
    densities = dict(posterior.densities)
    series = dict(posterior.series) | _series(chains)
    held = held_up(series, prior.series, sds_with_floor(columns), options.level)
    parameters = {
        name: replace(describe(values, options.level, prior.series.get(name)), held_up=name in held)
        for name, values in series.items()
    }
    labels = dated.points(parameters)
    shown = {shown_name(name, labels): scalar for name, scalar in parameters.items()}
    support, counts = np.unique(chains.n_clusters, return_counts=True)
    clustering = cluster(
        chains,
        options.clustering,
        options.level,
        chains.generator(0, -2),
        truth=truth,
        coclustering=options.coclustering,
    )
    seconds = float(chains.seconds.sum())
    acceptance = acceptance_of(chains)
    bounds = {
        column.name: dated.pair(column.name, public_bounds(chains, number, len(columns)))
        for number, column in enumerate(columns)
    }
    absurd = prior_remarks(prior.within_bounds, bounds)
    remarks = convergence_remarks(shown, acceptance, chains, absurd=bool(absurd)) + absurd
    remarks += learning_remarks(shown) + floor_remarks(shown)
    law = chains.mechanism
    beyond = Beyond(posterior.beyond, bounds, by_prior=law.protects and law.on_domain and not law.additive)
    cells = None
    if posterior.cells is not None:
        cells = CellShares(*({"": share} for share in posterior.cells))
    quantities, said = reported(
        Basis(
            chains,
            options,
            series,
            beyond,
            cells,
            lambda: mixture_shares(chains, source, grids, series, prior.series),
        )
    )
    remarks += said
    if options.baselines:
        curves = baseline_curves(chains, options, quantities, posterior.density.grid)
        densities[""] = replace(
            posterior.density, baselines=curves.by_name, baseline_bandwidth=curves.bandwidth
        )
    remarks += release_remarks(posterior.hellinger, posterior.hellinger_bias, chains)
    return Summary(
        parameters=parameters,
        densities=densities,
        hellinger=posterior.hellinger,
        n_clusters=ClusterCounts(support, counts / counts.sum()),
        clustering=clustering,
        acceptance=acceptance,
        seconds=seconds,
        ess_per_second=ess_per_second(parameters, seconds),
        remarks=tuple(remarks),
        level=float(options.level),
        series=series,
        chain_ids=chains.ids,
        released=chains.observed,
        tally=chains.tally,
        n=chains.n,
        joint=posterior.joint,
        band_draws=posterior.band_draws,
        provenance=provenance_of(chains),
        prior=prior_of(chains),
        quantities=quantities,
        dated=dated,
        labels=labels,
    )


def _series(chains: Chains) -> dict[str, Floats]:
    series = {"n_clusters": chains.n_clusters.astype(np.float64)}
    if isinstance((chains.spec.get("model") or {}).get("concentration"), dict):
        series["concentration"] = chains.concentration
    if np.isfinite(chains.log_likelihood).all():
        series["log_likelihood"] = chains.log_likelihood
    return series
