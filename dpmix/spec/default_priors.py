"""Base measures that follow the public bounds, so that no default has units (methods, section 15)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from dpmix.spec.days import alike

__all__ = [
    "TRUNCATED_MEANS",
    "coefficients_in_words",
    "BETA",
    "CONCENTRATION",
    "NIG",
    "NIW",
    "RECORDS_SD",
    "SCALE_SHAPE",
    "nig_from_bounds",
    "niw_from_bounds",
    "prior_in_words",
]

Pair = tuple[float, float]

ERRORS_SHAPE: Final = 3.0
ERRORS_SCALE: Final = 0.25
"""Of the inverse-gamma prior of the variance of a regression's errors, the response rescaled to [-1, 1]."""
TRUNCATED_MEANS: Final = (
    "The errors are truncated to the bounds of the response: beta and sigma2 are of the normal law before "
    "that, so that beta is not the slope of the mean response; prediction is the mean response, within the "
    "bounds."
)
"""What coefficients are where `model.response` is truncated."""
CONCENTRATION: Final = (2.0, 1.0)
"""Shape and rate of the gamma prior of the concentration, where a spec states none."""


RECORDS_SD: Final = (0.0053, 0.54)
"""Between these shares of the bounds' width the standard deviation of the records is with probability 0.95
under the defaults of base and concentration together; simulated (`tests/exact/test_columns.py`)."""
RECORDS_SD_FIXED: Final = (0.078, 0.4)
"""Likewise where the base measure stays as the bounds have it."""
SCALE_SHAPE: Final = 0.5
"""Shape of the gamma prior of a learned scale of the base measure: its root is half-normal, so that no
standard deviation below those that the bounds suggest is ruled out."""


class NIG(NamedTuple):
    """variance ~ InverseGamma(a, scale b), mean | variance ~ N(mu0, variance / lam)."""

    mu0: float
    lam: float
    a: float
    b: float

    @property
    def cluster_sd(self) -> float:
        """Root of the prior mean of a cluster's variance; infinite for a <= 1."""
        return math.sqrt(self.b / (self.a - 1.0)) if self.a > 1.0 else math.inf

    @property
    def mean_sd(self) -> float:
        """Prior standard deviation of a cluster's mean."""
        return self.cluster_sd / math.sqrt(self.lam)

    @property
    def record_sd(self) -> float:
        """Prior standard deviation of one record."""
        return math.hypot(self.cluster_sd, self.mean_sd)


class NIW(NamedTuple):
    """covariance ~ InverseWishart(nu, diag psi), mean | covariance ~ N(mu0, covariance / lam)."""

    mu0: tuple[float, ...]
    lam: float
    nu: float
    psi: tuple[float, ...]

    def column(self, number: int) -> NIG:
        """Return the base measure of one column."""
        shape = 0.5 * (self.nu - len(self.mu0) + 1.0)
        return NIG(self.mu0[number], self.lam, shape, 0.5 * self.psi[number])


class Gammas(NamedTuple):
    """a ~ Gamma(a_shape, a_rate), b ~ Gamma(b_shape, b_rate), of a beta kernel."""

    a_shape: float
    a_rate: float
    b_shape: float
    b_rate: float


BETA: Final = Gammas(2.0, 0.2, 2.0, 0.2)
"""The default of beta kernels, which live on [0, 1] and so have no units."""


def nig_from_bounds(pair: Pair) -> NIG:
    """Return the default on [lo, hi]: a cluster's sd is about D/10, its mean has a prior sd of D/4."""
    lo, hi = pair
    return NIG(lo + 0.5 * (hi - lo), 0.16, 3.0, (hi - lo) ** 2 / 50.0)


def niw_from_bounds(pairs: Sequence[Pair]) -> NIW:
    """Return the default for several columns, which gives each the prior of `nig_from_bounds`."""
    each = [nig_from_bounds(pair) for pair in pairs]
    d = float(len(each))
    return NIW(tuple(c.mu0 for c in each), 0.16, d + 5.0, tuple(2.0 * c.b for c in each))


def coefficients_in_words(
    bounds: Sequence[Pair],
    mean: Sequence[float],
    sd: Sequence[float],
    names: Sequence[str],
    *,
    truncated: bool = False,
) -> str:
    """Say what normal priors of a regression's coefficients mean in the units of the data.

    Parameters
    ----------
    bounds : sequence of (lo, hi)
        Of each predictor, and the response's last; those of dates are `Day`.
    mean, sd : sequence of float
        Of the coefficients of variables rescaled to [-1, 1], the intercept first.
    names : sequence of str
        Of the predictors.
    truncated : bool
        Whether errors are truncated to the bounds of the response.
    """
    what = "the response before truncation" if truncated else "the mean response"
    half = [0.5 * (hi - lo) for lo, hi in bounds]
    middle = alike(bounds[-1][0] + half[-1] * (1.0 + mean[0]), bounds[-1][0])
    ratios = [half[-1] / width for width in half[:-1]]
    slopes = ", ".join(
        f"{m * ratio:.3g} +- {s * ratio:.3g} on {name}"
        for name, m, s, ratio in zip(names, mean[1:], sd[1:], ratios, strict=True)
    )
    return (
        f"a priori {what} in the middle of the predictors' bounds is {middle:.4g} +- "
        f"{half[-1] * sd[0]:.3g}, with slope{'s' * (len(names) > 1)} {slopes}"
    )


def prior_in_words(base: NIG, name: str = "", *, learned: bool = False) -> str:
    """Say what a base measure means, in the units of the data.

    Parameters
    ----------
    base : NIG
        Of one column.
    name : str
        Of the column, where there are several.
    learned : bool
        Whether its place and scale are learned, and `base` is at the means of their priors.
    """
    about = f" of {name}" if name else ""
    if not math.isfinite(base.cluster_sd):
        return f"a priori a cluster's mean{about} is near {base.mu0:.4g}, and no record has a finite variance"
    if learned:
        return (
            f"a priori clusters{about} lie around a place of {base.mu0:.4g} +- {base.mean_sd:.3g} with "
            f"standard deviations of about {base.cluster_sd:.3g} or less, place and scale learned with them"
        )
    return (
        f"a priori a cluster's mean{about} is {base.mu0:.4g} +- {base.mean_sd:.3g}, its standard deviation "
        f"about {base.cluster_sd:.3g}; the standard deviation of a record is {base.record_sd:.4g}"
    )
