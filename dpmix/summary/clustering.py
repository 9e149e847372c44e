"""Clusters of the records: similarity, point estimates and credible balls from the saved allocations.

The estimate is the partition of least posterior expected loss, under the variation of information or Binder's
loss; the ball around it holds the draws nearest to it (S. Wade and Z. Ghahramani 2018, Bayesian cluster
analysis: point estimation and credible balls, Bayesian Analysis 13, 559-626). Expectations are means over
draws, not bounds of them; the search (`dpmix.numerics.partitions`) starts from several random orders and from
the best of the draws themselves, and need not find the very least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError
from dpmix.numerics import partitions
from dpmix.numerics.equal_cells import spread
from dpmix.results.nodes import Array, Each, ResultSection
from dpmix.spec.capabilities import counted
from dpmix.summary.clusters_by_value import kept_by_counts, subsample_labels

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.run.chains_reader import Chains

# What is reported of the partition of the records, as data


Labels = NDArray[np.int32]
LOSS_NAMES = {"vi": "variation of information", "binder": "Binder loss"}


@dataclass(frozen=True)
class Bound:
    """A partition on the rim of a credible ball: its labels, number of clusters, distance from the centre."""

    labels: Labels
    n_clusters: int
    distance: float


@dataclass(frozen=True)
class CredibleBall:
    """The smallest ball around an estimate, in its own loss, that holds a share `level` of the draws.

    Parameters
    ----------
    level, probability : float
        The share asked for, and the one within the ball, which is at least that.
    radius : float
        Largest distance of a draw in the ball.
    vertical_upper, vertical_lower, horizontal : Bound
        Of the draws in the ball, the farthest among those of fewest clusters, the farthest among those of
        most clusters, and the farthest of all; where several are, the first.
    """

    level: float
    probability: float
    radius: float
    vertical_upper: Bound
    vertical_lower: Bound
    horizontal: Bound


@dataclass(frozen=True)
class PartitionEstimate:
    """A point estimate of the partition.

    Parameters
    ----------
    loss : str
        "vi" or "binder".
    labels : int32 array (n,)
        Cluster of each record, numbered from 0 by falling size.
    expected_loss : float
        Mean over the draws: of the variation of information in nats, or of the share of pairs of records
        that are together in one partition and apart in the other.
    n_clusters : int
    ball : CredibleBall
    expected_ari : float
        Mean over the draws of the adjusted Rand index with the estimate.
    ari : float or None
        Adjusted Rand index with the true labels, where they are known.
    """

    loss: str
    labels: Labels
    expected_loss: float
    n_clusters: int
    ball: CredibleBall
    expected_ari: float
    ari: float | None


@dataclass(frozen=True)
class Clustering:
    """What the draws say of the partition of the records.

    Parameters
    ----------
    loss : str
        The loss of the estimate that is reported first.
    estimates : mapping of str to Estimate
        By loss.
    draws, of : int
        Number of draws used, evenly spaced, and saved.
    similarity : float32 array (n, n)
        Posterior probability that two records are in one cluster.
    ari_posterior_mean : float or None
        Mean over the draws of the adjusted Rand index with the true labels, where they are known.
    coclustering : bool
        Whether `similarity` is to be written out.
    kept : int64 array (m,)
        Places of the records that this is about; n above is their number.
    records : int
        Number of all records.
    """

    loss: str
    estimates: Mapping[str, PartitionEstimate]
    draws: int
    of: int
    similarity: NDArray[np.float32]
    ari_posterior_mean: float | None
    coclustering: bool
    kept: NDArray[np.int64]
    records: int

    @property
    def estimate(self) -> PartitionEstimate:
        """The estimate that is reported first."""
        return self.estimates[self.loss]

    def section(self) -> ResultSection:
        """Return what is reported of it."""
        others = (estimate for loss, estimate in self.estimates.items() if loss != self.loss)
        data = _data(self.estimate) | {
            "ari_posterior_mean": self.ari_posterior_mean,
            "draws": self.draws,
            "subsample": Each(None),
            "other": _data(next(others)),
        }
        if len(self.kept) < self.records:  # the places of those records; else all are there
            data |= {"subsample": Each(self.kept), "obs": Each(hdf5=Array(("obs",), self.kept))}
        if self.coclustering:
            data["coclustering"] = Array(("obs", "obs2"), self.similarity)
        return ResultSection("clustering", data, "Clusters of the records", [f"Partition: {self.in_words()}"])

    def in_words(self) -> str:
        """Say what the estimate is, and how sure."""
        estimate, ball = self.estimate, self.estimate.ball
        bounds = (ball.vertical_upper.n_clusters, ball.vertical_lower.n_clusters)
        few, many = bounds
        between = counted(many, "cluster") if few == many else f"{few} to {many} clusters"
        text = (
            f"{estimate.n_clusters} cluster{'s' * (estimate.n_clusters != 1)} with the least expected "
            f"{LOSS_NAMES[estimate.loss]} ({estimate.expected_loss:.3g}); the {100 * ball.level:g}% ball of "
            f"radius {ball.radius:.3g} holds draws of {between}; expected ARI "
            f"{estimate.expected_ari:.2f}"
        )
        if estimate.ari is not None:
            text += f"; ARI with the true labels {estimate.ari:.2f}"
        if len(self.kept) < self.records:
            text += f"; of a subsample of {len(self.kept):,} of the {self.records:,} records"
        return text + (f" (from {self.draws:,} of {self.of:,} draws)" if self.draws < self.of else "")


def _data(estimate: PartitionEstimate) -> dict[str, Any]:
    ball = estimate.ball
    bounds = {name: getattr(ball, name) for name in ("vertical_upper", "vertical_lower", "horizontal")}
    figures = {
        name: [getattr(bound, name) for bound in bounds.values()] for name in ("n_clusters", "distance")
    }
    return {
        "loss": estimate.loss,
        "estimate": Array(("obs",), estimate.labels),
        "expected_loss": estimate.expected_loss,
        "n_clusters": estimate.n_clusters,
        "credible_ball": {
            **{name: getattr(ball, name) for name in ("level", "probability", "radius")},
            **{
                name: Each({"n_clusters": bound.n_clusters, "distance": bound.distance})
                for name, bound in bounds.items()
            },
            "bound": Each(hdf5=Array(("bound",), list(bounds))),
            **{name: Each(hdf5=Array(("bound",), values)) for name, values in figures.items()},
        },
        "expected_ari": estimate.expected_ari,
        "ari": estimate.ari,
    }


# How it is found


LOSSES: Final = ("vi", "binder")
MOST_DRAWS: Final = 10_000
_LEAST_DRAWS: Final = 500
_DRAWN: Final = 2_000  # states at which allocations are drawn here
_PAIRS: Final = 6e9  # of records, over all draws
_SEARCH_DRAWS: Final = 2_000
_SEARCH_LABELS: Final = 4e7
_WORK: Final = 6e9
_RUNS: Final = 16
_SWEEPS: Final = 20
_DISSOLVE: Final = 5
_CANDIDATES: Final = 60
_SCREEN: Final = 150  # draws that starts are followed by before the best ends go by more
_BEST: Final = 3
_ROOM: Final = 10


def cluster(
    chains: Chains,
    loss: str,
    level: float,
    rng: np.random.Generator,
    *,
    truth: NDArray[np.int64] | None = None,
    coclustering: bool = False,
) -> Clustering | None:
    """Estimate the partition of the records whose allocations were saved; None where there are none.

    For chains on counts allocations of the records of ``sampler.subsample`` are drawn here.

    Parameters
    ----------
    chains : Chains
    loss : {"vi", "binder"}
        Which estimate comes first; both are made.
    level : float
        Probability of the credible balls.
    rng : numpy.random.Generator
        Source of the orders of the search.
    truth : int64 array (n,), optional
        True labels.
    coclustering : bool
        Whether the similarity matrix is to be written out.

    Raises
    ------
    DataError
        When allocations are missing, or the true labels are of another number of records.
    """
    drawn = kept_by_counts(chains)
    kept = drawn if len(drawn) else chains.kept
    if not len(kept):
        return None
    count, draws = chains.n_clusters.shape
    n = len(kept)
    if len(drawn):
        rows = subsample_labels(chains, kept, min(int(_draws_for(n)), _DRAWN))
    else:
        wanted = spread(draws, max(1, int(_draws_for(n)) // count))
        rows = np.concatenate(list(chains.allocations(wanted)))
    labels, counts = partitions.compact(rows)
    if labels.shape[1] != n or n > chains.n or kept.min() < 0 or kept.max() >= chains.n:
        raise DataError("the chains hold allocations that are not of their records; fit anew")
    if truth is not None:
        if truth.size != chains.n:
            raise DataError(f"there are {truth.size} true labels for {chains.n} records")
        truth = truth[kept]
    by_record = np.ascontiguousarray(labels.T)
    similarity = partitions.similarity(by_record)
    found = {name: minimise(name, labels, counts, similarity, rng) for name in LOSSES}
    known = None if truth is None else partitions.compact(truth[None, :].astype(np.int64))
    estimates = {name: describe(name, best, labels, counts, level, known) for name, best in found.items()}
    mean = None
    if known is not None:
        mean = float(partitions.losses(known[0][0], int(known[1][0]), labels, counts)[2].mean())
    return Clustering(
        loss, estimates, len(labels), count * draws, similarity, mean, coclustering, kept, chains.n
    )


def _draws_for(n: int) -> float:
    """Return how many draws to use, so that comparing all pairs of n records takes seconds."""
    return min(max(2.0 * _PAIRS / (n * n), _LEAST_DRAWS), MOST_DRAWS)


def minimise(
    loss: str,
    labels: Labels,
    counts: Labels,
    similarity: NDArray[np.float32],
    rng: np.random.Generator,
) -> Labels:
    """Search for the partition of least expected loss.

    Starts are random orders of the records and the two best of up to 60 draws. For the VI estimate they
    are followed by 150 of the draws; the best three ends, and the better of the two draws, start searches by
    up to 2,000 (fewer with many records or clusters). What these find is compared by all draws.

    Parameters
    ----------
    loss : {"vi", "binder"}
    labels : int32 array (S, n)
        Draws, their labels compact (`dpmix.numerics.partitions.compact`).
    counts : int32 array (S,)
        Their numbers of blocks.
    similarity : float32 array (n, n)
    rng : numpy.random.Generator

    Returns
    -------
    int32 array (n,)
        Labels, numbered from 0 by falling size.
    """
    draws, n = labels.shape
    most = int(counts.max())
    row = LOSSES.index(loss)
    room = min(n, most + _ROOM)

    def expected(found: Labels) -> float:
        return float(partitions.losses(found, int(found.max()) + 1, labels, counts)[row].mean())

    candidates = spread(draws, _CANDIDATES)
    apart = [
        partitions.losses(labels[s], int(counts[s]), labels[candidates], counts[candidates])[row].mean()
        for s in candidates
    ]
    drawn = [labels[candidates[k]] for k in np.argsort(apart, kind="stable")[:2]]
    if loss == "vi":
        size = int(min(max(_SEARCH_LABELS / (n * most), 100.0), _SEARCH_DRAWS))
        runs = int(min(max(_WORK / (20.0 * n * most * min(size, draws)), 2.0), _RUNS))
        starts = drawn + [np.full(n, -1, dtype=np.int32)] * runs
        few = min(_SCREEN, size)
        ends = _distinct([_search_vi(start, labels, few, most, room, rng) for start in starts])
        best = sorted(ends, key=expected)[:_BEST]
        ends = [_search_vi(start, labels, size, most, room, rng) for start in (*best, drawn[0])]
    else:
        runs = int(min(max(_WORK / (60.0 * n * n), 2.0), _RUNS))
        starts = drawn + [np.full(n, -1, dtype=np.int32)] * runs
        at, wrong = np.empty((n, 0), dtype=np.int32), 1.0 - 2.0 * similarity
        ends = [partitions.search(start, at, 0, wrong, room, _SWEEPS, _DISSOLVE, rng) for start in starts]
    return by_size(min(_distinct(ends), key=expected))


def _distinct(found: list[Labels]) -> list[Labels]:
    """Return each partition once."""
    return list(np.unique(partitions.compact(np.stack(found).astype(np.int64))[0], axis=0))


def _search_vi(
    start: Labels, labels: Labels, size: int, most: int, room: int, rng: np.random.Generator
) -> Labels:
    """Search from one start by so many of the draws, evenly spread."""
    part = labels[spread(len(labels), size)]
    at = np.ascontiguousarray((part * len(part) + np.arange(len(part), dtype=np.int32)[:, None]).T)
    none = np.empty((0, 0), dtype=np.float32)
    return partitions.search(start, at, most * len(part), none, room, _SWEEPS, _DISSOLVE, rng)


def by_size(labels: Labels) -> Labels:
    """Renumber the blocks of a partition from 0 by falling size, equal ones by first appearance."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    new = np.empty(order.size, dtype=np.int32)
    new[order] = np.arange(order.size)
    return new[labels]


