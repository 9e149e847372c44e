"""What the report draws of compositions alone: joint regions."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, ORANGE, captioned, drawings
from dpmix.summary.composition_results import CompositionResults, Ellipsoid
from dpmix.summary.families.family import Floats
from dpmix.summary.summary_result import Summary

__all__ = ["pictures", "shares_caption"]

_POINTS = 1_500


def shares_caption(summary: Summary, about: str) -> str:
    """Say what the picture of the expected shares, " in GROUP" where there are groups, shows."""
    return (
        f"Expected shares E[x]{about}, alpha over its sum: {summary.source} mean, and the interval that "
        f"holds {100 * summary.level:g}% of the {summary.source} of each by itself, from "
        f"{summary.band_draws:,} draws of alpha."
    )


def pictures(summary: Summary) -> dict[str, list[str]]:
    """Return the picture of joint regions of each group, by the keys of their sections."""
    return {f"composition/{name}": [_picture(summary, c)] for name, c in summary.compositions.items()}


def _picture(summary: Summary, found: CompositionResults) -> str:
    region = "confidence" if found.is_bootstrap else "credible"
    caption = (
        f"Joint {100 * summary.level:g}% {region} ellipsoids of alpha and of the expected shares E[x], "
        "projected on the two components of the largest expected shares, and some of the draws. Beyond two "
        "components the projection holds more of the draws than the ellipsoid."
    )
    if found.truth is not None:
        caption += " Crosses are the truth of the simulation."
    about = f" in {found.group}" if found.group else ""
    return captioned(
        _figure(summary, found), f"Joint regions of alpha and of the expected shares{about}", caption
    )


def _figure(summary: Summary, found: CompositionResults) -> Figure:
    pair = np.argsort(-found.ellipsoids["mean"].centre, kind="stable")[:2]
    names = [found.components[j] for j in pair]
    panels = (("alpha", "alpha", "alpha[{}]"), ("mean", "E[x]", "E[x][{}]"))
    with drawings((7.2, 3.3), 2) as (figure, both):
        for axes, (key, label, series) in zip(both, panels, strict=True):
            prefix = f"{found.group}," if found.group else ""
            draws = [summary.series.get(series.format(prefix + name)) for name in names]
            if draws[0] is not None and draws[1] is not None:
                _dots(axes, draws[0].ravel(), draws[1].ravel())
            edge = _edge(found.ellipsoids[key], pair)
            axes.plot(edge[0], edge[1], color=BLUE, lw=1.8)
            if found.truth is not None:
                alpha = found.truth.alpha
                point = alpha if key == "alpha" else alpha / alpha.sum()
                axes.plot(*point[pair], "x", color=ORANGE, ms=7, mew=1.8)
            axes.set_xlabel(f"{label} of {plain(names[0])}")
            axes.set_ylabel(f"{label} of {plain(names[1])}")
    return figure


def _dots(axes: Axes, x: Floats, y: Floats) -> None:
    step = max(1, x.size // _POINTS)
    axes.scatter(x[::step], y[::step], s=3, color=BLUE, alpha=0.15, lw=0, rasterized=True)


def _edge(ellipsoid: Ellipsoid, pair: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    """Return the outline of the projection of an ellipsoid on two coordinates, shape (2, points)."""
    values, vectors = np.linalg.eigh(ellipsoid.covariance[np.ix_(pair, pair)])
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    shape = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(ellipsoid.centre[pair][:, None] + ellipsoid.radius * shape @ circle)
