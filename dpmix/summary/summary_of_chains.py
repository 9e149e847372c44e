"""From chains to a summary: of a mixture, and of a parametric model."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.layout import Floats
from dpmix.models.meaning_base import GriddedDensity, dated_of, meaning_of
from dpmix.results.nodes import Quantity, Remark
from dpmix.run.chains_reader import Chains, ChainSet, NamedChains
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary.chains_account import acceptance_of, ess_per_second, provenance_of
from dpmix.summary.check.loo import loo_of
from dpmix.summary.check.release_check import check_release
from dpmix.summary.clustering import cluster
from dpmix.summary.clusters_by_value import clusters_by_value
from dpmix.summary.deconvolution import kernel_estimate
from dpmix.summary.density import Density, hellinger, posterior_density
from dpmix.summary.diagnostics import describe, shown_name
from dpmix.summary.ems import Ems, ems_of
from dpmix.summary.fitted_columns import choose_grids, columns_of, family_of, family_on_line, public_bounds
from dpmix.summary.information import information_kept
from dpmix.summary.prior import base_in_words, drawn_in, held_up, mixture_prior, sds_with_floor
from dpmix.summary.quantities import (
    Beyond,
    CellShares,
    Wanted,
    check_quantities,
    most_piled,
    wanted_of,
)
from dpmix.summary.remarks import (
    beyond_remarks,
    check_remarks,
    convergence_remarks,
    floor_remarks,
    hidden_remarks,
    information_remarks,
    learning_remarks,
    prior_remarks,
    release_remarks,
    rounded_remarks,
    within_remarks,
)
from dpmix.summary.row_labels import by_class, row_labels
from dpmix.summary.sensitivity import sensitivity_of, sensitivity_remarks
from dpmix.summary.shape import QUARTILES, ShapeContraction, shape_contraction
from dpmix.summary.summary_result import ClusterCounts, Distribution, Summary
from dpmix.summary.taken_shares import taken_remarks
from dpmix.summary.variance import VarianceShares, mixture_shares, parametric_shares
from dpmix.summary.within_cells import depends_within, gaps_within, looked_at

if TYPE_CHECKING:
    from dpmix.run.chains_file import Stored


# The quantities that summaries report beside parameters and curves: each has its own file, and a line here


class Basis(NamedTuple):
    """What quantities are made of.

    Parameters
    ----------
    chains : ChainSet
    options : SummarySpec
    series : mapping of str to float64 array (chains, draws)
        The draws of the scalars.
    beyond : Beyond
    cells : CellShares or None
        Of a histogram.
    shape : ShapeContraction or None
    variance_shares : callable
        Makes the shares of the posterior variance.
    """

    chains: ChainSet
    options: SummarySpec
    series: Mapping[str, Floats]
    beyond: Beyond
    cells: CellShares | None
    shape: ShapeContraction | None
    variance_shares: Callable[[], VarianceShares]


class Registered(NamedTuple):
    """How a quantity is made of a basis, or None where there is none, and its warnings.

    It has a method `section` with its data and words: text, JSON, HDF5 and HTML follow.
    """

    key: str
    of: Callable[[Basis], Quantity | None]
    remarks: Callable[[Any, ChainSet], list[Remark]] = lambda found, chains: []


QUANTITIES = (
    Registered("prior_sensitivity", lambda b: sensitivity_of(b.chains, b.series), sensitivity_remarks),
    Registered("beyond_bounds", lambda b: b.beyond if b.beyond.shares else None, beyond_remarks),
    Registered("cell_shares", lambda b: b.cells),  # the verdict warns of it, and of the next
    Registered("shape_contraction", lambda b: b.shape),
    Registered("check", lambda b: check_release(b.chains), check_remarks),
    Registered("ems", lambda b: ems_of(b.chains, b.options)),
    Registered("loo", lambda b: loo_of(b.chains) if b.options.loo else None),
    Registered(
        "information_kept",
        lambda b: information_kept(b.chains) if isinstance(b.chains, Chains) else None,
        information_remarks,
    ),
    Registered(
        "clusters_by_value",
        lambda b: (
            clusters_by_value(b.chains, b.options.level, coclustering=b.options.coclustering)
            if isinstance(b.chains, Chains)
            else None
        ),
    ),
    Registered("variance_shares", lambda b: b.variance_shares()),
)


def reported(basis: Basis) -> tuple[dict[str, Quantity], list[Remark]]:
    """Return all quantities that there are, by key, and their warnings."""
    found: dict[str, Quantity] = {}
    remarks: list[Remark] = []
    for row in QUANTITIES:
        quantity = row.of(basis)
        if quantity is not None:
            found[row.key] = quantity
            remarks += row.remarks(quantity, basis.chains)
    return found, remarks


# What is reported of every model


def _summary(
    chains: ChainSet,
    options: SummarySpec,
    series: dict[str, Floats],
    before: Mapping[str, Floats],
    *,
    absurd: list[Remark],
    held: Collection[str],
    told: list[Remark],
    beyond: Beyond,
    cells: CellShares | None,
    shape: ShapeContraction | None,
    variance_shares: Callable[[], VarianceShares],
    distance: tuple[float | None, float],
    last: Sequence[Remark] = (),
    **own: Any,
) -> Summary:
    """Compute what is reported of every model.

    Parameters
    ----------
    chains : ChainSet
    options : SummarySpec
    series, before : mapping of str to float64 array
        Draws of the scalars, (chains, draws), and of some of them from the prior.
    held : collection of str
        Scalars that the prior holds up.
    absurd, told, last : sequence of Remark
        Where the prior makes no sense; what else is said before and after what quantities say.
    beyond, cells, shape, variance_shares
        As `Basis` has them.
    distance : (float or None, float)
        Hellinger distance from the prior, and what Monte Carlo error adds to its square.
    own
        What the one kind of summary alone has, or has in a form of its own.
    """
    if np.isfinite(chains.log_likelihood).all():
        series["log_likelihood"] = chains.log_likelihood
    parameters = {
        name: replace(describe(values, options.level, before.get(name)), held_up=name in held)
        for name, values in series.items()
    }
    seconds, acceptance, dated = float(chains.seconds.sum()), acceptance_of(chains), dated_of(chains)
    labels = dated.points(parameters)
    if isinstance(chains, NamedChains):
        labels |= {name: label for name, label in row_labels(chains).items() if name in parameters}
        own["by_class"] = by_class(chains, parameters)
    shown = {shown_name(name, labels): scalar for name, scalar in parameters.items()}
    remarks = convergence_remarks(shown, acceptance, chains, absurd=bool(absurd)) + absurd
    remarks += learning_remarks(shown) + floor_remarks(shown) + told
    remarks += rounded_remarks(parameters, chains.mechanism, dated)
    quantities, said = reported(Basis(chains, options, series, beyond, cells, shape, variance_shares))
    remarks += said + release_remarks(*distance, chains)
    return Summary(
        parameters=parameters,
        acceptance=acceptance,
        seconds=seconds,
        ess_per_second=ess_per_second(parameters, seconds),
        remarks=(*remarks, *last),
        level=float(options.level),
        series=series,
        chain_ids=chains.ids,
        released=chains.observed,
        n=chains.n,
        provenance=provenance_of(chains),
        quantities=quantities,
        labels=labels,
        dated=dated,
        **own,
    )


# Of a mixture


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
    source, dated, law = family_of(chains), dated_of(chains), chains.mechanism
    columns = columns_of(chains, source)
    wanted = wanted_of(chains, columns, options)
    grids = choose_grids(chains, options.grids())
    unasked = tuple(level for level in QUARTILES if level not in options.levels)
    hidden = {name for column in columns for name in Wanted(unasked).labels(column)}
    more = [replace(each, quantiles=(*each.quantiles, *unasked)) for each in wanted]
    posterior = posterior_density(chains, grids, options.level, more)
    prior = mixture_prior(chains, source, grids, more)
    before = {name: draws for name, draws in prior.series.items() if name not in hidden}
    series = {name: draws for name, draws in posterior.series.items() if name not in hidden}
    series |= {"n_clusters": chains.n_clusters.astype(np.float64)}
    if isinstance(chains.stated("model").get("concentration"), dict):
        series["concentration"] = chains.concentration
    support, counts = np.unique(chains.n_clusters, return_counts=True)
    clustering = cluster(
        chains,
        options.clustering,
        options.level,
        chains.generator(0, -2),
        truth=truth,
        coclustering=options.coclustering,
    )
    bounds = {
        column.name: dated.pair(column.name, public_bounds(chains, number, len(columns)))
        for number, column in enumerate(columns)
    }
    near = law.additive or (law.released == "records" and law.on_data_scale)  # values lie near their records
    in_cells = law.on_domain and not near
    summary = _summary(
        chains,
        options,
        series,
        before,
        absurd=prior_remarks(prior.within_bounds, bounds),
        held=[
            *held_up(series, before, sds_with_floor(columns), options.level),
            *drawn_in(series, before),
        ],
        told=[
            *hidden_remarks(posterior.hidden, dated),
            *within_remarks(depends_within(posterior.within, series), law),
        ],
        beyond=Beyond(
            posterior.beyond,
            bounds,
            by_prior=law.protects and in_cells,
            clamped=law.protects and not in_cells,
        ),
        cells=None if posterior.cells is None else CellShares(*({"": each} for each in posterior.cells)),
        shape=shape_contraction(posterior.series, prior.series),
        variance_shares=lambda: mixture_shares(chains, source, grids, series, before),
        distance=(posterior.hellinger, posterior.hellinger_bias),
        densities=posterior.densities,
        hellinger=posterior.hellinger,
        n_clusters=ClusterCounts(support, counts / counts.sum()),
        clustering=clustering,
        joint=posterior.joint,
        tally=chains.tally,
        band_draws=posterior.band_draws,
        prior=base_in_words(chains),
    )
    return _with_baselines(summary, chains, options) if options.baselines else summary


def _with_baselines(summary: Summary, chains: Chains, options: SummarySpec) -> Summary:
    """Set the estimates without a model that are asked for beside the density, in the order asked for."""
    density, bandwidth = summary.density, None
    found: dict[str, Floats] = {}
    for name in options.baselines:
        if name == "ems":
            ems = summary.quantity(Ems)
            assert ems is not None  # its quantity is made where it is asked for
            found[name] = ems.density(density.grid)
        else:
            found[name], bandwidth = kernel_estimate(chains, density.grid)
    density = replace(density, baselines=found, baseline_bandwidth=bandwidth)
    return replace(summary, densities={**summary.densities, "": density})


# Of a parametric model


MOST_SHARES = 64
"""Probabilities up to which all are scalars with diagnostics; of more, the largest `TOP_SHARES` are."""
TOP_SHARES = 20
_AT_ONCE = 1 << 24  # numbers read together


def summarize_parametric(chains: NamedChains, options: SummarySpec) -> Summary:
    """Compute everything that is reported of a parametric model's posterior.

    Parameters
    ----------
    chains : NamedChains
        What `dpmix.run.chains_reader.read_chains` gives for a parametric model.
    options : SummarySpec
        Its level; for compositions the grid and the truth too.

    Raises
    ------
    DataError
        When the chains hold draws that are not finite.
    SpecError
        When the options are of another number of components than the compositions have, or ask for quantities
        that the chains do not hold.
    """
    check_quantities(chains, options)
    series: dict[str, Floats] = {}
    prior: dict[str, Floats] = {}
    distributions: dict[str, Distribution] = {}
    densities: dict[str, Density] = {}
    for parameter in chains.parameters:
        if parameter.role in ("scalar", "shares"):
            prior |= _prior_of(chains, parameter)
        if parameter.role == "density":
            densities |= mixture_densities(chains, parameter, options.level)
        if parameter.role in ("curve", "shares"):
            for group in range(len(parameter.groups)) if parameter.groups else (None,):
                found = _distribution(chains, parameter, options.level, group)
                distributions[found.name] = found
                if parameter.role == "shares":
                    series |= _shares(chains, parameter, found.mean, group)
        if parameter.role == "scalar":
            values = chains.read(parameter)
            flat = values.reshape(*values.shape[:2], -1)
            series |= {name: flat[:, :, entry] for entry, name in enumerate(parameter.labels())}
    account = meaning_of(chains).account(options)
    densities |= {name: _density(each) for name, each in account.densities.items()}
    apart = [density.hellinger_from_prior for density in densities.values()]
    distance = max((d for d in apart if d is not None), default=None)
    return _summary(
        chains,
        options,
        series,
        prior,
        absurd=prior_remarks(account.within, account.bounds, account.cure),
        held=_held_up(chains, options.level),
        told=[
            *account.remarks,
            *taken_remarks(chains, series),
            *within_remarks(depends_within(gaps_of_groups(chains, series), series), chains.mechanism),
        ],
        beyond=Beyond.of(account),
        cells=_cells(chains),
        shape=shape_contraction(series, prior),
        variance_shares=lambda: parametric_shares(chains),
        distance=(distance, 0.0),
        last=account.last,
        densities=densities,
        band_draws=chains.ids.size * chains.draws,
        distributions=distributions,
        compositions=account.own,
        prior=base_in_words(chains) or str(chains.attrs.get("prior", "")),
    )


def pointwise(
    chains: NamedChains, parameter: Stored, level: float, group: int | None
) -> tuple[Floats, Floats, Floats]:
    """Return mean and equal-tailed pointwise band of a curve, over all draws, of one group of several."""
    size = max(1, _AT_ONCE // (chains.ids.size * chains.draws))
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    means, ends = [], []
    for start in range(0, parameter.coords[parameter.dims[-1]].size, size):
        draws = chains.read(parameter, slice(start, start + size), group=group)
        flat = draws.reshape(-1, draws.shape[-1])
        means.append(flat.mean(axis=0))
        ends.append(np.quantile(flat, tails, axis=0))
    lower, upper = np.concatenate(ends, axis=1)
    return np.concatenate(means), lower, upper


def mixture_densities(chains: NamedChains, parameter: Stored, level: float) -> dict[str, Density]:
    """Return the density of a record of each group, under "" where there is only one, beside the prior's."""
    family = family_on_line(str(chains.attrs["kernel"]), str(chains.attrs["base"]), chains.constants)
    grid = np.asarray(parameter.coords[parameter.dims[-1]], dtype=np.float64)
    prior = family.predictive(grid)
    found: dict[str, Density] = {}
    for group, name in enumerate(parameter.groups) if parameter.groups else ((None, ""),):
        mean, lower, upper = pointwise(chains, parameter, level, group)
        distance = _distance(grid, mean, prior)
        found[name] = Density(grid, mean, lower, upper, prior, distance, group=name)
    return found


