"""Where the uncertainty comes from, as bars."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, GREY, INK, ORANGE, captioned, drawing
from dpmix.summary.variance_result import VarianceShares

__all__ = ["pictures"]

_PARTS = (("sampling", BLUE, "white"), ("privacy", ORANGE, "white"), ("prior", GREY, INK))
_NAMES = {"sampling": "sampling", "privacy": "privacy noise", "prior": "prior"}
_LEAST = 0.06  # share that has room for its figure


def pictures(found: VarianceShares) -> list[str]:
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
        f"{name}: {100 * part.sampling:.0f}% sampling, {100 * part.privacy:.0f}% privacy noise, "
        f"{100 * part.prior:.0f}% prior"
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
        for name, colour, ink in _PARTS:
            shares = np.array([float(getattr(part, name)) for part in named.values()])
            bars.append(axes.barh(rows, shares, left=left, height=0.66, color=colour, label=_NAMES[name]))
            for row, share in enumerate(shares):
                if share >= _LEAST:
                    middle = (left[row] + 0.5 * share, row)
                    axes.annotate(
                        f"{100 * share:.0f}%", middle, ha="center", va="center", color=ink, fontsize=8
                    )
            left += shares
        axes.set_yticks(rows, [plain(name) for name in named])
        axes.set(xlim=(0.0, 1.0), ylim=(rows.size - 0.5, -0.5))
        axes.set_xticks(np.linspace(0.0, 1.0, 5), [f"{p}%" for p in (0, 25, 50, 75, 100)])
        axes.set_xlabel("share of the posterior variance")
        figure.legend(handles=bars, loc="outside upper left", ncols=3)
    return figure
