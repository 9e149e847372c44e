"""The noise of mechanisms in floating point: for replicates that are never released."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

__all__ = ["draw_noise", "mean_of_laplace"]

Floats = NDArray[np.float64]


def draw_noise(kind: str, scale: float | Floats, shape: int | tuple[int, ...], rng: Generator) -> Floats:
    """Draw noise: laplace and geometric of a scale, gaussian of a standard deviation.

    Two-sided geometric noise of scale s has Pr(e) proportional to exp(-|e| / s).
    """
    if kind == "laplace":
        return np.asarray(scale * (rng.standard_exponential(shape) - rng.standard_exponential(shape)))
    if kind == "gaussian":
        return np.asarray(scale * rng.standard_normal(shape))
    if kind == "geometric":
        up, down = (np.floor(scale * rng.standard_exponential(shape)) for _ in range(2))
        return np.asarray(up - down)
    raise ValueError(f"no noise is called {kind!r}")


def mean_of_laplace(n: int, scale: float, size: int, rng: Generator) -> Floats:
    """Draw means of n independent Laplace variates, shape (size,): differences of gamma variates."""
    return np.asarray(scale * (rng.standard_gamma(n, size) - rng.standard_gamma(n, size)) / n)
