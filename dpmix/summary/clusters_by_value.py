"""What counts say of clusters: how probable each is by value, and the partition of a stated subsample.

No record is in the state of a chain on counts, so that this is drawn afterwards from the saved weights and
parameters (methods, section 12). Given a draw of P a record in cell c belongs to component h with probability
w_h G_c(theta_h) / sum, independently of all others, whence

- **coclustering** of cells: the probability that two records, one in each, share a component, is the mean of
  sum_h p_ch p_c'h, exactly that of the posterior partition;
- **the partition of a subsample**: its records' components are drawn, and their draws treated as saved
  allocations are (`dpmix.summary.clustering`).

Components have no names. Clusters that have are made in two steps that depend on no numbering:

1. The values of records, in cells of the public bounds (a histogram's own bins), are partitioned: the
   partition of least expected variation of information, weighted by the cells' posterior mass, by its lower
   bound sum_c m_c (log m(c) - 2 log sum_c' m_c' S_cc' 1[same]), S the coclustering (Wade and Ghahramani
   2018). Clusters are numbered by falling weight.
2. In each draw every component counts to the cluster in whose cells the most of its mass lies; what it gives
   to the cells' probabilities is added up by cluster. A draw with two components where the estimate has one
   cluster so leaves it whole, one with a single component for two gives it to the nearer: that is what the
   band shows.

Mass w_0 on no saved component is spread over atoms first (`dpmix.summary.random_measures`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import Beta
from dpmix.kernels.multivariate_normal.family import NormalInverseWishart
from dpmix.models.meaning_base import dated_of
from dpmix.numerics.equal_cells import spread
from dpmix.release.tallies import tally
from dpmix.results.nodes import Array, Each, ResultSection
from dpmix.run.kept_quantities import subsample_of
from dpmix.spec.days import Day, placed
from dpmix.summary.fitted_columns import family_of, public_bounds
from dpmix.summary.information import ReleasedCells, counted_edges, kernel_of_fit, theta_of
from dpmix.summary.random_measures import Measures, states_at

if TYPE_CHECKING:
    from dpmix.columns.cells import Counts
    from dpmix.kernels.layout import Family
    from dpmix.run.chains_reader import Chains

# Clusters by value, as data and in words


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
        Posterior mean and pointwise band, by cluster, of draws that have mass there; NaN where none has.
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
            key: Each(values.tolist(), Array((dim,), np.where(np.isfinite(values), values, np.nan)))
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
        inner = self.latent.low[np.isfinite(self.latent.low)]
        step = float(np.ptp(inner)) / 100.0 if inner.size else 0.0

        def place(value: float) -> str:
            return placed(Day(value) if self.date else value, step)

        for r, (low, high) in enumerate(self.spans()[:_NAMED]):
            span = "" if np.isinf(low) else f"from {place(low)} "
            span += (
                ("up" if span else "all values")
                if np.isinf(high)
                else f"{'' if span else 'up '}to {place(high)}"
            )
            shares = f"{100 * self.share[r]:.3g}%"
            shares += f" ({100 * self.share_lower[r]:.3g} to {100 * self.share_upper[r]:.3g})"
            parts.append(f"{r + 1}: {span}, {shares}")
        more = len(self.share) - len(parts)
        rest = f"; and {more} more" if more > 0 else ""
        noun = "cluster, with its share" if len(self.share) == 1 else "clusters, with their shares"
        return f"{len(self.share)} {noun} of the records: {'; '.join(parts)}{rest}."

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


# What counts say of clusters: how probable each is by value, and the partition of a stated subsample


MOST_DRAWS = 400
MOST_CELLS = 64
_SWEEPS = 20
_TINY = 1e-300
_ROUNDED = 1e-14  # masses below this are rounding of distribution functions near one

Ints = NDArray[np.int64]


class _Cells(NamedTuple):
    """Cells of released values: inner edges, or numbers of outputs; and where each of fewer cells begins."""

    edges: Floats
    outputs: Floats
    starts: Ints
    low: Floats
    high: Floats


def on_counts(chains: Chains) -> bool:
    """Return whether the chains are of ``sampler.kind: counts``."""
    return "cells_width" in chains.constants


def clusters_by_value(chains: Chains, level: float, *, coclustering: bool = False) -> ClustersByValue | None:
    """Return clusters of values with their probabilities, for chains on counts; None for others.

    Parameters
    ----------
    chains : Chains
    level : float
        Of bands and intervals.
    coclustering : bool
        Whether the coclustering of cells is to be written out.
    """
    if not on_counts(chains):
        return None
    family = family_of(chains)
    assert not isinstance(family, NormalInverseWishart)  # the sampler is for one column
    edges = _latent_edges(chains)
    released = _released_cells(chains)
    kernel = kernel_of_fit(chains)
    grid = None if released is None else _grid_of(chains, kernel, released)
    parts, latent, seen = [], [], []
    for _, _, measure in _states(chains, family, MOST_DRAWS):
        weights = measure.weights / measure.weights.sum()
        mass = _masses(family, measure.atoms, edges) * weights[:, None]
        latent.append(mass)
        parts.append(weights)
        if released is not None and grid is not None:
            at = grid.masses(theta_of(chains, measure.atoms))
            seen.append(np.add.reduceat(at, released.starts, axis=1) * weights[:, None])
    together, mean_mass = _coclustering(latent), np.mean([mass.sum(axis=0) for mass in latent], axis=0)
    estimate = with_records(partition_of_cells(together, mean_mass), chains.n * mean_mass)
    owners = [np.argmax(_by_cluster(mass.T, estimate), axis=0) for mass in latent]
    size = int(estimate.max()) + 1
    shares = np.stack([np.bincount(own, w, minlength=size) for own, w in zip(owners, parts, strict=True)])
    tails = [0.5 * (1.0 - level), 0.5 * (1.0 + level)]
    lower, upper = np.quantile(shares, tails, axis=0)
    own_bins = not chains.mechanism.protects or chains.mechanism.released == "histogram"
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    if isinstance(kernel, Beta):
        ends[[0, -1]] = kernel.lo, kernel.lo + kernel.width
    return ClustersByValue(
        estimate,
        shares.mean(axis=0),
        lower,
        upper,
        _probabilities(latent, owners, size, tails, ends[:-1], ends[1:], together if coclustering else None),
        None
        if released is None or own_bins
        else _probabilities(
            seen,
            owners,
            size,
            tails,
            released.low,
            released.high,
            _coclustering(seen) if coclustering else None,
        ),
        len(latent),
        level,
        dated_of(chains).only,
    )


def kept_by_counts(chains: Chains) -> Ints:
    """Return the places of the records of ``sampler.subsample``, for chains on counts; else none."""
    wanted = chains.stated("sampler").get("subsample")
    if wanted is None or not on_counts(chains) or chains.mechanism.released == "histogram":
        return np.empty(0, dtype=np.int64)
    return subsample_of(chains.n, int(wanted))


def subsample_labels(chains: Chains, kept: Ints, most: int) -> Ints:
    """Draw the components of records given saved states, up to `most` of these: labels (draws, records).

    Equal labels in a row are of one component; they mean nothing from row to row. A record is known by the
    cell of its released value, as the chains knew it.
    """
    family = family_of(chains)
    assert not isinstance(family, NormalInverseWishart)
    values = np.ascontiguousarray(chains.observed, dtype=np.float64).reshape(chains.n, -1)[kept, 0]
    cells, place = _cells_around(chains, values)
    grid, found = _grid_of(chains, kernel_of_fit(chains), cells), []
    for chain, state, measure in _states(chains, family, most):
        rng = chains.generator(int(chains.ids[chain]), -(2 * 10**9) - state)
        joint = grid.masses(theta_of(chains, measure.atoms))
        joint *= measure.weights[:, None]
        below = np.cumsum(joint, axis=0)
        below /= np.maximum(below[-1], _TINY)
        u = rng.random(len(kept))
        found.append(np.sum(u[None] >= below[:-1, place], axis=0))
    return np.stack(found).astype(np.int64)


def partition_of_cells(together: Floats, mass: Floats) -> Ints:
    """Return the partition of cells (M,) of least expected variation of information that was found.

    Parameters
    ----------
    together : float64 array (M, M)
        Probability that records of two cells, or two of one, are in one cluster.
    mass : float64 array (M,)
        Weights of the cells.

    Returns
    -------
    int64 array (M,)
        Clusters, numbered from 0 by falling mass.
    """
    mass = mass / mass.sum()
    size = len(mass)
    below = np.cumsum(mass)
    starts = [np.arange(size)]
    starts += [np.minimum((below * k).astype(int), k - 1) for k in range(1, 9)]
    best, least = starts[0], np.inf
    for start in starts:
        labels = np.unique(start, return_inverse=True)[1].ravel()
        labels, value = _descend(together, mass, labels)
        if value < least - 1e-12:
            best, least = labels, value
    found = np.unique(best, return_inverse=True)[1].ravel()
    order = np.argsort(-np.bincount(found, mass), kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return rank[found]


def with_records(labels: Ints, records: Floats) -> Ints:
    """Return a partition of cells (M,) whose clusters have a record each, of so many expected in each cell.

    The loss hardly asks for what becomes of cells without records: they go to the cluster of the nearest cell
    that has one that holds records.
    """
    kept = np.flatnonzero((np.bincount(labels, records) >= 1.0)[labels])
    if not kept.size:
        return labels
    places = np.arange(len(labels))
    nearest = kept[np.abs(places[:, None] - kept).argmin(axis=1)]
    return np.asarray(labels[nearest])


def expected_loss(together: Floats, mass: Floats, labels: Ints) -> float:
    """Return the bound of the expected variation of information, up to what no labels change."""
    same = labels[:, None] == labels[None]
    inside = same @ mass
    agreed = (together * same) @ mass
    inside = np.maximum(inside, _TINY)  # a cell of no mass may be a cluster alone
    return float(mass @ (np.log(inside) - 2.0 * np.log(np.maximum(agreed, _TINY))))


def _descend(together: Floats, mass: Floats, labels: Ints) -> tuple[Ints, float]:
    """Move single cells and merge clusters while that lowers the loss."""
    value = expected_loss(together, mass, labels)
    for _ in range(_SWEEPS):
        before = value
        for c in range(len(mass)):
            names = np.unique(labels)
            free = int(names[-1]) + 1
            for name in (*names.tolist(), free):
                if name == labels[c]:
                    continue
                tried = labels.copy()
                tried[c] = name
                found = expected_loss(together, mass, tried)
                if found < value - 1e-12:
                    labels, value = tried, found
        names = np.unique(labels)
        for i, one in enumerate(names):
            for other in names[i + 1 :]:
                tried = np.where(labels == other, one, labels)
                found = expected_loss(together, mass, tried)
                if found < value - 1e-12:
                    labels, value = tried, found
        if value >= before - 1e-12:
            break
    return labels, value


def _states(chains: Chains, family: Family, most: int) -> Iterator[tuple[int, int, Measures]]:
    """Give evenly spaced saved states with all their mass on atoms, by chain and number."""
    count, draws = chains.n_clusters.shape
    numbers = spread(draws, max(1, most // count))
    for chain in range(count):
        found = states_at(chains, family, [(chain, numbers)], spread_rest=True)
        for (_, state), measure in sorted(found.items()):
            yield chain, state, measure


def _coclustering(joint: list[Floats]) -> Floats:
    """Return the mean over draws of sum_h p_ch p_c'h, given weights times masses (component, cell)."""
    cells = joint[0].shape[1]
    total = np.zeros((cells, cells))
    known = np.zeros((cells, cells))
    for mass in joint:
        share = _given_cell(mass)
        known += np.outer(np.isfinite(share[0]), np.isfinite(share[0]))
        share = np.nan_to_num(share, nan=0.0)
        total += share.T @ share
    return total / np.maximum(known, 1.0)


