"""The numbers that the published findings on compositional data are held against, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from papers.agreement import ENOUGH, RHAT, in_words
from papers.kept import tag
from papers.p4 import days as p4days
from papers.p4.cells import METHODS, Results, Size
from papers.p4.simulated import ALPHAS, CHOSEN, EPSILONS, OPEN, SIZES, alphas_at, ratio, values

__all__ = ["text"]

Row = tuple[str, str]


def text(results: Results, size: Size, done: list[str]) -> str:
    """Return a table of findings and the numbers that came out, for what was drawn."""
    rows: list[Row] = _agreement(results)
    for figure, key, what in (("fig2", "error_alpha", "alpha"), ("fig3", "error_mean", "E[x]")):
        if figure in done:
            rows += _errors(results, key, what)
    if "fig3" in done:
        rows += _coverage(results)
    for table in ("table2_days", "table2"):
        if table in done:
            rows += _tests(results, table)
    spent = sum(result["cpu"] for result in results.values())
    head = (
        f"Section 4.1: {size.runs} data sets of each kind; {size.draws} draws of bootstrap and ABC. A "
        f"posterior is settled where R-hat is below {RHAT} and the effective sample size {ENOUGH:.0f} or "
        f"more of the logarithms of all alphas. Table 2: {size.releases} releases. Lists go with "
        f"eps = {', '.join(tag(e) for e in EPSILONS)} in order. Ratios are of medians over data sets, in the "
        f"geometric mean over {len(ALPHAS)} alphas (n = {SIZES[1]}: the first {size.large}). Releases of "
        "simulated data are simulated; those of Table 2 are drawn by the operating system, and "
        f"differ from run to run. {spent / 60:.0f} minutes of processor time.\n\n"
        "| what | numbers |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {numbers} |\n" for what, numbers in rows)


def _agreement(results: Results) -> list[Row]:
    """Return how the chains of each method agree."""
    rows = []
    for method in METHODS:
        found = [row[method] for result in results.values() for row in result["rows"] if method in row]
        told = [one for one in found if "settled" in one]
        if told:
            rows.append((f"{method}: chains", in_words(told)))
    return rows


def _list(found: Iterable[float], form: str = ".3g") -> str:
    return ", ".join(format(float(value), form) for value in found)


def _errors(results: Results, key: str, what: str) -> list[Row]:
    rows = []
    for n in SIZES:
        for method in METHODS:
            if method in OPEN or method == "DPMCMC p1":
                continue
            found = [ratio(results, method, key, n, epsilon) for epsilon in EPSILONS]
            rows.append((f"MSE of {what}, n = {n}, {method} over DPMCMC p1", _list(found)))
        found = [ratio(results, "DPMCMC p1", key, n, epsilon, "MCMC p1") for epsilon in EPSILONS]
        rows.append((f"MSE of {what}, n = {n}, DPMCMC p1 over MCMC p1 (given the data)", _list(found)))
    for method in ("DPBoots", "DPMCMC p1"):
        found = [
            np.exp(
                np.mean(
                    [
                        np.log(np.median(values(results, method, key, i, SIZES[1], e)))
                        - np.log(np.median(values(results, method, key, i, SIZES[0], e)))
                        for i in alphas_at(results, SIZES[1])
                    ]
                )
            )
            for e in EPSILONS
        ]
        rows.append((f"MSE of {what}, {method}: n = {SIZES[1]} over n = {SIZES[0]}", _list(found)))
    return rows


def _coverage(results: Results) -> list[Row]:
    rows = []
    for n in SIZES:
        for method in CHOSEN[1:]:
            found = [
                [np.median(values(results, method, "coverage", i, n, e)) for i in alphas_at(results, n)]
                for e in EPSILONS
            ]
            words = "; ".join(f"{np.median(f):.3f} ({min(f):.3f} to {max(f):.3f})" for f in found)
            rows.append((f"coverage of 95% predictive ellipsoids, n = {n}, {method}", words))
    return rows


def _tests(results: Results, table: str) -> list[Row]:
    rows = []
    for row in p4days.table(results, table):
        chance = "" if row["probability"] == "" else f"; Pr(H0) {row['probability']:.3g}"
        words = f"{row['female']:.4f}, {row['male']:.4f}; rejected {row['rejected']:.2f}{chance}"
        rows.append((f"{table}, {row['method']}, {row['activity']}: women, men", words))
    return rows
