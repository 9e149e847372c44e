"""Section 4.2: the distance between synthetic and confidential records against their number. Figure 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmix.synthesis.urn_guarantee import theorem_records
from papers import draw
from papers.p2.cells import Cell, Results, Size

__all__ = ["CELLS", "DRAW", "SCENARIOS", "distances", "slope", "table"]

CONCENTRATION, EPSILON = 10, 1
DELTAS = (0.01, 0.05, 0.1)
SCENARIOS = {
    **{f"delta{d:g}": f"δ = {d:g}, records of dpmix" for d in DELTAS},
    **{f"theorem{d:g}": f"δ = {d:g}, records of Theorem 2" for d in DELTAS},
    "asymptotic": "n / log n records",
}


def name(n: int, scenario: str) -> str:
    """Return the name of a cell."""
    return f"fig1/n{n}/{scenario}"


def _settings(n: int, scenario: str) -> tuple[str, ...]:
    if scenario == "asymptotic":  # the share of records goes to 0, and delta with it
        most = math.floor(n / math.log(n))
        return ("synthesis.delta=null", "synthesis.epsilon=null", f"synthesis.records={most}")
    delta = scenario.removeprefix("delta").removeprefix("theorem")
    if scenario.startswith("delta"):
        return (f"synthesis.delta={delta}",)
    records = theorem_records(n, CONCENTRATION, EPSILON, float(delta))
    return (f"synthesis.delta={delta}", f"synthesis.records={records}")


def _cells(size: Size) -> list[Cell]:
    return [
        Cell(
            name(n, scenario),
            "convergence.yaml",
            (f"data.n={n}", *_settings(n, scenario)),
            "distances",
            size.distances,
        )
        for n in size.sizes
        for scenario in SCENARIOS
    ]


def distances(results: Results, size: Size, scenario: str) -> list[float]:
    """Return the mean distance at each number of confidential records."""
    return [float(np.mean(results[name(n, scenario)]["w1"])) for n in size.sizes]


def slope(results: Results, size: Size, scenario: str) -> tuple[float, float]:
    """Return the slope of log W1 on log n by least squares, and its standard error from that of the means."""
    x = np.log(size.sizes)
    found = [np.array(results[name(n, scenario)]["w1"]) for n in size.sizes]
    means = np.array([values.mean() for values in found])
    errors = np.array([values.std(ddof=1) / np.sqrt(values.size) for values in found]) / means
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return float(weights @ np.log(means)), float(np.sqrt((weights**2 * errors**2).sum()))


def table(results: Results, size: Size) -> list[dict[str, Any]]:
    """Return a row for each point."""
    rows = []
    for scenario in SCENARIOS:
        for n in size.sizes:
            result = results[name(n, scenario)]
            w1, release = np.array(result["w1"]), result["release"]
            rows.append(
                {
                    "scenario": scenario,
                    "n": n,
                    "records": release["released"],
                    "delta": release["delta"],
                    "runs": w1.size,
                    "w1_mean": w1.mean(),
                    "w1_se": w1.std(ddof=1) / np.sqrt(w1.size),
                    "root_records_times_w1": w1.mean() * math.sqrt(release["released"]),
                }
            )
    return rows


def figure1(results: Results, size: Size, folder: Path) -> None:
    """Mean distances against n, both logarithmic."""
    n = np.array(size.sizes, dtype=float)
    with draw.panels(
        folder / "fig1.png", 1, 2, "Figure 1: W1 between synthetic and confidential records", (3.6, 3.0)
    ) as (figure, axes):
        left, right = axes[0]
        for number, delta in enumerate(DELTAS):
            _line(left, results, size, f"delta{delta:g}", number)
            _line(right, results, size, f"theorem{delta:g}", number)
        for panel in (left, right):
            _line(panel, results, size, "asymptotic", 3)
            top = 1.4 * max(distances(results, size, s)[0] for s in SCENARIOS)
            panel.plot(n, top * np.sqrt(n[0] / n), color=draw.INK, lw=0.8, ls=":", label="slope -1/2")
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xlabel("confidential records n")
        left.set_ylabel("mean W1")
        left.set_title("records by the exact guarantee")
        right.set_title("records by Theorem 2 at ε = 1")
        low, high = left.get_ylim()
        right.set_ylim(low, high)
        handles, labels = left.get_legend_handles_labels()
        named = [label.removesuffix(", records of dpmix") for label in labels]
        figure.legend(handles, named, loc="outside lower center", ncols=5)
    draw.save_table(folder / "fig1.csv", table(results, size))


def _line(panel: Any, results: Results, size: Size, scenario: str, number: int) -> None:
    means = np.array(distances(results, size, scenario))
    values = [np.array(results[name(n, scenario)]["w1"]) for n in size.sizes]
    half = np.array([1.96 * v.std(ddof=1) / np.sqrt(v.size) for v in values])
    style: Sequence[Any] = draw.STYLES
    panel.errorbar(
        size.sizes,
        means,
        half,
        color=draw.COLOURS[number],
        ls=style[number],
        lw=1.2,
        marker="o",
        ms=2.5,
        label=SCENARIOS[scenario],
    )


CELLS = {"fig1": _cells}
DRAW = {"fig1": figure1}
