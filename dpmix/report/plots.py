"""Plots of a summary: density, number of clusters, traces and ranks."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.ticker import MaxNLocator

from dpmix.errors import UsageError
from dpmix.report.drawn_release import plain, shown
from dpmix.store.atomic import write_bytes
from dpmix.store.html import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    INK,
    ORANGE,
    STYLES,
    drawing,
    drawing_at,
    on_dates,
    picture,
    whole_dates,
)
from dpmix.summary.families.family import Floats
from dpmix.summary.summary_result import Summary

_STRETCHES = 150
_RANK_BINS = 20
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
            colour = COLOURS[row % len(COLOURS)]
            axes.plot(centres, means, color=colour, ls=STYLES[row // len(COLOURS) % len(STYLES)], lw=1.0)
        axes.set(xlim=(0, max(draws - 1, 1)), xlabel="draw")
        if summary.dated.is_date(name):
            whole_dates(axes.yaxis)
        axes.set_title(f"{plain(summary.shown(name), 50)}: trace", loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 2.5, 5, 10]))
    return _figure(axes)


def rank_figure(summary: Summary, name: str) -> Figure:
    """How the ranks of each chain's draws among all draws are spread: level lines when the chains agree."""
    series = summary.series[name]
    chains, draws = series.shape
    bins = max(2, min(_RANK_BINS, draws // 5))
    shares = np.stack([np.histogram(row, bins, (0, series.size))[0] for row in _ranks(series)]) * bins / draws
    with _small_axes() as axes:
        axes.axhline(1.0, color="#777777", lw=0.8, zorder=1)
        edges = np.linspace(0.0, 1.0, bins + 1)
        for row in range(chains):
            axes.stairs(
                shares[row],
                edges,
                baseline=None,
                color=COLOURS[row % len(COLOURS)],
                ls=STYLES[row // len(COLOURS) % len(STYLES)],
                lw=1.3,
            )
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, max(2.0, 1.05 * shares.max())))
        axes.set_xlabel("rank among the draws of all chains")
        axes.set_title(f"{plain(summary.shown(name), 38)}: ranks, 1 if chains agree", loc="left")
    return _figure(axes)


def chain_legend(summary: Summary) -> list[tuple[str, str]]:
    """Colour and name of each chain, as traces and ranks show them."""
    return [
        (COLOURS[row % len(COLOURS)], f"chain {number}")
        for row, number in enumerate(summary.chain_ids.tolist())
    ]


def share_outside(summary: Summary) -> float:
    """Share of the released values that lie outside the density's grid; 0 where they are not on its scale."""
    steps = shown(summary, next(iter(summary.densities))) if summary.densities else None
    return 0.0 if steps is None else steps.outside


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