def _distance(grid: Floats, first: Floats, other: Floats) -> float:
    """Return about the Hellinger distance of two densities, what lies beyond the grid taken as one place."""
    inside = [min(float(np.trapezoid(density, grid)), 1.0) for density in (first, other)]
    affinity = float(np.trapezoid(np.sqrt(first * other), grid))
    affinity += math.sqrt((1.0 - inside[0]) * (1.0 - inside[1]))
    return math.sqrt(max(1.0 - affinity, 0.0))


def _density(found: GriddedDensity) -> Density:
    """Return a density that a model tells by itself."""
    distance = None if found.apart is None else hellinger(*found.apart)
    return Density(found.grid, found.mean, found.lower, found.upper, found.prior, distance)


def _cells(chains: NamedChains) -> CellShares | None:
    """Return the shares of records in few bins of a histogram, of mixtures of groups."""
    bins = next((each for each in chains.parameters if each.name == "bin_probability"), None)
    if bins is None or not meaning_of(chains).mixes:
        return None
    mean = chains.read(bins).mean(axis=(0, 1))
    outer, fullest = mean[:, 0] + mean[:, -1], mean.max(axis=1)
    piled = [most_piled(shares) for shares in mean.tolist()]
    found = (outer.tolist(), fullest.tolist(), piled)
    return CellShares(*(dict(zip(bins.groups, each, strict=True)) for each in found))


