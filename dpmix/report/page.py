"""The HTML report of a summary: its tree, and its pictures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpmix.release.column_units import unit_of
from dpmix.report import check_page, parametric_page, plots
from dpmix.report.drawn_release import shown
from dpmix.results.as_html import to_page
from dpmix.results.nodes import figure as number
from dpmix.spec.days import day_text
from dpmix.store.html import captioned, image
from dpmix.summary.clustering import LOSS_NAMES
from dpmix.summary.dated import NONE, Dated
from dpmix.summary.families.family import Floats
from dpmix.summary.headline import amount

if TYPE_CHECKING:
    from dpmix.summary.density import Joint
    from dpmix.summary.summary_result import Summary

MOST_TRACES = 24


def render(summary: Summary) -> str:
    """Return the report as one HTML page.

    Pictures are SVG in data URIs; all text that comes from a file is escaped. The same summary always gives
    the same page.
    """
    in_units = (
        summary.provenance.mechanism.on_data_scale
    )  # outputs of a square wave, say, are numbers of cells
    pictures = {
        "density": _density(summary),
        "model": [*parametric_page.regression_pictures(summary), *parametric_page.class_pictures(summary)],
        "distribution": _distribution(summary),
        "check": check_page.pictures(summary.check, summary.dated if in_units else NONE),
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
        parts.append(
            captioned(
                plots.joint_figure(summary),
                _joint_finding(summary.joint, summary.dated),
                caption,
                "map",
            )
        )
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
    caption = (
        f"How probably two records are in one cluster, from {found.draws:,} draws. Outlined are the "
        f"{estimate.n_clusters} clusters of the partition with the least expected "
        f"{LOSS_NAMES[estimate.loss]} that was found ({estimate.expected_loss:.3g}). The "
        f"{100 * ball.level:g}% credible ball around it has radius {ball.radius:.3g}; partitions on its rim "
        f"have {ball.vertical_upper.n_clusters} clusters (fewest), {ball.vertical_lower.n_clusters} (most) "
        f"and {ball.horizontal.n_clusters} (farthest). Expected adjusted Rand index: "
        f"{estimate.expected_ari:.2f}. Under the {LOSS_NAMES[other.loss]} the estimate has "
        f"{other.n_clusters} clusters."
    )
    if estimate.ari is not None:
        caption += f" Adjusted Rand index with the true labels of the simulation: {estimate.ari:.2f}."
    if len(found.kept) < found.records:
        caption += f" All this is of {len(found.kept):,} of the {found.records:,} records, picked at random."
    picture = plots.coclustering_figure(summary, found)
    alt = f"Probability that two records share a cluster: the estimate has {estimate.n_clusters} clusters"
    return [captioned(picture, alt, caption, "map")]


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
        f'<li><span style="background:{colour}"></span>{escape(name)}</li>'
        for colour, name in plots.chain_legend(summary)
    )
    pairs = "".join(
        f"<figure>{image(plots.trace_figure(summary, name), _trace_finding(summary, name, 'Trace'))}</figure>"
        f"<figure>{image(plots.rank_figure(summary, name), _trace_finding(summary, name, 'Ranks'))}</figure>"
        for name in shown
    )
    return [
        *([chosen] if len(shown) < len(summary.series) else []),
        f'<ul class="key">{key}</ul>\n<div class="pairs">{pairs}</div>\n'
        '<p class="note">Traces: each line joins the means of up to 150 stretches of one chain; the grey '
        "shade is the range of all chains. Ranks: each chain's share of the ranks, from the smallest draws "
        "(left) to the largest (right); chains that sample the same distribution stay near 1.</p>",
    ]
