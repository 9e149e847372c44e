"""Fisher information that a release has about the masses of fine cells of y, at a population.

With p the masses of B cells (sum 1), a release of n records with outputs j of probability g = T p has n T'
diag(1/g) T, which each law knows of its own (`Law.information`): additive noise has its outputs in fine cells
of z; those of a wavelet are drawn, for g is a density over many numbers. A histogram of all records is about
normal given p, with mean E p (E adds cells to bins) and covariance V = sampling plus noise: E'V^-1 E.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import SpecError
from dpmix.mechanisms.laws.every import Law, expect
from dpmix.mechanisms.laws.histogram import HistogramLaw
from dpmix.numerics.equal_cells import cell_of

__all__ = ["information", "knows"]

Floats = NDArray[np.float64]

_NODES = 4  # of y within a cell


def knows(law: Law | type[Law]) -> bool:
    """Whether the information of a law's releases is known."""
    return law.released == "histogram" or law.provides("information")


def information(law: Law, edges: Floats, shares: Floats, n: int, outer: tuple[float, float]) -> Floats:
    """Return the information (B, B) of a release of n records.

    Parameters
    ----------
    law : Law
    edges : float64 array (B - 1,)
        Finite edges of the cells of y.
    shares : float64 array (B,)
        Of the population.
    n : int
        Number of records.
    outer : (lo, hi)
        Where the end cells end: their places, for infinite ones the outermost edge.

    Raises
    ------
    SpecError
        For a law of which it is not known.
    """
    ends = np.concatenate([[min(outer[0], edges[0])], edges, [max(outer[1], edges[-1])]])
    if law.released == "histogram":
        return _of_histogram(expect(law, HistogramLaw), ends, shares, n)
    if not law.provides("information"):
        raise SpecError(
            f"mechanism.kind: what {law.kind} tells of a density is not known to advise; choose another"
        )
    places, weights = _places(ends)
    return law.information(places, weights, shares, n)


def _places(ends: Floats) -> tuple[Floats, Floats]:
    """Return places within each cell (B, nodes), and their weights (nodes,)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
    return middle[:, None] + half[:, None] * nodes, 0.5 * weights


def _of_histogram(law: HistogramLaw, ends: Floats, shares: Floats, n: int) -> Floats:
    bins = law.edges()
    inner = np.concatenate([[-math.inf], bins[1:-1], [math.inf]])
    width = np.diff(ends)
    overlap = np.minimum(ends[None, 1:], inner[1:, None]) - np.maximum(ends[None, :-1], inner[:-1, None])
    adds = np.clip(overlap, 0.0, None) / np.where(width > 0.0, width, 1.0)
    adds[cell_of(ends[:-1], bins)[width <= 0.0], np.flatnonzero(width <= 0.0)] = 1.0
    p = adds @ shares
    sampling = (np.diag(p) - np.outer(p, p)) / n
    gain, noise = law.covariance(p, n)
    covariance = gain**2 * sampling + noise
    inverse: Any = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    return np.asarray(gain**2 * (adds.T @ inverse @ adds))
