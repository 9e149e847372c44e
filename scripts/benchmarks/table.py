"""The report of a benchmark as a page of tables."""

from __future__ import annotations

import datetime
import math
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.cells import EPSILONS, LARGE, PLAIN, POINTS, SAMPLERS, Cell

__all__ = ["figure", "growth", "machine", "markdown", "span", "table"]

Result = dict[str, Any]

NOTES = """\
Written by `{command}` on {date}, on {cpu} ({cores} cores, {system}), Python {python}, {named}. The load
average was {before} before and {after} after: a cpu/wall below 1 a thread means that others had the
processor.

Data: the three-Gaussian mixture of Beraha, Favaro and Rao (2024), section 4.1, on [-10, 10]; Dirichlet
process with concentration 1, base measure NIG(0, 0.1, 3, 3). Each row is a process of its own; compiling
is not timed. Two chains one after the other, one thread each; one chain and no effective sample size at n
= {large}.

*ns a record-update* is the time of a sweep that saves nothing, over n. *Components in play* is the mean
number whose densities a record is offered. The *floor* is as many uniforms and library `exp` and `erfc`
calls in a bare compiled loop, timed in the same process: per record 2 uniforms; per component 1 exp and 2
erfc under Laplace noise, 1 exp without noise or with latent values in the state. It counts allocations
alone: the update of the parameters, which evaluates the density of every record a few times more, and all
bookkeeping come on top. *Times the floor* divides processor time by processor time.

*ESS/s* is the bulk effective sample size of both chains together per second of one thread, saving of
every sweep included. *Published* is the fastest published code in that cell, for the number of clusters:
the C++ of Beraha, Favaro and Rao (2024) under noise, the best public C++ sampler of mixtures without.
Where *smallest ESS* is below about 100, a row's ESS/s are rough.
"""
OTHERS_NOTES = """\
Every row is one run; its seconds are of processor time, which other programs on the machine lengthen
less. *truncated*: Gaussian noise of sd (20 / eps) sqrt(2 log(1.25 / 0.1)) on the same data, as in
section 4.3 of the same paper, truncated base measure; *published* is its C++, the same sampler. All
samplers there have the same posterior. The rest have a beta kernel with a, b ~ Gamma(2, 2), on the
three-beta mixture of section 4.2: *beta* under Laplace noise, *wavelet-J* with the exact calibration,
*binomial-M*, *smoothed* a histogram of 16 bins; and *pairs*, two columns with a bivariate normal kernel
and noise of standard deviation 1 on each.

The *floor* is that of one exp a component in play, also where a density costs much more: sums over
cells or quadrature nodes under beta kernels, incomplete gamma functions in `neal3` and `split_merge`.
So *times the floor* says what a kernel costs besides.
"""
ELSEWHERE = """\
Mechanisms, synthetic records, other models and whole commands: [performance.md](performance.md).
"""
QUICK = "**A quick run**: about a second a row; effective sample sizes are rough.\n"


def machine() -> dict[str, Any]:
    """Describe the machine and the versions of what counts for speed."""
    info = Path("/proc/cpuinfo")
    names = [line for line in info.read_text().splitlines() if "model name" in line] if info.exists() else []
    return {
        "cpu": names[0].split(":")[1].strip() if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("dpmix", "numpy", "numba", "llvmlite", "arviz-stats")},
        "load": [round(load, 2) for load in os.getloadavg()],
        "date": datetime.date.today().isoformat(),
    }


def growth(results: list[Result]) -> float | None:
    """Return p of the least-squares fit log(seconds a sweep) = c + p log n, or None from one size."""
    points = [(math.log(r["n"]), -math.log(r["sweeps_per_second"])) for r in results]
    mean_x = sum(x for x, _ in points) / max(len(points), 1)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * y for x, y in points) / spread if spread > 0.0 else None


