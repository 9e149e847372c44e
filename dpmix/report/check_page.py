"""The release check in the report: distribution functions over their bands, entries over their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, ORANGE, captioned, drawing, drawings, on_dates
from dpmix.summary.dated import NONE, Dated

if TYPE_CHECKING:
    from dpmix.summary.check.check_result import Check, Curve

__all__ = ["pictures"]

_MOST = 30
_FARTHEST = 8.0  # in standard deviations, where points are drawn at most


def pictures(check: Check, dated: Dated = NONE) -> list[str]:
    """Return the pictures of a check; none where there is none; `dated` of which columns are dates."""
    if check.overall is None:
        return []
    parts = []
    for name, curve in check.curves.items():
        about = f" of {name}" if name else ""
        caption = (
            f"Left, the distribution function{about} of the released values (orange) over the 95% pointwise "
            f"band of {check.replicates} releases drawn anew from the fit: records from posterior draws, "
            "then the mechanism with its noise. Right, the same less the replicates' mean. p = "
            f"{check.p_of_curves[name]:.2g} for the whole function."
        )
        alt = (
            f"Release check, p = {check.p_of_curves[name]:.2g}: distribution function{about} of the release "
            "over the band of its replicates"
        )
        parts.append(captioned(curve_figure(curve, name, date=dated.is_curve(name)), alt, caption))
    if check.entries:
        caption = _caption(check)
        parts.append(
            captioned(
                entries_figure(check),
                f"Release check, p = {check.overall:.2g}: entries of the release over their replicates",
                caption,
            )
        )
    return parts


def _caption(check: Check) -> str:
    text = (
        f"Each figure of the release (orange) in standard deviations from the mean of {check.replicates} "
        f"replicates, whose 95% intervals are the bars. p = {check.overall:.2g} for all together; small "
        "values say that the model, prior included, does not describe these records, large ones that nothing "
        f"is seen. {check.visible}"
    )
    if len(check.entries) > _MOST:
        text += f" Shown are the {_MOST} of {len(check.entries)} entries that are farthest out."
    return text


def curve_figure(curve: Curve, name: str, *, date: bool = False) -> Figure:
    """Draw a distribution function over its band, and the difference from the replicates' mean."""
    with drawings((7.2, 3.1), 2) as (figure, (left, right)):
        label = "95% band of replicates"
        band = left.fill_between(
            curve.grid, curve.lower, curve.upper, color=BLUE, alpha=0.35, lw=0.6, label=label
        )
        (line,) = left.plot(curve.grid, curve.observed, color=ORANGE, lw=1.3, label="release")
        middle = curve.mean
        right.axhline(0.0, color="#777777", lw=0.7)
        right.fill_between(
            curve.grid, curve.lower - middle, curve.upper - middle, color=BLUE, alpha=0.35, lw=0
        )
        right.plot(curve.grid, curve.observed - middle, color=ORANGE, lw=1.3)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.set_xlabel(f"{plain(name)}, released" if name else "released value")
            if date:
                on_dates(axes, most=5)
        left.set(ylim=(-0.02, 1.02), ylabel="share of values up to here")
        right.set_ylabel("less the replicates' mean")
        figure.legend(handles=[line, band], loc="outside upper left", ncols=2)
    return figure


def entries_figure(check: Check) -> Figure:
    """Draw entries in standard deviations from the replicates' mean, over their intervals."""
    scaled = np.array(
        [
            [entry.scaled(value) for value in (entry.observed, entry.lower, entry.upper)]
            for entry in check.entries
        ]
    )
    order = np.argsort(-np.abs(scaled[:, 0]), kind="stable")[:_MOST]
    chosen = np.sort(order)
    with drawing((7.2, 1.0 + 0.24 * chosen.size)) as (figure, axes):
        rows = np.arange(chosen.size)
        at, low, high = scaled[chosen].T
        bars = axes.hlines(
            rows, low, high, color=BLUE, alpha=0.45, lw=6.0, label="95% interval of replicates"
        )
        axes.axvline(0.0, color="#777777", lw=0.7)
        far = np.abs(at) > _FARTHEST
        points = axes.plot(np.clip(at[~far], -_FARTHEST, _FARTHEST), rows[~far], "o", color=ORANGE, ms=5.0)
        for side, marker in ((-1.0, "<"), (1.0, ">")):
            beyond = far & (np.sign(at) == side)
            axes.plot(np.full(beyond.sum(), side * _FARTHEST), rows[beyond], marker, color=ORANGE, ms=7.0)
        points[0].set_label("release")
        axes.set_yticks(rows, [plain(check.entries[i].name, 44) for i in chosen])
        widest = max(4.0, float(np.minimum(np.abs(at), _FARTHEST).max()) + 0.5)
        axes.set(xlim=(-widest, widest), ylim=(chosen.size - 0.4, -0.6))
        axes.set_xlabel("standard deviations of the replicates from their mean")
        figure.legend(handles=[points[0], bars], loc="outside upper left", ncols=2)
    return figure
