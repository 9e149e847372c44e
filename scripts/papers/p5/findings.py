"""The numbers that the published findings of the paper on data augmentation are held against, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from papers.agreement import ENOUGH, RHAT, in_words
from papers.p5 import real as p5real
from papers.p5 import simulated as p5simulated
from papers.p5.cells import EPSILONS, Results, Size

__all__ = ["PUBLISHED", "text"]

Row = tuple[str, str]
PUBLISHED = {  # Table 1
    0.1: (1.0, 1.0, 1.0, 0.36, 1.0),
    0.3: (0.97, 1.0, 1.0, 0.59, 1.0),
    1.0: (0.94, 0.99, 0.97, 0.83, 0.98),
    3.0: (0.95, 0.91, 0.97, 0.89, 0.93),
    10.0: (0.92, 0.88, 0.94, 0.92, 0.9),
}


def text(results: Results, size: Size, folder: Path, done: list[str]) -> str:
    """Return a table of findings and the numbers that came out, for what was drawn."""
    rows: list[Row] = _agreement(results, done)
    for figure in p5simulated.FIGURES:
        if figure in done:
            rows += _means(results, figure) + _acceptance(results, figure)
    for table in p5simulated.TABLES:
        if table in done:
            rows += _coverage(results, table)
    for data in p5real.SUBJECTS:
        if data in done:
            rows += _real(results, data, folder)
    spent = sum(result["cpu"] for result in results.values())
    head = (
        f"Figures 1 and 2: {size.releases} releases of one data set at each epsilon; Table 1: "
        f"{size.replicates} data sets. A posterior is settled where R-hat is below {RHAT} and the effective "
        f"sample size {ENOUGH:.0f} or more of all entries shown. Lists go with "
        f"epsilon = {_list(EPSILONS, 'g')} in order. Releases of the simulations are simulated; those of the "
        f"real data ({size.real} at each epsilon) are drawn from the operating system's randomness, and "
        f"differ from run to run. {spent / 60:.0f} minutes of processor time.\n\n"
        "| what | numbers |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {numbers} |\n" for what, numbers in rows)


def _agreement(results: Results, done: list[str]) -> list[Row]:
    """Return how the chains agree, by figure and table; those of Algorithm 1 are as long as each other."""
    rows = []
    for figure in done:
        own = {name: r for name, r in results.items() if name.startswith(f"{figure}/")}
        for plain in (False, True):
            told = [
                row for name, r in own.items() if name.endswith("/algorithm1") == plain for row in r["rows"]
            ]
            if told:
                rows.append((f"{figure}{', Algorithm 1' * plain}: chains", in_words(told)))
    return rows


def _list(values: Iterable[float], form: str = ".3f") -> str:
    return ", ".join(format(float(value), form) for value in values)


def _means(results: Results, figure: str) -> list[Row]:
    subject = p5simulated.FIGURES[figure]
    found = p5simulated.means(results, figure)
    own, prior = p5simulated.confidential_mean(subject), p5simulated.prior_mean(subject)
    rows = []
    for i in range(len(own)):
        what = (
            f"{figure}, posterior mean of {subject.parameter}[{i}], over releases (sd); prior, given the data"
        )
        each = zip(found[:, :, i].mean(axis=1), found[:, :, i].std(axis=1, ddof=1), strict=True)
        rows.append(
            (what, f"{', '.join(f'{m:.3f} ({s:.3f})' for m, s in each)}; {prior[i]:.3f}, {own[i]:.3f}")
        )
    near = np.sqrt(((found - own) ** 2).sum(axis=2)).mean(axis=1)
    away = np.sqrt(((found - prior) ** 2).sum(axis=2)).mean(axis=1)
    words = f"{_list(away)}; {_list(near)}"
    return [*rows, (f"{figure}, mean distance to the prior mean; to the mean given the data", words)]


def _acceptance(results: Results, figure: str) -> list[Row]:
    mean = p5simulated.acceptance(results, figure, "mean")
    least = p5simulated.acceptance(results, figure, "least")
    numbers = (
        f"{_list(mean.mean(axis=1))} (least chain {_list(mean.min(axis=1))}); {_list(least.min(axis=1))}; "
        f"{_list(np.exp(-np.array(EPSILONS)))}"
    )
    return [(f"{figure}, acceptance of Algorithm 1: mean; least sweep of all chains; e^-eps", numbers)]


def _coverage(results: Results, table: str) -> list[Row]:
    covered, length = p5simulated.coverage(results, table)
    rows = []
    for e, epsilon in enumerate(EPSILONS):
        known = f" (published {_list(PUBLISHED[epsilon], '.2f')})" if table == "table1" else ""
        what = f"{table}, eps = {epsilon:g}: coverage of 90% intervals; mean length"
        rows.append((what, f"{_list(covered[e], '.2f')}{known}; {_list(length[e])}"))
    return rows


def _real(results: Results, data: str, folder: Path) -> list[Row]:
    rows = []
    for row in p5real.table(results, data, folder):
        what = f"{data}, eps = {row['epsilon']:g}, {row['what']}: error of the mean, length of the intervals"
        words = f"{row['rmse']:.3g}, {row['length']:.3g}; {row['held']:.0%} hold the value given the data"
        if data != "anes":
            words += f"; mean {row['mean']:.4g} ({row['confidential']:.4g} given the data)"
        rows.append((what, words))
    return rows