def figure(value: float | None, digits: int = 2) -> str:
    """Return a number to so many digits, a dash for none."""
    if value is None:
        return "–"
    if abs(value) >= 10.0**digits or value == 0.0:
        return f"{value:,.0f}"
    return f"{value:.{max(digits - 1 - math.floor(math.log10(abs(value))), 0)}f}"


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table."""
    return [
        "| " + " | ".join(head) + " |",
        "|" + "|".join("---" if i < 1 else "---:" for i in range(len(head))) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def _speed(results: list[Result]) -> list[str]:
    head = [
        "sampler",
        "n",
        "threads",
        "ns a record-update",
        "components in play",
        "floor, ns",
        "times the floor",
    ]
    head += ["ns with saving", "sweeps/s", "peak MB", "cpu/wall"]
    rows = []
    for r in results:
        row = [
            r["sampler"],
            f"{r['n']:,}",
            str(r["threads"]),
            figure(r["nanoseconds"], 3),
            figure(r["in_play"]),
        ]
        row += [figure(r["floor"], 3), figure(r["over_floor"]), figure(r.get("saved_nanoseconds"), 3)]
        row += [figure(r["sweeps_per_second"], 3), figure(r["peak_mb"], 3), f"{r['cpu_over_wall']:.2f}"]
        rows.append(row)
    return table(head, rows)


def _mixing(results: list[Result]) -> list[str]:
    head = ["sampler", "n", "clusters (mean)", "ESS/s clusters", "published", "times published"]
    head += [f"ESS/s density at {point:g}" for point in POINTS] + ["smallest ESS", "largest R-hat"]
    rows = []
    for r in results:
        if "ess" not in r:
            continue
        speed = r["ess_per_second"]
        row = [r["sampler"], f"{r['n']:,}", figure(r["clusters"]), figure(speed["clusters"])]
        row += [figure(r["published"]), figure(r["over_published"])]
        row += [figure(speed[f"density_{point:g}"]) for point in POINTS]
        ess = [value for value in r["ess"].values() if value is not None]
        rhat = [value for value in r["rhat"].values() if value is not None]
        row += [figure(min(ess, default=None)), f"{max(rhat):.3f}" if rhat else "–"]
        rows.append(row)
    return table(head, rows)


def _others(results: list[Result]) -> list[str]:
    head = ["setting", "sampler", "n", "ns a record-update", "components in play", "floor, ns"]
    head += ["times the floor", "clusters (mean)"]
    head += ["ESS/s clusters", "published", "times published", "ESS", "R-hat"]
    rows = []
    for r in results:
        setting = r["setting"] + (f", eps = {r['epsilon']:g}" if r["epsilon"] else "")
        row = [setting, r["sampler"], f"{r['n']:,}", figure(r["cpu_nanoseconds"], 3)]
        row += [
            figure(r["in_play"]),
            figure(r["floor"], 3),
            figure(r["over_floor"]),
        ]
        rhat = r["rhat"]["clusters"]
        row += [
            figure(r["clusters"]),
            figure(r["ess_per_second"]["clusters"]),
            figure(r["published"]),
            figure(r["over_published"]),
        ]
        row += [figure(r["ess"]["clusters"]), f"{rhat:.3f}" if rhat else "–"]
        rows.append(row)
    return table(head, rows)


def _title(epsilon: float | None) -> str:
    return "No noise" if epsilon is None else f"Laplace noise, eps = {epsilon:g}"


def _growth(results: list[Result]) -> list[str]:
    rows = []
    for name in SAMPLERS:
        row = [name]
        for epsilon in (*EPSILONS, None):
            own = [
                r for r in results if r["sampler"] == name and r["epsilon"] == epsilon and r["threads"] == 1
            ]
            exponent = growth(own)
            sizes = f" (n to {max(r['n'] for r in own):,})" if own else ""
            row.append("–" if exponent is None else f"{exponent:.2f}{sizes}")
        rows.append(row)
    return table(["sampler", *(_title(epsilon) for epsilon in (*EPSILONS, None))], rows)


def _threads(results: list[Result]) -> list[str]:
    alone = {Cell(r["sampler"], r["epsilon"], r["n"]).name: r for r in results if r["threads"] == 1}
    lines = []
    for r in results:
        base = alone.get(Cell(r["sampler"], r["epsilon"], r["n"]).name)
        if r["threads"] > 1 and base is not None:
            gain = r["sweeps_per_second"] / base["sweeps_per_second"]
            lines.append(
                f"- {r['sampler']}, {_title(r['epsilon']).lower()}, n = {r['n']:,}: {r['threads']} threads "
                f"do {gain:.2f} times the sweeps of one."
            )
    return ["## Threads within one chain", "", *lines, ""] if lines else []


def _notes(command: str, report: dict[str, Any]) -> str:
    where = report["machine"]
    notes = NOTES.format(
        command=command,
        **where,
        named=", ".join(f"{name} {value}" for name, value in where["versions"].items()),
        before=where["load"][0],
        after=report["load_after"][0],
        large=f"{LARGE:,}",
    )
    return notes + ("\n" + QUICK if report["quick"] else "")


def markdown(report: dict[str, Any], command: str) -> str:
    """Write the page: machine, how to run again, two tables a mechanism (speed, mixing), growth with n."""
    results = [r for r in report["cells"] if r["setting"] == PLAIN]
    others = [r for r in report["cells"] if r["setting"] != PLAIN]
    noisy = [r for r in results if r["densities"] == "laplace"]
    few = sorted(r["floor_few"] for r in noisy)
    many = sorted(r["floor_many"] for r in noisy)
    lines = ["# Benchmarks of the samplers of mixtures", "", ELSEWHERE, _notes(command, report)]
    if few:
        lines += [
            f"Floor under Laplace noise (medians): {few[len(few) // 2]:.0f} ns with one component, "
            f"{many[len(many) // 2]:.0f} ns with 11.",
            "",
        ]
    for epsilon in (*EPSILONS, None):
        own = [r for r in results if r["epsilon"] == epsilon]
        if own:
            lines += [f"## {_title(epsilon)}", "", *_speed(own), "", *_mixing(own), ""]
    lines += _threads(results)
    if others:
        lines += ["## Other kernels and releases", "", OTHERS_NOTES, *_others(others), ""]
    if not results:
        return "\n".join(lines)
    lines += [
        "## Growth with n",
        "",
        "Exponent p in seconds a sweep ~ n^p, one thread. Components in play grow with n too.",
        "",
        *_growth(results),
        "",
    ]
    return "\n".join(lines)


def span(values: Sequence[float]) -> str:
    """Return the smallest and the largest in two digits, as "0.5 to 12"; one where they are alike."""
    low, high = figure(min(values)), figure(max(values))
    return low if low == high else f"{low} to {high}"
