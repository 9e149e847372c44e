"""Clusters by value, as data and in words: see `dpmix.summary.clusters_by_value`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Array, Each, ResultSection
from dpmix.spec.days import Day

__all__ = ["CellProbabilities", "ClustersByValue"]

Floats = NDArray[np.float64]
_NAMED = 6  # clusters named in words


@dataclass(frozen=True)
class CellProbabilities:
    """Posterior of the probability of each cluster, given that a value is in a cell.

    Parameters
    ----------
    low, high : float64 arrays (M,)
        Ends of the cells; the first reaches down to minus infinity and the last up to infinity where the
        model has values there. Of finite outputs the first and the last one of a cell.
    mean, lower, upper : float64 arrays (R, M)
        Posterior mean and pointwise band, by cluster.
    coclustering : float64 array (M, M) or None
        Probability that two records of these cells, or of one, are in one cluster; None where not asked for.
    """

    low: Floats
    high: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    coclustering: Floats | None

    def data(self, name: str) -> dict[str, Any]:
        """Return what is written of it, over cells of that name: ends that are infinite as None, or NaN."""
        dim = f"{name}_cell"  # their numbers differ
        found: dict[str, Any] = {
            key: Each(_ends(values), Array((dim,), np.where(np.isfinite(values), values, np.nan)))
            for key, values in (("low", self.low), ("high", self.high))
        }
        found |= {key: Array(("cluster", dim), getattr(self, key)) for key in ("mean", "lower", "upper")}
        if self.coclustering is not None:
            found["coclustering"] = Array((dim, f"{dim}2"), self.coclustering)
        return found


@dataclass(frozen=True)
class ClustersByValue:
    """Clusters of the values of records, and how probable each is by value.

    Parameters
    ----------
    estimate : int64 array (M,)
        Cluster of each cell of latent values in the reference, numbered from 0 by falling weight.
    share, share_lower, share_upper : float64 arrays (R,)
        Posterior mean and interval of the share of records in each cluster.
    latent : CellProbabilities
        By the record's own value.
    released : CellProbabilities or None
        By the released value; None where the release is not of single records, or the values themselves.
    draws : int
        Number of draws used.
    level : float
        Posterior probability of bands and intervals.
    date : bool
        Whether values are dates.
    """

    estimate: NDArray[np.int64]
    share: Floats
    share_lower: Floats
    share_upper: Floats
    latent: CellProbabilities
    released: CellProbabilities | None
    draws: int
    level: float
    date: bool = False

    def spans(self) -> list[tuple[float, float]]:
        """Return the ends of the run, or the hull of the runs, of cells that each cluster has."""
        return [
            (float(self.latent.low[own[0]]), float(self.latent.high[own[-1]]))
            for own in (np.flatnonzero(self.estimate == r) for r in range(len(self.share)))
        ]

    def in_words(self) -> str:
        """Say it in a sentence."""
        parts = []
        place = Day if self.date else float
        for r, (low, high) in enumerate(self.spans()[:_NAMED]):
            span = "" if np.isinf(low) else f"from {place(low):.4g} "
            span += (
                ("up" if span else "all values")
                if np.isinf(high)
                else f"{'' if span else 'up '}to {place(high):.4g}"
            )
            shares = f"{100 * self.share[r]:.3g}%"
            shares += f" ({100 * self.share_lower[r]:.3g} to {100 * self.share_upper[r]:.3g})"
            parts.append(f"{r + 1}: {span}, {shares}")
        more = len(self.share) - len(parts)
        rest = f"; and {more} more" if more > 0 else ""
        noun = "cluster" if len(self.share) == 1 else "clusters"
        return f"{len(self.share)} {noun}, with their shares of the records: {'; '.join(parts)}{rest}."

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        shares = {"mean": self.share, "lower": self.share_lower, "upper": self.share_upper}
        data = {
            "estimate": Array(("latent_cell",), self.estimate),
            "share": {name: Array(("cluster",), values) for name, values in shares.items()},
            "latent": self.latent.data("latent"),
            "released": None if self.released is None else self.released.data("released"),
            "draws": self.draws,
        }
        text = [[f"By value: {self.in_words()}"]]
        return ResultSection("clusters_by_value", data, "Clusters by value", text=text)


def _ends(values: Sequence[float] | Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
