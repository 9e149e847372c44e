"""Summaries and convergence diagnostics of scalar series, through arviz-stats."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

MIN_DRAWS = 4
MOVED = 0.5
"""Contraction of the central 95% from which on a posterior beyond the prior's quartiles was moved there."""
_NOTHING = 1e-100  # of the posterior's range: a prior whose range is less does not vary


@functools.cache
def arviz() -> Any:
    """Return the functions of arviz-stats on arrays, imported late: fits know this module, and need none."""
    from arviz_stats.base import array

    return array.array_stats  # arviz-stats has types, but not for these


@dataclass(frozen=True)
class Scalar:
    """One scalar's posterior and how well the chains know it; None where a figure does not exist.

    Parameters
    ----------
    mean, sd : float
        Over all draws of all chains.
    quantiles : dict of str to float
        At the ends of the equal-tailed interval and the median; keys are the levels.
    rhat : float or None
        Rank-normalised split R-hat (Vehtari et al. 2021), the larger of its bulk and folded versions.
    ess_bulk, ess_tail : float or None
        Effective sample sizes; the tail's at the ends of the interval.
    mcse : float or None
        Monte Carlo standard error of the mean.
    note : str or None
        Why a figure is None, in words.
    stuck_apart : bool
        Whether every chain is constant, at values that differ (R-hat is then infinite).
    contraction : float or None
        1 - (IQR / IQR of the prior)^2: what the release taught (see `contraction`).
    beside_prior : str
        What that figure does not tell: "wider" or "moved" (see `beside_prior`); else empty.
    held_up : bool
        Whether the prior, and not the release, ends the interval below (see `dpmix.summary.prior.held_up`).
    prior : tuple of float, optional
        The prior's quantiles at the levels of `quantiles`, where draws from it are known.
    """

    mean: float
    sd: float
    quantiles: dict[str, float]
    rhat: float | None
    ess_bulk: float | None
    ess_tail: float | None
    mcse: float | None
    note: str | None
    stuck_apart: bool = False
    contraction: float | None = None
    beside_prior: str = ""
    held_up: bool = False
    prior: tuple[float, ...] | None = None


def levels(level: float) -> tuple[float, float, float]:
    """Lower end, median and upper end of the equal-tailed interval of probability `level`."""
    return round(0.5 * (1.0 - level), 12), 0.5, round(0.5 * (1.0 + level), 12)


def contraction(posterior: Floats, prior: Floats | None) -> float | None:
    """Return 1 - (IQR of the posterior / IQR of the prior)^2; None without a prior that varies.

    Interquartile ranges, since variances of priors may be infinite (methods, section 15). 1 where the prior
    does not matter, 0 where nothing was learnt, negative where the posterior is the wider: release and prior
    are in conflict.
    """
    if prior is None:
        return None
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        before, after = (
            float(np.subtract(*np.quantile(draws, (0.75, 0.25)))) for draws in (prior, posterior)
        )
    if not np.isfinite(before) or before <= after * _NOTHING:
        return None
    return 1.0 - (after / before) ** 2


def beside_prior(posterior: Floats, prior: Floats | None, effective: float) -> str:
    """Say how the posterior lies beside the prior, where its contraction is small or negative.

    The range between quartiles is narrow where a prior piles up, as the J-shaped one of a probability under a
    Dirichlet process with little concentration does: a posterior elsewhere may then be the wider by it, and
    far narrower than the prior as a whole. So the central 95% are looked at, too.

    Parameters
    ----------
    posterior : float64 array
    prior : float64 array or None
        Independent draws.
    effective : float
        How many independent draws those of the posterior are worth.

    Returns
    -------
    str
        "wider": between quartiles and over the central 95% the posterior is wider than the prior, by more
        than the Monte Carlo error of both (two standard errors of each quantile): release and prior are in
        conflict. "moved": the posterior's median is outside the prior's quartiles, and its central 95% are
        narrower than the prior's by a contraction of `MOVED` or more: the release speaks. Else empty.
    """
    if prior is None:
        return ""

    def spread(draws: Floats, share: float, size: float, sign: float) -> float:
        # of the range of so much probability, made wider (1) or narrower (-1) by the error of its ends
        below = 0.5 * (1.0 - share)
        error = sign * 2.0 * np.sqrt(below * (1.0 - below) / size)
        low, high = np.clip([below - error, 1.0 - below + error], 0.0, 1.0)
        return float(np.subtract(*np.quantile(draws, (max(high, 0.5), min(low, 0.5)))))

    shares = (0.5, 0.95)
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        least = [spread(posterior, share, max(effective, 1.0), -1.0) for share in shares]
        most = [spread(prior, share, prior.size, 1.0) for share in shares]
        if least[0] > most[0] and least[1] > most[1]:
            return "wider"
        first, last = np.quantile(prior, (0.25, 0.75))
        before, after = spread(prior, shares[1], np.inf, 1.0), spread(posterior, shares[1], np.inf, 1.0)
    outside = not first <= float(np.median(posterior)) <= last
    return "moved" if outside and after < before * np.sqrt(1.0 - MOVED) else ""


def describe(series: Floats, level: float, prior: Floats | None = None) -> Scalar:
    """Summarize one scalar.

    Parameters
    ----------
    series : float64 array (chains, draws)
        Finite values.
    level : float
        Probability of the equal-tailed interval.
    prior : float64 array (draws,), optional
        Draws from the prior, for the contraction.
    """
    probabilities = levels(level)
    quantiles = np.quantile(series, probabilities).tolist()
    found = Scalar(
        mean=float(series.mean()),
        sd=float(series.std(ddof=1)) if series.size > 1 else 0.0,
        quantiles=dict(zip([f"{p:.12g}" for p in probabilities], quantiles, strict=True)),
        rhat=None,
        ess_bulk=None,
        ess_tail=None,
        mcse=None,
        note=None,
        contraction=contraction(series, prior),
        prior=None if prior is None else _prior_quantiles(prior, level),
    )
    if np.ptp(series) == 0.0:
        return replace(found, mean=float(series.flat[0]), sd=0.0, mcse=0.0, note="the same in every draw")
    chains, draws = series.shape
    if draws < MIN_DRAWS:
        note = f"no diagnostics from {draws} draws a chain (at least {MIN_DRAWS})"
        return replace(found, note=note, beside_prior=beside_prior(series, prior, series.size))
    with np.errstate(all="ignore"):  # a folded series may be constant: R-hat is then the bulk's
        ratio = float(arviz().rhat(series, method="rank")) if chains > 1 else np.nan
        bulk = _finite(arviz().ess(series, method="bulk"))
        tail = _finite(arviz().ess(series, method="tail", prob=(probabilities[0], probabilities[2])))
        mcse = _finite(arviz().mcse(series, method="mean"))
    if np.isinf(ratio):
        beside = beside_prior(series, prior, series.size)
        note = "each chain stays at a value of its own"
        return replace(found, note=note, stuck_apart=True, beside_prior=beside)
    effective = min((size for size in (bulk, tail) if size is not None), default=float(series.size))
    return replace(
        found,
        rhat=_finite(ratio),
        ess_bulk=bulk,
        ess_tail=tail,
        mcse=mcse,
        note="R-hat needs two chains" if chains == 1 else None,
        beside_prior=beside_prior(series, prior, effective),
    )


def _prior_quantiles(prior: Floats, level: float) -> tuple[float, ...] | None:
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        ends = np.quantile(prior, levels(level))
    return tuple(ends.tolist()) if np.isfinite(ends).all() else None


def _finite(value: object) -> float | None:
    number = float(np.asarray(value).item())
    return number if np.isfinite(number) else None
