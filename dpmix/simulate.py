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
    return _three_gaussians(n, rng)[0]


def _three_gaussians(n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the values (n, 1), and the component (n,) that each is from."""
    low, high = THREE_GAUSSIANS_DOMAIN
    drawn, components = np.empty(n), np.empty(n, dtype=np.int64)
    missing = np.arange(n)
    while missing.size:  # the mixture is truncated as a whole: a rejected draw chooses its component anew
        means = rng.choice(THREE_GAUSSIANS_MEANS, missing.size)
        drawn[missing] = rng.normal(means, 1.0)
        components[missing] = np.searchsorted(THREE_GAUSSIANS_MEANS, means)
        missing = missing[(drawn[missing] < low) | (drawn[missing] > high)]
    return drawn[:, None], components


SIMULATIONS: dict[str, Callable[[int, np.random.Generator], NDArray[np.float64]]] = {
    "three_gaussians": three_gaussians
}
LABELS: dict[str, Callable[[int, np.random.Generator], NDArray[np.int64]]] = {
    "three_gaussians": lambda n, rng: _three_gaussians(n, rng)[1]
}
"""Where the records of a simulation come from components: the component of each, by the same generator."""


def generators(seed: int | None) -> tuple[np.random.Generator, np.random.Generator]:
    """Return the generators of simulated records and of their noise."""
    records, noise = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    return records, noise


def true_labels(name: str, n: int, seed: int) -> NDArray[np.int64] | None:
    """Return the component that each simulated record is from, shape (n,), or None where there are none."""
    return LABELS[name](n, generators(seed)[0]) if name in LABELS else None
