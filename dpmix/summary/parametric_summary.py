"""From the chains of a parametric model to a summary."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.results.nodes import Remark, percent
from dpmix.summary import compositions
from dpmix.summary.chains_account import acceptance_of, ess_per_second, provenance_of
from dpmix.summary.composition_results import CompositionResults, composition_remarks
from dpmix.summary.dated import dated_of, dates_or_figures
from dpmix.summary.density import Density
from dpmix.summary.diagnostics import describe
from dpmix.summary.families.family_of_fit import family_on_line
from dpmix.summary.prior import held_up, prior_on_line
from dpmix.summary.quantities import BEYOND, MOVED, Beyond, CellShares
from dpmix.summary.quantity_registry import Basis, reported
from dpmix.summary.remarks import (
    convergence_remarks,
    floor_remarks,
    learning_remarks,
    line_doubt,
    prior_remarks,
    release_remarks,
)
from dpmix.summary.row_labels import by_class, row_labels, shown_name
from dpmix.summary.summary_result import Distribution, Summary
from dpmix.summary.variance import parametric_shares
from dpmix.summary.wanted import check_quantities

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import NamedChains
    from dpmix.run.stored_parameters import Stored
    from dpmix.spec.summary_section import SummarySpec

__all__ = ["RegressionAccount", "mixture_densities", "pointwise", "regression_account"]

# What is said of regressions alone: records beyond the public bounds, and a prior that makes no sense


KIND = "linear_regression"
_CURE = (
    "give model.prior_mean and model.prior_sd of variables rescaled to [-1, 1] and model.x_prior in the "
    "units of the data, or leave them out for priors that follow the bounds"
)

Pair = tuple[float, float]


@dataclass(frozen=True)
class RegressionAccount:
    """What is said of a regression.

    Parameters
    ----------
    beyond : mapping of str to float
        Posterior mean of the share of latent values beyond the public bounds, by column, as in
        `dpmix.summary.summary_result.Summary.beyond_bounds`; of groups as ``group,column``. Truncated
        responses have 0.
    absurd : list of Remark
        Where the prior expects the mean of a record beyond the bounds.
    remarks : list of Remark
        About shares beyond the bounds.
    latent : mapping of str to pair of str
        Column and group of the predictors of a line that is in their values before clamping.
    cut : list of str
        Of which responses more lies beyond the bounds than is told, in words.
    """

    beyond: Mapping[str, float] = field(default_factory=dict)
    absurd: list[Remark] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    latent: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)

    @property
    def shares(self) -> Beyond:
        """The shares, as they are reported."""
        return Beyond(self.beyond, latent=self.latent)

    def of_predictions(self) -> list[str]:
        """Say where predictions are not of what the table holds, of predictors or of the response."""
        found = line_doubt(self.shares)
        if self.cut:
            found.append(
                f"Under the fit {', '.join(self.cut)} lie beyond the public bounds and count as clamped to "
                "them, a Tobit model: means and intervals are of responses before that, and not of what is "
                "recorded."
            )
        return found


def regression_account(chains: NamedChains) -> RegressionAccount:
    """Return what is said of a regression; of other models nothing."""
    if chains.attrs.get("model") != KIND:
        return RegressionAccount()
    bounds = _bounds(chains)
    model: dict[str, Any] = dict(chains.spec.get("model") or {})
    truncated = model.get("response") == "truncated"
    stored = {parameter.name: parameter for parameter in chains.parameters}
    groups = stored["beta"].groups
    drawn: dict[str, Floats] = {
        name: _drawn(chains, stored[name]) for name in ("beta", "sigma2", "x_mean", "x_cov") if name in stored
    }
    beyond: dict[str, float] = {}
    latent: dict[str, tuple[str, str]] = {}
    remarks, cut = [], []
    in_latent = model.get("predictors") != "clamped"
    for place, group in enumerate(groups or ("",)):
        own = {name: values[:, place] if groups else values for name, values in drawn.items()}
        found = _shares_beyond(own, model, list(bounds.values()), truncated)
        for name, share in zip(bounds, found, strict=True):
            key, response = f"{group},{name}" if group else name, name == list(bounds)[-1]
            beyond[key] = share
            latent |= {key: (name, group)} if in_latent and not response else {}
            if share > BEYOND and response:
                cut.append(f"{percent(share)} of values of {name}{f' in {group}' if group else ''}")
            if share > BEYOND and (in_latent or response):
                remarks.append(_remark(name, share, bounds[name], group, response=response))
    absurd = prior_remarks(_within(chains, stored, model, bounds), bounds, _CURE)
    return RegressionAccount(beyond, absurd, remarks, latent, cut)


def _bounds(chains: NamedChains) -> dict[str, Pair]:
    """Return the public bounds by name of column, the response last."""
    law = expect(chains.mechanism, ClampedMomentsLaw)
    names = law.columns
    if len(set(names)) != len(law.bounds):
        names = (*(f"x{i + 1}" for i in range(len(law.bounds) - 1)), "y")
    dated = dated_of(chains)
    return {name: dated.pair(name, pair) or pair for name, pair in zip(names, law.bounds, strict=True)}


def _drawn(chains: NamedChains, parameter: Stored) -> Floats:
    """Return the draws of all chains together, (draws, ..)."""
    values = chains.read(parameter)
    return values.reshape(-1, *values.shape[2:])


def _get(own: Mapping[str, Floats], model: Mapping[str, Any], name: str) -> Floats:
    """Return a parameter, drawn (draws, ..) or known (1, ..)."""
    return own[name] if name in own else np.asarray(model[name], dtype=np.float64)[None]


def _shares_beyond(
    own: Mapping[str, Floats], model: Mapping[str, Any], bounds: list[Pair], truncated: bool
) -> list[float]:
    """Return the posterior mean of the share of each column's latent values beyond its bounds."""
    mean, cov = _get(own, model, "x_mean"), _get(own, model, "x_cov")
    slopes = own["beta"][:, 1:]
    at = own["beta"][:, 0] + (slopes * mean).sum(axis=1)
    spread = np.einsum("di,dij,dj->d", slopes, np.broadcast_to(cov, (len(slopes), *cov.shape[1:])), slopes)
    laws = [(mean[:, j], cov[:, j, j]) for j in range(mean.shape[1])]
    found = []
    for (centre, variance), (low, high) in zip(
        [*laws, (at, spread + _get(own, model, "sigma2"))], bounds, strict=True
    ):
        sd = np.sqrt(variance)
        found.append(float((ndtr((low - centre) / sd) + ndtr((centre - high) / sd)).mean()))
    if truncated:
        found[-1] = 0.0
    elif model.get("predictors") == "clamped":
        found[-1] = _response_beyond(own, model, mean, cov, bounds)
    return found


