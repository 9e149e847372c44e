"""Results about compositions: ellipsoids, censoring, comparison with a truth; and warnings about them.

Threshold, noise or method may make an answer unreliable: Guo, Barrientos and Pena, sections 3.1.1
(censoring), 3.2 (range of the means) and 4.1 (n, epsilon).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from dpmix.laws.every import expect
from dpmix.mechanisms.log_moments.law import LogMomentsLaw
from dpmix.numerics.in_words import all_of, figure
from dpmix.results.nodes import (
    Array,
    Block,
    Each,
    Note,
    Remark,
    ResultSection,
    Table,
    TableColumn,
    by_name,
    percent,
)

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import ChainSet

BOOTSTRAP = (
    "Draws are of a parametric bootstrap, not of a posterior: intervals and ellipsoids are confidence "
    "regions, and no prior is used."
)
_CATEGORIES = 5  # named on the terminal


@dataclass(frozen=True)
class Ellipsoid:
    """The points x with (x - centre)' V^+ (x - centre) <= radius^2, V^+ the inverse of the covariance.

    Of shares, which sum to one, V has no inverse; V^+ is then its Moore-Penrose inverse, and x sums to one.

    Parameters
    ----------
    centre : float64 array (d,)
        Mean of the draws.
    covariance : float64 array (d, d)
        Of the draws.
    radius : float
        Such that a share `level` of the draws lies inside.
    level : float
    shares : bool
        Whether the points sum to one.
    """

    centre: Floats
    covariance: Floats
    radius: float
    level: float
    shares: bool = False

    @classmethod
    def of(cls, draws: Floats, level: float, *, shares: bool = False) -> Ellipsoid:
        """Return the ellipsoid of draws (size, d)."""
        d = draws.shape[1]
        covariance = np.cov(draws, rowvar=False) if len(draws) > 1 else np.zeros((d, d))
        found = cls(draws.mean(axis=0), covariance, 0.0, level, shares)
        return cls(found.centre, covariance, float(np.quantile(found.distances(draws), level)), level, shares)

    def distances(self, points: Floats) -> Floats:
        """Return the Mahalanobis distance of points (size, d) from the centre."""
        # of points that sum to one, all coordinates but one say it all
        kept = len(self.centre) - 1 if self.shares else len(self.centre)
        apart = (points - self.centre)[:, :kept]
        inverse = np.linalg.pinv(self.covariance[:kept, :kept], hermitian=True)
        squares = np.einsum("ij,jk,ik->i", apart, inverse, apart)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def holds(self, points: Floats) -> NDArray[np.bool_]:
        """Say which of the points (size, d) lie inside."""
        return self.distances(points) <= self.radius

    def data(self, components: Sequence[str]) -> dict[str, Any]:
        """Return what is held of it."""
        names = {dim: Each(hdf5=Array((dim,), components)) for dim in ("component", "component2")}
        return {
            **names,
            "centre": Array(("component",), self.centre),
            "covariance": Array(("component", "component2"), self.covariance),
            "radius": self.radius,
            "level": self.level,
        }


@dataclass(frozen=True)
class Censoring:
    """What censoring and noise do to the means of log max(x, a), by component.

    Parameters
    ----------
    threshold : float
        a.
    share : float64 array (d,)
        Mean of Pr(x_j < a) over the draws.
    lower, upper : float64 arrays (d,)
        Its equal-tailed interval.
    bias : float64 array (d,)
        E[log max(x_j, a)] - E[log x_j], averaged over draws.
    size : float
        Records behind a mean, of the larger part of two; of a group, whose size is private, the posterior
        mean of that.
    noise_sd : float
        Standard deviation of the noise on a mean, of the larger part of two.
    sampling_sd : float64 array (d,)
        Standard deviation that the mean has without noise.
    uncensored_records : float or None
        Share of the records that have no censored entry, by the noisy scores that the threshold was chosen
        by; None where it was not chosen.
    """

    threshold: float
    share: Floats
    lower: Floats
    upper: Floats
    bias: Floats
    size: float
    noise_sd: float
    sampling_sd: Floats
    uncensored_records: float | None

    @property
    def total_sd(self) -> Floats:
        """Standard deviation of each released mean."""
        return np.asarray(np.sqrt(self.noise_sd**2 + self.sampling_sd**2))

    def data(self, components: Sequence[str]) -> dict[str, Any]:
        """Return what is held of it."""
        return {
            "component": Each(hdf5=Array(("component",), components)),
            "threshold": self.threshold,
            "share": Array(("component",), self.share),
            "lower": Array(("component",), self.lower),
            "upper": Array(("component",), self.upper),
            "overall": float(self.share.mean()),
            "bias": Array(("component",), self.bias),
            "size": self.size,
            "noise_sd": self.noise_sd,
            "sampling_sd": Array(("component",), self.sampling_sd),
            "uncensored_records": self.uncensored_records,
        }


@dataclass(frozen=True)
class Truth:
    """How far a fit to simulated compositions is from the alpha that they were drawn with.

    Parameters
    ----------
    alpha : float64 array (d,)
    squared_error_alpha, squared_error_mean : float
        Squared distance of alpha, and of E[x | alpha], from the truth, averaged over draws.
    covers_alpha, covers_mean : bool
        Whether the ellipsoids hold the truth.
    record_coverage : float
        Probability that the ellipsoid of a predictive record holds a record drawn with the true alpha.
    """

    alpha: Floats
    squared_error_alpha: float
    squared_error_mean: float
    covers_alpha: bool
    covers_mean: bool
    record_coverage: float

    def data(self, components: Sequence[str]) -> dict[str, Any]:
        """Return what is held of it."""
        names = Each(hdf5=Array(("component",), components))
        return {"component": names, **vars(self), "alpha": Array(("component",), self.alpha)}

    def in_words(self, level: float) -> str:
        """Say which regions hold the truth, and how far off the fit is."""
        held = [("alpha", self.covers_alpha), ("E[x]", self.covers_mean)]
        ellipsoids = ", ".join(f"{'holds' if inside else 'misses'} {name}" for name, inside in held)
        return (
            f"the {100 * level:g}% ellipsoid {ellipsoids}; that of a record holds "
            f"{100 * self.record_coverage:.1f}% of records; mean squared error of alpha "
            f"{self.squared_error_alpha:.3g}, of E[x] {self.squared_error_mean:.3g}"
        )


@dataclass(frozen=True)
class ChosenThreshold:
    """What draws are given of the choice among several thresholds.

    Parameters
    ----------
    told : bool
        Whether the release tells the noisy scores that it was made by.
    used : bool
        Whether the draws are given these.
    """

    told: bool
    used: bool

    def in_words(self) -> str:
        """Say what they are given."""
        if self.used:
            return (
                "Given all that was released: the mean logarithms, and the scores that chose the threshold."
            )
        why = "are left out" if self.told else "are not told"
        return (
            "Given the mean logarithms alone, as if the threshold had been fixed: the scores that chose it "
            f"{why}."
        )


@dataclass(frozen=True)
class CompositionResults:
    """What is reported of compositions alone.

    Parameters
    ----------
    components : tuple of str
        Names of the shares.
    sampler : str
        The method behind the draws.
    ellipsoids : mapping of str to Ellipsoid
        Of `alpha`, of `mean` (E[x | alpha]) and of a predictive `record`.
    censoring : Censoring
    truth : Truth or None
        Comparison with `summary.truth`, where it is given.
    group : str
        The group of records that it is of; empty where there is only one.
    chosen : ChosenThreshold or None
        What the draws are given of the choice among several thresholds; None where there was one.
    """

    components: tuple[str, ...]
    sampler: str
    ellipsoids: Mapping[str, Ellipsoid]
    censoring: Censoring
    truth: Truth | None
    group: str = ""
    chosen: ChosenThreshold | None = None

    @property
    def is_bootstrap(self) -> bool:
        """Whether the draws are of a bootstrap, and not of a posterior."""
        return self.sampler == "bootstrap"

    @property
    def lead(self) -> str:
        """What comes first of all; empty for most methods."""
        return BOOTSTRAP if self.is_bootstrap else ""

    of_scalars: ClassVar[str] = (
        "**alpha** are the parameters of the Dirichlet distribution of a record, **E[x]** the expected "
        "shares, alpha over its sum. "
    )

    def data(self) -> dict[str, Any]:
        """Return what is held of it."""
        ellipsoids = {name: found.data(self.components) for name, found in self.ellipsoids.items()}
        return {
            "components": Each(list(self.components)),
            "method": self.sampler,
            "interpretation": "confidence" if self.is_bootstrap else "posterior",
            "ellipsoid": ellipsoids,
            "censoring": self.censoring.data(self.components),
            **({} if self.chosen is None else {"scores_used": self.chosen.used}),
            **({} if self.truth is None else {"truth": self.truth.data(self.components)}),
        }

    def in_brief(self, level: float) -> list[str]:
        """Say how many entries are censored, and where the truth is."""
        censoring = self.censoring
        first = np.argsort(-censoring.share, kind="stable")[:_CATEGORIES]
        listed = ", ".join(f"{self.components[j]} {percent(censoring.share[j])}" for j in first)
        about = f" in {self.group}" if self.group else ""
        text = (
            f"Censored below {censoring.threshold:g}{about}, under the fit: "
            f"{percent(censoring.share.mean())} of all entries ({listed})"
        )
        return [text, *([] if self.truth is None else [f"Truth: {self.truth.in_words(level)}"])]

    def part(self, level: float) -> ResultSection:
        """Return what pages show below its picture."""
        censoring = self.censoring
        ends = zip(censoring.lower, censoring.upper, strict=True)
        intervals = [f"{percent(low)} to {percent(high)}" for low, high in ends]
        size = len(self.components)
        columns = [
            TableColumn("share", censoring.share.tolist(), "censored", percent),
            TableColumn("interval", intervals, "interval", str),
            TableColumn("bias", censoring.bias.tolist(), "bias", ".3g"),
            TableColumn("noise_sd", [censoring.noise_sd] * size, "noise sd", ".3g"),
            TableColumn("sampling_sd", censoring.sampling_sd.tolist(), "own sd", ".3g"),
        ]
        how = "does not correct" if self.is_bootstrap else "accounts for"
        note = (
            f"**censored**: share of entries below the threshold {censoring.threshold:g} under the fit. "
            "**bias**: how far that moves the mean logarithm, E log max(x, a) - E log x, which this method "
            f"{how}. **noise sd** and **own sd**: standard deviations of a released mean, of its noise and "
            "without noise."
        )
        if censoring.uncensored_records is not None:
            note += (
                f" By the noisy scores of the release {percent(censoring.uncensored_records)} of the records "
                "have no censored entry."
            )
        shown: list[Block] = [Table("component", self.components, columns), Note(note)]
        if self.chosen is not None:
            shown.append(self.chosen.in_words())
        if self.truth is not None:
            shown.append(f"Against the truth of the simulation: {self.truth.in_words(level)}.")
        return ResultSection(f"composition/{self.group}", title=self.group, page=shown)

    @staticmethod
    def together(compositions: Mapping[str, CompositionResults], level: float) -> ResultSection:
        """Return what is reported of compositions, by group where there are several."""
        brief = [line for found in compositions.values() for line in found.in_brief(level)]
        chosen = next(iter(compositions.values())).chosen
        if chosen is not None:
            brief = [chosen.in_words(), *brief]
        if any(found.is_bootstrap for found in compositions.values()):
            brief = [BOOTSTRAP, *brief]
        return ResultSection(
            "composition",
            by_name({name: found.data() for name, found in compositions.items()}),
            "Joint regions, censoring and noise",
            brief,
            page=(),
            parts=[found.part(level) for found in compositions.values()],
        )


# Warnings


LARGE = 1000
"""Records up to which a sample is small in the paper's simulations, which have 1000 and 5000."""
MOSTLY_CENSORED = 0.5
"""Share of censored entries from which on a release says little of a component."""
NOISY = 2.0
"""Noise over sampling error, as standard deviations of a released mean, from which on noise dominates."""
BIASED = 0.5
"""Bias over the standard deviation of a released mean from which on a 95% interval covers less than 93%."""
REDRAWN = 0.05
RUN_OFF = 5.0
"""Distance of fitted from released means, in standard deviations, that no fit of the release has."""
LOOSE = 2.0
"""Tolerance of simulations over the distance of two releases of one alpha from which on it widens results."""
APPROXIMATE = ("replicated", "abc", "normal_approximation")
AWARE = ("data_augmentation", "soma", "replicated", "abc", "normal_approximation")
"""Methods that account for censoring; the bootstrap takes censored means for means of all logarithms."""


