"""HTML pages of a summary, of the comparison of two groups, and of a released posterior.

Each is the tree of its result with pictures: one file, no scripts, nothing loaded from elsewhere. Pictures
are SVG in data URIs; all text that comes from a file is escaped. The same result always gives the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from dpmix.columns.column_units import unit_of
from dpmix.columns.dated import NONE, Dated
from dpmix.report import parametric_page, plots
from dpmix.report.release_pictures import check_pictures, plain, shown
from dpmix.results.as_html import to_page
from dpmix.results.nodes import figure as number
from dpmix.spec.capabilities import counted
from dpmix.spec.days import day_text
from dpmix.store.html import BLUE, GREEN, GREY, ORANGE, captioned, drawing, image
from dpmix.summary.clustering import LOSS_NAMES
from dpmix.summary.curves import NOT_RESOLVED
from dpmix.summary.headline import amount

if TYPE_CHECKING:
    from dpmix.kernels.layout import Floats
    from dpmix.summary.contrast_result import Contrast, Difference
    from dpmix.summary.density import Joint
    from dpmix.summary.posterior_result import PosteriorSummary, Share
    from dpmix.summary.summary_result import Summary

MOST_TRACES = 24


def render(summary: Summary) -> str:
    """Return the report of a summary."""
    # outputs of a square wave, say, are numbers of cells
    in_units = summary.provenance.mechanism.on_data_scale
    pictures = {
        "density": _density(summary),
        "model": [*parametric_page.regression_pictures(summary), *parametric_page.class_pictures(summary)],
        "distribution": _distribution(summary),
        "check": check_pictures(summary.check, summary.dated if in_units else NONE),
        "variance_shares": plots.uncertainty_pictures(summary.variance_shares),
        "n_clusters": _clusters(summary),
        "clustering": _partition(summary),
        "clusters_by_value": plots.cluster_pictures(
            summary.clusters_by_value, plots.axis_of(summary, ""), released_too=in_units
        ),
        "traces": _traces(summary),
    }
    return to_page(summary.tree, pictures | parametric_page.composition_pictures(summary))


def _density(summary: Summary) -> list[str]:
    several = "" not in summary.densities
    parts = []
    for name, density in summary.densities.items():
        distance = density.hellinger_from_prior
        apart = "" if distance is None else f", its Hellinger distance from the prior {distance:.2f}"
        words = summary.provenance.subject.about(name)
        about = f" ({words}{apart})" if not density.group else f" in {name}{apart}"
        caption = _density_caption(summary, name, about if several else "")
        alt = _density_finding(summary, name)
        parts.append(captioned(plots.density_figure(summary, column=name), alt, caption))
    if summary.joint is not None:
        caption = (
            "Posterior mean density of both columns together: lines where it is 2, 10, 25, 50, 75 and 90% of "
            "its highest. Points are released values, with their noise."
        )
        finding = _joint_finding(summary.joint, summary.dated)
        parts.append(captioned(plots.joint_figure(summary), finding, caption, "map"))
    return parts


def _joint_finding(joint: Joint, dated: Dated) -> str:
    """Say where the density of two columns is highest."""
    place = np.unravel_index(int(np.argmax(joint.mean)), joint.mean.shape)
    at = [
        _value(dated, name, float(grid[i]), grid)
        for name, grid, i in zip(joint.columns, joint.grids, place, strict=True)
    ]
    first, second = joint.columns
    return f"Density of both columns, highest near {first} = {at[0]}, {second} = {at[1]}"


def _density_finding(summary: Summary, name: str) -> str:
    """Say what a density shows: where it is highest, and how sure that is."""
    density, subject = summary.densities[name], summary.provenance.subject
    column, group = ("", density.group) if density.group else subject.parted(name)
    unit = "" if summary.composition is not None else unit_of(subject.unit, column)
    peak = int(np.argmax(density.mean))
    text = f"Density of {column or ''.join(subject.columns[:1]) or 'a record'}"
    text += f" in {group}" if group else ""
    if not density.resolved:
        return f"{text}, {NOT_RESOLVED.format(len(density.grid))}"
    text += f", highest near {_value(summary.dated, column, float(density.grid[peak]), density.grid)}"
    text += f" {unit}" if unit else ""
    between = density.grid[density.mean > 0.1 * density.mean[peak]]
    ends = [_value(summary.dated, column, float(end), density.grid) for end in between[[0, -1]]]
    return f"{text} and above a tenth of that from {ends[0]} to {ends[1]}"


def _value(dated: Dated, column: str, value: float, grid: Floats) -> str:
    """Write a value of a column, with digits by the width of its grid; a date as such."""
    if dated.is_curve(column):
        return day_text(value)
    return amount(value, float(grid[-1] - grid[0]) / 20.0)


def _density_caption(summary: Summary, column: str, about: str) -> str:
    density, steps, law = summary.densities[column], shown(summary, column), summary.provenance.mechanism
    caption = (
        f"Density of a record{about}. The band holds {100 * summary.level:g}% of the {summary.source} at "
        f"each point by itself, from {summary.band_draws:,} draws of the random density; it does not hold "
        "the whole curve with that probability."
    )
    if steps is not None:
        caption += f" {steps.sentence}"
    elif law.released == "records":
        what = f", {law.unpictured}," * bool(law.unpictured)
        caption += f" What was released{what} is not on this scale and not shown."
    if "deconvolution_kde" in density.baselines:
        caption += (
            " The dotted line is a kernel estimate without a model, with the noise deconvolved (bandwidth "
            f"{number(density.baseline_bandwidth, '.3g')}); it has no band."
        )
    if "ems" in density.baselines:
        caption += (
            " The line of dots and dashes is an estimate without a model, by EM with smoothing; it has no "
            "band."
        )
    if not density.resolved:
        caption += (
            f" The density is {NOT_RESOLVED.format(len(density.grid))}: lines and band between the points do "
            "not show it."
        )
    if steps is not None and steps.outside >= 0.005:
        caption += f" {100 * steps.outside:.0f}% of the {steps.values} lie outside this range."
    return caption


def _distribution(summary: Summary) -> list[str]:
    parts = []
    for name, found in summary.distributions.items():
        what = "distribution function" if found.is_numeric else "probabilities of the categories"
        caption = (
            f"Posterior mean of the {what}{found.about} of a record. The band holds "
            f"{100 * summary.level:g}% of the posterior at each "
            f"{'point' if found.is_numeric else 'category'} by itself, from {summary.band_draws:,} draws of "
            "the random distribution."
        )
        if summary.composition is not None:
            caption = parametric_page.shares_caption(summary, found.about)
        drawn = plots.distribution_figure(summary, name)
        if not found.is_numeric and len(found.at) > plots.MOST_BARS:
            caption += f" Shown are the {plots.MOST_BARS} most probable of {len(found.at):,} categories."
        finding = f"Distribution function{found.about}"
        if not found.is_numeric:
            first = int(np.argmax(found.mean))
            finding = f"Most probable{found.about} is {found.at[first]}, {found.mean[first]:.2g}"
        else:
            middle = float(np.interp(0.5, found.mean, found.at))  # type: ignore[arg-type]
            finding += (
                f", which reaches one half near {_value(summary.dated, found.column, middle, found.at)}"  # type: ignore[arg-type]
            )
        parts.append(captioned(drawn, finding, caption))
    return parts


def _clusters(summary: Summary) -> list[str]:
    if summary.n_clusters is None:
        return []
    caption = (
        "Posterior of the number of clusters that hold at least one of the records. Small clusters come and "
        "go with the prior: it is the density that says where the data lie."
    )
    counts = summary.n_clusters
    mode = int(np.argmax(counts.probability))
    alt = (
        f"Number of clusters: most probably {counts.support[mode]}, with probability "
        f"{counts.probability[mode]:.2f}"
    )
    return [captioned(plots.clusters_figure(summary), alt, caption)]


def _partition(summary: Summary) -> list[str]:
    found = summary.clustering
    if found is None:
        return []
    estimate, ball = found.estimate, found.estimate.ball
    other = next(e for loss, e in found.estimates.items() if loss != found.loss)
    outlined = "is the one cluster" if estimate.n_clusters == 1 else f"are the {estimate.n_clusters} clusters"
    fewest = counted(ball.vertical_upper.n_clusters, "cluster")
    caption = (
        f"How probably two records are in one cluster, from {found.draws:,} draws. Outlined "
        f"{outlined} of the partition with the least expected "
        f"{LOSS_NAMES[estimate.loss]} that was found ({estimate.expected_loss:.3g}). The "
        f"{100 * ball.level:g}% credible ball around it has radius {ball.radius:.3g}; partitions on its rim "
        f"have {fewest} (fewest), {ball.vertical_lower.n_clusters} (most) "
        f"and {ball.horizontal.n_clusters} (farthest). Expected adjusted Rand index: "
        f"{estimate.expected_ari:.2f}. Under the {LOSS_NAMES[other.loss]} the estimate has "
        f"{counted(other.n_clusters, 'cluster')}."
    )
    if estimate.ari is not None:
        caption += f" Adjusted Rand index with the true labels of the simulation: {estimate.ari:.2f}."
    if len(found.kept) < found.records:
        caption += f" All this is of {len(found.kept):,} of the {found.records:,} records, picked at random."
    many = counted(estimate.n_clusters, "cluster")
    alt = f"Probability that two records share a cluster: the estimate has {many}"
    return [captioned(plots.coclustering_figure(summary, found), alt, caption, "map")]


def _least_known(summary: Summary) -> list[str]:
    """Return the scalars whose traces are drawn: all, or of many those with the smallest bulk ESS."""
    names = list(summary.series)
    if len(names) <= MOST_TRACES:
        return names
    sizes = {name: summary.parameters[name].ess_bulk for name in names}
    order = sorted(names, key=lambda name: np.inf if sizes[name] is None else float(sizes[name] or 0.0))
    kept = set(order[:MOST_TRACES])
    return [name for name in names if name in kept]


def _trace_finding(summary: Summary, name: str, what: str) -> str:
    scalar = summary.parameters[name]
    found = "" if scalar.rhat is None else f": R-hat {scalar.rhat:.3f}"
    return f"{what} of {summary.shown(name)} by chain{found}"


def _traces(summary: Summary) -> list[str]:
    shown = _least_known(summary)
    chosen = (
        f'<p class="note">Of {len(summary.series)} scalars these are the {len(shown)} with the smallest bulk '
        "ESS.</p>"
    )
    key = "".join(
        f'<li><span style="{style}"></span>{escape(name)}</li>' for style, name in plots.chain_legend(summary)
    )
    drawn = {"Trace": plots.trace_figure}
    note = (
        "Traces: each line joins the means of up to 150 stretches of one chain; the grey shade is the range "
        "of all chains."
    )
    if len(summary.chain_ids) > 1:  # the ranks of one chain alone are level, whatever it does
        drawn["Ranks"] = plots.rank_figure
        note += (
            " Ranks: each chain's share of the ranks, from the smallest draws (left) to the largest (right); "
            "chains that sample the same distribution stay near 1."
        )
    pairs = "".join(
        f"<figure>{image(figure(summary, name), _trace_finding(summary, name, what))}</figure>"
        for name in shown
        for what, figure in drawn.items()
    )
    return [
        *([chosen] if len(shown) < len(summary.series) else []),
        f'<ul class="key">{key}</ul>\n<div class="pairs">{pairs}</div>\n<p class="note">{note}</p>',
    ]


# The comparison of two groups


def render_contrast(found: Contrast) -> str:
    """Return the page of a comparison."""
    captions = chain([found.meaning()], repeat("The same of what has another scale."))
    pictures = [
        captioned(contrast_figure(found, axis, parts), _finding(found, axis, parts), caption)
        for (axis, parts), caption in zip(panels(found).items(), captions, strict=False)
    ]
    return to_page(found.tree, {"difference": pictures})


def panels(found: Contrast) -> dict[str | None, list[Difference]]:
    """Return the rows by what they are differences of: those of one picture have one scale."""
    parts: dict[str | None, list[Difference]] = {}
    for part in found.differences:
        parts.setdefault(part.axis, []).append(part)
    return parts


def contrast_figure(found: Contrast, axis: str | None, parts: Sequence[Difference]) -> Figure:
    """Difference of each row with its interval, over the margin within which they count as equal.

    `axis` is what these rows are differences of; those of "" each in their own posterior standard deviations.
    """
    rows = np.arange(len(parts))
    kind = "confidence" if found.is_bootstrap else "credible"
    scale = np.array([part.sd if axis == "" and part.sd > 0.0 else 1.0 for part in parts])
    with drawing((7.2, 1.1 + 0.34 * rows.size)) as (figure, axes):
        shades = []
        if found.margin > 0.0 and axis != "":
            label = f"up to {found.margin:g} apart"
            shades = [axes.axvspan(-found.margin, found.margin, color=GREY, lw=0, label=label)]
        axes.axvline(0.0, color="#777777", lw=0.8)
        lower, upper, mean = (
            np.array([getattr(part, name) for part in parts]) / scale for name in ("lower", "upper", "mean")
        )
        lines = axes.hlines(
            rows, lower, upper, color=BLUE, lw=2.0, label=f"{100 * found.level:g}% {kind} interval"
        )
        (dots,) = axes.plot(mean, rows, "o", color=BLUE, ms=5, label="mean")
        axes.set_yticks(rows, [plain(part.label or part.name) for part in parts])
        axes.set(ylim=(rows.size - 0.4, -0.6))
        first, second = (plain(group.label) for group in found.groups)
        of = found.title if axis is None else axis
        what = (
            f"difference of {plain(of, 60)}"
            if of
            else "difference, each in its own posterior standard deviations"
        )
        axes.set_xlabel(f"{what}, {first} less {second}")
        figure.legend(handles=[dots, lines, *shades], loc="outside upper left", ncols=3)
    return figure


def _finding(found: Contrast, axis: str | None, parts: Sequence[Difference]) -> str:
    """Say what a picture shows: the rows whose intervals lie beyond the margin, and all differences."""
    first, second = (group.label for group in found.groups)
    apart = [part.label or part.name for part in parts if part.excludes_margin]
    beyond = f"intervals beyond {f'{found.margin:g} of 0' if found.margin else '0'}: "
    beyond += ", ".join(apart) or "none"
    named = "; ".join(
        f"{part.label or part.name} {amount(part.mean, width)} ({amount(part.lower, width)} to "
        f"{amount(part.upper, width)}{f' {part.unit}' if part.unit else ''})"
        for part in parts
        for width in (part.upper - part.lower,)
    )
    of = found.title if axis is None else axis or "other parameters"
    return f"Difference of {of}, {first} less {second}, {beyond}: {named}"


# A released posterior


MOST_SHARES = 12


def render_posterior(summary: PosteriorSummary) -> str:
    """Return the page of a released posterior."""
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
            if share.accounted.left_out is not None:
                caption += f" {share.accounted.left_out} of its probability lies beyond the picture."
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
            label = "mechanism accounted for"
            axes.plot(share.grid, share.accounted.density, color=GREEN, lw=1.6, ls="-.", label=label)
        axes.plot(share.grid, share.density, color=BLUE, lw=1.8, label="released posterior")
        axes.set(xlim=(share.grid[0], share.grid[-1]), ylim=(0.0, 1.08 * float(share.density.max())))
        axes.set(xlabel=f"probability of {plain(name or share.name, None)}", ylabel="density")
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
        axes.set(xlabel=f"true share of {plain(named(summary, summary.shares[0]), None)}")
    return figure