_POINTS = 256
"""Fixed normal points, spread evenly, that stand for the latent predictors of records."""


def _response_beyond(
    own: Mapping[str, Floats], model: Mapping[str, Any], mean: Floats, cov: Floats, bounds: list[Pair]
) -> float:
    """Return the posterior mean of the share of responses beyond their bounds, clamped predictors given."""
    p, beta, root = mean.shape[1], own["beta"], np.linalg.cholesky(cov)
    step = 1.5  # to the root of x^(p + 1) = x + 1, whose powers spread multiples evenly
    for _ in range(60):
        step = (1.0 + step) ** (1.0 / (p + 1.0))
    points = ndtri((0.5 + np.outer(np.arange(1, _POINTS + 1), step ** -np.arange(1.0, p + 1.0))) % 1.0)
    (low, high), ends, total = bounds[-1], np.array(bounds[:-1]).T, 0.0
    sd = np.sqrt(_get(own, model, "sigma2"))
    for point in points:
        x = np.clip(mean + root @ point, *ends)
        at = beta[:, 0] + (beta[:, 1:] * x).sum(axis=1)
        total += float((ndtr((low - at) / sd) + ndtr((at - high) / sd)).mean())
    return total / _POINTS


def _within(
    chains: NamedChains, stored: Mapping[str, Stored], model: Mapping[str, Any], bounds: Mapping[str, Pair]
) -> dict[str, float]:
    """Return the prior probability that the mean of a record lies within the bounds, by column.

    Of a truncated response it is that of the normal law before it is cut.
    """
    drawn = {name: chains.prior(stored[name]) for name in ("beta", "x_mean") if name in stored}
    beta = drawn["beta"]
    if beta is None:
        return {}
    groups = bool(stored["beta"].groups)  # whose priors are the same
    beta = beta[:, 0] if groups else beta
    mean = drawn.get("x_mean")
    if mean is not None:
        mean = mean[:, 0] if groups else mean
    elif model.get("x_mean") is None:
        return {}
    else:
        mean = np.asarray(model["x_mean"], dtype=np.float64)[None]
    laws = [*(mean.T if "x_mean" in drawn else [None] * mean.shape[1])]
    laws.append(beta[:, 0] + (beta[:, 1:] * mean).sum(axis=1))
    return {
        name: float(((law >= low) & (law <= high)).mean())
        for (name, (low, high)), law in zip(bounds.items(), laws, strict=True)
        if law is not None
    }


def _remark(name: str, share: float, pair: Pair, group: str, *, response: bool) -> Remark:
    where = f" in {group}" if group else ""
    text = (
        f"Under the fit {percent(share)} of values of {name}{where} lie beyond the public bounds "
        f"[{', '.join(dates_or_figures(pair))}] and count as clamped to them"
    )
    if response:
        text += (
            ", a Tobit model: beta and prediction are of responses before that, prediction_clamped of what "
            "is recorded. Where no response can lie beyond, model.response: truncated has errors that stay "
            "within."
        )
    else:
        text += ": the line is one in values before that, whose normal law alone says where they lie"
        text += ", and not in the table's where it has none there." if share > MOVED else "."
    return Remark(text, convergence=False)


# From the chains of a parametric model to a summary


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
    held = held_up(series, prior, _sds_of_groups(chains), options.level)
    parameters = {
        name: replace(describe(values, options.level, prior.get(name)), held_up=name in held)
        for name, values in series.items()
    }
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
    remarks += learning_remarks(shown) + floor_remarks(shown) + line.remarks
    beyond = Beyond(_censored(found_compositions), entries=True) if found_compositions else line.shares
    quantities, said = reported(
        Basis(chains, options, series, beyond, _cells(chains), lambda: parametric_shares(chains))
    )
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


def _cells(chains: NamedChains) -> CellShares | None:
    """Return the shares of records in few bins of a histogram, of mixtures of groups."""
    bins = next((each for each in chains.parameters if each.name == "bin_probability"), None)
    if bins is None or chains.attrs.get("model") != "mixture":
        return None
    mean = chains.read(bins).mean(axis=(0, 1))
    outer, fullest = mean[:, 0] + mean[:, -1], mean.max(axis=1)
    return CellShares(*(dict(zip(bins.groups, each.tolist(), strict=True)) for each in (outer, fullest)))


def _sds_of_groups(chains: NamedChains) -> list[str]:
    """Return the standard deviations of the records of each group, of mixtures, whose base is not learned."""
    stored = next((each for each in chains.parameters if each.name == "record_sd"), None)
    return stored.labels() if stored is not None and chains.attrs.get("model") == "mixture" else []


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