def composition_remarks(groups: Sequence[CompositionResults], chains: ChainSet) -> list[Remark]:
    """Say what speaks against trusting a fit of compositions, and what to do about it.

    Parameters
    ----------
    groups : sequence of Composition
        What is reported of it, of each group or of all records.
    chains : ChainSet
        For the release.
    """
    texts = []
    for number, found in enumerate(groups):
        own = _censored(found)
        own += _outside(_released_means(found, number, len(groups), chains), found.censoring)
        own += _noise(found)
        texts += [f"{found.group}: {text}" if found.group else text for text in own]
    found = groups[0]
    remarks = [Remark(text, convergence=False) for text in texts]
    remarks += _sizes(found, chains)
    remarks += [Remark(text, convergence=False, grave=False) for text in _tolerance(found, chains)]
    remarks += [Remark(text, convergence=False, grave=True) for text in _run_off(found, chains)]
    redrawn = chains.constants.get("bootstrap_redrawn", 0.0)
    if found.is_bootstrap and redrawn > REDRAWN:
        text = (
            f"{100 * redrawn:.0f}% of the refits had no maximum and were drawn again: the bootstrap "
            "distribution leaves out what they stand for; use sampler.kind: data_augmentation."
        )
        remarks.append(Remark(text, convergence=False))
    return remarks


