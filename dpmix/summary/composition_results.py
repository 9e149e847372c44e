"""Results about compositions: ellipsoids, what censoring does, and comparison with a truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.summary.families.family import Floats

__all__ = ["Censoring", "Composition", "Ellipsoid", "Truth"]


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

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        return {
            "centre": self.centre,
            "covariance": self.covariance,
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

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        return {
            "threshold": self.threshold,
            "share": self.share,
            "lower": self.lower,
            "upper": self.upper,
            "overall": float(self.share.mean()),
            "bias": self.bias,
            "size": self.size,
            "noise_sd": self.noise_sd,
            "sampling_sd": self.sampling_sd,
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

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        return {
            "alpha": self.alpha,
            "squared_error_alpha": self.squared_error_alpha,
            "squared_error_mean": self.squared_error_mean,
            "covers_alpha": self.covers_alpha,
            "covers_mean": self.covers_mean,
            "record_coverage": self.record_coverage,
        }


@dataclass(frozen=True)
class Composition:
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

    def contents(self) -> dict[str, Any]:
        """Return what summary files and JSON hold of it."""
        return {
            "components": list(self.components),
            "method": self.sampler,
            "interpretation": "confidence" if self.is_bootstrap else "posterior",
            "ellipsoid": {name: found.contents() for name, found in self.ellipsoids.items()},
            "censoring": self.censoring.contents(),
            **({} if self.truth is None else {"truth": self.truth.contents()}),
        }
