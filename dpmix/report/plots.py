"""Pictures of a mixture's summary: densities, clusters, traces and ranks, uncertainty, two columns."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dpmix.errors import UsageError
from dpmix.report.release_pictures import plain, shown, values_of
from dpmix.store.atomic import write_bytes
from dpmix.store.html import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    THEMED,
    captioned,
    drawing,
    drawing_at,
    line_style,
    on_dates,
    picture,
    whole_dates,
)

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.summary.clustering import Clustering
    from dpmix.summary.clusters_by_value import CellProbabilities, ClustersByValue
    from dpmix.summary.summary_result import Summary
    from dpmix.summary.variance import VarianceShares

_STRETCHES = 150
_RANK_BINS = 20
_DASHES = {"-": "solid", "--": "dashed", "-.": "double", ":": "dotted"}
"""Styles of lines as pages have them, which know no dashes with dots."""
MOST_BARS = 30
_BASELINES = {
    "deconvolution_kde": ("deconvolution estimate", GREEN, ":"),
    "ems": ("EM with smoothing", INK, (0, (1, 1, 4, 1))),
}
"""Labels, colours and styles of estimates without a model."""


def plot_density(
    summary: Summary, path: str | os.PathLike[str], *, title: str | None = None, force: bool = False
) -> None:
    """Write the density plot alone to a file.

    Parameters
    ----------
    summary : Summary
        What `dpmix.summarize` returns.
    path : path
        PNG (200 dots per inch) or SVG file, by its suffix.
    title : str, optional
        Title above the plot.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    UsageError
        For another suffix, or when the file exists and `force` is not given.
    DataError
        When the file cannot be written.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise UsageError(f"{path} must end in .png or .svg")
    write_bytes(Path(path), picture(density_figure(summary, title), kind), force=force)


def density_figure(summary: Summary, title: str | None = None, column: str | None = None) -> Figure:
    """Posterior mean density with its band, the prior predictive, the baseline, and the release.

    Without `column` it is that of the first one.
    """
    name = next(iter(summary.densities)) if column is None else column
    density = summary.densities[name]
    with drawing((7.2, 3.7)) as (figure, axes):
        curves = [density.upper] if density.prior is None else [density.upper, density.prior]
        top = max(float(curve.max()) for curve in curves)
        histogram: list[StepPatch] = []
        steps = shown(summary, name)
        if steps is not None:
            top = max(top, steps.heights.max())
            histogram = [axes.stairs(steps.heights, steps.edges, fill=True, color=GREY, label=steps.label)]
        label = f"{100 * summary.level:g}% pointwise band"
        band = axes.fill_between(
            density.grid, density.lower, density.upper, color=BLUE, alpha=0.25, lw=0, label=label
        )
        prior: list[Line2D] = []
        if density.prior is not None:
            prior = axes.plot(
                density.grid, density.prior, color=ORANGE, lw=1.4, ls=(0, (5, 2)), label="prior"
            )
        (mean,) = axes.plot(density.grid, density.mean, color=BLUE, lw=2.0, label=f"{summary.source} mean")
        baseline: list[Line2D] = []
        for named, values in density.baselines.items():
            top = max(top, values.max())
            label, colour, style = _BASELINES[named]
            baseline += axes.plot(density.grid, values, color=colour, lw=1.6, ls=style, label=label)
        axes.set(xlim=(density.grid[0], density.grid[-1]), ylim=(0.0, 1.06 * top))
        axes.set_xlabel(axis_of(summary, "" if density.group else name, density.group))
        if summary.dated.is_curve("" if density.group else name):
            on_dates(axes)
        axes.set_ylabel("density")
        figure.legend(
            handles=[mean, band, *prior, *baseline, *histogram],
            loc="outside upper left",
            ncols=3 if baseline else 4,
            handlelength=1.8,
            columnspacing=1.4,
            title=title,
            title_fontsize=11,
            alignment="left",
        )
    return figure