def _censored(found: CompositionResults) -> list[str]:
    censoring, names, texts = found.censoring, found.components, []
    much = [j for j in range(len(names)) if censoring.share[j] >= MOSTLY_CENSORED]
    if much:
        listed = all_of([f"{names[j]} ({100 * censoring.share[j]:.0f}%)" for j in much])
        texts.append(
            f"Most entries of {listed} are below the threshold {censoring.threshold:g} under the fit, and "
            "censored: the release says little of them; have it made with a smaller threshold."
        )
    if found.sampler in AWARE:
        return texts
    ratio = censoring.bias / censoring.total_sd
    biased = [j for j in range(len(names)) if ratio[j] >= BIASED]
    if biased:
        listed = all_of([f"{names[j]} ({ratio[j]:.1f})" for j in biased])
        texts.append(
            f"Censoring at {censoring.threshold:g} moves the mean logarithm of {listed} by more than half "
            "its standard deviation (in brackets, in standard deviations), which the bootstrap does not "
            "correct: use sampler.kind: data_augmentation, which does, or have the release made with a "
            "smaller threshold."
        )
    whole = censoring.uncensored_records
    if whole is not None and whole < 0.9:
        texts.append(
            f"By the noisy scores of the release about {100 * whole:.0f}% of the records have no censored "
            "entry, and the bootstrap takes them all to have none: use sampler.kind: data_augmentation."
        )
    return texts


