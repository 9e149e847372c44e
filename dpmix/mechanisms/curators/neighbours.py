"""What an audit is told by what it audits: neighbouring databases, and the loss of what is drawn of them.

The privacy loss of a release is the log ratio of its densities under two neighbouring databases, as the
mechanism claims them: by Neyman and Pearson no event of the same probability under one database is less
probable under the other than one told by it. The densities are in real numbers, worked out apart from the
code that releases; where the noise is other than claimed, the ratio still orders releases well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.privacy.near_outputs import NearOutputs

__all__ = [
    "BEYOND",
    "HALF_NOISE",
    "TWICE_EPSILON",
    "Loss",
    "Pair",
    "additive_loss",
    "loss_of_near_outputs",
    "moved",
    "pairs_of_columns",
    "pairs_of_groups",
    "smoothing_of_twice_epsilon",
]

Floats = NDArray[np.float64]
Loss = Callable[[Floats], Floats]
"""From releases, shape (runs, q), as an audit has them told, to their losses, shape (runs,)."""

BEYOND = 8.0
"""Widths of the domain by which an input may lie outside."""
HALF_NOISE = "noise of half the scale"
TWICE_EPSILON = "twice the epsilon"
"""Faults that give away about twice as much, planted to see whether an audit would find them."""


@dataclass(frozen=True)
class Pair:
    """Two neighbouring databases.

    Parameters
    ----------
    words : str
        How they differ.
    one, other : ndarray, shape (n, d), or (n, d + 1)
        The same but for one record; codes of groups stand last, where there are groups.
    """

    words: str
    one: Floats
    other: Floats


def moved(words: str, base: Floats, one: Floats, other: Floats) -> Pair:
    """Return two databases, shape (n, d), that are `base` but for their first record."""
    first, second = base.copy(), base.copy()
    first[0], second[0] = one, other
    return Pair(words, first, second)


def pairs_of_columns(low: Floats, high: Floats, n: int) -> Iterator[Pair]:
    """Yield databases of which a record goes from public bounds to the others, and from beyond them."""
    base, beyond = np.tile(low, (n, 1)), BEYOND * (high - low)
    yield moved("a record goes from the lower bounds to the upper", base, low, high)
    yield moved("a record goes from far below the bounds to far above", base, low - beyond, high + beyond)


def pairs_of_groups(name: str, n: int, far: Floats, low: Floats, high: Floats) -> Iterator[Pair]:
    """Yield databases of which a record changes its group; who changes values alone is told apart less.

    Parameters
    ----------
    name : str
        Of the column of groups.
    n : int
        Number of records.
    far, low, high : ndarray, shape (d,)
        Records: the worst to change its group, and two far apart.
    """
    base = np.tile(np.append(low, 0.0), (n, 1))
    yield moved(f"a record changes its {name}", base, np.append(far, 0.0), np.append(far, 1.0))
    words = f"a record changes its {name} and all values"
    yield moved(words, base, np.append(low, 0.0), np.append(high, 1.0))


def additive_loss(first: Floats, second: Floats, scale: Any, noise: str) -> Loss:
    """Return the loss of independent noise; whole numbers have the loss of Laplace and Gaussian noise."""
    moved = np.nonzero(first != second)[0]
    a, b = first[moved], second[moved]
    s = np.broadcast_to(np.asarray(scale, dtype=np.float64), first.shape)[moved]
    if noise in ("gaussian", "discrete_gaussian"):
        return lambda y: np.asarray(((y[:, moved] - 0.5 * (a + b)) * ((a - b) / s**2)).sum(axis=1))
    return lambda y: np.asarray(((np.abs(y[:, moved] - b) - np.abs(y[:, moved] - a)) / s).sum(axis=1))


def loss_of_near_outputs(one: Floats, other: Floats, response: NearOutputs) -> Loss:
    """Return the loss of outputs near inputs (d,): log r where near the first alone, -log r the other."""
    log_ratio = float(np.log(float(response.ratio)))

    def near(releases: Floats, inputs: Floats) -> Floats:
        return np.asarray((releases >= inputs) & (releases < inputs + response.near), dtype=np.float64)

    return lambda releases: log_ratio * (near(releases, one) - near(releases, other)).sum(axis=1)


def smoothing_of_twice_epsilon(bins: int, n: int, weight: float) -> float:
    """Return the smoothing weight of twice the epsilon: eps = k log(1 + (1 - w) m/(w n))."""
    odds = (1 - weight) * bins / (weight * n)
    return bins / (bins + n * ((1 + odds) ** 2 - 1))