def gaps_of_groups(chains: NamedChains, series: Mapping[str, Floats]) -> dict[str, float]:
    """Return what `gaps_within` tells by name, of mixtures of groups given a histogram; else nothing.

    Parameters
    ----------
    chains : NamedChains
    series : mapping of str to float64 array (chains, draws)
        Of the scalars.
    """
    held = {each.name: each for each in chains.parameters}
    if "bin_probability" not in held or not meaning_of(chains).mixes:
        return {}
    names = [f"record_{title}" for title in ("mean", "sd", "quantile", "tail", "cdf")]
    own = [held[name] for name in names if name in held]
    points = {each.title: tuple(each.coords[each.dims[-1]].tolist()) for each in own[2:]}
    wanted = Wanted(*(points.get(title, ()) for title in ("quantile", "tail", "cdf")))
    bins, edges = held["bin_probability"], chains.mechanism.edges()
    if not looked_at(edges.size - 1):
        return {}
    below = np.cumsum(chains.read(bins).mean(axis=(0, 1)), axis=1)[:, :-1]
    found: dict[str, float] = {}
    for number, shares in enumerate(below):
        parts = [np.array_split(each.labels(), len(bins.groups))[number].tolist() for each in own]
        labels = [label for part in parts for label in part]
        fitted = np.array([series[label].mean() for label in labels])
        found |= dict(zip(labels, gaps_within(edges, shares, fitted, wanted).tolist(), strict=True))
    return found


