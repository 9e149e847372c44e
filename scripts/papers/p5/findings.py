"""What was published on data augmentation beside what came out here, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from papers.agreement import ENOUGH, RHAT, in_words
from papers.kept import tag
from papers.p5 import real as p5real
from papers.p5 import simulated as p5simulated
from papers.p5.cells import EPSILONS, Results, Size

__all__ = ["PUBLISHED", "text"]

PUBLISHED = {  # Table 1
    0.1: (1.0, 1.0, 1.0, 0.36, 1.0),
    0.3: (0.97, 1.0, 1.0, 0.59, 1.0),
    1.0: (0.94, 0.99, 0.97, 0.83, 0.98),
    3.0: (0.95, 0.91, 0.97, 0.89, 0.93),
    10.0: (0.92, 0.88, 0.94, 0.92, 0.9),
}
_VERDICTS = {
    "fig1": "the means go from the prior's to those given the data: yes. Acceptance above e^-eps, its mean "
    "far above: yes",
    "fig2": "the same trend: yes for two coefficients; the third first goes the other way. Acceptance "
    "is above e^-eps: yes",
}


def text(results: Results, size: Size, folder: Path, done: list[str]) -> str:
    """Return how the chains agree, and a part for each figure and table that is drawn."""
    parts = [_agreement(results, size)]
    parts += [_figure(results, figure) for figure in p5simulated.FIGURES if figure in done]
    parts += [_coverage(results, table) for table in p5simulated.TABLES if table in done]
    data = [data for data in p5real.SUBJECTS if data in done]
    if data:
        parts.append(_real(results, data, size, folder))
    return "\n".join(parts)


def _list(values: Iterable[float], form: str = ".3f") -> str:
    return ", ".join(format(float(value), form) for value in values)


def _agreement(results: Results, size: Size) -> str:
    spent = sum(result["cpu"] for result in results.values())
    lines = []
    for figure in (*p5simulated.FIGURES, *p5simulated.TABLES, *p5real.SUBJECTS):
        own = {name: r for name, r in results.items() if name.startswith(f"{figure}/")}
        for plain in (False, True):
            chosen = [r for name, r in own.items() if name.endswith("/algorithm1") == plain]
            told = [row for r in chosen for row in r["rows"]]
            if told:
                epsilons = f"{len(chosen)} of {_points(figure)}"
                lines.append(f"| {figure}{', Algorithm 1' * plain} | {epsilons} | {in_words(told)} |\n")
    return (
        f"Figures 1 and 2: {size.releases} releases of one data set at each epsilon; Table 1: "
        f"{size.replicates} data sets. A posterior is settled where R-hat is below {RHAT} and the effective "
        f"sample size {ENOUGH:.0f} or more of all entries shown; chains of Algorithm 1 are as long as each "
        f"other. All took {spent / 60:.0f} minutes of processor time. Lists go with "
        f"eps = {_list(EPSILONS, 'g')} in order.\n\n"
        f"| figure or table | epsilons run | chains |\n|---|---|---|\n{''.join(lines)}"
    )


def _points(figure: str) -> int:
    subject = p5real.SUBJECTS.get(figure)
    return len(EPSILONS if subject is None else subject.epsilons)


def _figure(results: Results, figure: str) -> str:
    subject = p5simulated.FIGURES[figure]
    found = p5simulated.means(results, figure)
    own, prior = p5simulated.confidential_mean(subject), p5simulated.prior_mean(subject)
    near = np.sqrt(((found - own) ** 2).sum(axis=2)).mean(axis=1)
    mean = p5simulated.acceptance(results, figure, "mean")
    least = p5simulated.acceptance(results, figure, "least")
    lines = [
        f"| {subject.parameter}[{i}] | {_list(means)} | {prior[i]:.3f} | {own[i]:.3f} |\n"
        for i, means in enumerate(found.mean(axis=1).T)
    ]
    clamped = ""
    if figure == "fig2":
        given = p5simulated.confidential_mean(subject, clamped=True)
        clamped = f" Given the clamped data the means are {_list(given)}."
    return (
        f"### Figure {figure[-1]}: {subject.what}\n\n"
        "| posterior mean of | over releases | prior | given the data |\n|---|---|---|---|\n"
        f"{''.join(lines)}\n"
        f"Distance of the vector from that given the data {_list(near)}.{clamped} Acceptance of Algorithm 1: "
        f"mean {_list(mean.mean(axis=1))}; least of all sweeps {_list(least.min(axis=1), '.2f')}; e^-eps "
        f"{_list(np.exp(-np.array(EPSILONS)), '.3g')}. Published and found: {_VERDICTS[figure]}.\n"
    )


def _coverage(results: Results, table: str) -> str:
    subject, _ = p5simulated.TABLES[table]
    covered, length = p5simulated.coverage(results, table)
    true, runs = p5simulated.truth(subject), len(results[p5simulated.name(table, EPSILONS[0])]["rows"])
    names = " | ".join(f"{subject.parameter}[{i}] = {value:.3f}" for i, value in enumerate(true))
    lines = []
    for e, epsilon in enumerate(EPSILONS):
        entries = [
            f"{share:.2f}" + (f" ({PUBLISHED[epsilon][i]:.2f})" if table == "table1" else "")
            for i, share in enumerate(covered[e])
        ]
        lines.append(f"| {epsilon:g} | {' | '.join(entries)} | {_list(length[e], '.2f')} |\n")
    what = {"table1": "in brackets as published", "table1_exact": "noise by the exact sensitivity, 9.375/eps"}
    return (
        f"### `{table}`: coverage of 90% intervals, {subject.what}, {runs} data sets"
        + (f", {what[table]}" if table in what else "")
        + f"\n\n| eps | {names} | mean lengths |\n|---|{'---|' * len(true)}---|\n{''.join(lines)}"
    )


def _real(results: Results, data: list[str], size: Size, folder: Path) -> str:
    lines = []
    for name in data:
        table = p5real.table(results, name, folder)
        for label in p5real.SUBJECTS[name].labels:
            rows = [row for row in table if row["what"] == label]
            lines.append(f"| {name} | {label} | {_given(rows[0])} | {' | '.join(_columns(rows))} |\n")
    return (
        "### Real data (not in the paper)\n\n"
        f"{size.real} releases at each epsilon, drawn from the operating system's randomness: they differ "
        "from run to run. Root mean squared error of the posterior mean, and mean length of the 90% "
        "intervals.\n\n"
        "| data | what | given the data | eps | error | length |\n|---|---|---|---|---|---|\n"
        + "".join(lines)
    )


def _given(row: dict[str, Any]) -> str:
    return "" if isinstance(row["confidential"], list) else f"{row['confidential']:.3g}"


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    epsilons = ", ".join(tag(row["epsilon"]) for row in rows)
    return [epsilons, *(_list((row[key] for row in rows), ".2g") for key in ("rmse", "length"))]
