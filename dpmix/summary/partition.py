"""What is reported of the partition of the records, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Array, Each, ResultSection

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
        text = (
            f"{estimate.n_clusters} cluster{'s' * (estimate.n_clusters != 1)} with the least expected "
            f"{LOSS_NAMES[estimate.loss]} ({estimate.expected_loss:.3g}); the {100 * ball.level:g}% ball of "
            f"radius {ball.radius:.3g} holds partitions of {bounds[0]} to {bounds[1]} clusters; expected ARI "
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
