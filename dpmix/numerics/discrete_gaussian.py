"""The discrete Gaussian on the whole numbers, Pr(x) proportional to exp(-x^2 / (2 sigma^2)).

Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WIDE = 3.0
"""From here on sums over whole numbers are integrals, but for 2 exp(-2 pi^2 sigma^2) < 1e-76 of them."""
_FARTHEST = 40  # standard deviations: beyond them is less than 1e-340


def _support(sigma: float) -> Floats:
    most = math.ceil(_FARTHEST * sigma)
    return np.arange(-most, most + 1, dtype=np.float64)


def _log_total(sigma: float) -> float:
    """Return the logarithm of sum_x exp(-x^2 / (2 sigma^2))."""
    if sigma >= WIDE:
        return 0.5 * math.log(2 * math.pi) + math.log(sigma)
    x = _support(sigma) / sigma
    return math.log(float(np.exp(-0.5 * x * x).sum()))


def log_pmf(x: Floats, sigma: float) -> Floats:
    """Return the logarithms of the probabilities of whole numbers x, of any shape."""
    return np.asarray(-0.5 * (x / sigma) ** 2 - _log_total(sigma))


def variance(sigma: float) -> float:
    """Return the variance: sigma^2 for all but the smallest sigma."""
    if sigma >= WIDE:
        return sigma * sigma
    x = _support(sigma)
    return float(x * x @ np.exp(log_pmf(x, sigma)))


def draw(sigma: float, shape: int | tuple[int, ...], rng: Generator) -> Floats:
    """Draw whole numbers in floating point, for what is never released.

    A two-sided geometric variate of scale t = floor(sigma) + 1 is taken with probability
    exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)), as in Canonne, Kamath and Steinke, Algorithm 3.
    """
    size = int(np.prod(shape))
    found = np.empty(size)
    done, t = 0, math.floor(sigma) + 1.0
    success = -math.expm1(-1.0 / t)
    while done < size:
        ask = 2 * (size - done) + 16
        both = rng.geometric(success, (2, ask))
        y = (both[0] - both[1]).astype(np.float64)
        kept = y[rng.standard_exponential(ask) > 0.5 * ((np.abs(y) - sigma * sigma / t) / sigma) ** 2]
        kept = kept[: size - done]
        found[done : done + kept.size] = kept
        done += kept.size
    return found.reshape(shape)
