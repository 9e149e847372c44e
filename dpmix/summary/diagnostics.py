"""Summaries and convergence diagnostics of scalar series, through arviz-stats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from arviz_stats.base import array

from dpmix.summary.families.base import Floats

MIN_DRAWS = 4
_ARVIZ: Any = array.array_stats  # arviz-stats has types, but not for these


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


def levels(level: float) -> tuple[float, float, float]:
    """Lower end, median and upper end of the equal-tailed interval of probability `level`."""
    return round(0.5 * (1.0 - level), 12), 0.5, round(0.5 * (1.0 + level), 12)


def describe(series: Floats, level: float) -> Scalar:
    """Summarize one scalar.

    Parameters
    ----------
    series : float64 array (chains, draws)
        Finite values.
    level : float
        Probability of the equal-tailed interval.
    """
    probabilities = levels(level)
    quantiles = dict(
        zip([f"{p:.12g}" for p in probabilities], np.quantile(series, probabilities).tolist(), strict=True)
    )
    mean, sd = float(series.mean()), float(series.std(ddof=1)) if series.size > 1 else 0.0
    chains, draws = series.shape

    def partly(note: str, *, stuck_apart: bool = False) -> Scalar:
        return Scalar(mean, sd, quantiles, None, None, None, None, note, stuck_apart)

    if np.ptp(series) == 0.0:
        return Scalar(float(series.flat[0]), 0.0, quantiles, None, None, None, 0.0, "the same in every draw")
    if draws < MIN_DRAWS:
        return partly(f"no diagnostics from {draws} draws a chain (at least {MIN_DRAWS})")
    with np.errstate(all="ignore"):  # a folded series may be constant: R-hat is then the bulk's
        ratio = float(_ARVIZ.rhat(series, method="rank")) if chains > 1 else np.nan
        bulk = _finite(_ARVIZ.ess(series, method="bulk"))
        tail = _finite(_ARVIZ.ess(series, method="tail", prob=(probabilities[0], probabilities[2])))
        mcse = _finite(_ARVIZ.mcse(series, method="mean"))
    if np.isinf(ratio):
        return partly("each chain stays at a value of its own", stuck_apart=True)
    note = "R-hat needs two chains" if chains == 1 else None
    return Scalar(mean, sd, quantiles, _finite(ratio), bulk, tail, mcse, note)


def _finite(value: object) -> float | None:
    number = float(np.asarray(value).item())
    return number if np.isfinite(number) else None