def _given_cell(mass: Floats) -> Floats:
    """Return probabilities given a cell, (component, cell); NaN where a draw has no mass to tell by."""
    total = mass.sum(axis=0)
    found = np.full(mass.shape, np.nan)
    np.divide(mass, total, out=found, where=total > _TINY)
    return found


def _by_cluster(by_cell: Floats, estimate: Ints) -> Floats:
    """Add rows (cell, ..) up by cluster."""
    found = np.zeros((int(estimate.max()) + 1, *by_cell.shape[1:]))
    np.add.at(found, estimate, by_cell)
    return found


def _probabilities(
    joint: list[Floats],
    owners: list[Ints],
    size: int,
    tails: list[float],
    low: Floats,
    high: Floats,
    together: Floats | None,
) -> CellProbabilities:
    found = np.zeros((len(joint), size, joint[0].shape[1]))
    for draw, (mass, own) in enumerate(zip(joint, owners, strict=True)):
        np.add.at(found[draw], own, _given_cell(mass))
    mean, lower, upper = (np.full(found.shape[1:], np.nan) for _ in range(3))
    told = np.isfinite(found).all(axis=1).any(axis=0)  # cells far out may have no mass in any draw
    mean[:, told] = np.nanmean(found[..., told], axis=0)
    lower[:, told], upper[:, told] = np.nanquantile(found[..., told], tails, axis=0)
    return CellProbabilities(low, high, mean, lower, upper, together)


