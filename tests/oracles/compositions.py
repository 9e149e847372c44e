"""Posteriors of a Dirichlet distribution of two parts, given noisy sums over three records, by quadrature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

Array = NDArray[np.float64]
CELLS = 64  # of a record (u, 1 - u), equal in the logit of u between -12 and 12, and all beyond


def two_parts(
    log_prior: Callable[[Array], float], parts: list[tuple[Array, float]], threshold: float
) -> dict[str, float]:
    """Return posterior means of functions of alpha = (alpha_1, alpha_2).

    A record is within a cell with its exact probability, and adds to the sums what the middle of the cell
    does; the cells beyond are censored.

    Parameters
    ----------
    log_prior : function
        Log density of alpha (2,).
    parts : list of (released sums (2,) over three records, scale of their noise)
    threshold : float
        Above 1e-5.
    """
    edges = np.linspace(-12.0, 12.0, CELLS - 1)
    middles = np.concatenate([[-30.0], 0.5 * (edges[1:] + edges[:-1]), [30.0]])
    logs = np.stack([-np.logaddexp(0.0, -middles), -np.logaddexp(0.0, middles)])
    stats = np.maximum(logs, math.log(threshold))
    sums = stats[:, :, None, None] + stats[:, None, :, None] + stats[:, None, None, :]
    axis = np.linspace(-6.0, 3.2, 46)
    grid = np.array(list(itertools.product(axis, axis)))
    alpha = np.exp(grid)
    below = betainc(alpha[:, :1], alpha[:, 1:], 1.0 / (1.0 + np.exp(-edges)))
    above = betainc(alpha[:, 1:], alpha[:, :1], 1.0 / (1.0 + np.exp(edges)))
    steps = np.where(edges[1:] <= 0.0, np.diff(below, axis=1), -np.diff(above, axis=1))
    cells = np.hstack([below[:, :1], steps, above[:, -1:]])
    level = np.array([log_prior(a) for a in alpha]) + grid.sum(axis=1)
    for released, scale in parts:
        eta = np.exp(-np.abs(released[:, None, None, None] - sums).sum(axis=0) / scale)
        once = (cells @ eta.reshape(CELLS, -1)).reshape(-1, CELLS, CELLS)
        level += np.log(np.einsum("iab,ia,ib->i", once, cells, cells, optimize=True))
    w = np.exp(level - level.max())
    w /= w.sum()
    return {name: float(w @ column) for name, column in functions(alpha).items()}


def functions(alpha: Array) -> dict[str, Array]:
    """Functions of alpha (draws, d), of light tails."""
    logs = np.log(alpha)
    found = {f"log alpha[{j}]": logs[:, j] for j in range(logs.shape[1])}
    found |= {f"log alpha[{j}]^2": logs[:, j] ** 2 for j in range(logs.shape[1])}
    found |= {f"mean[{j}]": alpha[:, j] / alpha.sum(axis=1) for j in range(logs.shape[1] - 1)}
    return found | {"product": logs[:, 0] * logs[:, 1]}
