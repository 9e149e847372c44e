"""Where the prior keeps the spread of the records up: a posterior that reaches below the prior's interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpmix.kernels.learned_family import LearnedNormal
from dpmix.results.nodes import Remark
from dpmix.summary.families.family import Floats
from dpmix.summary.families.family_of_fit import FittedColumn

__all__ = ["PULL", "floor_remarks", "pull"]

PULL = 0.5
"""By how many of its own standard deviations the prior moves a posterior before it is said."""


def floor_remarks(
    series: Mapping[str, Floats], prior: Mapping[str, Floats], columns: Sequence[FittedColumn], level: float
) -> list[Remark]:
    """Say where the interval of a standard deviation begins below the prior's own, and the prior pulls at it.

    So it is where the public bounds are wide for the records, under a base measure that is not learned: the
    inverse-gamma prior of a cluster's variance has next to no mass near 0, so that an interval ends where the
    prior does, and the true standard deviation may be below it. The contraction does not show this, as most
    of the prior's spread may be gone by then.

    Parameters
    ----------
    series : mapping of str to float64 array
        Posterior draws.
    prior : mapping of str to float64 array (draws,)
        Prior draws.
    columns : sequence of Column
        Of the records.
    level : float
        Of the intervals.
    """
    held = []
    for column in columns:
        name = column.label("sd")
        if name not in prior or isinstance(column.family, LearnedNormal):
            continue  # a learned scale has mass near 0
        least, floor = (float(np.quantile(draws[name], 0.5 * (1.0 - level))) for draws in (series, prior))
        if least < floor and pull(series[name], prior[name]) > PULL:
            held.append(f"{name} (its interval begins at {least:.3g}, the prior's at {floor:.3g})")
    if not held:
        return []
    text = (
        f"The prior holds up {' and '.join(held)}: the records may vary less than the interval says, as "
        "they do where public bounds are wide for them; tighter bounds, or a model.base of smaller clusters, "
        "would let the interval go lower."
    )
    return [Remark(text, convergence=False)]


def pull(posterior: Floats, prior: Floats) -> float:
    """Return by how many of its standard deviations the prior moves the posterior of a positive quantity up.

    Exact for normal laws of the logarithm: with prior N(m0, s0^2) and posterior N(m, s^2) the release alone
    would give the mean m + s^2 (m - m0) / (s0^2 - s^2). Spreads are interquartile ranges. Infinite where the
    posterior is no narrower than the prior and below it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        low, centre, high = np.log(np.quantile(posterior, (0.25, 0.5, 0.75)))
        low_prior, centre_prior, high_prior = np.log(np.quantile(prior, (0.25, 0.5, 0.75)))
    s, s0 = (high - low) / 1.349, (high_prior - low_prior) / 1.349
    if not np.isfinite([s, s0, centre]).all() or s0 <= 0.0:
        return 0.0
    if s >= s0:
        return float(np.inf if centre < centre_prior else 0.0)
    return float(s * (centre_prior - centre) / (s0**2 - s**2))