def describe(
    loss: str,
    best: Labels,
    labels: Labels,
    counts: Labels,
    level: float,
    known: tuple[Labels, Labels] | None,
) -> PartitionEstimate:
    """Say how far the draws are from an estimate, and the truth `known`, a single draw."""
    size = int(best.max()) + 1
    found = partitions.losses(best, size, labels, counts)
    distance = found[LOSSES.index(loss)]
    ari = None if known is None else float(partitions.losses(best, size, *known)[2, 0])
    ball = credible_ball(distance, labels, counts, level)
    return PartitionEstimate(loss, best, float(distance.mean()), size, ball, float(found[2].mean()), ari)


def credible_ball(distance: Floats, labels: Labels, counts: Labels, level: float) -> CredibleBall:
    """Find the ball of the draws nearest to an estimate, and its bounds.

    Parameters
    ----------
    distance : float64 array (S,)
        Of each draw from the estimate.
    labels, counts : int32 arrays (S, n), (S,)
        The draws.
    level : float
        The share that the ball is to hold.
    """
    rank = min(max(math.ceil(level * distance.size - 1e-9), 1), distance.size)
    radius = float(np.sort(distance)[rank - 1])
    inside = np.flatnonzero(distance <= radius + 1e-12)

    def farthest(among: NDArray[np.intp]) -> Bound:
        s = among[int(np.argmax(distance[among]))]
        return Bound(labels[s], int(counts[s]), float(distance[s]))

    clusters = counts[inside]
    return CredibleBall(
        level=level,
        probability=inside.size / distance.size,
        radius=radius,
        vertical_upper=farthest(inside[clusters == clusters.min()]),
        vertical_lower=farthest(inside[clusters == clusters.max()]),
        horizontal=farthest(inside),
    )
