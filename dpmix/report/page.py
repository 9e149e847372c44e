"""The HTML report: one file with everything in it, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from dpmix.mechanisms.wavelet.law import WaveletLaw
from dpmix.report import (
    check_page,
    clusters_by_value_page,
    composition_page,
    plots,
    prediction_page,
    two_dimensions,
    uncertainty,
)
from dpmix.report.drawn_release import shown
from dpmix.store.html import captioned, image, page
from dpmix.summary.diagnostics import Scalar
from dpmix.summary.remarks import BEYOND, ESS, LEARNT, RHAT
from dpmix.summary.result import LOSS_NAMES, Summary, percent, rate
from dpmix.summary.result import figure as number

MOST_TRACES = 24


def render(summary: Summary) -> str:
    """Return the report as one HTML page.

    Pictures are SVG in data URIs; all text that comes from a file is escaped. The same summary always gives
    the same page.
    """
    sections = [
        _head(summary),
        _density(summary),
        _distribution(summary),
        composition_page.section(summary),
        prediction_page.section(summary),
        check_page.section(summary),
        uncertainty.section(summary),
        _clusters(summary),
        _partition(summary),
        clusters_by_value_page.section(summary),
        _diagnostics(summary),
        _traces(summary),
        _provenance(summary),
    ]
    return page("Posterior of a release - dpmix", sections)


def _head(summary: Summary) -> str:
    if summary.remarks:
        title = "Warning" if len(summary.remarks) == 1 else f"{len(summary.remarks)} warnings"
        items = "".join(f"<li>{escape(text)}</li>" for text in summary.warnings)
        box = f'<div class="box warning" role="note"><strong>{title}</strong><ul>{items}</ul></div>'
    else:
        box = (
            f'<div class="box" role="note"><p>No warnings: R-hat is at most {RHAT} and both effective sample '
            f"sizes are at least {ESS:.0f} for every scalar.</p></div>"
        )
    return (
        "<h1>What the release says about the data</h1>\n"
        f'<p class="lead">{escape(summary.provenance.guarantee)}</p>\n{composition_page.lead(summary)}{box}\n'
        f"{_tiles(summary)}"
    )


def _tiles(summary: Summary) -> str:
    tiles = []
    if summary.n_clusters is not None:
        counts = summary.n_clusters
        mode = int(np.argmax(counts.probability))
        note = f"probability {counts.probability[mode]:.2f}"
        tiles.append(("Most probable number of clusters", str(counts.support[mode]), note))
    if summary.hellinger is not None:
        note = "0 where the release says nothing"
        tiles.append(("Hellinger distance from the prior", f"{summary.hellinger:.2f}", note))
    for name, share in summary.beyond_bounds.items() if summary.composition is None else ():
        note = f"under the fit{f', of {name}' if name else ''}; warned of above {percent(BEYOND)}"
        tiles.append(("Records beyond the public bounds", percent(share), note))
    if summary.check.overall is not None:
        note = "small where the release is unlike the fit's replicates of it"
        tiles.append(("Release check, p", f"{summary.check.overall:.2g}", note))
    if summary.information is not None and summary.information.width > 0.0:
        kept = summary.information
        note = f"by cells of width {kept.width:.3g}; of log sd {percent(kept.log_sd)}"
        tiles.append(("Information kept on location", percent(kept.location), note))
    tiles += [
        ("Largest R-hat", *_worst(summary, "rhat")),
        ("Smallest bulk ESS", *_worst(summary, "ess_bulk")),
        ("Smallest tail ESS", *_worst(summary, "ess_tail")),
    ]
    if summary.acceptance.mean is not None:
        bound = summary.acceptance.bound
        note = "no lower bound applies" if bound is None else f"at least e^-epsilon = {bound:.3g}"
        tiles.append(("Mean acceptance rate", f"{summary.acceptance.mean:.3f}", note))
    body = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in tiles
    )
    return f'<dl class="tiles">{body}</dl>'


def _worst(summary: Summary, key: str) -> tuple[str, str]:
    """Return the most worrying value of a diagnostic, and the scalar it belongs to."""
    found = {name: getattr(value, key) for name, value in summary.parameters.items()}
    values = {name: float(value) for name, value in found.items() if value is not None}
    if not values:
        return "-", "not available"
    if key == "rhat":
        name = max(values, key=values.__getitem__)
        return f"{values[name]:.3f}", name
    name = min(values, key=values.__getitem__)
    return f"{values[name]:,.0f}", name


def _density(summary: Summary) -> str:
    if not summary.densities:
        return ""
    several = "" not in summary.densities
    parts = []
    for name, density in summary.densities.items():
        distance = density.hellinger_from_prior
        apart = "" if distance is None else f", its Hellinger distance from the prior {distance:.2f}"
        about = f" ({name}{apart})" if not density.group else f" in {name}{apart}"
        caption = _density_caption(summary, name, about if several else "")
        prior = "" if density.prior is None else ", and the prior density"
        alt = (
            f"{summary.source.capitalize()} mean density with its band{prior}{f': {name}' if several else ''}"
        )
        parts.append(captioned(plots.density_figure(summary, column=name), alt, caption))
    if summary.joint is not None:
        caption = (
            "Posterior mean density of both columns together: lines where it is 2, 10, 25, 50, 75 and 90% of "
            "its highest. Points are released values, with their noise."
        )
        parts.append(
            captioned(two_dimensions.joint_figure(summary), "Density of both columns", caption, "map")
        )
    return "<h2>Density</h2>\n" + "\n".join(parts)


def _density_caption(summary: Summary, column: str, about: str) -> str:
    density, steps = summary.densities[column], shown(summary, column)
    caption = (
        f"Density of a record{about}. The band holds {100 * summary.level:g}% of the {summary.source} at "
        f"each point by itself, from {summary.band_draws:,} draws of the random density; it does not hold "
        "the whole curve with that probability."
    )
    if steps is not None:
        caption += f" {steps.sentence}"
    elif isinstance(summary.provenance.mechanism, WaveletLaw):
        caption += " What was released, noisy wavelet coefficients, is not on this scale and not shown."
    if density.baseline is not None:
        caption += (
            " The dotted line is a kernel estimate without a model, with the noise deconvolved (bandwidth "
            f"{number(density.baseline_bandwidth, '.3g')}); it has no band."
        )
    if steps is not None and steps.outside >= 0.005:
        caption += f" {100 * steps.outside:.0f}% of the {steps.values} lie outside this range."
    return caption


def _distribution(summary: Summary) -> str:
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
            caption = composition_page.shares_caption(summary, found.about)
        drawn = plots.distribution_figure(summary, name)
        if not found.is_numeric and len(found.at) > plots.MOST_BARS:
            caption += f" Shown are the {plots.MOST_BARS} most probable of {len(found.at):,} categories."
        parts.append(captioned(drawn, f"Posterior of the {what}{found.about}", caption))
    title = "Distribution of a record" if summary.composition is None else "Expected shares"
    return f"<h2>{title}</h2>\n" + "\n".join(parts) if parts else ""


def _clusters(summary: Summary) -> str:
    if summary.n_clusters is None:
        return ""
    caption = (
        "Posterior of the number of clusters that hold at least one of the records. Small clusters come and "
        "go with the prior: it is the density that says where the data lie."
    )
    alt = "Posterior probabilities of the number of clusters"
    return f"<h2>Number of clusters</h2>\n{captioned(plots.clusters_figure(summary), alt, caption)}"


def _partition(summary: Summary) -> str:
    found = summary.clustering
    if found is None:
        return ""
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
    picture = two_dimensions.coclustering_figure(summary, found)
    alt = "Probability that two records share a cluster"
    return f"<h2>Clusters of the records</h2>\n{captioned(picture, alt, caption, 'map')}"


def _diagnostics(summary: Summary) -> str:
    first, *_, last = next(iter(summary.parameters.values())).quantiles
    ends = [f"{100 * float(level):g}%" for level in (first, last)]
    names = ("mean", "sd", *ends, "contraction", "MCSE", "R-hat", "ESS bulk", "ESS tail", "ESS/s")
    header = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(
        _row(name, value, summary.ess_per_second[name]) for name, value in summary.parameters.items()
    )
    notes = "".join(
        f"<li>{escape(name)}: {escape(value.note)}</li>"
        for name, value in summary.parameters.items()
        if value.note
    )
    return (
        "<h2>Scalars and their diagnostics</h2>\n"
        f'<div class="scroll"><table><thead><tr><th scope="col">scalar</th>{header}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>\n"
        + (f'<ul class="note">{notes}</ul>\n' if notes else "")
        + _places(summary)
        + f'<p class="note">{_meaning(summary)}{_learnt(summary)}'
        "R-hat is rank-normalised and split; ESS is the effective sample size of all chains together, and "
        "ESS/s its bulk per second of sampling, summed over chains. MCSE is the Monte Carlo "
        "standard error of the mean.</p>"
    )


def _meaning(summary: Summary) -> str:
    """Say what the scalars are."""
    if summary.n_clusters is not None:
        return (
            "None of these depends on how clusters are numbered. <b>mean</b>, <b>sd</b> and "
            "<b>quantile[q]</b> are those of a record under the random density, <b>density[y]</b> is that "
            "density at y, <b>tail[y]</b> and <b>cdf[y]</b> are the probabilities of values above y and up "
            "to it, <b>gini</b> is the Gini coefficient of a record cut to the public bounds. "
        )
    if summary.composition is not None:
        return (
            "<b>alpha</b> are the parameters of the Dirichlet distribution of a record, <b>E[x]</b> the "
            "expected shares, alpha over its sum. "
        )
    if any(name.startswith("count[") for name in summary.parameters):
        return (
            "<b>p[c]</b> is the probability of a category, <b>count[c]</b> the confidential number of "
            "records in it, which the release tells with noise. "
        )
    if any(density.group for density in summary.densities.values()):
        return (
            "None of these depends on how clusters are numbered. <b>mean</b>, <b>sd</b> and <b>quantile</b> "
            "are those of a record of the group under its random density, <b>group_share</b> is the "
            "probability that a record is of the group, <b>group_size</b> the confidential number of those "
            "that are, which the release tells with noise. "
        )
    if summary.distributions:
        return (
            "All are functionals of the random distribution of a record: its mean, standard deviation and "
            "quantiles, <b>tail[y]</b>, the probability of a value above y, and <b>probability[c]</b> of a "
            "category. "
        )
    return ""


def _little(value: Scalar) -> bool:
    return value.contraction is not None and value.contraction < LEARNT and value.beside_prior != "moved"


def _places(summary: Summary) -> str:
    """Say what predictions are of."""
    named = [f"{name} at {label}" for name, label in summary.labels.items() if name.startswith("prediction[")]
    return f"<p>{escape('; '.join(named))}.</p>" if named else ""


def _learnt(summary: Summary) -> str:
    """Say what contraction is, where there is any."""
    if all(value.contraction is None for value in summary.parameters.values()):
        return ""
    return (
        "<b>contraction</b> is the share of the prior's spread that the release took away, 1 less the "
        f"squared ratio of interquartile ranges: below {LEARNT:g} the prior speaks, unless it piles up "
        "elsewhere; well below 0 release and prior may be in conflict. "
    )


def _row(name: str, value: Scalar, per_second: float | None) -> str:
    quantiles = list(value.quantiles.values())
    cells = [
        *((number(x), False) for x in (value.mean, value.sd, quantiles[0], quantiles[-1])),
        (number(value.contraction, ".2f"), _little(value)),
        (number(value.mcse, ".2g"), False),
        (
            "&infin;" if value.stuck_apart else number(value.rhat, ".3f"),
            value.stuck_apart or (value.rhat or 0.0) > RHAT,
        ),
        (number(value.ess_bulk, ",.0f"), value.ess_bulk is not None and value.ess_bulk < ESS),
        (number(value.ess_tail, ",.0f"), value.ess_tail is not None and value.ess_tail < ESS),
        (rate(per_second), False),
    ]
    body = "".join(f'<td class="bad">{text}</td>' if bad else f"<td>{text}</td>" for text, bad in cells)
    return f'<tr><th scope="row">{escape(name)}</th>{body}</tr>'


def _least_known(summary: Summary) -> list[str]:
    """Return the scalars whose traces are drawn: all, or of many those with the smallest bulk ESS."""
    names = list(summary.series)
    if len(names) <= MOST_TRACES:
        return names
    sizes = {name: summary.parameters[name].ess_bulk for name in names}
    order = sorted(names, key=lambda name: np.inf if sizes[name] is None else float(sizes[name] or 0.0))
    kept = set(order[:MOST_TRACES])
    return [name for name in names if name in kept]


def _chosen(summary: Summary, names: list[str]) -> str:
    if len(names) == len(summary.series):
        return ""
    return (
        f'<p class="note">Of {len(summary.series)} scalars these are the {len(names)} with the smallest bulk '
        "ESS.</p>\n"
    )


def _traces(summary: Summary) -> str:
    shown = _least_known(summary)
    key = "".join(
        f'<li><span style="background:{colour}"></span>{escape(name)}</li>'
        for colour, name in plots.chain_legend(summary)
    )
    pairs = "".join(
        f"<figure>{image(plots.trace_figure(summary, name), f'Trace of {name}')}</figure>"
        f"<figure>{image(plots.rank_figure(summary, name), f'Ranks of {name} by chain')}</figure>"
        for name in shown
    )
    return (
        f'<h2>Traces and ranks</h2>\n{_chosen(summary, shown)}<ul class="key">{key}</ul>\n'
        f'<div class="pairs">{pairs}</div>\n'
        '<p class="note">Traces: each line joins the means of up to 150 stretches of one chain; the grey '
        "shade is the range of all chains. Ranks: each chain's share of the ranks, from the smallest draws "
        "(left) to the largest (right); chains that sample the same distribution stay near 1.</p>"
    )


def _provenance(summary: Summary) -> str:
    facts = dict(summary.provenance.facts) | ({"Prior": summary.prior} if summary.prior else {})
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    mechanism = json.dumps(summary.provenance.mechanism.stated(), indent=2, sort_keys=True)
    return (
        f'<h2>Provenance</h2>\n<table class="facts"><tbody>{rows}</tbody></table>\n'
        f"<h3>Mechanism of the release</h3>\n<pre>{escape(mechanism)}</pre>\n"
        f"<h3>Spec</h3>\n<pre>{escape(summary.provenance.spec)}</pre>"
    )
