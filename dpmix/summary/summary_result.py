"""The result of `summarize`: everything that is reported, as data and as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.column_units import unit_text
from dpmix.columns.dated import NONE, Dated
from dpmix.results.nodes import Each, Quantity, Remark, ResultSection, Tree, place_in, warnings_section
from dpmix.results.result import Result
from dpmix.summary.chains_account import Acceptance, ClusterCounts, Provenance
from dpmix.summary.check.check_result import Check
from dpmix.summary.check.loo import Loo
from dpmix.summary.clusters_by_value import ClustersByValue
from dpmix.summary.curves import Distribution, density_sections, distribution_section
from dpmix.summary.diagnostics import ESS, RHAT, parameter_sections, shown_name
from dpmix.summary.headline import Verdict, answer_of, verdict_of
from dpmix.summary.information import InformationKept
from dpmix.summary.predicting import Predictions
from dpmix.summary.quantities import Beyond, CellShares
from dpmix.summary.sensitivity import Sensitivity
from dpmix.summary.shape import ShapeContraction
from dpmix.summary.variance import VarianceShares

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.kernels.layout import Floats
    from dpmix.summary.clustering import Clustering
    from dpmix.summary.density import Density, Joint
    from dpmix.summary.diagnostics import Scalar
    from dpmix.summary.row_labels import ByClass

__all__ = ["Acceptance", "ClusterCounts", "Distribution", "Provenance", "Summary"]

# Keys in the order of JSON, text and pages; others stand where "*" is, or last.
_QUANTITIES = (
    "beyond_bounds check loo information_kept clusters_by_value at prior_sensitivity variance_shares"
)
_TEXT = (
    "n_clusters clustering density joint distribution composition beyond_bounds acceptance parameters prior "
    "check variance_shares loo information_kept clusters_by_value * at"
)
_PAGE = (
    "model density joint distribution beyond_bounds composition at check information_kept variance_shares "
    "prior_sensitivity loo * n_clusters clustering clusters_by_value parameters acceptance traces provenance"
)
_FOLDED = "check information_kept prior_sensitivity loo parameters acceptance traces provenance"

Found = TypeVar("Found")


@dataclass(frozen=True, repr=False)
class Summary(Result):
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
    compositions : mapping of str to CompositionResults
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
        What rows are of, by their names: predictions of a regression ("age = 30, schooling = 16"), classes
        and categories ("vote = 0").
    by_class : tuple of ByClass
        Probabilities of the levels of features within classes, of naive Bayes.
    quantities : mapping of str to Quantity
        What else is reported, by key: see `dpmix.summary.summary_of_chains`; `at` are the predictions of
        the records of `summary.at`.
    tally : Counts or None
        Of a fit to a tally; `released` is then empty.
    dated : Dated
        Which figures are dates, in days since 1970-01-01.
    """

    parameters: Mapping[str, Scalar]
    densities: Mapping[str, Density]
    acceptance: Acceptance
    seconds: float
    ess_per_second: Mapping[str, float | None]
    remarks: tuple[Remark, ...]
    level: float
    series: Mapping[str, Floats] = field(repr=False)
    chain_ids: NDArray[np.int64] = field(repr=False)
    released: Floats = field(repr=False)
    n: int = field(repr=False)
    band_draws: int = field(repr=False)
    provenance: Provenance = field(repr=False)
    quantities: Mapping[str, Quantity]
    hellinger: float | None = None
    joint: Joint | None = field(default=None, repr=False)
    n_clusters: ClusterCounts | None = None
    clustering: Clustering | None = None
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    compositions: Mapping[str, Any] = field(default_factory=dict)
    prior: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    by_class: tuple[ByClass, ...] = ()
    tally: Counts | None = field(default=None, repr=False)
    dated: Dated = NONE

    def shown(self, name: str) -> str:
        """Return a scalar's name as it is shown: prediction[income = 500]."""
        return shown_name(name, self.labels)

    @property
    def composition(self) -> Any:
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

    def quantity(self, kind: type[Found]) -> Found | None:
        """Return the quantity of a class; None where it is not reported."""
        return next((found for found in self.quantities.values() if isinstance(found, kind)), None)

    @property
    def beyond_bounds(self) -> Mapping[str, float]:
        """Share of the latent records beyond the public bounds under the fit, see `Beyond`; may be empty."""
        found = self.quantity(Beyond)
        return {} if found is None else found.shares

    @property
    def check(self) -> Check:
        """The release beside replicates from the posterior."""
        return self.quantity(Check) or Check()

    @property
    def loo(self) -> Loo | None:
        """Leave-one-out cross-validation, where it was asked for."""
        return self.quantity(Loo)

    @property
    def information(self) -> InformationKept | None:
        """What the cells of ``sampler.kind: counts`` keep of the information in the release."""
        return self.quantity(InformationKept)

    @property
    def clusters_by_value(self) -> ClustersByValue | None:
        """How probable each cluster is by value, of a fit by ``sampler.kind: counts``."""
        return self.quantity(ClustersByValue)

    @property
    def predictions(self) -> Predictions | None:
        """Of the records of `summary.at`, where that was given."""
        return self.quantity(Predictions)

    @property
    def sensitivity(self) -> Sensitivity:
        """How much what is reported depends on the prior."""
        return self.quantity(Sensitivity) or Sensitivity()

    @property
    def variance_shares(self) -> VarianceShares:
        """Where the uncertainty of mean, median and density comes from."""
        return self.quantity(VarianceShares) or VarianceShares()

    @cached_property
    def tree(self) -> Tree:
        """Everything that is reported.

        With several columns `density` and `distribution` hold one object a column, by name, and `joint` what
        concerns them all; with several groups these and `composition` hold one a group. What a model does not
        have is None, and `distribution` is there only for those that have one.
        """
        table, speed = parameter_sections(
            self.parameters, self.ess_per_second, self.labels, self._meaning(), self.dated
        )
        subject = self.provenance.subject
        written = {
            name: scalar.as_dates() if self.dated.is_date(name) else scalar
            for name, scalar in self.parameters.items()
        }
        shares, dates = bool(self.compositions), self.dated.columns
        answer = answer_of(written, self.labels, subject, self.verdict, shares=shares, dates=dates)
        unit = subject.unit if subject.unit is None or isinstance(subject.unit, str) else dict(subject.unit)
        curves = density_sections(self.densities, self.hellinger, self.joint, self.level, self.dated)
        found = [table, *curves]
        interval = "confidence intervals" if self.source == "bootstrap" else "intervals"
        if self.distributions:
            found.append(
                distribution_section(self.distributions, self.level, shares=shares, interval=interval)
            )
        if self.compositions:
            found.append(self.composition.together(self.compositions, self.level))
        found += [
            ResultSection("n_clusters", None) if self.n_clusters is None else self.n_clusters.section(),
            ResultSection("clustering", None) if self.clustering is None else self.clustering.section(),
            self.acceptance.section(),
        ]
        if self.prior:
            words = f"Prior: {self.prior[0].lower()}{self.prior[1:]}"
            found.append(ResultSection("prior", self.prior, text=[[words]]))
        order = sorted(self.quantities, key=lambda key: place_in(_QUANTITIES.split(), key))
        found += [self.quantities[key].section() for key in order]
        found += [self.verdict.section(), ResultSection("unit", Each(unit, unit_text(subject.unit)))]
        found += [ResultSection("seconds", self.seconds), speed, warnings_section(self.warnings)]
        found.append(ResultSection("model", title="What the model says"))
        traces = "Traces and ranks" if len(self.chain_ids) > 1 else "Traces"
        found += [ResultSection("traces", title=traces), self.provenance.section(self.prior)]
        return Tree(
            "Posterior of a release",
            "What the release says about the data",
            self.provenance.guarantee,
            tuple(found),
            self.warnings,
            calm=f"No warnings: R-hat is at most {RHAT} and both effective sample sizes are at least "
            f"{ESS:.0f} for every scalar.",
            lead=self.composition.lead if self.compositions else "",
            text_order=_TEXT.split(),
            page_order=_PAGE.split(),
            answer=answer,
            level=self.level,
            folded=_FOLDED.split() + ([] if self.variance_shares.named() else ["variance_shares"]),
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the results can be used, and why."""
        named = {self.shown(name): scalar for name, scalar in self.parameters.items()}
        return verdict_of(
            named,
            self.check,
            self.quantity(Beyond),
            self.quantity(CellShares),
            self.quantity(ShapeContraction),
            self.remarks,
            bootstrap=self.source == "bootstrap",
        )

    def _meaning(self) -> str:
        """Say what the scalars are."""
        if self.n_clusters is not None:
            return (
                "None of these depends on how clusters are numbered. **mean**, **sd** and **quantile[q]** "
                "are those of a record under the random density, **density[y]** is that density at y, "
                "**tail[y]** and **cdf[y]** are the probabilities of values above y and up to it, **gini** "
                "is the Gini coefficient of a record cut to the public bounds. "
            )
        if self.composition is not None:
            return str(self.composition.of_scalars)
        if any(name.startswith("count[") for name in self.parameters):
            return (
                "**p[c]** is the probability of a category, **count[c]** the confidential number of records "
                "in it, which the release tells with noise. "
            )
        if any(density.group for density in self.densities.values()):
            return (
                "None of these depends on how clusters are numbered. **mean**, **sd** and **quantile** are "
                "those of a record of the group under its random density, **group_share** is the probability "
                "that a record is of the group, **group_size** the confidential number of those that are, "
                "which the release tells with noise. "
            )
        if self.distributions:
            return (
                "All are functionals of the random distribution of a record: its mean, standard deviation "
                "and quantiles, **tail[y]**, the probability of a value above y, and **probability[c]** of a "
                "category. "
            )
        return ""
