"""Random measures by brute force: sticks by the thousand, quantiles by sorting; moments in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sticks(rng: np.random.Generator, alpha: float, d: float, count: int) -> Array:
    """Draw the weights of PY(d, alpha): `count` sticks, and the last takes what is left."""
    v = rng.beta(1 - d, alpha + d * np.arange(1, count + 1))
    v[-1] = 1.0
    return np.asarray(v * np.concatenate([[1.0], np.cumprod(1 - v[:-1])]))


def posterior_draw(
    rng: np.random.Generator,
    values: Array,
    counts: Array,
    alpha: float,
    d: float,
    new: Callable[[int], Array],
    count: int = 4_000,
) -> tuple[Array, Array]:
    """Draw atoms and weights of P given a sample with these distinct values."""
    left = alpha + d * len(values)
    weights = rng.dirichlet(np.append(counts - d, left))
    return (
        np.concatenate([values, new(count)]),
        np.concatenate([weights[:-1], weights[-1] * sticks(rng, left, d, count)]),
    )


def functionals(values: Array, weights: Array, levels: Any, tail: Any, grid: Any) -> dict[str, Array]:
    """Mean, sd, quantiles, tails and distribution function of a discrete measure, from their definitions."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order] / weights.sum()
    below = np.cumsum(weights)
    mean = float(weights @ values)
    places = np.minimum(np.searchsorted(below, levels, side="left"), len(values) - 1)
    return {
        "mean": np.array([mean]),
        "sd": np.array([np.sqrt(weights @ (values - mean) ** 2)]),
        "quantile": values[places],
        "tail": np.array([weights[values > t].sum() for t in tail]),
        "cdf": np.array([weights[values <= x].sum() for x in grid]),
    }


def moments(inside: float, total: float, left: float, p: float, d: float) -> tuple[float, float]:
    """Mean and variance of P(A): Dirichlet parameters `inside` A, in all, of the leftover, and p = P0(A)."""
    mean = (inside + left * p) / total
    within = p * p + p * (1 - p) * (1 - d) / (1 + left)
    square = inside * (inside + 1) + 2 * inside * left * p + left * (left + 1) * within
    return mean, square / (total * (total + 1)) - mean**2
