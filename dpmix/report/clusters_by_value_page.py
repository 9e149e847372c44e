"""The section of a report on clusters by value: their probabilities with bands."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, GREEN, GREY, INK, ORANGE, captioned, drawing, on_dates
from dpmix.summary.clusters_by_value_result import CellProbabilities, ClustersByValue

__all__ = ["pictures", "probabilities_figure"]

_COLOURS = (BLUE, ORANGE, GREEN, INK, GREY)


def pictures(found: ClustersByValue | None, label: str, *, released_too: bool = True) -> list[str]:
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
    picture = probabilities_figure(found.latent, label, date=found.date)
    parts = [captioned(picture, f"Probability of each cluster by value: {finding}", caption)]
    if found.released is not None:
        picture = probabilities_figure(found.released, "released value", date=found.date and released_too)
        least = float(found.released.mean.max(axis=0).min())
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
            colour = _COLOURS[r % len(_COLOURS)]
            axes.fill_between(middle, found.lower[r], found.upper[r], color=colour, alpha=0.2, lw=0)
            style = "-" if r < len(_COLOURS) else ":"
            axes.plot(middle, found.mean[r], color=colour, lw=1.8, ls=style, label=f"cluster {r + 1}")
        axes.set(ylim=(-0.02, 1.02))
        axes.set_xlabel(plain(label, 60))
        if date:
            on_dates(axes)
        axes.set_ylabel("probability")
        figure.legend(loc="outside upper left", ncols=min(len(found.mean), 5), handlelength=1.8)
    return figure
