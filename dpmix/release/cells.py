"""Public cells, and the counts of a release in them (methods, section 12).

Cells follow from public quantities alone: bounds, noise and width, never from the values. Half-open inner
cells [e_i, e_(i+1)) of one width h, one cell on each side to infinity; where outputs are finite the cells are
the outputs. The likelihood is the same for a grid in which neighbours without records are put together, for
masses add, which is what the chains work on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Counts", "count_outputs", "default_width", "edges_of", "output_edges", "tally"]


_PIECE = 1 << 20
_REACH = 8.0  # standard deviations of Gaussian noise covered by inner cells
_MOST = 10_000_000  # cells

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Counts:
    """Numbers of records in all cells.

    Parameters
    ----------
    counts : int64 array (B,)
    edges : float64 array (B - 1,)
        Finite edges between the cells, increasing; where outputs are finite .5, 1.5, ..
    width : float
        Of an inner cell; 0 where outputs are finite.
    """

    counts: NDArray[np.int64]
    edges: Floats
    width: float

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def constants(self) -> dict[str, float]:
        """Return what the chains file says of the cells: the ends of the inner ones, and their width."""
        first, last = float(self.edges[0]), float(self.edges[-1])
        return {"cells_first": first, "cells_last": last, "cells_width": self.width}

    def joined(self) -> Counts:
        """Return the counts with neighbouring cells of no records put together; not of finite outputs."""
        some = np.flatnonzero(self.counts)
        used = np.unique(np.concatenate([some - 1, some]))
        used = used[(used >= 0) & (used < len(self.edges))]
        starts = np.concatenate([[0], used + 1])
        return Counts(np.add.reduceat(self.counts, starts), self.edges[used], self.width)


def default_width(kind: str, scale: float, lo: float, hi: float) -> float:
    """Return the width of `width: auto` (methods, section 12): fine beside the noise and the domain.

    Raises
    ------
    ValueError
        Where there is no noise that it could follow.
    """
    parts = {"laplace": 32.0, "gaussian": 4.0}
    if kind not in parts:
        raise ValueError(f"no width follows from {kind}")
    return min(scale / parts[kind], (hi - lo) / 64.0)


def edges_of(kind: str, scale: float, lo: float, hi: float, width: float, *, bounded: bool) -> Floats:
    """Return the finite edges of the cells; lo and hi are among them, so that the width may be a little less.

    Inner cells cover under Laplace noise the domain where the kernel is `bounded` to it (beyond it the noise
    factorises), else half its width more on each side; under Gaussian noise 8 standard deviations more;
    without noise the domain.

    Raises
    ------
    ValueError
        For more cells than can be worked with.
    """
    if not 0.0 < width < math.inf:
        raise ValueError(f"a width of {width:g} makes no cells")
    inner = math.ceil((hi - lo) / width * (1.0 - 1e-12))
    beyond = {"laplace": 0.0 if bounded else 0.5 * (hi - lo), "gaussian": _REACH * scale}.get(kind, 0.0)
    if not inner + 2.0 * beyond / width < _MOST:
        raise ValueError(f"a width of {width:g} makes more than {_MOST:,} cells")
    outer = math.ceil(beyond * inner / (hi - lo) * (1.0 - 1e-12))
    places = np.arange(-outer, inner + outer + 1) / inner
    edges = lo + (hi - lo) * places
    edges[outer], edges[outer + inner] = lo, hi
    return np.asarray(edges, dtype=np.float64)


def tally(values: Floats, edges: Floats, width: float) -> Counts:
    """Count values (n,) in the cells between `edges`, in pieces.

    Raises
    ------
    ValueError
        For no values, and for such that are not finite.
    """
    if len(values) == 0:
        raise ValueError("there are no values")
    counts = np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(values), _PIECE):
        piece = values[start : start + _PIECE]
        if not np.isfinite(piece).all():
            raise ValueError("a value is not finite")
        counts += np.bincount(np.searchsorted(edges, piece, side="right"), minlength=len(counts))
    return Counts(counts, edges, width)


def output_edges(outputs: int) -> Floats:
    """Return the edges between the outputs 0, 1, .., outputs - 1: .5, 1.5, .."""
    return np.arange(outputs - 1, dtype=np.float64) + np.float64(0.5)


def count_outputs(values: Floats, outputs: int) -> Counts:
    """Count values (n,) that are outputs 0 .. outputs - 1.

    Raises
    ------
    ValueError
        For no values, and for such that are no output.
    """
    if not ((values >= 0) & (values < outputs) & (values == np.floor(values))).all():
        raise ValueError(f"a value is no output 0 .. {outputs - 1}")
    return tally(values, output_edges(outputs), 0.0)
