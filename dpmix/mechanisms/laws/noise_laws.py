"""The noise of counts and sums, as laws state it."""

from __future__ import annotations

import math

__all__ = ["NOISES", "noise_name", "noise_variance"]

NOISES = ("laplace", "gaussian", "geometric")
_NAMES = {"laplace": "Laplace noise", "gaussian": "Gaussian noise", "geometric": "two-sided geometric noise"}


def noise_name(noise: str | None) -> str:
    """Return what a noise is called within a sentence."""
    return _NAMES.get(str(noise), "noise")


def noise_variance(noise: str, scale: float) -> float:
    """Return the variance of Laplace, Gaussian or two-sided geometric noise of a scale."""
    if noise == "laplace":
        return 2.0 * scale**2
    if noise == "geometric":  # with q = exp(-1/s): 2 q/(1 - q)^2
        return 0.5 / math.sinh(0.5 / scale) ** 2 if scale > 1e-3 else 0.0
    return scale**2
