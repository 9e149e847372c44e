"""The HTML report of a released posterior: one file with everything in it."""

from __future__ import annotations

from matplotlib.figure import Figure

from dpmix.results.as_html import to_page
from dpmix.store.html import BLUE, GREEN, ORANGE, captioned, drawing
from dpmix.summary.posterior_result import PosteriorSummary, Share

__all__ = ["error_figure", "render_posterior", "share_figure"]

MOST_SHARES = 12


def render_posterior(summary: PosteriorSummary) -> str:
    """Return the report as one HTML page; the same summary always gives the same page."""
    pictures = {"density": _densities(summary), "expected_hellinger/curve": _errors(summary)}
    return to_page(summary.tree, pictures)


def _densities(summary: PosteriorSummary) -> list[str]:
    chosen = sorted(range(len(summary.shares)), key=lambda i: (-summary.shares[i].mean, i))[:MOST_SHARES]
    parts = []
    for i in sorted(chosen):
        share = summary.shares[i]
        name = named(summary, share)
        caption = f"Probability of {name}: the released posterior beside its prior."
        if share.accounted is not None:
            caption += (
                " Green is what the release says once its mechanism is accounted for, which it may have "
                "moved: that is what dpmix fit gives."
            )
        alt = f"Probability of {name}: {share.mean:.3g}, interval {share.lower:.3g} to {share.upper:.3g}"
        parts.append(captioned(share_figure(share, name), alt, caption))
    left = len(summary.shares) - len(chosen)
    note = f'<p class="note">{left} less probable categories are not drawn.</p>' if left else ""
    return [*parts, *filter(None, [note])]


def named(summary: PosteriorSummary, share: Share) -> str:
    """Return a category with its column, "vote = 0", where the release tells it."""
    column = str(summary.mechanism.get("column") or "")
    return f"{column} = {share.name}" if column else share.name


def share_figure(share: Share, name: str = "") -> Figure:
    """Draw the released posterior of one probability beside its prior, and what accounting gives."""
    with drawing((7.2, 3.0)) as (figure, axes):
        axes.plot(share.grid, share.prior_density, color=ORANGE, lw=1.4, ls=(0, (5, 2)), label="prior")
        if share.accounted is not None:
            axes.plot(
                share.grid,
                share.accounted.density,
                color=GREEN,
                lw=1.6,
                ls="-.",
                label="mechanism accounted for",
            )
        axes.plot(share.grid, share.density, color=BLUE, lw=1.8, label="released posterior")
        axes.set(xlim=(share.grid[0], share.grid[-1]), ylim=(0.0, 1.08 * float(share.density.max())))
        axes.set(xlabel=f"probability of {_plain(name or share.name)}", ylabel="density")
        figure.legend(loc="outside upper left", ncols=3)
    return figure


def _errors(summary: PosteriorSummary) -> list[str]:
    if summary.curve is None:
        return []
    caption = (
        f"Expected error by the true share of {named(summary, summary.shares[0])}, which nobody but the "
        "curator knows. The line marks the released share."
    )
    return [captioned(error_figure(summary), "Expected error by the true share", caption)]


def error_figure(summary: PosteriorSummary) -> Figure:
    """Draw the expected error as a function of the true share of the first of two categories."""
    assert summary.curve is not None  # the caller looks
    with drawing((7.2, 2.8)) as (figure, axes):
        axes.plot(*summary.curve, color=BLUE, lw=1.6)
        axes.axvline(float(summary.counts[0]) / summary.n, color=ORANGE, lw=1.2, ls="--")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, None), ylabel="expected Hellinger distance")
        axes.set(xlabel=f"true share of {_plain(named(summary, summary.shares[0]))}")
    return figure


def _plain(name: str) -> str:
    """Return a name that matplotlib takes for text, not for mathematics."""
    return name.replace("$", r"\$")
