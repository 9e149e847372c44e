"""Simulated data sets that can stand in for a confidential file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

THREE_GAUSSIANS_MEANS = (-5.0, 0.0, 5.0)
THREE_GAUSSIANS_DOMAIN = (-10.0, 10.0)


def three_gaussians(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw from the equal mixture of N(-5, 1), N(0, 1), N(5, 1) truncated to [-10, 10].

    Source: Beraha, Favaro and Rao (2024), section 4.1.

    Parameters
    ----------
    n : int
        Number of records.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray of float64, shape (n, 1)
    """
    low, high = THREE_GAUSSIANS_DOMAIN
    drawn = np.empty(n)
    missing = np.arange(n)
    while missing.size:  # the mixture is truncated as a whole: a rejected draw chooses its component anew
        means = rng.choice(THREE_GAUSSIANS_MEANS, missing.size)
        drawn[missing] = rng.normal(means, 1.0)
        missing = missing[(drawn[missing] < low) | (drawn[missing] > high)]
    return drawn[:, None]


SIMULATIONS: dict[str, Callable[[int, np.random.Generator], NDArray[np.float64]]] = {
    "three_gaussians": three_gaussians
}
