"""What the release told of the shape of a distribution, beside its mean and standard deviation.

The contraction of a quantile against its prior (`dpmix.summary.diagnostics.contraction`) is near 1 as soon as
the release tells mean m and standard deviation s, since these move quantiles by far more than shapes do. It
does not say whether the shape between them is the release's or the prior's. That of the standardized quantile

    u = (quantile - m)/s, draw by draw,

does: moving and stretching all records leaves it as it is. Whatever the distribution, u of level q lies in
[-sqrt((1 - q)/q), sqrt(q/(1 - q))] (Cantelli's inequality), so that it has a variance, V, and V0 under the
prior, and the contraction is 1 - V/V0. A range between quartiles would pass over what counts here: that the
quantile of two groups may lie on the other side of their gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmix.results.nodes import Each, ResultSection, Table, TableColumn

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats

QUARTILES = (0.25, 0.5, 0.75)
"""Levels at which the shape of a mixture is looked at, besides those of the quantiles that are asked for."""


@dataclass(frozen=True)
class ShapeContraction:
    """The contractions of standardized quantiles.

    Parameters
    ----------
    contractions : mapping of str to float
        By name of the quantile, `quantile[0.5]`.
    """

    contractions: Mapping[str, float]

    def section(self) -> ResultSection:
        """Return what is reported of it; its words are those of the verdict."""
        names, values = list(self.contractions), list(self.contractions.values())
        table = Table("quantile", names, [TableColumn("contraction", values)])
        return ResultSection("shape_contraction", Each(dict(self.contractions), table))


def shape_contraction(series: Mapping[str, Floats], prior: Mapping[str, Floats]) -> ShapeContraction | None:
    """Return the contractions of the standardized quantiles; None where there are none.

    Parameters
    ----------
    series, prior : mapping of str to float64 array
        Posterior and prior draws of mean, sd and quantiles; of several columns or groups by their names,
        `mean[height]`, `quantile[height,0.5]`.
    """
    found: dict[str, float] = {}
    for name in series:
        title, _, entries = name.removesuffix("]").partition("[")
        whose = entries.rpartition(",")[0]
        names = (name, *(f"{moment}[{whose}]" if whose else moment for moment in ("mean", "sd")))
        if title != "quantile" or not all(each in series and each in prior for each in names):
            continue
        after, before = (_variance(*(draws[each] for each in names)) for draws in (series, prior))
        if before > 0.0:
            found[name] = 1.0 - after / before
    return ShapeContraction(found) if found else None


def _variance(quantile: Floats, mean: Floats, sd: Floats) -> float:
    """Return the variance of (quantile - mean)/sd, which is 0 where all mass is at one value."""
    with np.errstate(invalid="ignore"):  # of priors whose draws may be infinite
        drawn = np.divide(quantile - mean, sd, out=np.zeros_like(mean), where=sd > 0.0)
    known = drawn[np.isfinite(drawn)]
    return float(known.var()) if known.size else 0.0
