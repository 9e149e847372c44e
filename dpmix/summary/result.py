"""The result of `summarize`: everything that is reported, as data."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.mechanisms.laws.every import Law
from dpmix.release.cells import Counts
from dpmix.summary.check.check_result import Check
from dpmix.summary.check.loo import Loo
from dpmix.summary.composition_results import Composition
from dpmix.summary.density import Density
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.families.family import Floats
from dpmix.summary.information import InformationKept
from dpmix.summary.partition import Clustering
from dpmix.summary.predictions import Predictions
from dpmix.summary.sensitivity_result import Sensitivity
from dpmix.summary.several_columns import Joint
from dpmix.summary.variance_result import VarianceShares

# The headline figures of a summary as text for a terminal.

WIDTH = 96
_CATEGORIES = 5  # named on the terminal
LOSS_NAMES = {"vi": "variation of information", "binder": "Binder loss"}
_HEADER = ("", "mean", "sd", "{lower}", "{upper}", "contraction", "R-hat", "ESS bulk", "ESS tail", "ESS/s")
_EXPENDABLE = ("ESS tail", "ESS/s")  # left out of a table that would be too wide; JSON and files have them


def headline(summary: Summary) -> str:
    """Return clusters, density, diagnostics, guarantee and warnings, in at most 96 columns."""
    lines = [*_clusters(summary), *_partition(summary), *_density_lines(summary), *_distribution(summary)]
    lines += _composition_lines(summary) or _beyond(summary)
    if summary.acceptance.mean is not None:
        bound = summary.acceptance.bound
        floor = "" if bound is None else f" (cannot fall below e^-epsilon = {bound:.3g})"
        lines.append(f"Acceptance: {summary.acceptance.mean:.3f}{floor}")
    lines += [*([""] if lines else []), *_table(summary), *_rows(summary), ""]
    if summary.prior:
        lines += [*_wrapped(f"Prior: {summary.prior[0].lower()}{summary.prior[1:]}", indent="  "), ""]
    if summary.check.overall is not None or summary.check.reason:
        lines += [*_wrapped(f"Check: {summary.check.in_words()}", indent="  "), ""]
    if summary.variance_shares.in_words():
        text = f"Share of the posterior variance: {summary.variance_shares.in_words()}"
        lines += [*_wrapped(text, indent="  "), ""]
    if summary.loo is not None:
        found = summary.loo
        text = (
            f"Leave-one-out: expected log predictive density {found.elpd:.1f} (standard error "
            f"{found.se:.1f}), {found.p_loo:.1f} effective parameters, largest Pareto k "
            f"{found.pareto_k_max:.2f}"
        )
        lines += [*_wrapped(text, indent="  "), ""]
    if summary.information is not None:
        lines += [*_wrapped(f"Counts: {summary.information.in_words()}", indent="  "), ""]
    lines += _predictions(summary)
    lines += _wrapped(summary.provenance.guarantee)
    if summary.remarks:
        lines += ["", "Warnings:"]
        for text in summary.warnings:
            lines += _wrapped(f"- {text}", indent="  ")
    return "\n".join(lines)


def figure(value: float | None, form: str = ".4g") -> str:
    """Write a number, or a dash where there is none."""
    return "-" if value is None else f"{value:{form}}"


def rate(value: float | None) -> str:
    """Write a rate: three digits, or all of a large number."""
    return figure(value, ",.0f" if value is not None and value >= 100 else ".3g")


def percent(share: float) -> str:
    """Write a share in percent, one that is next to nothing as such."""
    return "<0.01%" if 0.0 < share < 1e-4 else f"{100 * share:.2g}%"


def _clusters(summary: Summary) -> list[str]:
    counts = summary.n_clusters
    if counts is None:
        return []
    mode = int(np.argmax(counts.probability))
    return [
        f"Clusters: {counts.support[mode]} with probability {counts.probability[mode]:.2f}; "
        f"between {counts.support[0]} and {counts.support[-1]} in all draws"
    ]


def _distribution(summary: Summary) -> list[str]:
    """Name the most probable categories of each column that has them; of numbers the table says enough."""
    lines = []
    for found in summary.distributions.values():
        if not found.is_numeric:
            first = np.argsort(-found.mean, kind="stable")[:_CATEGORIES]
            listed = ", ".join(
                f"{found.at[i]} {found.mean[i]:.3g} ({found.lower[i]:.3g} to {found.upper[i]:.3g})"
                for i in first
            )
            more = len(found.at) - len(first)
            rest = f", and {more} more" if more else ""
            what = "Categories" if summary.composition is None else "Expected shares E[x]"
            text = f"{what}{found.about}, with {100 * summary.level:g}% {_intervals(summary)}: {listed}{rest}"
            lines += _wrapped(text, indent="  ")
    return lines


def _density_lines(summary: Summary) -> list[str]:
    lines = []
    for name, density in summary.densities.items():
        peak = int(np.argmax(density.mean))
        distance = density.hellinger_from_prior
        apart = "" if distance is None else f"; Hellinger distance from the prior {distance:.2f}"
        text = (
            f"Density{_about(density.group, name)}: highest at {density.grid[peak]:.4g} "
            f"({density.mean[peak]:.3g}, {100 * summary.level:g}% band {density.lower[peak]:.3g} to "
            f"{density.upper[peak]:.3g}){apart}"
        )
        lines += _wrapped(text, indent="  ")
    if summary.hellinger is not None and "" not in summary.densities:
        lines.append(f"All columns together: Hellinger distance from the prior {summary.hellinger:.2f}")
    return lines


def _about(group: str, column: str) -> str:
    """Say what a density is of, to go on with; empty where there is only one."""
    return f" in {group}" if group else f" of {column}" if column else ""


def _intervals(summary: Summary) -> str:
    return "confidence intervals" if summary.source == "bootstrap" else "intervals"


def _composition_lines(summary: Summary) -> list[str]:
    """Say what stands behind the figures of compositions, how many entries are censored, and the truth."""
    lines = []
    if summary.source == "bootstrap":
        lines += _wrapped(
            "Draws are of a parametric bootstrap, not of a posterior: intervals and ellipsoids are "
            "confidence regions, and no prior is used.",
            indent="  ",
        )
    for found in summary.compositions.values():
        lines += _censored(found)
        lines += _truth(found, summary.level)
    return lines


def _censored(found: Composition) -> list[str]:
    censoring = found.censoring
    first = np.argsort(-censoring.share, kind="stable")[:_CATEGORIES]
    listed = ", ".join(f"{found.components[j]} {percent(censoring.share[j])}" for j in first)
    about = f" in {found.group}" if found.group else ""
    return _wrapped(
        f"Censored below {censoring.threshold:g}{about}, under the fit: {percent(censoring.share.mean())} of "
        f"all entries ({listed})",
        indent="  ",
    )


def _beyond(summary: Summary) -> list[str]:
    """Say what share of the records lies beyond the bounds of each of several columns."""
    shares = {name: share for name, share in summary.beyond_bounds.items() if name}
    listed = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    text = f"Latent records beyond the public bounds, under the fit: {listed}"
    return _wrapped(text, indent="  ") if shares else []


def _truth(found: Composition, level: float) -> list[str]:
    truth = found.truth
    if truth is None:
        return []
    held = [("alpha", truth.covers_alpha), ("E[x]", truth.covers_mean)]
    ellipsoids = ", ".join(f"{'holds' if inside else 'misses'} {name}" for name, inside in held)
    return _wrapped(
        f"Truth: the {100 * level:g}% ellipsoid {ellipsoids}; that of a record holds "
        f"{100 * truth.record_coverage:.1f}% of records; mean squared error of alpha "
        f"{truth.squared_error_alpha:.3g}, of E[x] {truth.squared_error_mean:.3g}",
        indent="  ",
    )


def _partition(summary: Summary) -> list[str]:
    found = summary.clustering
    if found is None:
        return []
    estimate, ball = found.estimate, found.estimate.ball
    bounds = (ball.vertical_upper.n_clusters, ball.vertical_lower.n_clusters)
    text = (
        f"Partition: {estimate.n_clusters} cluster{'s' * (estimate.n_clusters != 1)} with the least expected "
        f"{LOSS_NAMES[estimate.loss]} ({estimate.expected_loss:.3g}); the {100 * ball.level:g}% ball of "
        f"radius {ball.radius:.3g} holds "
        f"partitions of {bounds[0]} to {bounds[1]} clusters; expected ARI {estimate.expected_ari:.2f}"
    )
    if estimate.ari is not None:
        text += f"; ARI with the true labels {estimate.ari:.2f}"
    if len(found.kept) < found.records:
        text += f"; of a subsample of {len(found.kept):,} of the {found.records:,} records"
    if found.draws < found.of:
        text += f" (from {found.draws:,} of {found.of:,} draws)"
    return _wrapped(text, indent="  ")


def _table(summary: Summary) -> list[str]:
    keys = list(next(iter(summary.parameters.values())).quantiles)
    rows = [tuple(name.format(lower=_percent(keys[0]), upper=_percent(keys[-1])) for name in _HEADER)]
    for name, value in summary.parameters.items():
        quantiles = list(value.quantiles.values())
        rows.append(
            (
                name,
                *(figure(x) for x in (value.mean, value.sd, quantiles[0], quantiles[-1])),
                figure(value.contraction, ".2f"),
                figure(value.rhat, ".3f"),
                figure(value.ess_bulk, ".0f"),
                figure(value.ess_tail, ".0f"),
                rate(summary.ess_per_second[name]),
            )
        )
    columns = list(zip(*rows, strict=True))
    if all(cell == "-" for cell in columns[_HEADER.index("contraction")][1:]):
        columns.pop(_HEADER.index("contraction"))
    for name in _EXPENDABLE:
        if sum(max(map(len, column)) + 2 for column in columns) - 2 > WIDTH:
            columns = [column for column in columns if column[0] != name]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in zip(*columns, strict=True)
    ]


def _predictions(summary: Summary) -> list[str]:
    """Show what is predicted of the first records."""
    found = summary.predictions
    if found is None:
        return []
    columns = list(zip(*found.shown(), strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in found.shown()
    ]
    return [*_wrapped(f"Predictions: {found.what}", indent="  "), *lines, *filter(None, [found.more]), ""]


def _percent(level: str) -> str:
    return f"{100 * float(level):g}%"


def _rows(summary: Summary) -> list[str]:
    """Say what predictions are of."""
    named = [f"{name} at {label}" for name, label in summary.labels.items() if name.startswith("prediction[")]
    return ["", *_wrapped("; ".join(named), indent="  ")] if named else []


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)


@dataclass(frozen=True)
class ClusterCounts:
    """Posterior of the number of clusters: `probability[i]` is that of `support[i]` clusters."""

    support: NDArray[np.int64]
    probability: Floats


@dataclass(frozen=True)
class Acceptance:
    """Mean acceptance rate, and the bound e^-epsilon below which it cannot fall; None where there is none."""

    mean: float | None
    bound: float | None


@dataclass(frozen=True)
class Remark:
    """A warning in words; `convergence` says whether it is about the chains rather than about the release."""

    text: str
    convergence: bool


@dataclass(frozen=True)
class Provenance:
    """Where the chains come from.

    Parameters
    ----------
    guarantee : str
        What the release guarantees, in words.
    mechanism : Law
        The public half of the release's mechanism.
    spec : str
        The resolved spec as YAML, without the confidential side.
    facts : mapping of str to str
        Seed, versions, dates, chains and draws, for display.
    """

    guarantee: str
    mechanism: Law
    spec: str
    facts: Mapping[str, str]


@dataclass(frozen=True)
class Distribution:
    """The random distribution of a column's records, with an equal-tailed pointwise band.

    Parameters
    ----------
    at : float64 array (points,) or tuple of str
        Where the distribution function is evaluated, or the categories that `mean` are the probabilities of.
    mean, lower, upper : float64 arrays (points,)
        Posterior mean, and the ends of the band.
    column, group : str
        The column and the group of records that it is of; empty where there is only one.
    """

    at: Floats | tuple[str, ...]
    mean: Floats
    lower: Floats
    upper: Floats
    column: str = ""
    group: str = ""

    @property
    def name(self) -> str:
        """Its key among others: group and column, as between the brackets of scalars."""
        return ",".join(part for part in (self.group, self.column) if part)

    @property
    def about(self) -> str:
        """What it is of, to go on with: empty, or " of COLUMN in GROUP"."""
        of_column = f" of {self.column}" if self.column else ""
        return f"{of_column} in {self.group}" if self.group else of_column

    @property
    def is_numeric(self) -> bool:
        """Whether it is a distribution function of numbers."""
        return not isinstance(self.at, tuple)

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        place = {"grid": self.at} if self.is_numeric else {"categories": list(self.at)}
        return {**place, "mean": self.mean, "lower": self.lower, "upper": self.upper}


@dataclass(frozen=True)
class Summary:
    """A posterior, summarized.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        Of a mixture: mean, sd and quantiles of a record under the random density, what else was asked for,
        that density at three points, `n_clusters`, `concentration` (where it is random), `log_likelihood`;
        none depends on how components are numbered. Of a parametric model: the entries of its parameters, and
        `log_likelihood` where known.
    densities : mapping of str to Density
        The density of a record, by column; under "" where there is only one. Empty where a model has none.
    hellinger : float or None
        Hellinger distance of the posterior mean density from the prior predictive, of all columns together.
    n_clusters : ClusterCounts or None
        Posterior of the number of clusters, of a mixture.
    distributions : mapping of str to Distribution
        The random distribution of a record, by group and column ("GROUP,COLUMN"), of a model that has one;
        under "" where there is only one of both.
    compositions : mapping of str to Composition
        What is reported of compositions alone, by group; under "" where there is only one, empty for other
        models.
    clustering : Clustering or None
        Partition of the records; None where no allocations were saved, as for every global release.
    acceptance : Acceptance
        Of the proposals, for samplers that make any.
    seconds : float
        Wall time of sampling, summed over chains.
    ess_per_second : mapping of str to float or None
        Bulk effective sample size of all chains together per second of `seconds`.
    remarks : tuple of Remark
        Warnings.
    level : float
        Posterior probability of bands and intervals.
    series : mapping of str to float64 array (chains, draws)
        The draws behind `parameters`.
    chain_ids : int64 array (chains,)
        Ids of the chains.
    released : float64 array
        The release, noise included.
    n : int
        Number of confidential records.
    joint : Joint or None
        Density of both columns together, where there are two.
    band_draws : int
        Number of draws behind the bands.
    provenance : Provenance
        Where the chains come from.
    prior : str
        What the prior of a mixture's clusters, or of a regression's coefficients, means in the units of the
        data, and where it is from.
    labels : mapping of str to str
        What predictions of a regression are of, such as "age = 30, schooling = 16", by their names.
    beyond_bounds : mapping of str to float
        Share of the latent records beyond the public bounds under the fit, by column; under "" where there is
        only one. Of compositions the share of entries below the threshold, by component. Empty where there
        are no bounds, or the kernel stays within them.
    check : Check
        The release beside replicates from the posterior.
    loo : Loo or None
        Leave-one-out cross-validation, where it was asked for.
    information : InformationKept or None
        What the cells of ``sampler.kind: counts`` keep of the information in the release.
    predictions : Predictions or None
        Of the records of `summary.at`, where that was given.
    sensitivity : Sensitivity
        How much what is reported depends on the prior.
    variance_shares : VarianceShares
        Where the uncertainty of mean, median and density comes from.
    tally : Counts or None
        Of a fit to a tally; `released` is then empty.
    """

    parameters: Mapping[str, Scalar]
    densities: Mapping[str, Density]
    hellinger: float | None
    n_clusters: ClusterCounts | None
    clustering: Clustering | None
    acceptance: Acceptance
    seconds: float
    ess_per_second: Mapping[str, float | None]
    remarks: tuple[Remark, ...]
    level: float
    series: Mapping[str, Floats] = field(repr=False)
    chain_ids: NDArray[np.int64] = field(repr=False)
    released: Floats = field(repr=False)
    n: int = field(repr=False)
    joint: Joint | None = field(repr=False)
    band_draws: int = field(repr=False)
    provenance: Provenance = field(repr=False)
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    compositions: Mapping[str, Composition] = field(default_factory=dict)
    prior: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    beyond_bounds: Mapping[str, float] = field(default_factory=dict)
    check: Check = field(default_factory=Check)
    loo: Loo | None = None
    information: InformationKept | None = None
    predictions: Predictions | None = None
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    variance_shares: VarianceShares = field(default_factory=VarianceShares)
    tally: Counts | None = field(default=None, repr=False)

    @property
    def composition(self) -> Composition | None:
        """What is reported of compositions alone, of the first group, which mostly is the only one."""
        return next(iter(self.compositions.values()), None)

    @property
    def density(self) -> Density:
        """The density of the first column, which mostly is the only one.

        Raises
        ------
        StopIteration
            Of a model without densities.
        """
        return next(iter(self.densities.values()))

    @property
    def source(self) -> str:
        """What the draws are of: "posterior", or "bootstrap"."""
        return "bootstrap" if self.composition is not None and self.composition.is_bootstrap else "posterior"

    @property
    def warnings(self) -> list[str]:
        """All warnings, in words."""
        return [remark.text for remark in self.remarks]

    @property
    def failures(self) -> list[str]:
        """The warnings that are about convergence: what `--require-convergence` refuses."""
        return [remark.text for remark in self.remarks if remark.convergence]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as lists, dicts and numbers that strict JSON can hold (None for no value).

        With several columns `density` and `distribution` hold one object a column, by name, and `joint` what
        concerns them all; with several groups these and `composition` hold one a group. What a model does not
        have is None, and `distribution` is there only for those that have one.
        """
        return dict(_plain(self.contents()))

    def contents(self) -> dict[str, Any]:
        """Return what `to_json` does, with arrays as they are."""
        densities: dict[str, Any] = {name: _density(d) for name, d in self.densities.items()}
        distributions = {name: d.contents() for name, d in self.distributions.items()}
        compositions = {name: c.contents() for name, c in self.compositions.items()}
        counts = self.n_clusters
        several = bool(densities) and self.hellinger is not None and "" not in densities
        return {
            "parameters": {
                name: _scalar(value) | ({"label": self.labels[name]} if name in self.labels else {})
                for name, value in self.parameters.items()
            },
            "density": _only(densities) or None,
            **({"joint": self._joint()} if several else {}),
            **({"distribution": _only(distributions)} if distributions else {}),
            **({"composition": _only(compositions)} if compositions else {}),
            "n_clusters": None
            if counts is None
            else {"support": counts.support, "probability": counts.probability},
            "clustering": None if self.clustering is None else self.clustering.contents(),
            "acceptance": {"mean": self.acceptance.mean, "bound": self.acceptance.bound},
            **({"prior": self.prior} if self.prior else {}),
            **({"beyond_bounds": _only(dict(self.beyond_bounds))} if self.beyond_bounds else {}),
            "check": self.check.contents(),
            **({} if self.loo is None else {"loo": dict(vars(self.loo))}),
            **({} if self.information is None else {"information_kept": self.information.contents()}),
            **({} if self.predictions is None else {"at": self.predictions.to_json()}),
            "prior_sensitivity": self.sensitivity.contents(),
            "variance_shares": self.variance_shares.contents(),
            "seconds": self.seconds,
            "ess_per_second": dict(self.ess_per_second),
            "warnings": self.warnings,
        }

    def _joint(self) -> dict[str, Any]:
        found: dict[str, Any] = {"columns": list(self.densities), "hellinger_from_prior": self.hellinger}
        if self.joint is not None:
            found |= {"grids": list(self.joint.grids), "mean": self.joint.mean}
        return found

    def to_text(self) -> str:
        """Return the headline figures as text for a terminal."""
        return headline(self)


def _only(by_column: dict[str, Any]) -> Any:
    """Return what there is of the one column, or of several by name."""
    return by_column[""] if list(by_column) == [""] else by_column


def _density(d: Density) -> dict[str, Any]:
    found: dict[str, Any] = {name: getattr(d, name) for name in ("grid", "mean", "lower", "upper", "prior")}
    if d.baseline is not None:
        found |= {"baseline": d.baseline, "baseline_bandwidth": d.baseline_bandwidth}
    return found | {"hellinger_from_prior": d.hellinger_from_prior}


def _plain(value: Any) -> Any:
    """Turn arrays into lists, at any depth."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _scalar(value: Scalar) -> dict[str, Any]:
    return {
        "mean": value.mean,
        "sd": value.sd,
        "quantiles": value.quantiles,
        "rhat": value.rhat,
        "ess_bulk": value.ess_bulk,
        "ess_tail": value.ess_tail,
        "mcse": value.mcse,
        "contraction": value.contraction,
        "note": value.note,
    }
