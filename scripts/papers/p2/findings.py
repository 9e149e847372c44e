"""The numbers that the published findings of the paper on synthesis are held against, as Markdown."""

from __future__ import annotations

from dpmix.synthesis.urn_guarantee import global_delta, largest_records, theorem_delta, theorem_records
from papers.agreement import ENOUGH, RHAT, in_words
from papers.p2 import convergence as p2convergence
from papers.p2 import downstream as p2downstream
from papers.p2 import utility as p2utility
from papers.p2.cells import MEASURES, Results, Size

__all__ = ["text"]

Row = tuple[str, str]


def text(results: Results, size: Size, done: list[str]) -> str:
    """Return a table of findings and the numbers that came out, for what was drawn."""
    rows = _records()
    if "fig1" in done:
        rows += _convergence(results, size)
    rows += [row for figure, data in _DATA.items() if figure in done for row in _utility(results, data)]
    if "table2" in done:
        rows += _downstream(results) + _agreement(results)
    spent = sum(result["cpu"] for result in results.values())
    head = (
        f"Figure 1: {size.distances} runs a point, n up to {size.sizes[-1]:,}; Table 1: {size.runs} releases "
        f"of each kind; Table 2: {size.replicates} data sets. Releases of Figure 1 and Table 2 are "
        "simulated. Those of Table 1 are drawn from the operating system's randomness, and differ from run "
        f"to run. A posterior is settled where R-hat is below {RHAT} and the effective sample size "
        f"{ENOUGH:.0f} or more of all functionals. {spent / 60:.0f} minutes of processor time.\n\n"
        "| what | numbers |\n|---|---|\n"
    )
    return head + "".join(f"| {what} | {numbers} |\n" for what, numbers in rows)


def _agreement(results: Results) -> list[Row]:
    """Return how the chains of Table 2 agree."""
    return [
        (f"4.1, {label}: chains", in_words(results[p2downstream.name(kind)]["rows"], "draws"))
        for kind, (label, _) in p2downstream.KINDS.items()
    ]


_DATA = {"table1": "incomes", "table1_visits": "visits"}


def _records() -> list[Row]:
    rows = []
    for n, theta, epsilon, delta in ((1000, 10, 0.1, 0.05), (1000, 10, 1.0, 0.05), (99_917, 10, 0.1, 0.005)):
        m = largest_records(n, theta, delta)
        exact, theorem = float(global_delta(n, theta, m)), theorem_delta(n, theta, m, epsilon)
        rows.append(
            (
                f"records at n = {n}, concentration {theta}, eps = {epsilon:g}, delta = {delta:g}",
                f"Theorem 2 {theorem_records(n, theta, epsilon, delta)}, dpmix {m} (delta exactly "
                f"{exact:.5f}, by Theorem 2 {theorem:.5f})",
            )
        )
    return rows


def _convergence(results: Results, size: Size) -> list[Row]:
    rows = []
    for scenario, label in p2convergence.SCENARIOS.items():
        found, error = p2convergence.slope(results, size, scenario)
        means = p2convergence.distances(results, size, scenario)
        records = [results[p2convergence.name(n, scenario)]["release"]["released"] for n in size.sizes]
        rows.append(
            (
                f"4.2, {label}: slope of log W1 on log n (standard error); W1 at the smallest and largest n",
                f"{found:.3f} ({error:.3f}); {means[0]:.4f} ({records[0]} records), {means[-1]:.4f} "
                f"({records[-1]})",
            )
        )
    return rows


def _utility(results: Results, data: str) -> list[Row]:
    rows = []
    for row in p2utility.table(results, data):
        label = p2utility.KINDS.get(row["kind"], row["kind"])
        numbers = ", ".join(f"{row[name]:.3f}" for name in MEASURES)
        if row["w1_mean"] is not None:
            numbers += f"; W1 {row['w1_mean']:.4f} (sd {row['w1_sd']:.4f}); repeats {row['repeats']:.3f}"
        rows.append((f"4.3, {data}, {label}, {row['records']} records: mean, sd, quartiles", numbers))
    return rows


def _downstream(results: Results) -> list[Row]:
    rows = []
    for row in p2downstream.table(results):
        label = p2downstream.KINDS[row["kind"]][0]
        rows.append(
            (
                f"4.1, {label}, {row['functional']} (truth {row['truth']:.4f}): bias, RMSE, coverage, "
                "length; seconds, ESS/s",
                f"{row['bias']:.4f}, {row['rmse']:.4f}, {row['coverage']:.2f}, {row['length']:.4f}; "
                f"{row['seconds']:.2f}, {row['ess_per_second']:.0f}",
            )
        )
    return rows
