"""Where in their cells records lie, which a release of cells does not say, and what depends on it.

The kernel says it: a mixture takes records to lie in a cell as its clusters do. Of few records the noise
hides more than that; of a million it does not, and a fit of few clusters has in each cell the share that was
released, and between the edges a curve of its own, off by more than its intervals admit. So its figures are
set beside those of another distribution with the same share in each cell, and none beyond the bounds: the
cubic spline through the distribution function at the edges, whose error falls with the fourth power of the
cells' width where the density is smooth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.summary.quantities import Wanted

MOST_CELLS = 2_000
"""Cells up to which it is looked at: of more each is narrow beside all that is reported."""
FEWEST_CELLS = 4
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact for cubics times what they are multiplied by
_EXACT = 1e-12  # of a cell's width, where a quantile lies
OFF = 1.0
"""By how many of its posterior standard deviations a figure is off the spline's before it is said."""


def looked_at(cells: int) -> bool:
    """Whether figures are looked at of so many cells."""
    return FEWEST_CELLS <= cells <= MOST_CELLS


def gaps_within(edges: Floats, shares: Floats, fitted: Floats, wanted: Wanted) -> Floats:
    """Return what the spline's mean, sd and wanted quantities have more than the fit's.

    Parameters
    ----------
    edges : float64 array (cells + 1,)
        Of the cells, in increasing order, in the units of the data.
    shares : float64 array (cells - 1,)
        Of records below each inner edge under the fit.
    fitted : float64 array
        The fit's mean, sd and wanted quantities, in the order of `wanted.labels(..)`.
    wanted : Wanted
        Of the column.

    Returns
    -------
    float64 array
        As `fitted`.
    """
    return figures(edges, np.concatenate([[0.0], shares, [1.0]]), wanted) - fitted


def figures(edges: Floats, shares: Floats, wanted: Wanted) -> Floats:
    """Return mean, sd and wanted quantities of the spline through `shares` at the edges of cells."""
    spline = CubicSpline(edges, shares)
    width, middle = 0.5 * np.diff(edges), 0.5 * (edges[:-1] + edges[1:])
    places = (middle[:, None] + width[:, None] * _PLACES).ravel()
    weights = (width[:, None] * _WEIGHTS).ravel()
    under = spline(places)
    low, high = edges[0], edges[-1]
    mean = high - float(weights @ under)
    variance = (high - mean) ** 2 - 2.0 * float(weights @ ((places - mean) * under))
    found = [mean, float(np.sqrt(max(variance, 0.0)))]
    for level in wanted.quantiles:  # the spline reaches it in the cell in which shares do
        cell = int(np.searchsorted(shares, level))
        ends = float(edges[cell - 1]), float(edges[cell])
        found.append(brentq(_above, *ends, args=(spline, level), xtol=_EXACT * (ends[1] - ends[0])))
    found += [1.0 - float(spline(min(max(t, low), high))) for t in wanted.tails]
    found += [float(spline(min(max(t, low), high))) for t in wanted.cdf]
    if wanted.gini is not None:
        found.append(float(weights @ (under * (1.0 - under))) / mean if mean > 0.0 else 0.0)
    return np.array(found)


def _above(y: float, spline: CubicSpline, level: float) -> float:
    return float(spline(y)) - level


def depends_within(gaps: Mapping[str, float], series: Mapping[str, Floats]) -> dict[str, float]:
    """Return the figures off those of the spline by more than `OFF` of their posterior sds, and by how many.

    Parameters
    ----------
    gaps : mapping of str to float
        As `gaps_within` has them, by name.
    series : mapping of str to float64 array
        Posterior draws; of others nothing is said.
    """
    spreads = {name: float(np.std(series[name])) for name in gaps if name in series}
    found = {name: abs(gaps[name]) / spread for name, spread in spreads.items() if spread > 0.0}
    return {name: by for name, by in found.items() if by > OFF}
