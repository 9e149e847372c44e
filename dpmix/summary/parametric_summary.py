"""From the chains of a parametric model to a summary."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpmix.run.chains_reader import NamedChains
from dpmix.run.stored_parameters import Stored
from dpmix.spec.summary_section import SummarySpec
from dpmix.summary import compositions
from dpmix.summary.beyond import Beyond
from dpmix.summary.chains_account import acceptance_of, ess_per_second, provenance_of
from dpmix.summary.composition_results import CompositionResults, composition_remarks
from dpmix.summary.dated import dated_of
from dpmix.summary.density import Density
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.family import Floats
from dpmix.summary.families.family_of_fit import family_on_line
from dpmix.summary.prior import prior_on_line
from dpmix.summary.quantity_registry import Basis, reported
from dpmix.summary.regression import regression_account
from dpmix.summary.remarks import convergence_remarks, learning_remarks, release_remarks
from dpmix.summary.row_labels import by_class, row_labels, shown_name
from dpmix.summary.summary_result import Distribution, Summary
from dpmix.summary.variance import parametric_shares
from dpmix.summary.wanted import check_quantities

__all__ = ["mixture_densities", "pointwise"]


# Densities of mixtures whose draws are kept at points of a grid, of one group or of several.

_AT_ONCE = 1 << 24  # numbers read together


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


MOST_SHARES = 64
"""Probabilities up to which all are scalars with diagnostics; of more, the largest `TOP_SHARES` are."""
TOP_SHARES = 20


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
    if np.isfinite(chains.log_likelihood).all():
        series["log_likelihood"] = chains.log_likelihood
    parameters = {name: describe(values, options.level, prior.get(name)) for name, values in series.items()}
    seconds, acceptance = float(chains.seconds.sum()), acceptance_of(chains)
    apart = [density.hellinger_from_prior for density in densities.values()]
    distance = max((d for d in apart if d is not None), default=None)
    found_compositions: dict[str, CompositionResults] = {}
    if chains.attrs.get("model") == compositions.KIND:
        found_compositions, densities, distance = compositions.composition_of(chains, options)
    line = regression_account(chains)
    dated = dated_of(chains)
    labels = dated.points(parameters)
    labels |= {name: label for name, label in row_labels(chains).items() if name in parameters}
    shown = {shown_name(name, labels): scalar for name, scalar in parameters.items()}
    remarks = convergence_remarks(shown, acceptance, chains, absurd=bool(line.absurd)) + line.absurd
    remarks += learning_remarks(shown) + line.remarks
    beyond = Beyond(_censored(found_compositions) or line.beyond, entries=bool(found_compositions))
    quantities, said = reported(Basis(chains, options, series, beyond, lambda: parametric_shares(chains)))
    remarks += said
    remarks += release_remarks(distance, 0.0, chains)
    if found_compositions:
        remarks += composition_remarks(list(found_compositions.values()), chains)
    return Summary(
        parameters=parameters,
        densities=densities,
        hellinger=None,
        n_clusters=None,
        clustering=None,
        acceptance=acceptance,
        seconds=seconds,
        ess_per_second=ess_per_second(parameters, seconds),
        remarks=tuple(remarks),
        level=float(options.level),
        series=series,
        chain_ids=chains.ids,
        released=chains.observed,
        n=chains.n,
        joint=None,
        band_draws=chains.ids.size * chains.draws,
        provenance=provenance_of(chains),
        distributions=distributions,
        compositions=found_compositions,
        prior=prior_on_line(chains) or str(chains.attrs.get("prior", "")),
        quantities=quantities,
        labels=labels,
        dated=dated,
        by_class=by_class(chains, parameters),
    )


def _censored(found: Mapping[str, CompositionResults]) -> dict[str, float]:
    """Return the share of the entries of each component that lie beyond the threshold, under the fit."""
    return {
        f"{group},{name}" if group else name: float(share)
        for group, composition in found.items()
        for name, share in zip(composition.components, composition.censoring.share, strict=True)
    }


def _prior_of(chains: NamedChains, parameter: Stored) -> dict[str, Floats]:
    """Return draws from the prior of the entries of a parameter, by name; none where there are none."""
    found = chains.prior(parameter)
    if found is None and chains.attrs.get("model") == compositions.KIND:
        found = compositions.prior_of(chains, parameter)
    if found is None:
        return {}
    return dict(zip(parameter.labels(), found.reshape(len(found), -1).T, strict=True))


def _largest(mean: Floats) -> list[int]:
    """Return which of the probabilities with this posterior mean are scalars, in order."""
    if mean.size <= MOST_SHARES:
        return list(range(mean.size))
    return sorted(np.argsort(-mean, kind="stable")[:TOP_SHARES].tolist())


def _shares(chains: NamedChains, parameter: Stored, mean: Floats, group: int | None) -> dict[str, Floats]:
    """Return the draws of the probabilities that are scalars, of one group where there are several."""
    labels = parameter.labels()[(group or 0) * mean.size :]
    return {
        labels[entry]: chains.read(parameter, slice(entry, entry + 1), group=group)[:, :, 0]
        for entry in _largest(mean)
    }


def _distribution(chains: NamedChains, parameter: Stored, level: float, group: int | None) -> Distribution:
    """Return mean and equal-tailed pointwise band, over all draws, of one group where there are several."""
    place = parameter.coords[parameter.dims[-1]]
    mean, lower, upper = pointwise(chains, parameter, level, group)
    numeric = parameter.role == "curve"
    at = np.asarray(place, dtype=np.float64) if numeric else tuple(str(name) for name in place)
    name = "" if group is None else parameter.groups[group]
    return Distribution(at, mean, lower, upper, parameter.column, name)
