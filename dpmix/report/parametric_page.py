"""What the report draws of parametric models: lines of regressions, regions of compositions, classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from dpmix.laws.every import expect
from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.report.release_pictures import plain
from dpmix.store.html import (
    BLUE,
    COLOURS,
    INK,
    ORANGE,
    STYLES,
    captioned,
    drawing,
    drawings,
    on_dates,
    whole_dates,
)
from dpmix.summary.headline import amount

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.models.dirichlet.composition_results import CompositionResults, Ellipsoid
    from dpmix.summary.row_labels import ByClass
    from dpmix.summary.summary_result import Summary

_LINE_POINTS = 81
_MOST = 6  # predictors with a line


def regression_pictures(summary: Summary) -> list[str]:
    """Return the pictures of a regression; none of other models."""
    regression = summary.provenance.mechanism.released == "clamped_moments"
    if not regression or not any(n.startswith("beta[") for n in summary.parameters):
        return []
    law = _law(summary)
    names, groups = _names(law), law.group_names or ("",)
    level = f"{100 * summary.level:g}%"
    parts = []
    truncated = "response: truncated" in summary.provenance.spec
    for place, name in enumerate(names[:-1][:_MOST]):
        others = " with the other predictors in the middle of their bounds," if len(names) > 2 else ""
        caption = (
            f"Mean {names[-1]} by {_shown(summary, name)},{others} over the public bounds: posterior mean of "
            f"the line, and its {level} band at each point by itself."
        )
        caption += " It is the line before errors are cut to the bounds." if truncated else ""
        parts.append(captioned(lines_figure(summary, place), _finding(summary, name, names[-1]), caption))
    caption = (
        f"Coefficients: posterior means with {level} intervals (blue) beside those of the prior (grey). Each "
        "is multiplied by half the width of its predictor's bounds, so that all are in the response's units: "
        "the change of the response from the middle of the bounds to their end."
    )
    alt = f"Coefficients beside the prior: {_finding(summary, names[0], names[-1])}"
    if any(s.prior is not None for n, s in summary.parameters.items() if n.startswith("beta[")):
        parts.append(captioned(forest_figure(summary, names, groups, law), alt, caption))
    return parts


def line_draws(summary: Summary, place: int, group: str = "") -> tuple[Floats, Floats]:
    """Return points over the bounds of a predictor, and the line of each draw there, (draws, points).

    Other predictors stand in the middle of their bounds.
    """
    law = _law(summary)
    names = _names(law)
    prefix = f"{group}," if group else ""
    draws = [summary.series[f"beta[{prefix}{name}]"].ravel() for name in ("intercept", *names[:-1])]
    at = np.linspace(*law.bounds[place], _LINE_POINTS)
    base = draws[0].copy()
    for other, (low, high) in enumerate(law.bounds[:-1]):
        if other != place:
            base += draws[1 + other] * 0.5 * (low + high)
    return at, base[:, None] + draws[1 + place][:, None] * at


def lines_figure(summary: Summary, place: int) -> Figure:
    """Draw the mean response over a predictor, a line with its band for each group."""
    law = _law(summary)
    names, groups = _names(law), law.group_names or ("",)
    subject = summary.provenance.subject
    tails = [0.5 * (1.0 - summary.level), 0.5 * (1.0 + summary.level)]
    with drawing((7.2, 3.6)) as (figure, axes):
        handles: list[Artist] = []
        for number, group in enumerate(groups):
            at, lines = line_draws(summary, place, group)
            low, high = np.quantile(lines, tails, axis=0)
            colour = COLOURS[number % len(COLOURS)]
            label = f"{100 * summary.level:g}% band"
            band = axes.fill_between(at, low, high, color=colour, alpha=0.22, lw=0, label=label)
            style = STYLES[number % len(STYLES)]
            (line,) = axes.plot(
                at, lines.mean(axis=0), color=colour, lw=2.0, ls=style, label=plain(group) or "posterior mean"
            )
            handles += [line] if group else [line, band]
        axes.set_xlim(*law.bounds[place])
        axes.set_xlabel(plain(subject.titled(_shown(summary, names[place])), 60))
        axes.set_ylabel(plain(f"mean {subject.titled(names[-1])}", 40))
        if names[place] in summary.dated.columns:
            on_dates(axes)
        if summary.dated.response:
            whole_dates(axes.yaxis)
        figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure


def forest_figure(
    summary: Summary, names: tuple[str, ...], groups: tuple[str, ...], law: ClampedMomentsLaw
) -> Figure:
    """Draw slopes with intervals beside the prior's, each by half the width of its predictor's bounds."""
    rows = []
    for group in groups:
        for name, (low, high) in zip(names[:-1], law.bounds, strict=False):
            scalar = summary.parameters[f"beta[{group + ',' if group else ''}{name}]"]
            ends = list(scalar.quantiles.values())
            half = 0.5 * (high - low)
            label = f"{_shown(summary, name)}, {group}" if group else _shown(summary, name)
            prior = None if scalar.prior is None else (half * scalar.prior[0], half * scalar.prior[-1])
            rows.append((label, half * scalar.mean, half * ends[0], half * ends[-1], prior))
    places = np.arange(len(rows))
    level = f"{100 * summary.level:g}%"
    with drawing((7.2, 1.1 + 0.42 * places.size)) as (figure, axes):
        axes.axvline(0.0, color="#777777", lw=0.8)
        known = [(p - 0.16, row[4]) for p, row in zip(places, rows, strict=True) if row[4] is not None]
        handles: list[Artist] = []
        if known:
            handles.append(
                axes.hlines(
                    [p for p, _ in known],
                    [ends[0] for _, ends in known],
                    [ends[1] for _, ends in known],
                    color="#8C8C8C",
                    lw=5.0,
                    alpha=0.5,
                    label=f"{level} of the prior",
                )
            )
        lines = axes.hlines(
            places + 0.12,
            [row[2] for row in rows],
            [row[3] for row in rows],
            color=BLUE,
            lw=2.2,
            label=f"{level} interval",
        )
        (dots,) = axes.plot(
            [row[1] for row in rows], places + 0.12, "o", color=BLUE, ms=5.5, label="posterior mean"
        )
        axes.set_yticks(places, [plain(row[0]) for row in rows])
        axes.set(ylim=(places.size - 0.5, -0.6))
        axes.set_xlabel(
            plain(f"change of {_response(summary, names[-1])} from the middle of the bounds to their end", 90)
        )
        figure.legend(handles=[dots, lines, *handles], loc="outside upper left", ncols=3)
    return figure


def _response(summary: Summary, name: str) -> str:
    """Return the response with its unit, days of a date."""
    return f"{name} (days)" if summary.dated.response else summary.provenance.subject.titled(name)


def _law(summary: Summary) -> ClampedMomentsLaw:
    return expect(summary.provenance.mechanism, ClampedMomentsLaw)


def _names(law: ClampedMomentsLaw) -> tuple[str, ...]:
    """Return the predictors as coefficients are named after them, and the response."""
    response = law.columns[-1] if len(law.columns) == len(law.bounds) else "response"
    return (*law.predictors, response)


def _shown(summary: Summary, name: str) -> str:
    """Return a predictor as readers know it: "predictor 1" where the release does not name it."""
    return name if name in summary.provenance.subject.columns else f"predictor {name}"


def _finding(summary: Summary, name: str, response: str) -> str:
    """Say what the line of a predictor shows, of the first group."""
    groups = _law(summary).group_names
    scalar = summary.parameters[f"beta[{','.join((*groups[:1], name))}]"]
    low, *_, high = scalar.quantiles.values()
    width = high - low
    way = "rises" if low > 0 else "falls" if high < 0 else "may rise or fall"
    return (
        f"{response} {way} with {_shown(summary, name)}: slope {amount(scalar.mean, width)}, "
        f"{100 * summary.level:g}% interval {amount(low, width)} to {amount(high, width)}"
    )


# What the report draws of compositions alone: joint regions


_POINTS = 1_500


def shares_caption(summary: Summary, about: str) -> str:
    """Say what the picture of the expected shares, " in GROUP" where there are groups, shows."""
    return (
        f"Expected shares E[x]{about}, alpha over its sum: {summary.source} mean, and the interval that "
        f"holds {100 * summary.level:g}% of the {summary.source} of each by itself, from "
        f"{summary.band_draws:,} draws of alpha."
    )


def composition_pictures(summary: Summary) -> dict[str, list[str]]:
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
                x, y = (part.ravel()[:: max(1, part.size // _POINTS)] for part in draws if part is not None)
                axes.scatter(x, y, s=3, color=BLUE, alpha=0.15, lw=0, rasterized=True)
            edge = _edge(found.ellipsoids[key], pair)
            axes.plot(edge[0], edge[1], color=BLUE, lw=1.8)
            if found.truth is not None:
                alpha = found.truth.alpha
                point = alpha if key == "alpha" else alpha / alpha.sum()
                axes.plot(*point[pair], "x", color=ORANGE, ms=7, mew=1.8)
            axes.set_xlabel(f"{label} of {plain(names[0])}")
            axes.set_ylabel(f"{label} of {plain(names[1])}")
    return figure


def _edge(ellipsoid: Ellipsoid, pair: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    """Return the outline of the projection of an ellipsoid on two coordinates, shape (2, points)."""
    values, vectors = np.linalg.eigh(ellipsoid.covariance[np.ix_(pair, pair)])
    angle = np.linspace(0.0, 2.0 * np.pi, 181)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    shape = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(ellipsoid.centre[pair][:, None] + ellipsoid.radius * shape @ circle)


# What the report draws of naive Bayes: the values of each feature within each class


_MOST_FEATURES = 40  # values of a feature that are drawn


def class_pictures(summary: Summary) -> list[str]:
    """Return bars of the levels of each feature by class, of naive Bayes; none of other models."""
    parts = []
    for found in summary.by_class:
        about = f" in {found.group}" if found.group else ""
        name = found.class_column or "class"
        apart = np.abs(found.mean.max(axis=0) - found.mean.min(axis=0))
        most = int(np.argmax(apart))
        caption = (
            f"{found.column}{about} within each {name}: posterior mean of the share of each value, with "
            f"{100 * summary.level:g}% intervals."
        )
        first, last = int(np.argmax(found.mean[:, most])), int(np.argmin(found.mean[:, most]))
        alt = (
            f"{found.column}{about} by {name}: most apart at {found.column} = {found.levels[most]}, which "
            "has "
            f"{100 * found.mean[first, most]:.0f}% where {name} = {found.classes[first]} and "
            f"{100 * found.mean[last, most]:.0f}% where {name} = {found.classes[last]}"
        )
        parts.append(captioned(bars_figure(found), alt, caption))
    return parts


def bars_figure(found: ByClass) -> Figure:
    """Draw the shares of a feature's values as bars with intervals, one colour a class."""
    chosen = np.sort(np.argsort(-found.mean.max(axis=0), kind="stable")[:_MOST_FEATURES])
    thick = 0.84 / len(found.classes)
    places = np.arange(chosen.size)
    with drawing((7.2, 0.9 + chosen.size * (0.08 + 0.13 * len(found.classes)))) as (figure, axes):
        handles = []
        for number, name in enumerate(found.classes):
            at = places + (number - (len(found.classes) - 1) / 2) * thick
            label = plain(f"{found.class_column or 'class'} = {name}")
            colour = COLOURS[number % len(COLOURS)]
            handles.append(
                axes.barh(
                    at, found.mean[number, chosen], height=0.92 * thick, color=colour, alpha=0.75, label=label
                )
            )
            axes.hlines(at, found.lower[number, chosen], found.upper[number, chosen], color=INK, lw=0.9)
        axes.set_yticks(places, [plain(found.levels[place]) for place in chosen])
        axes.set(xlim=(0.0, None), ylim=(chosen.size - 0.5, -0.5))
        axes.set_ylabel(plain(found.column))
        axes.set_xlabel(f"share within each {plain(found.class_column) or 'class'}")
        figure.legend(handles=handles, loc="outside upper left", ncols=4)
    return figure
