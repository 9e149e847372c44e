"""Where the prior keeps the spread of the records up: a posterior that reaches into the prior's lower tail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpmix.summary.diagnostics import Scalar
from dpmix.summary.families.base import Floats
from dpmix.summary.families.choose import Column
from dpmix.summary.result import Remark

__all__ = ["FLOOR", "floor_remarks"]

FLOOR = 0.05
"""Prior probability of a smaller standard deviation from which on, downwards, the prior is a floor."""


def floor_remarks(
    parameters: Mapping[str, Scalar], prior: Mapping[str, Floats], columns: Sequence[Column]
) -> list[Remark]:
    """Say where the interval of a standard deviation goes down to values that the prior nearly rules out.

    Bounds that are wide for the records do so under a prior that follows them: the inverse-gamma prior of a
    cluster's variance has next to no mass near 0, and under strong noise an interval ends where the prior does,
    with the true standard deviation below it. The contraction does not show this, for most of the prior's spread
    may be gone by then.

    Parameters
    ----------
    parameters : mapping of str to Scalar
        With their quantiles.
    prior : mapping of str to float64 array (draws,)
        Draws from the prior.
    columns : sequence of Column
        Of the records.
    """
    held = []
    for column in columns:
        name = column.label("sd")
        if name not in prior:
            continue
        floor = float(np.quantile(prior[name], FLOOR))
        least = min(parameters[name].quantiles.values())
        if least < floor:
            held.append(f"{name} (its interval begins at {least:.3g}; a priori 95% are above {floor:.3g})")
    if not held:
        return []
    text = (
        f"The prior holds up {' and '.join(held)}: the records may vary less than the interval says, as they do "
        "where public bounds are wide for them; tighter bounds, or a model.base of smaller clusters, would "
        "let the interval go lower."
    )
    return [Remark(text, convergence=False)]
