"""Pictures in two dimensions: who shares a cluster with whom, and the density of two columns together."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dpmix.report.drawn_release import values_of
from dpmix.report.plots import axis_of
from dpmix.store.html import BLUE, INK, ORANGE, drawing, on_dates
from dpmix.summary.partition import Clustering
from dpmix.summary.summary_result import Summary

_CELLS = 400
_POINTS = 2_000
_MAP = LinearSegmentedColormap.from_list("dpmix", ["#FFFFFF", "#9CC7E2", BLUE, "#00263D"])


def order_of(summary: Summary, clustering: Clustering) -> NDArray[np.intp]:
    """Order of the records: clusters of the estimate, and records within them.

    Where each record's release is on the data's scale, clusters go by their mean and records by their value;
    else clusters go by size, and records by how surely they belong.
    """
    labels = clustering.estimate.labels
    values = values_of(summary, next(iter(summary.densities)))
    if values is not None and values.size == clustering.records:
        values = values[clustering.kept]
    if values is None or values.size != labels.size:
        sizes = np.bincount(labels)
        member = labels[:, None] == np.arange(sizes.size)
        belongs = (clustering.similarity @ member.astype(np.float32))[np.arange(labels.size), labels]
        return np.lexsort((-belongs / sizes[labels], labels))
    means = np.bincount(labels, values) / np.bincount(labels)
    return np.lexsort((values, means[labels]))


def coclustering_figure(summary: Summary, clustering: Clustering) -> Figure:
    """Heat map of the probabilities that two records share a cluster, with the estimate's clusters."""
    order = order_of(summary, clustering)
    labels = clustering.estimate.labels[order]
    n = labels.size
    # at most 400 cells a side: means over stretches of records
    edges = np.unique(np.linspace(0, n, min(n, _CELLS) + 1).round().astype(int))
    rows = np.add.reduceat(clustering.similarity[np.ix_(order, order)], edges[:-1], axis=0)
    cells = np.add.reduceat(rows, edges[:-1], axis=1) / np.outer(np.diff(edges), np.diff(edges))
    with drawing((5.2, 4.4)) as (figure, axes):
        mesh = axes.imshow(
            cells, cmap=_MAP, vmin=0.0, vmax=1.0, extent=(0, n, n, 0), interpolation="nearest", aspect="equal"
        )
        starts = np.flatnonzero(np.diff(labels)) + 1
        for low, high in zip([0, *starts], [*starts, n], strict=True):
            axes.plot(
                [low, high, high, low, low], [low, low, high, high, low], color=ORANGE, lw=1.2, clip_on=False
            )
        axes.set(xlim=(0, n), ylim=(n, 0), xlabel="record, by cluster of the estimate", ylabel="record")
        bar = figure.colorbar(mesh, ax=axes, shrink=0.85)
        bar.set_label("probability to share a cluster")
        bar.outline.set_visible(False)
        assert bar.solids is not None  # of a map
        bar.solids.set_rasterized(True)  # an image, as the map is: in the dark the style turns both
    return figure


def joint_figure(summary: Summary) -> Figure:
    """Contours of the posterior mean density of two columns, over the released points."""
    joint = summary.joint
    assert joint is not None  # the caller looks
    first, second = joint.grids
    with drawing((5.6, 4.4)) as (figure, axes):
        points = [values_of(summary, name) for name in joint.columns]
        if points[0] is not None and points[1] is not None:
            step = max(1, points[0].size // _POINTS)
            axes.scatter(points[0][::step], points[1][::step], s=5, color="#A8A8A8", lw=0, zorder=1)
        heights = joint.mean.max() * np.array([0.02, 0.1, 0.25, 0.5, 0.75, 0.9])
        axes.contour(first, second, joint.mean.T, levels=heights, colors=BLUE, linewidths=1.2, zorder=2)
        axes.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
        axes.set_xlabel(axis_of(summary, joint.columns[0]), color=INK)
        axes.set_ylabel(axis_of(summary, joint.columns[1]), color=INK)
        for name, axis in zip(joint.columns, (axes.xaxis, axes.yaxis), strict=True):
            if summary.dated.is_curve(name):
                on_dates(axes, axis=axis)
    return figure