def _released_means(found: CompositionResults, number: int, groups: int, chains: ChainSet) -> Floats:
    """Return the released means (parts, d); of a group, its noisy sums over its posterior mean size."""
    values: Floats = np.asarray(chains.observed, dtype=np.float64).ravel()
    d = len(found.components)
    if not found.group:
        return values.reshape(-1, d)
    sums = values[groups - 1 + number * d :][:d]
    law = expect(chains.mechanism, LogMomentsLaw)
    return np.asarray(float(law.centre) + sums / found.censoring.size)[None]


def _outside(means: Floats, censoring: Censoring) -> list[str]:
    """Say when released means (parts, d) are none that compositions give."""
    low = math.log(censoring.threshold)
    texts = []
    for part, values in enumerate(means):
        which = f" of part {part + 1}" if len(means) > 1 else ""
        if (values >= 0.0).any() or np.exp(values).sum() >= 1.0:
            texts.append(
                f"The released means{which} are larger than those of any compositions without censoring "
                "(negative, their exponentials summing to less than 1): noise or censoring are large beside "
                "what they say; ask for a larger epsilon, or a smaller threshold."
            )
        elif (values < low).any():
            texts.append(
                f"A released mean{which} is below log {censoring.threshold:g}, the least that a censored "
                "mean can be: noise is large beside what the release says; ask for a larger epsilon."
            )
    return texts


