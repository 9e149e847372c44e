"""Kernel density estimates on public bounds, for pictures."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct

__all__ = ["CELLS", "bandwidth_of", "density_of", "grid_of_cells"]

Floats = NDArray[np.float64]

CELLS = 256
_NARROWEST = 100


def bandwidth_of(values: Floats, bounds: tuple[float, float]) -> float:
    """Return Silverman's bandwidth of numbers, at least a hundredth of the bounds' width.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    bounds : (lo, hi)
        Public bounds.

    Source: B. W. Silverman (1986), Density Estimation for Statistics and Data Analysis, equation (3.31).
    """
    low, high = np.quantile(values, (0.25, 0.75))
    spread = float(values.std())
    if high > low:
        spread = min(spread, float(high - low) / 1.34)
    narrowest = (bounds[1] - bounds[0]) / _NARROWEST
    return max(0.9 * spread * math.pow(len(values), -0.2), narrowest)


def grid_of_cells(bounds: tuple[float, float]) -> Floats:
    """Return the centres of equal cells of the bounds, shape (CELLS,)."""
    return bounds[0] + (bounds[1] - bounds[0]) * (np.arange(CELLS) + 0.5) / CELLS


def density_of(values: Floats, bounds: tuple[float, float], bandwidth: float) -> Floats:
    """Return a Gaussian kernel estimate of a density on its bounds, where the kernel is reflected.

    Numbers are counted in cells and the counts are smoothed by their cosine transform, in which a reflected
    Gaussian kernel is a factor exp(-(pi k h / width)^2 / 2).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Within the bounds.
    bounds : (lo, hi)
        Public bounds.
    bandwidth : float
        Standard deviation h of the kernel.

    Returns
    -------
    ndarray of float64, shape (CELLS,)
        At the centres of the cells; its mean times the width is 1.
    """
    width = bounds[1] - bounds[0]
    places = np.minimum(((values - bounds[0]) / width * CELLS).astype(np.int64), CELLS - 1)
    shares = np.bincount(places, minlength=CELLS) / len(values)
    damped = dct(shares) * np.exp(-0.5 * (math.pi * bandwidth / width * np.arange(CELLS)) ** 2)
    return np.asarray(np.maximum(idct(damped), 0.0) * CELLS / width)
