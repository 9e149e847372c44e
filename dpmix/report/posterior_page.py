"""The HTML report of a released posterior: one file with everything in it."""

from __future__ import annotations

import json
from html import escape

from matplotlib.figure import Figure

from dpmix.store.html import BLUE, GREEN, ORANGE, captioned, drawing, page
from dpmix.summary.posterior_result import Expected, PosteriorSummary, Share
from dpmix.summary.result import figure as number

__all__ = ["error_figure", "render_posterior", "share_figure"]

MOST_SHARES = 12


def render_posterior(summary: PosteriorSummary) -> str:
    """Return the report as one HTML page; the same summary always gives the same page."""
    sections = [_head(summary), _densities(summary), _table(summary), _errors(summary), _provenance(summary)]
    return page("A released posterior - dpmix", sections)


def _head(summary: PosteriorSummary) -> str:
    box = ""
    if summary.warnings:
        items = "".join(f"<li>{escape(text)}</li>" for text in summary.warnings)
        title = "Warning" if len(summary.warnings) == 1 else f"{len(summary.warnings)} warnings"
        box = f'<div class="box warning" role="note"><strong>{title}</strong><ul>{items}</ul></div>'
    tiles = [
        ("Records", f"{summary.n:,}", f"{len(summary.shares)} categories"),
        (
            "Hellinger distance from the prior",
            f"{summary.hellinger_from_prior:.2f}",
            "0 where nothing is said",
        ),
    ]
    tiles += [("Expected Hellinger error", f"{error.mean:.3g}", error.about) for error in summary.errors]
    body = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    return (
        f'<h1>A released posterior</h1>\n<p class="lead">{escape(summary.guarantee)}</p>\n{box}\n'
        f'<dl class="tiles">{body}</dl>'
    )


def _densities(summary: PosteriorSummary) -> str:
    chosen = sorted(range(len(summary.shares)), key=lambda i: (-summary.shares[i].mean, i))[:MOST_SHARES]
    parts = []
    for i in sorted(chosen):
        share = summary.shares[i]
        caption = f"Probability of {share.name}: the released posterior beside its prior."
        if share.accounted is not None:
            caption += (
                " Green is what the release says once its mechanism is accounted for, which it may have "
                "moved: that is what dpmix fit gives."
            )
        parts.append(captioned(share_figure(share), f"Densities of the probability of {share.name}", caption))
    left = len(summary.shares) - len(chosen)
    note = f'<p class="note">{left} less probable categories are not drawn.</p>' if left else ""
    return "<h2>Probabilities of the categories</h2>\n" + "\n".join(parts) + note


def share_figure(share: Share) -> Figure:
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
        axes.set(xlabel=f"probability of {_plain(share.name)}", ylabel="density")
        axes.legend()
    return figure


def _table(summary: PosteriorSummary) -> str:
    percent = f"{100 * summary.level:g}%"
    accounted = all(share.accounted is not None for share in summary.shares)
    names = ["prior", "posterior", "mean", "sd", f"{percent} interval"]
    names += ["mean, accounted", "interval, accounted"] if accounted else []
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = ""
    for share, before, after in zip(summary.shares, summary.prior, summary.posterior, strict=True):
        cells = [number(float(before)), number(float(after)), number(share.mean), number(share.sd)]
        cells.append(f"{number(share.lower)} to {number(share.upper)}")
        if share.accounted is not None:
            own = share.accounted
            cells += [number(own.mean), f"{number(own.lower)} to {number(own.upper)}"]
        body = "".join(f"<td>{text}</td>" for text in cells)
        rows += f'<tr><th scope="row">{escape(share.name)}</th>{body}</tr>'
    note = "Prior and posterior are the parameters of the beta or Dirichlet laws."
    if not accounted:
        note += " With so many possible counts, accounting for the mechanism takes dpmix fit."
    return (
        '<h2>Intervals</h2>\n<div class="scroll"><table><thead><tr><th scope="col">category</th>'
        f'{header}</tr></thead><tbody>{rows}</tbody></table></div>\n<p class="note">{note}</p>'
    )


def _precision(error: Expected) -> str:
    return f"Monte Carlo error {error.mcse:.1g}" if error.mcse > 1e-9 * error.mean else "exact"


def _errors(summary: PosteriorSummary) -> str:
    items = "".join(
        f"<li>{number(error.mean, '.3g')} ({_precision(error)}) {escape(error.about)}</li>"
        for error in summary.errors
    )
    text = (
        "<h2>Expected error</h2>\n<p>Expected Hellinger distance between a released posterior and the true "
        "one, from 0 (equal) to 1, by sums over outcomes of the mechanism, or by simulating it, from public "
        "quantities alone:</p>"
        f"<ul>{items}</ul>"
    )
    if summary.curve is None:
        return text
    caption = (
        f"Expected error by the true share of {summary.shares[0].name}, which nobody but the curator knows. "
        "The line marks the released share."
    )
    return text + captioned(error_figure(summary), "Expected error by the true share", caption)


def error_figure(summary: PosteriorSummary) -> Figure:
    """Draw the expected error as a function of the true share of the first of two categories."""
    assert summary.curve is not None  # the caller looks
    with drawing((7.2, 2.8)) as (figure, axes):
        axes.plot(*summary.curve, color=BLUE, lw=1.6)
        axes.axvline(float(summary.counts[0]) / summary.n, color=ORANGE, lw=1.2, ls="--")
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, None), ylabel="expected Hellinger distance")
        axes.set(xlabel=f"true share of {_plain(summary.shares[0].name)}")
    return figure


def _provenance(summary: PosteriorSummary) -> str:
    described = {k: v for k, v in summary.mechanism.items() if v not in (None, [])}
    facts = {"Release": summary.made, "Mechanism": json.dumps(described)}
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<h2>Provenance</h2>\n<table class="facts"><tbody>{rows}</tbody></table>'


def _plain(name: str) -> str:
    """Return a name that matplotlib takes for text, not for mathematics."""
    return name.replace("$", r"\$")