def _held_up(chains: NamedChains, level: float) -> list[str]:
    """Return what a prior holds up: sds of groups, whose base is fixed, and a regression's variances."""
    meaning, found = meaning_of(chains), []
    for each in chains.parameters:
        before = _prior_draws(chains, each) if each.name in meaning.floors() else None
        if before is not None:
            after, before = (meaning.spreads(each.name, draws) for draws in (chains.read(each), before))
            labels = each.labels()
            own, prior = (
                dict(zip(labels, draws.reshape(-1, len(labels)).T, strict=True)) for draws in (after, before)
            )
            found += held_up(own, prior, labels, level)
    return found


def _prior_draws(chains: NamedChains, parameter: Stored) -> Floats | None:
    """Return draws (draws, ..) from the prior of a parameter; None where there are none."""
    found = chains.prior(parameter)
    return meaning_of(chains).prior_draws(parameter) if found is None else found


def _prior_of(chains: NamedChains, parameter: Stored) -> dict[str, Floats]:
    """Return draws from the prior of the entries of a parameter, by name; none where there are none."""
    found = _prior_draws(chains, parameter)
    if found is None:
        return {}
    return dict(zip(parameter.labels(), found.reshape(len(found), -1).T, strict=True))


def _shares(chains: NamedChains, parameter: Stored, mean: Floats, group: int | None) -> dict[str, Floats]:
    """Return the draws of the probabilities that are scalars, of one group where there are several."""
    labels = parameter.labels()[(group or 0) * mean.size :]
    most = mean.size if mean.size <= MOST_SHARES else TOP_SHARES
    return {
        labels[entry]: chains.read(parameter, slice(entry, entry + 1), group=group)[:, :, 0]
        for entry in sorted(np.argsort(-mean, kind="stable")[:most].tolist())
    }


def _distribution(chains: NamedChains, parameter: Stored, level: float, group: int | None) -> Distribution:
    """Return mean and equal-tailed pointwise band, over all draws, of one group where there are several."""
    place = parameter.coords[parameter.dims[-1]]
    mean, lower, upper = pointwise(chains, parameter, level, group)
    numeric = parameter.role == "curve"
    at = np.asarray(place, dtype=np.float64) if numeric else tuple(str(name) for name in place)
    name = "" if group is None else parameter.groups[group]
    return Distribution(at, mean, lower, upper, parameter.column, name)
