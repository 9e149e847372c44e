"""The densities that the simulated records come from, and how far an estimate is from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import signal

from dpmix.sweeping.scores import density

__all__ = ["apart", "band_width", "density", "distance", "edge_mass", "modes"]


def distance(result: dict[str, Any], name: str, curve: str = "mean") -> float:
    """Return the Hellinger distance, in [0, 1], of a result's density from the truth.

    The truth is zero outside the grid, so that nothing is lost there.
    """
    x = np.array(result["density"]["grid"])
    estimate = np.clip(np.array(result["density"][curve]), 0.0, None)
    return float(np.sqrt(max(0.0, 1.0 - np.trapezoid(np.sqrt(estimate * density(name, x)), x))))


def modes(result: dict[str, Any], curve: str = "mean") -> list[float]:
    """Return the places of the maxima inside the grid that rise at least 5% of the highest above the rest."""
    x, y = np.array(result["density"]["grid"]), np.array(result["density"][curve])
    inside = np.abs(x - x.mean()) < 0.46 * (x[-1] - x[0])
    peaks = signal.find_peaks(y, prominence=0.05 * float(y[inside].max()))[0]
    return [float(x[i]) for i in peaks if inside[i]]


def edge_mass(result: dict[str, Any], margin: float = 0.05) -> float:
    """Return the mass of a density on [0, 1] within `margin` of its ends."""
    x, y = np.array(result["density"]["grid"]), np.array(result["density"]["mean"])
    inside = (x >= margin) & (x <= 1.0 - margin)
    return float(1.0 - np.trapezoid(y[inside], x[inside]))


def apart(first: dict[str, Any], second: dict[str, Any]) -> float:
    """Return the Hellinger distance, in [0, 1], between the posterior means of two results on one grid."""
    x = np.array(first["density"]["grid"])
    p, q = (np.clip(np.array(result["density"]["mean"]), 0.0, None) for result in (first, second))
    masses = np.trapezoid(p, x) * np.trapezoid(q, x)
    return float(np.sqrt(max(0.0, 1.0 - np.trapezoid(np.sqrt(p * q), x) / np.sqrt(masses))))


def band_width(result: dict[str, Any]) -> float:
    """Return the integral of the width of a density's band."""
    density = result["density"]
    return float(np.trapezoid(np.subtract(density["upper"], density["lower"]), np.array(density["grid"])))
