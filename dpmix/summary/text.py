"""The headline figures of a summary as text for a terminal."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from dpmix.summary.shares import Composition

if TYPE_CHECKING:
    from dpmix.summary.result import Summary

WIDTH = 96
_CATEGORIES = 5  # named on the terminal
LOSS_NAMES = {"vi": "variation of information", "binder": "Binder loss"}
_HEADER = ("", "mean", "sd", "{lower}", "{upper}", "contraction", "R-hat", "ESS bulk", "ESS tail", "ESS/s")
_EXPENDABLE = ("ESS tail", "ESS/s")  # left out of a table that would be too wide; JSON and files have them


def headline(summary: Summary) -> str:
    """Return clusters, density, diagnostics, guarantee and warnings, in at most 96 columns."""
    lines = [*_clusters(summary), *_partition(summary), *_density(summary), *_distribution(summary)]
    lines += _composition(summary) or _beyond(summary)
    if summary.acceptance.mean is not None:
        bound = summary.acceptance.bound
        floor = "" if bound is None else f" (cannot fall below e^-epsilon = {bound:.3g})"
        lines.append(f"Acceptance: {summary.acceptance.mean:.3f}{floor}")
    lines += [*([""] if lines else []), *_table(summary), *_rows(summary), ""]
    if summary.prior:
        lines += [*_wrapped(f"Prior: {summary.prior[0].lower()}{summary.prior[1:]}", indent="  "), ""]
    if summary.check.overall is not None or summary.check.reason:
        lines += [*_wrapped(f"Check: {summary.check.in_words()}", indent="  "), ""]
    if summary.variance_shares.in_words():
        text = f"Share of the posterior variance: {summary.variance_shares.in_words()}"
        lines += [*_wrapped(text, indent="  "), ""]
    if summary.loo is not None:
        found = summary.loo
        text = (
            f"Leave-one-out: expected log predictive density {found.elpd:.1f} (standard error "
            f"{found.se:.1f}), {found.p_loo:.1f} effective parameters, largest Pareto k "
            f"{found.pareto_k_max:.2f}"
        )
        lines += [*_wrapped(text, indent="  "), ""]
    lines += _predictions(summary)
    lines += _wrapped(summary.provenance.guarantee)
    if summary.remarks:
        lines += ["", "Warnings:"]
        for text in summary.warnings:
            lines += _wrapped(f"- {text}", indent="  ")
    return "\n".join(lines)


def figure(value: float | None, form: str = ".4g") -> str:
    """Write a number, or a dash where there is none."""
    return "-" if value is None else f"{value:{form}}"


def rate(value: float | None) -> str:
    """Write a rate: three digits, or all of a large number."""
    return figure(value, ",.0f" if value is not None and value >= 100 else ".3g")


def percent(share: float) -> str:
    """Write a share in percent, one that is next to nothing as such."""
    return "<0.01%" if 0.0 < share < 1e-4 else f"{100 * share:.2g}%"


def _clusters(summary: Summary) -> list[str]:
    counts = summary.n_clusters
    if counts is None:
        return []
    mode = int(np.argmax(counts.probability))
    return [
        f"Clusters: {counts.support[mode]} with probability {counts.probability[mode]:.2f}; "
        f"between {counts.support[0]} and {counts.support[-1]} in all draws"
    ]


def _distribution(summary: Summary) -> list[str]:
    """Name the most probable categories of each column that has them; of numbers the table says enough."""
    lines = []
    for found in summary.distributions.values():
        if not found.is_numeric:
            first = np.argsort(-found.mean, kind="stable")[:_CATEGORIES]
            listed = ", ".join(
                f"{found.at[i]} {found.mean[i]:.3g} ({found.lower[i]:.3g} to {found.upper[i]:.3g})"
                for i in first
            )
            more = len(found.at) - len(first)
            rest = f", and {more} more" if more else ""
            what = "Categories" if summary.composition is None else "Expected shares E[x]"
            text = f"{what}{found.about}, with {100 * summary.level:g}% {_intervals(summary)}: {listed}{rest}"
            lines += _wrapped(text, indent="  ")
    return lines


def _density(summary: Summary) -> list[str]:
    lines = []
    for name, density in summary.densities.items():
        peak = int(np.argmax(density.mean))
        distance = density.hellinger_from_prior
        apart = "" if distance is None else f"; Hellinger distance from the prior {distance:.2f}"
        text = (
            f"Density{_about(density.group, name)}: highest at {density.grid[peak]:.4g} "
            f"({density.mean[peak]:.3g}, {100 * summary.level:g}% band {density.lower[peak]:.3g} to "
            f"{density.upper[peak]:.3g}){apart}"
        )
        lines += _wrapped(text, indent="  ")
    if summary.hellinger is not None and "" not in summary.densities:
        lines.append(f"All columns together: Hellinger distance from the prior {summary.hellinger:.2f}")
    return lines


def _about(group: str, column: str) -> str:
    """Say what a density is of, to go on with; empty where there is only one."""
    return f" in {group}" if group else f" of {column}" if column else ""


def _intervals(summary: Summary) -> str:
    return "confidence intervals" if summary.source == "bootstrap" else "intervals"


def _composition(summary: Summary) -> list[str]:
    """Say what stands behind the figures of compositions, how many entries are censored, and the truth."""
    lines = []
    if summary.source == "bootstrap":
        lines += _wrapped(
            "Draws are of a parametric bootstrap, not of a posterior: intervals and ellipsoids are "
            "confidence regions, and no prior is used.",
            indent="  ",
        )
    for found in summary.compositions.values():
        lines += _censored(found)
        lines += _truth(found, summary.level)
    return lines


def _censored(found: Composition) -> list[str]:
    censoring = found.censoring
    first = np.argsort(-censoring.share, kind="stable")[:_CATEGORIES]
    listed = ", ".join(f"{found.components[j]} {percent(censoring.share[j])}" for j in first)
    about = f" in {found.group}" if found.group else ""
    return _wrapped(
        f"Censored below {censoring.threshold:g}{about}, under the fit: {percent(censoring.share.mean())} of "
        f"all entries ({listed})",
        indent="  ",
    )


def _beyond(summary: Summary) -> list[str]:
    """Say what share of the records lies beyond the bounds of each of several columns."""
    shares = {name: share for name, share in summary.beyond_bounds.items() if name}
    listed = ", ".join(f"{name} {percent(share)}" for name, share in shares.items())
    text = f"Latent records beyond the public bounds, under the fit: {listed}"
    return _wrapped(text, indent="  ") if shares else []


def _truth(found: Composition, level: float) -> list[str]:
    truth = found.truth
    if truth is None:
        return []
    held = [("alpha", truth.covers_alpha), ("E[x]", truth.covers_mean)]
    ellipsoids = ", ".join(f"{'holds' if inside else 'misses'} {name}" for name, inside in held)
    return _wrapped(
        f"Truth: the {100 * level:g}% ellipsoid {ellipsoids}; that of a record holds "
        f"{100 * truth.record_coverage:.1f}% of records; mean squared error of alpha "
        f"{truth.squared_error_alpha:.3g}, of E[x] {truth.squared_error_mean:.3g}",
        indent="  ",
    )


def _partition(summary: Summary) -> list[str]:
    found = summary.clustering
    if found is None:
        return []
    estimate, ball = found.estimate, found.estimate.ball
    bounds = (ball.vertical_upper.n_clusters, ball.vertical_lower.n_clusters)
    text = (
        f"Partition: {estimate.n_clusters} cluster{'s' * (estimate.n_clusters != 1)} with the least expected "
        f"{LOSS_NAMES[estimate.loss]} ({estimate.expected_loss:.3g}); the {100 * ball.level:g}% ball of "
        f"radius {ball.radius:.3g} holds "
        f"partitions of {bounds[0]} to {bounds[1]} clusters; expected ARI {estimate.expected_ari:.2f}"
    )
    if estimate.ari is not None:
        text += f"; ARI with the true labels {estimate.ari:.2f}"
    if len(found.kept) < found.records:
        text += f"; of a subsample of {len(found.kept):,} of the {found.records:,} records"
    if found.draws < found.of:
        text += f" (from {found.draws:,} of {found.of:,} draws)"
    return _wrapped(text, indent="  ")


def _table(summary: Summary) -> list[str]:
    keys = list(next(iter(summary.parameters.values())).quantiles)
    rows = [tuple(name.format(lower=_percent(keys[0]), upper=_percent(keys[-1])) for name in _HEADER)]
    for name, value in summary.parameters.items():
        quantiles = list(value.quantiles.values())
        rows.append(
            (
                name,
                *(figure(x) for x in (value.mean, value.sd, quantiles[0], quantiles[-1])),
                figure(value.contraction, ".2f"),
                figure(value.rhat, ".3f"),
                figure(value.ess_bulk, ".0f"),
                figure(value.ess_tail, ".0f"),
                rate(summary.ess_per_second[name]),
            )
        )
    columns = list(zip(*rows, strict=True))
    if all(cell == "-" for cell in columns[_HEADER.index("contraction")][1:]):
        columns.pop(_HEADER.index("contraction"))
    for name in _EXPENDABLE:
        if sum(max(map(len, column)) + 2 for column in columns) - 2 > WIDTH:
            columns = [column for column in columns if column[0] != name]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in zip(*columns, strict=True)
    ]


def _predictions(summary: Summary) -> list[str]:
    """Show what is predicted of the first records."""
    found = summary.predictions
    if found is None:
        return []
    columns = list(zip(*found.shown(), strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in found.shown()
    ]
    return [*_wrapped(f"Predictions: {found.what}", indent="  "), *lines, *filter(None, [found.more]), ""]


def _percent(level: str) -> str:
    return f"{100 * float(level):g}%"


def _rows(summary: Summary) -> list[str]:
    """Say what predictions are of."""
    named = [f"{name} at {label}" for name, label in summary.labels.items() if name.startswith("prediction[")]
    return ["", *_wrapped("; ".join(named), indent="  ")] if named else []


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
