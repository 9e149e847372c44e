"""The result of `summarize`: everything that is reported, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.checking.loo import Loo
from dpmix.checking.result import Check
from dpmix.laws import Law
from dpmix.summary.density import Density
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.families.base import Floats
from dpmix.summary.joint import Joint
from dpmix.summary.partition import Clustering
from dpmix.summary.predictions import Predictions
from dpmix.summary.sensitivity_result import Sensitivity
from dpmix.summary.shares import Composition
from dpmix.summary.text import headline
from dpmix.summary.variance_result import VarianceShares


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
    predictions : Predictions or None
        Of the records of `summary.at`, where that was given.
    sensitivity : Sensitivity
        How much what is reported depends on the prior.
    variance_shares : VarianceShares
        Where the uncertainty of mean, median and density comes from.
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
    predictions: Predictions | None = None
    sensitivity: Sensitivity = field(default_factory=Sensitivity)
    variance_shares: VarianceShares = field(default_factory=VarianceShares)

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