def axis_of(summary: Summary, column: str, group: str = "") -> str:
    """Return what stands at the axis of values: "income (dollars), women"."""
    subject = summary.provenance.subject
    column, own = (column, group) if group else subject.parted(column)
    about = f", {plain(own)}" if own else ""
    if summary.composition is not None:
        return f"{plain(column) or 'value'}{about}, as a share"
    return f"{plain(subject.axis(column), 60)}{about}"


def distribution_figure(summary: Summary, name: str) -> Figure:
    """Posterior mean and band of a distribution function, or of the most probable categories."""
    found = summary.distributions[name]
    group = f" in {plain(found.group)}" if found.group else ""
    label = f"{100 * summary.level:g}% pointwise band"
    if not isinstance(found.at, tuple):
        with drawing((7.2, 3.7)) as (figure, axes):
            band = axes.fill_between(
                found.at, found.lower, found.upper, color=BLUE, alpha=0.25, lw=0, label=label
            )
            (mean,) = axes.plot(found.at, found.mean, color=BLUE, lw=2.0, label="posterior mean")
            axes.set(xlim=(found.at[0], found.at[-1]), ylim=(0.0, 1.02))
            axes.set_xlabel(axis_of(summary, found.column, found.group))
            if summary.dated.is_curve(found.column):
                on_dates(axes)
            axes.set_ylabel("probability of a value up to here")
            figure.legend(handles=[mean, band], loc="outside upper left", ncols=2)
        return figure
    chosen = np.sort(np.argsort(-found.mean, kind="stable")[:MOST_BARS])
    with drawing((7.2, 1.0 + 0.24 * chosen.size)) as (figure, axes):
        rows = np.arange(chosen.size)
        bars = axes.barh(
            rows, found.mean[chosen], height=0.7, color=BLUE, alpha=0.45, label=f"{summary.source} mean"
        )
        lines = axes.hlines(rows, found.lower[chosen], found.upper[chosen], color=INK, lw=1.4, label=label)
        axes.set_yticks(rows, [plain(found.at[place]) for place in chosen])
        axes.set(xlim=(0.0, None), ylim=(chosen.size - 0.4, -0.6))
        if summary.composition is None:
            of_column = f" of {plain(found.column)}" if found.column else ""
            axes.set_xlabel(f"probability of each category{of_column}{group}")
        else:
            axes.set_xlabel(f"expected share E[x] of each component{group}")
        figure.legend(handles=[bars, lines], loc="outside upper left", ncols=2)
    return figure


def clusters_figure(summary: Summary) -> Figure:
    """Posterior probabilities of the number of clusters."""
    counts = summary.n_clusters
    assert counts is not None  # the caller looks
    with drawing((7.2, 2.4)) as (figure, axes):
        axes.bar(counts.support, counts.probability, width=0.8, color=BLUE)
        axes.set_xlabel("number of clusters")
        axes.set_ylabel("posterior probability")
        axes.set_xlim(counts.support[0] - 0.9, max(counts.support[-1], counts.support[0] + 4) + 0.9)
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
        if counts.support.size <= 15:
            axes.set_ylim(0.0, 1.14 * counts.probability.max())
            for k, p in zip(counts.support, counts.probability, strict=True):
                label = f"{p:.2f}" if p >= 0.005 else ""
                axes.annotate(label, (k, p), (0, 2), textcoords="offset points", ha="center", fontsize=8)
    return figure


