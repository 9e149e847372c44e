"""The noise of counts and sums, and the ratio of how likely outputs are, as laws state them."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import AfterValidator

from dpmix.mechanisms.laws.law_base import Says
from dpmix.numerics import discrete_gaussian

__all__ = [
    "NOISES",
    "WHOLE",
    "Ratio",
    "draw_noise",
    "fraction_of",
    "mean_of_laplace",
    "noise_name",
    "noise_sd",
    "noise_variance",
]

Floats = NDArray[np.float64]

NOISES = ("laplace", "gaussian", "geometric", "discrete_gaussian")
WHOLE = ("geometric", "discrete_gaussian")
"""Noise that keeps counts whole numbers."""
_NAMES = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "geometric": "two-sided geometric noise",
    "discrete_gaussian": "discrete Gaussian noise",
}


def noise_name(noise: str | None) -> str:
    """Return what a noise is called within a sentence."""
    return _NAMES.get(str(noise), "noise")


def noise_variance(noise: str, scale: float) -> float:
    """Return the variance of Laplace, Gaussian, two-sided geometric or discrete Gaussian noise of a scale."""
    if noise == "laplace":
        return 2.0 * scale**2
    if noise == "geometric":  # with q = exp(-1/s): 2 q/(1 - q)^2
        half = 0.5 / scale
        return 0.5 / math.sinh(half) ** 2 if half < 350.0 else 0.0  # beyond it is below 1e-303
    return discrete_gaussian.variance(scale) if noise == "discrete_gaussian" else scale**2


def noise_sd(noise: str, scale: float) -> float:
    """Return the standard deviation of noise of a scale; see `noise_variance`."""
    return math.sqrt(noise_variance(noise, scale))


def draw_noise(kind: str, scale: float | Floats, shape: int | tuple[int, ...], rng: Generator) -> Floats:
    """Draw noise in floating point, for what is never released.

    Laplace and geometric noise are of a scale, Gaussian noise of a standard deviation.

    Two-sided geometric noise of scale s has Pr(e) proportional to exp(-|e| / s), discrete Gaussian noise of
    scale s, a float, exp(-e^2 / (2 s^2)).
    """
    if kind == "laplace":
        return np.asarray(scale * (rng.standard_exponential(shape) - rng.standard_exponential(shape)))
    if kind == "gaussian":
        return np.asarray(scale * rng.standard_normal(shape))
    if kind == "geometric":
        up, down = (np.floor(scale * rng.standard_exponential(shape)) for _ in range(2))
        return np.asarray(up - down)
    if kind == "discrete_gaussian":
        return discrete_gaussian.draw(float(scale), shape, rng)
    raise ValueError(f"no noise is called {kind!r}")


def mean_of_laplace(n: int, scale: float, size: int, rng: Generator) -> Floats:
    """Draw means of n independent Laplace variates, shape (size,): differences of gamma variates."""
    return np.asarray(scale * (rng.standard_gamma(n, size) - rng.standard_gamma(n, size)) / n)


# How many times as likely one output is as another: a ratio of whole numbers, as releases state it


_DIGITS = 400  # of the numbers of a ratio
_WRONG = "does not state its ratio as p/q, two whole numbers of which the first is larger"


def fraction_of(value: Any) -> Fraction:
    """Return a ratio above 1 written as ``"p/q"``.

    Raises
    ------
    ValueError
        For anything else.
    """
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", value) if isinstance(value, str) else None
    if found is None or len(value) > 2 * _DIGITS or not int(found[1]) > int(found[2]) > 0:
        raise ValueError("no ratio")
    return Fraction(int(found[1]), int(found[2]))


def _a_ratio(value: str) -> str:
    try:
        float(fraction_of(value))
    except (ValueError, OverflowError):
        raise ValueError(_WRONG) from None
    return value


Ratio = Annotated[str, AfterValidator(_a_ratio), Says(_WRONG)]