def _noise(found: CompositionResults) -> list[str]:
    censoring, names = found.censoring, found.components
    ratio = censoring.noise_sd / np.maximum(censoring.sampling_sd, 1e-300)
    high = [j for j in range(len(names)) if ratio[j] >= NOISY]
    if not high:
        return []
    prior = "" if found.is_bootstrap else "depend on the prior, and "
    listed = all_of([f"{names[j]} ({ratio[j]:.3g})" for j in high])
    return [
        f"The noise on the mean logarithm of {listed} is the larger part of its error (in brackets: its "
        f"standard deviation over that of the mean itself): results {prior}move from release to release; "
        "a larger epsilon or threshold has less noise."
    ]


def _sizes(found: CompositionResults, chains: ChainSet) -> list[Remark]:
    """Say what the paper says of n and epsilon."""
    epsilon, n = float(chains.attrs.get("epsilon", math.nan)), chains.n
    remarks: list[Remark] = []
    if not math.isfinite(epsilon):
        return remarks
    small = epsilon < 1.0 - 1e-6  # noise is drawn on a grid, a little above its formula
    if found.sampler in APPROXIMATE and (n <= LARGE or small):
        text = (
            f"{found.sampler} is an approximation that is recommended for large n and epsilon of 1 or more, "
            f"and here n = {n} and epsilon = {figure(epsilon, 3)}: use sampler.kind: data_augmentation, or "
            "see that other methods agree."
        )
        remarks.append(Remark(text, convergence=False, grave=False))
    if n > LARGE and small:
        text = (
            f"Proceed with caution: n = {n} is large and epsilon = {figure(epsilon, 3)} is below 1, where "
            "methods for compositions can be far off; compare data_augmentation with bootstrap, and with a "
            "release of larger epsilon where there is one."
        )
        remarks.append(Remark(text, convergence=False))
    return remarks


def _tolerance(found: CompositionResults, chains: ChainSet) -> list[str]:
    """Say when simulations are kept that are far from the release."""
    tolerance = chains.constants.get("abc_tolerance")
    if found.sampler != "abc" or tolerance is None:
        return []
    usual = math.sqrt(2.0 * float((found.censoring.total_sd**2).sum()))
    if tolerance < LOOSE * usual:
        return []
    return [
        f"abc keeps simulations within {tolerance:.3g} of the release, {tolerance / usual:.3g} times as "
        "far as two releases of one alpha usually are from each other: results are wider than the posterior; "
        "use a smaller sampler.keep, a prior from a part of the records (mechanism.split with p2 or p5), or "
        "sampler.kind: data_augmentation."
    ]


def _run_off(found: CompositionResults, chains: ChainSet) -> list[str]:
    """Say when pseudo-records have drawn alpha away from what was released."""
    inner = found.ellipsoids.get("alpha")
    if found.sampler != "replicated" or inner is None:
        return []
    alpha, d = inner.centre, len(found.components)
    fitted = digamma(alpha) - digamma(alpha.sum()) + found.censoring.bias
    sizes = [
        chains.constants.get(f"n{part + 1}", float(chains.n)) for part in range(len(chains.observed) // d)
    ]
    means = np.asarray(chains.observed, dtype=np.float64).reshape(-1, d)
    gap = float(np.max(np.abs(fitted - np.average(means, axis=0, weights=sizes)) / found.censoring.total_sd))
    improper = 1.0 - chains.constants.get("pseudo_records", math.inf) / max(sizes)
    if gap <= RUN_OFF and (alpha > improper).all():
        return []
    return [
        "replicated has drawn alpha away from the release: powers of the density of a few pseudo-records "
        "favour compositions that are alike, and have no integral at all where an alpha is below 1; use "
        "sampler.kind: data_augmentation."
    ]