def trace_figure(summary: Summary, name: str) -> Figure:
    """Draws of one scalar in order: a line a chain of means of stretches, over the range of all chains."""
    series = summary.series[name]
    draws = series.shape[1]
    edges = np.unique(np.linspace(0, draws, min(draws, _STRETCHES) + 1).round().astype(int))
    centres = 0.5 * (edges[:-1] + edges[1:] - 1)
    with _small_axes() as axes:
        if draws > _STRETCHES:
            low = np.minimum.reduceat(series.min(axis=0), edges[:-1])
            high = np.maximum.reduceat(series.max(axis=0), edges[:-1])
            axes.fill_between(centres, low, high, color=GREY, lw=0, step="mid")
        for row, values in enumerate(series):
            means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
            axes.plot(centres, means, lw=1.0, **line_style(row))
        axes.set(xlim=(0, max(draws - 1, 1)), xlabel="draw")
        if summary.dated.is_date(name):
            whole_dates(axes.yaxis)
        axes.set_title(f"{plain(summary.shown(name), 50)}: trace", loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
    return _figure(axes)


def rank_figure(summary: Summary, name: str) -> Figure:
    """How the ranks of each chain's draws among all draws are spread: level lines when the chains agree.

    Of one chain alone they are level whatever it does.
    """
    series = summary.series[name]
    chains, draws = series.shape
    bins = max(2, min(_RANK_BINS, draws // 5))
    shares = np.stack([np.histogram(row, bins, (0, series.size))[0] for row in _ranks(series)]) * bins / draws
    with _small_axes() as axes:
        axes.axhline(1.0, color="#777777", lw=0.8, zorder=1)
        edges = np.linspace(0.0, 1.0, bins + 1)
        for row in range(chains):
            axes.stairs(shares[row], edges, baseline=None, lw=1.3, **line_style(row))
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, max(2.0, 1.05 * shares.max())))
        axes.set_xlabel("rank among the draws of all chains")
        axes.set_title(f"{plain(summary.shown(name), 34)}: ranks, 1 if chains agree", loc="left")
    return _figure(axes)


def chain_legend(summary: Summary) -> list[tuple[str, str]]:
    """Style of the line and name of each chain, as traces and ranks show them in either theme."""
    found = []
    for row, chain in enumerate(summary.chain_ids.tolist()):
        line = line_style(row)
        colour = f"var(--fig-{THEMED[line['color'].lower()]})"
        found.append((f"border-top-color:{colour};border-top-style:{_DASHES[line['ls']]}", f"chain {chain}"))
    return found


def _ranks(series: Floats) -> Floats:
    """Ranks 0.5, 1.5, .. among all draws; ties are broken at random, the same way every time."""
    tie = np.random.default_rng(0).random(series.size)
    ranks = np.empty(series.size)
    ranks[np.lexsort((tie, series.ravel()))] = np.arange(series.size) + 0.5
    return ranks.reshape(series.shape)


def _figure(axes: Axes) -> Figure:
    figure = axes.figure
    assert isinstance(figure, Figure)
    return figure


def _small_axes() -> AbstractContextManager[Axes]:
    """Give axes of a small figure, so that a column of plots lines up."""
    return drawing_at((4.7, 1.9), (0.125, 0.235, 0.845, 0.625))


# Where the uncertainty comes from, as bars


_PARTS = (
    ("sampling", "sampling", BLUE, "white"),
    ("privacy", "privacy noise", ORANGE, "white"),
    ("prior", "prior", GREY, INK),
)
_LEAST = 0.06  # share that has room for its figure


def uncertainty_pictures(found: VarianceShares) -> list[str]:
    """Return the picture of the shares; none where none is known."""
    if not found.named():
        return []
    caption = (
        "Shares of the posterior variance. Privacy noise is what would go if the same prior were fitted to "
        "records without noise, of which second runs on replicates tell the variance; sampling is what that "
        "many records leave open; the rest is as open as it was a priori. "
        f"{found.cure()}"
    )
    if found.reason:
        caption += f" What is missing: {found.reason}."
    alt = "; ".join(
        f"{name}: {part.sampling:.0%} sampling, {part.privacy:.0%} privacy noise, {part.prior:.0%} prior"
        for name, part in found.named().items()
    )
    return [captioned(shares_figure(found), alt, caption)]


def shares_figure(found: VarianceShares) -> Figure:
    """Draw one bar a quantity, of its three shares."""
    named = found.named()
    rows = np.arange(len(named))
    with drawing((7.2, 0.95 + 0.34 * rows.size)) as (figure, axes):
        left = np.zeros(rows.size)
        bars = []
        for name, label, colour, ink in _PARTS:
            shares = np.array([float(getattr(part, name)) for part in named.values()])
            bars.append(axes.barh(rows, shares, left=left, height=0.66, color=colour, label=label))
            for row, share in enumerate(shares):
                if share >= _LEAST:
                    middle = (left[row] + 0.5 * share, row)
                    axes.annotate(f"{share:.0%}", middle, ha="center", va="center", color=ink, fontsize=8)
            left += shares
        axes.set_yticks(rows, [plain(name) for name in named])
        axes.set(xlim=(0.0, 1.0), ylim=(rows.size - 0.5, -0.5))
        axes.set_xticks(np.linspace(0.0, 1.0, 5), [f"{p}%" for p in (0, 25, 50, 75, 100)])
        axes.set_xlabel("share of the posterior variance")
        figure.legend(handles=bars, loc="outside upper left", ncols=3)
    return figure


# Pictures in two dimensions: who shares a cluster with whom, and the density of two columns together


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


# The section of a report on clusters by value: their probabilities with bands


def cluster_pictures(found: ClustersByValue | None, label: str, *, released_too: bool = True) -> list[str]:
    """Return the pictures of clusters by value, `label` at their axis; none where there are none.

    `released_too` says whether released values are on the scale of records, and dates where these are.
    """
    if found is None:
        return []
    finding = found.in_words()
    caption = (
        "How probably a record belongs to each cluster, by its own value, with "
        f"{100 * found.level:g}% pointwise bands, from {found.draws:,} draws. Clusters are those of the "
        "partition of values with the least expected variation of information that was found; in every "
        "draw a component counts to the cluster in whose cells the most of its mass lies."
    )
    if np.isnan(found.latent.mean).any():
        caption += " There is no line where no draw has records."
    picture = probabilities_figure(found.latent, label, date=found.date)
    parts = [captioned(picture, f"Probability of each cluster by value: {finding}", caption)]
    if found.released is not None:
        picture = probabilities_figure(found.released, "released value", date=found.date and released_too)
        least = float(np.nanmin(found.released.mean.max(axis=0)))
        alt = (
            "Probability of each cluster by released value: the most probable one has probability "
            f"{least:.2g} or more everywhere"
        )
        parts.append(captioned(picture, alt, "The same by what was released of it, noise included."))
    return parts


def probabilities_figure(found: CellProbabilities, label: str, *, date: bool = False) -> Figure:
    """Draw the posterior mean and band of each cluster's probability over cells."""
    inside = np.isfinite(found.low) & np.isfinite(found.high)
    low, high = found.low.copy(), found.high.copy()
    width = float(np.median((high - low)[inside])) if inside.any() else 1.0
    low[~np.isfinite(low)] = high[~np.isfinite(low)] - width
    high[~np.isfinite(high)] = low[~np.isfinite(high)] + width
    if not np.isfinite(low + high).all():  # one cell, the whole line
        low, high = np.zeros(low.size), np.ones(high.size)
    middle = 0.5 * (low + high)
    with drawing((7.2, 3.2)) as (figure, axes):
        for r in range(len(found.mean)):
            style = line_style(r)
            axes.fill_between(middle, found.lower[r], found.upper[r], color=style["color"], alpha=0.2, lw=0)
            axes.plot(middle, found.mean[r], lw=1.8, label=f"cluster {r + 1}", **style)
        axes.set(ylim=(-0.02, 1.02))
        axes.set_xlabel(plain(label, 60))
        if date:
            on_dates(axes)
        axes.set_ylabel("probability")
        figure.legend(loc="outside upper left", ncols=min(len(found.mean), 5), handlelength=1.8)
    return figure
