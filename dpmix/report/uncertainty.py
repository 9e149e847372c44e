"""Where the uncertainty comes from, as bars, and how much the prior matters, as a table."""

from __future__ import annotations

from html import escape

import numpy as np
from matplotlib.figure import Figure

from dpmix.report.drawn_release import plain
from dpmix.store.html import BLUE, GREY, INK, ORANGE, captioned, drawing
from dpmix.summary.result import Summary
from dpmix.summary.result import figure as number
from dpmix.summary.sensitivity_result import SENSITIVE
from dpmix.summary.variance_result import VarianceShares

__all__ = ["section"]

_PARTS = (("sampling", BLUE, "white"), ("privacy", ORANGE, "white"), ("prior", GREY, INK))
_NAMES = {"sampling": "sampling", "privacy": "privacy noise", "prior": "prior"}
_LEAST = 0.06  # share that has room for its figure
_MOST_ROWS = 64


def section(summary: Summary) -> str:
    """Return both parts of the page; of what is not known why."""
    return "\n".join(part for part in (_variances(summary), _sensitivity(summary)) if part)


def _variances(summary: Summary) -> str:
    found = summary.variance_shares
    title = "<h2>Where the uncertainty comes from</h2>\n"
    if not found.named():
        return f"{title}<p>Not known: {escape(found.reason)}.</p>" if found.reason else ""
    caption = (
        "Shares of the posterior variance. Privacy noise is what would go if the same prior were fitted to "
        "records without noise, of which second runs on replicates tell the variance; sampling is what that "
        "many records leave open; the rest is as open as it was a priori. "
        f"{found.cure()}"
    )
    if found.reason:
        caption += f" What is missing: {found.reason}."
    alt = "Shares of sampling, privacy noise and prior in the posterior variance"
    return title + captioned(shares_figure(found), alt, caption)


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


def _sensitivity(summary: Summary) -> str:
    found = summary.sensitivity
    title = "<h2>Sensitivity to the prior</h2>\n"
    if not found.indices:
        return f"{title}<p>Not known: {escape(found.no_prior)}.</p>" if found.no_prior else ""
    both = found.has_likelihood
    names = ("prior", *(("likelihood",) if both else ()), "noise", "what it says")
    header = "".join(f'<th scope="col">{name}</th>' for name in names)
    order = sorted(found.indices, key=lambda name: not found.indices[name].sensitive)
    body = ""
    for name in order[:_MOST_ROWS]:
        index = found.indices[name]
        bad = ' class="bad"' if index.sensitive else ""
        cells = f"<td{bad}>{number(index.prior, '.3f')}</td>"
        cells += f"<td>{number(index.likelihood, '.3f')}</td>" if both else ""
        cells += f"<td>{number(index.noise, '.3f')}</td><td>{escape(index.diagnosis) or '-'}</td>"
        body += f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'
    left = len(found.indices) - _MOST_ROWS
    more = f" {left:,} more are in the JSON." if left > 0 else ""
    both_ks = {"prior": found.k_prior, "likelihood": found.k_likelihood}
    ks = [f"{name} {k:.2f}" for name, k in both_ks.items() if k is not None]
    note = (
        "How far the posterior of each scalar moves when the prior, or the likelihood, is raised to a power: "
        f"distance of distribution functions per doubling of the power. From {SENSITIVE:g} on, and where it "
        "is above <b>noise</b> (what draws of this number show for a scalar that has nothing to do with the "
        f"prior), the prior matters; where the likelihood's is below {SENSITIVE:g}, the release says little."
    )
    if summary.n_clusters is not None:
        note += " The prior is that of the occupied clusters' parameters and of the concentration."
    if ks:
        note += f" Pareto k of the importance weights: {', '.join(ks)}; above 0.7 nothing is reported."
    if not both and found.no_likelihood:
        note += f" No likelihood's: {escape(found.no_likelihood)}."
    return (
        f'{title}<div class="scroll"><table><thead><tr><th scope="col">scalar</th>{header}</tr></thead>'
        f'<tbody>{body}</tbody></table></div>\n<p class="note">{note}{more}</p>'
    )
