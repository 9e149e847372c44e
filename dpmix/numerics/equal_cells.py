"""Equal cells of an interval, of which mechanisms and their readers take the same ones; even steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def equal_edges(pair: tuple[float, float], cells: int) -> NDArray[np.float64]:
    """Return the edges of equal cells of [lo, hi].

    Cell i holds the y with edges[i] <= y < edges[i + 1], and the last one hi too: see `cell_of`.

    Parameters
    ----------
    pair : (lo, hi)
        Bounds, lo < hi.
    cells : int
        Their number, at least 1.

    Returns
    -------
    ndarray of float64, shape (cells + 1,)
        Increasing, unless the cells are narrower than doubles can tell apart.
    """
    low, high = pair
    found = low + (high - low) * (np.arange(cells + 1) / cells)
    found[0], found[-1] = low, high
    return np.asarray(found, dtype=np.float64)


def cell_of(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cell of each value, of those with these edges; values outside belong to the end cells."""
    return np.searchsorted(edges[1:-1], values, side="right").astype(np.int64)


def halfway(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return inner edges between whole numbers, halfway from the last one below each to the first from it on.

    Parameters
    ----------
    edges : float64 array (cells + 1,)
        Of cells that hold their lower edge, as `equal_edges` gives them.

    Returns
    -------
    ndarray of float64, shape (cells + 1,)
        With the same ends; increasing where each cell holds a whole number, and end cells more than a half.
    """
    return np.concatenate([edges[:1], np.ceil(edges[1:-1]) - 0.5, edges[-1:]])


def spread(size: int, most: int) -> NDArray[np.int64]:
    """At most `most` evenly spaced numbers out of 0 .. size - 1, the last one included."""
    if size <= most:
        return np.arange(size)
    return size - 1 - ((np.arange(most, dtype=np.int64) * size) // most)[::-1]


def among(places: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which places are points, but for rounding; points are in increasing order, and two at least."""
    after = np.clip(np.searchsorted(points, places), 1, points.size - 1)
    apart = np.minimum(np.abs(places - points[after - 1]), np.abs(places - points[after]))
    return np.asarray(apart <= 1e-9 * (points[-1] - points[0]))