def _latent_edges(chains: Chains) -> Floats:
    """Return inner edges of the cells of latent values: a histogram's bins, else of the public bounds."""
    law = chains.mechanism
    if law.released == "histogram":
        edges = law.edges()
        step = -(-(edges.size - 1) // MOST_CELLS)
        return np.asarray(edges[step:-1:step], dtype=np.float64)
    bounds = public_bounds(chains, 0, 1)
    low, high = bounds or (chains.constants["cells_first"], chains.constants["cells_last"])
    return np.linspace(low, high, MOST_CELLS - 1)


def _released_cells(chains: Chains) -> _Cells | None:
    """Return at most `MOST_CELLS` cells of released values, each of whole cells of the chains' own."""
    if chains.mechanism.released == "histogram":
        return None
    if chains.constants["cells_width"] == 0.0:
        outputs = np.arange(round(chains.constants["cells_last"] + 0.5) + 1, dtype=np.float64)
        starts = np.arange(0, outputs.size, -(-outputs.size // MOST_CELLS))
        stops = np.append(starts[1:], outputs.size) - 1
        return _Cells(np.zeros(0), outputs, starts, outputs[starts], outputs[stops])
    edges = counted_edges(chains)
    edges = edges[:: -(-edges.size // (MOST_CELLS - 1))]
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    return _Cells(edges, np.zeros(0), np.arange(edges.size + 1), ends[:-1], ends[1:])


def _cells_around(chains: Chains, values: Floats) -> tuple[_Cells, Ints]:
    """Return the chains' own cells that hold any of these values, and which each is in."""
    width = chains.constants["cells_width"]
    if width == 0.0:
        outputs, place = np.unique(values, return_inverse=True)
        return _Cells(np.zeros(0), outputs, np.arange(outputs.size), outputs, outputs), place.ravel()
    found: Counts = tally(values, counted_edges(chains), width).joined()
    place = np.searchsorted(found.edges, values, side="right")
    ends = np.concatenate([[-np.inf], found.edges, [np.inf]])
    return _Cells(found.edges, np.zeros(0), np.arange(len(ends) - 1), ends[:-1], ends[1:]), place


def _masses(family: Family, atoms: Floats, edges: Floats) -> Floats:
    """Return masses of cells of latent values, (component, cell)."""
    size, points = atoms.shape[1], edges.size
    below = family.cdf(np.repeat(atoms, points, axis=1), np.tile(edges, size)).reshape(size, points)
    ends = np.zeros((size, 1)), np.ones((size, 1))
    found = np.diff(np.concatenate([ends[0], below, ends[1]], axis=1), axis=1)
    return np.where(found > _ROUNDED, found, 0.0)


def _grid_of(chains: Chains, kernel: Any, cells: _Cells) -> ReleasedCells:
    """Return cells of released values, whose masses are as the sampler has them."""
    seen = chains.mechanism.observe(np.zeros((1, 1)), 1, [0], rows=False)
    return ReleasedCells(seen.channel, kernel, cells.edges, cells.outputs)
