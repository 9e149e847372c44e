"""What the report shows of compositions alone: joint regions, and what censoring and noise do."""

from __future__ import annotations

from html import escape

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, ORANGE, captioned, drawings
from dpmix.summary.composition_results import Composition, Ellipsoid
from dpmix.summary.families.family import Floats
from dpmix.summary.result import Summary, percent

__all__ = ["lead", "section", "shares_caption"]

_POINTS = 1_500


def lead(summary: Summary) -> str:
    """Say under the title what the draws are, where they are of no posterior."""
    if summary.source == "posterior":
        return ""
    return (
        "<p>The draws are of a parametric bootstrap, not of a posterior: intervals, bands and ellipsoids are "
        "confidence regions, and no prior is used.</p>\n"
    )


def shares_caption(summary: Summary, about: str) -> str:
    """Say what the picture of the expected shares, " in GROUP" where there are groups, shows."""
    return (
        f"Expected shares E[x]{about}, alpha over its sum: {summary.source} mean, and the interval that "
        f"holds {100 * summary.level:g}% of the {summary.source} of each by itself, from "
        f"{summary.band_draws:,} draws of alpha."
    )


def section(summary: Summary) -> str:
    """Return the section about joint regions, censoring and noise; empty for other models."""
    parts = [_section(summary, found) for found in summary.compositions.values()]
    return "<h2>Joint regions, censoring and noise</h2>\n" + "\n".join(parts) if parts else ""


def _section(summary: Summary, found: Composition) -> str:
    level = f"{100 * summary.level:g}%"
    region = "confidence" if found.is_bootstrap else "credible"
    caption = (
        f"Joint {level} {region} ellipsoids of alpha and of the expected shares E[x], projected on the two "
        "components of the largest expected shares, and some of the draws. Beyond two components the "
        "projection holds more of the draws than the ellipsoid."
    )
    if found.truth is not None:
        caption += " Crosses are the truth of the simulation."
    about = f" in {found.group}" if found.group else ""
    alt = f"Joint regions of alpha and of the expected shares{about}"
    picture = captioned(_figure(summary, found), alt, caption)
    title = f"<h3>{escape(found.group)}</h3>\n" if found.group else ""
    return f"{title}{picture}\n{_table(found)}{_truth(found, level)}"


def _figure(summary: Summary, found: Composition) -> Figure:
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


def _table(found: Composition) -> str:
    censoring = found.censoring
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{_percent(censoring.share[j])}</td>'
        f"<td>{_percent(censoring.lower[j])} to {_percent(censoring.upper[j])}</td>"
        f"<td>{censoring.bias[j]:.3g}</td><td>{censoring.noise_sd:.3g}</td>"
        f"<td>{censoring.sampling_sd[j]:.3g}</td></tr>"
        for j, name in enumerate(found.components)
    )
    header = "".join(
        f'<th scope="col">{name}</th>' for name in ("censored", "interval", "bias", "noise sd", "own sd")
    )
    how = "does not correct" if found.is_bootstrap else "accounts for"
    note = (
        f"<b>censored</b>: share of entries below the threshold {censoring.threshold:g} under the fit. "
        "<b>bias</b>: how far that moves the mean logarithm, E log max(x, a) - E log x, which this method "
        f"{how}. <b>noise sd</b> and <b>own sd</b>: standard deviations of a released mean, of its noise and "
        "without noise."
    )
    if censoring.uncensored_records is not None:
        note += (
            f" By the noisy scores of the release {_percent(censoring.uncensored_records)} of the records "
            "have no censored entry."
        )
    return (
        f'<div class="scroll"><table><thead><tr><th scope="col">component</th>{header}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div>\n<p class="note">{note}</p>\n'
    )


def _truth(found: Composition, level: str) -> str:
    truth = found.truth
    if truth is None:
        return ""
    held = ["holds" if inside else "misses" for inside in (truth.covers_alpha, truth.covers_mean)]
    return (
        f"<p>Against the truth of the simulation: the {level} ellipsoid {held[0]} alpha and {held[1]} E[x]; "
        f"that of a predictive record holds {100 * truth.record_coverage:.1f}% of records drawn with the "
        f"true alpha. Mean squared error of alpha {truth.squared_error_alpha:.3g}, of E[x] "
        f"{truth.squared_error_mean:.3g}.</p>\n"
    )


def _percent(share: float) -> str:
    return escape(percent(share))
