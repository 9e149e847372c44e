"""Posteriors of a Dirichlet distribution of two parts, given noisy sums over few records, by quadrature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln

Array = NDArray[np.float64]
CELLS = 64  # of a record (u, 1 - u), equal in the logit of u between -12 and 12, and all beyond


class Sums(NamedTuple):
    """What was released of some records.

    Parameters
    ----------
    released : ndarray, shape (2,)
        Noisy sums of log max(x, a).
    scale : float
        Of the Laplace noise on these.
    count : int
        Records: three at most.
    power : float
        Of the density of each record: 1, but for pseudo-records.
    """

    released: Array
    scale: float
    count: int = 3
    power: float = 1.0


def two_parts(
    log_prior: Callable[[Array], Array],
    parts: list[Sums],
    threshold: float,
    low: float = -6.0,
    high: float = 3.2,
) -> dict[str, float]:
    """Return posterior means of functions of alpha = (alpha_1, alpha_2).

    A record is within a cell with its exact probability, and adds to the sums what the middle of the cell
    does; the cells beyond are censored.

    Parameters
    ----------
    log_prior : function
        Log density of alpha (m, 2).
    parts : list of Sums
    threshold : float
        Above 1e-5.
    low, high : float
        Ends of log alpha; powers have no integral where alpha <= 1 - 1 / power.
    """
    alpha, level = levels(log_prior, parts, threshold, low, high)
    w = np.exp(level - level.max())
    w /= w.sum()
    return {name: float(w @ column) for name, column in functions(alpha).items()}


def two_groups(
    log_prior: Callable[[Array], Array],
    sizes: tuple[float, float],
    sums: Array,
    scale: float,
    centre: float,
    count: int,
    threshold: float,
) -> tuple[Array, list[dict[str, float]]]:
    """Return the posterior of the size of the first of two groups, and means of functions of each's alpha.

    All sizes from 0 to `count` have the same prior probability.

    Parameters
    ----------
    log_prior : function
        Log density of alpha (m, 2), of either group.
    sizes : tuple of float
        The noisy size of the first group, and the scale of the Laplace noise on it.
    sums : ndarray, shape (2, 2)
        Noisy sums of log max(x, a) - centre, by group.
    scale, centre : float
        Of the noise on these; and what was taken off.
    count : int
        Records of both groups: three at most.
    threshold : float
    """
    mass, means = np.empty((2, count + 1)), [[{}] * (count + 1) for _ in range(2)]
    for group in range(2):
        for size in range(count + 1):
            parts = [Sums(sums[group] + centre * size, scale, size)]
            alpha, level = levels(log_prior, parts, threshold, -6.0, 3.2)
            w = np.exp(level)
            mass[group, size] = w.sum()
            means[group][size] = {name: float(w @ f / w.sum()) for name, f in functions(alpha).items()}
    first = np.arange(count + 1)
    weight = np.exp(-np.abs(sizes[0] - first) / sizes[1]) * mass[0] * mass[1][::-1]
    weight /= weight.sum()
    found = []
    for group in range(2):
        own = means[group] if group == 0 else means[group][::-1]
        found.append(
            {name: float(sum(p * m[name] for p, m in zip(weight, own, strict=True))) for name in own[0]}
        )
    return weight, found


def levels(
    log_prior: Callable[[Array], Array], parts: list[Sums], threshold: float, low: float, high: float
) -> tuple[Array, Array]:
    """Return a grid of alpha (m, 2), even in its logarithms, and the log posterior density of these."""
    edges = np.linspace(-12.0, 12.0, CELLS - 1)
    middles = np.concatenate([[-30.0], 0.5 * (edges[1:] + edges[:-1]), [30.0]])
    logs = np.stack([-np.logaddexp(0.0, -middles), -np.logaddexp(0.0, middles)])
    stats = np.maximum(logs, math.log(threshold))
    axis = np.linspace(low, high, 46)
    grid = np.array(list(itertools.product(axis, axis)))
    alpha = np.exp(grid)
    level = log_prior(alpha) + grid.sum(axis=1)
    for part in parts:
        cells = powered_cells(alpha, part.power, edges)
        gaps = np.abs(part.released.reshape(2, *[1] * part.count) - sums_of(stats, part.count))
        density = np.exp(-gaps.sum(axis=0) / part.scale)[None]
        for _ in range(part.count):
            density = np.einsum(
                "i...a,ia->i...", np.broadcast_to(density, (len(alpha), *density.shape[1:])), cells
            )
        level += np.log(density)
    return alpha, level


def powered_cells(alpha: Array, power: float, edges: Array) -> Array:
    """Return the integrals over all cells of densities to a power, (len(alpha), cells)."""
    a, b = (power * (alpha - 1.0) + 1.0).T[:, :, None]
    below, above = betainc(a, b, 1.0 / (1.0 + np.exp(-edges))), betainc(b, a, 1.0 / (1.0 + np.exp(edges)))
    steps = np.where(edges[1:] <= 0.0, np.diff(below, axis=1), -np.diff(above, axis=1))
    cells = np.hstack([below[:, :1], steps, above[:, -1:]])
    return np.asarray(cells * np.exp(betaln(a, b) - power * betaln(alpha[:, :1], alpha[:, 1:])))


def sums_of(stats: Array, count: int) -> Array:
    """Return the sums (2, cells, .., cells) of the statistics (2, cells) of `count` records."""
    sums = np.zeros((2, *[1] * count))
    for k in range(count):
        sums = sums + stats.reshape(2, *[-1 if j == k else 1 for j in range(count)])
    return sums


def functions(alpha: Array) -> dict[str, Array]:
    """Functions of alpha (draws, d), of light tails."""
    logs = np.log(alpha)
    found = {f"log alpha[{j}]": logs[:, j] for j in range(logs.shape[1])}
    found |= {f"log alpha[{j}]^2": logs[:, j] ** 2 for j in range(logs.shape[1])}
    found |= {f"mean[{j}]": alpha[:, j] / alpha.sum(axis=1) for j in range(logs.shape[1] - 1)}
    return found | {"product": logs[:, 0] * logs[:, 1]}
