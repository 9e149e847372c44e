"""Results about compositions: ellipsoids, what censoring does, and comparison with a truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Array, Block, Each, Note, ResultSection, Table, TableColumn, by_name, percent
from dpmix.summary.families.family import Floats

__all__ = ["BOOTSTRAP", "Censoring", "CompositionResults", "Ellipsoid", "Truth", "composition_section"]

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
    """

    components: tuple[str, ...]
    sampler: str
    ellipsoids: Mapping[str, Ellipsoid]
    censoring: Censoring
    truth: Truth | None
    group: str = ""

    @property
    def is_bootstrap(self) -> bool:
        """Whether the draws are of a bootstrap, and not of a posterior."""
        return self.sampler == "bootstrap"

    def data(self) -> dict[str, Any]:
        """Return what is held of it."""
        ellipsoids = {name: found.data(self.components) for name, found in self.ellipsoids.items()}
        return {
            "components": Each(list(self.components)),
            "method": self.sampler,
            "interpretation": "confidence" if self.is_bootstrap else "posterior",
            "ellipsoid": ellipsoids,
            "censoring": self.censoring.data(self.components),
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
        if self.truth is not None:
            shown.append(f"Against the truth of the simulation: {self.truth.in_words(level)}.")
        return ResultSection(f"composition/{self.group}", title=self.group, page=shown)


def composition_section(compositions: Mapping[str, CompositionResults], level: float) -> ResultSection:
    """Return what is reported of compositions, by group where there are several."""
    brief = [line for found in compositions.values() for line in found.in_brief(level)]
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
