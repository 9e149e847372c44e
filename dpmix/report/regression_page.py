"""What the report draws of regressions: fitted lines with bands, and coefficients beside their priors."""

from __future__ import annotations

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from dpmix.mechanisms.clamped_moments.law import ClampedMomentsLaw
from dpmix.mechanisms.laws.every import expect
from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, COLOURS, STYLES, captioned, drawing, on_dates, whole_dates
from dpmix.summary.families.family import Floats
from dpmix.summary.headline import amount
from dpmix.summary.summary_result import Summary

__all__ = ["forest_figure", "line_draws", "lines_figure", "pictures"]

_POINTS = 81
_MOST = 6  # predictors with a line


def pictures(summary: Summary) -> list[str]:
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
            f"Mean {names[-1]} by {name},{others} over the public bounds: posterior mean of the line, and "
            f"its {level} band at each point by itself."
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
    at = np.linspace(*law.bounds[place], _POINTS)
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
        axes.set_xlabel(plain(subject.titled(names[place]), 60))
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
            label = f"{name}, {group}" if group else name
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
    if len(set(law.columns)) == len(law.bounds):
        return tuple(law.columns)
    return (*(f"x{i + 1}" for i in range(len(law.bounds) - 1)), "y")


def _finding(summary: Summary, name: str, response: str) -> str:
    """Say what the line of a predictor shows, of the first group."""
    key = next(n for n in summary.parameters if n.startswith("beta[") and n.removesuffix("]").endswith(name))
    scalar = summary.parameters[key]
    low, *_, high = scalar.quantiles.values()
    width = high - low
    way = "rises" if low > 0 else "falls" if high < 0 else "may rise or fall"
    return (
        f"{response} {way} with {name}: slope {amount(scalar.mean, width)}, "
        f"{100 * summary.level:g}% interval {amount(low, width)} to {amount(high, width)}"
    )
