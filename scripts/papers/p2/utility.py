"""Section 4.3: what releases keep of incomes, and of doctor's visits. Table 1, Figures 2 and 3."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmix.synthesis.urn_guarantee import largest_records, theorem_records
from papers import draw
from papers.kept import CONFIGS
from papers.p2.cells import MEASURES, Cell, Results, Size

__all__ = ["CELLS", "DRAW", "EARNINGS", "KINDS", "prepare", "recorded", "table"]

EARNINGS = "atus_weekly_earnings_2003_2016.csv.gz"
TOP = 2885.0  # dollars a week: the survey's top code, rounded up
CONCENTRATION, EPSILON, DELTA = 10, 1, 0.005
N = {"incomes": 99_917, "visits": 20_190}  # public
KINDS = {
    "exact": "Dirichlet process, records of dpmix",
    "theorem": "Dirichlet process, records of Theorem 2",
    "perturbed": "perturbed histogram",
    "smoothed": "smoothed histogram",
    "perturbed-all": "perturbed histogram, n records",
    "perturbed-small": "perturbed histogram, n records, δ = 1e-6",
}
_TICKS = ("DP,\ndpmix", "DP,\nThm 2", "perturbed", "smoothed", "perturbed,\nn records", "the same,\nδ = 1e-6")
_SHARED = ("perturbed", "smoothed")  # with as many records as the exact guarantee gives

Floats = NDArray[np.float64]


def prepare(folder: Path, data: Path) -> str | None:
    """Write the logged incomes that the spec wants, in `folder`; say why not where they are not there."""
    target = _file(folder)
    source = data / EARNINGS
    if target.exists():
        return None
    if not source.is_file():
        return (
            f"{source} is not there, and does not ship: give its folder by --data, or by the variable "
            "DPMIX_DATA"
        )
    with gzip.open(source, "rt", newline="") as file:
        dollars = np.array([float(row["weekly_earnings"]) for row in csv.DictReader(file)])
    target.parent.mkdir(parents=True, exist_ok=True)
    logged = np.log(dollars) / math.log(TOP)
    target.write_text("income\n" + "".join(f"{value!r}\n" for value in logged.tolist()))
    return None


def _file(folder: Path) -> Path:
    return (folder / "data" / "incomes.csv").resolve()


def name(data: str, kind: str) -> str:
    """Return the name of a cell."""
    return f"table1/{data}/{kind}"


def recorded(data: str) -> dict[str, int]:
    """Return how many records the exact guarantee and Theorem 2 admit."""
    n = N[data]
    return {
        "exact": largest_records(n, CONCENTRATION, DELTA),
        "theorem": theorem_records(n, CONCENTRATION, EPSILON, DELTA),
    }


def _settings(data: str, kind: str) -> tuple[str, ...]:
    most = recorded(data)
    if kind in most:
        return (f"synthesis.records={most[kind]}", f"synthesis.delta={DELTA}")
    records = most["exact"] if kind in _SHARED else N[data]
    delta = 1e-6 if kind == "perturbed-small" else DELTA
    cells = "bins: 100" if data == "incomes" else "snap: {step: 1}"
    form = "kind: smoothed_histogram" if kind == "smoothed" else "kind: perturbed_histogram, noise: gaussian"
    return (f"synthesis={{{form}, {cells}, epsilon: {EPSILON}, delta: {delta}, records: {records}}}",)


def _cells(data: str, size: Size, folder: Path) -> list[Cell]:
    place = (f"data.path={_file(folder)}",) if data == "incomes" else ()
    return [
        Cell(
            name(data, kind),
            f"{data}.yaml",
            (*place, *_settings(data, kind)),
            "utility",
            size.runs,
            kind in ("exact", *_SHARED),
        )
        for kind in KINDS
    ]


def table(results: Results, data: str) -> list[dict[str, Any]]:
    """Return a row for the confidential records, and one for each kind: means over the releases."""
    first = results[name(data, "exact")]["confidential"]
    rows = [{"kind": "confidential", "records": first["n"], "runs": 1, **{m: first[m] for m in MEASURES}}]
    rows[0] |= {"epsilon": None, "delta": None, "w1_mean": None, "w1_sd": None, "repeats": None}
    for kind in KINDS:
        result = results[name(data, kind)]
        release, runs = result["release"], result["rows"]
        w1 = np.array([run["w1"] for run in runs])
        rows.append(
            {
                "kind": kind,
                "records": release["released"],
                "runs": len(runs),
                **{m: float(np.mean([run[m] for run in runs])) for m in MEASURES},
                "epsilon": release["epsilon"],
                "delta": release["delta"],
                "w1_mean": float(w1.mean()),
                "w1_sd": float(w1.std(ddof=1)),
                "repeats": float(np.mean([run["repeats"] for run in runs])),
            }
        )
    return rows


def _figure(data: str, results: Results, folder: Path) -> None:
    stem = "table1" if data == "incomes" else "table1_visits"
    what = "log weekly earnings (US, 2003 to 2016)" if data == "incomes" else "doctor's visits a year (RAND)"
    with draw.panels(folder / f"{stem}.png", 1, 2, f"Table 1's data: {what}", (4.0, 3.0)) as (figure, axes):
        left, right = axes[0]
        shown = [kind for kind in KINDS if results[name(data, kind)]["records"] is not None]
        if data == "incomes":
            rows = _densities(left, results, shown, folder)
        else:
            rows = _shares(left, results, shown)
        draw.legend(figure, left, 4)
        found = [[run["w1"] for run in results[name(data, kind)]["rows"]] for kind in KINDS]
        parts = right.boxplot(found, widths=0.6, patch_artist=True, medianprops={"color": draw.INK})
        for number, box in enumerate(parts["boxes"]):
            box.set(facecolor=draw.COLOURS[number], alpha=0.5, linewidth=0.7)
        right.set_xticks(range(1, len(KINDS) + 1), _TICKS, fontsize=7)
        right.set_yscale("log")
        right.set_title("W1 to the confidential records")
    draw.save_table(folder / f"{stem}.csv", table(results, data))
    draw.save_table(folder / f"{stem}_curves.csv", rows)


def _densities(panel: Any, results: Results, shown: list[str], folder: Path) -> list[dict[str, Any]]:
    """Draw kernel density estimates (Scott's rule) of the first release of each kind."""
    grid = np.linspace(0.3, 1.02, 241)
    confidential = np.clip(np.loadtxt(_file(folder), skiprows=1), 0.0, 1.0)
    curves = {"confidential": _estimate(confidential, grid)}
    curves |= {kind: _estimate(np.array(results[name("incomes", kind)]["records"]), grid) for kind in shown}
    for number, (kind, values) in enumerate(curves.items()):
        style = draw.STYLES[number]
        panel.plot(grid, values, color=_colour(kind), ls=style, lw=1.2, label=_short(kind))
    panel.set_title("kernel density estimates of one release")
    panel.set_ylim(bottom=0.0)
    return [{"income": x, **{k: v[i] for k, v in curves.items()}} for i, x in enumerate(grid)]


def _estimate(values: Floats, grid: Floats) -> Floats:
    """Return the kernel density estimate of many values, by way of a fine histogram."""
    edges = np.linspace(0.0, 1.0, 2001)
    counts, _ = np.histogram(values, edges)
    width = values.std(ddof=1) * len(values) ** -0.2
    centres = 0.5 * (edges[1:] + edges[:-1])
    kept = counts > 0
    kernels = stats.norm.pdf(grid[:, None], centres[kept], width)
    return np.asarray(kernels @ counts[kept] / len(values))


def _shares(panel: Any, results: Results, shown: list[str]) -> list[dict[str, Any]]:
    """Draw the shares of 0, 1, 2, .. visits in one release of each kind."""
    path = CONFIGS / "data" / "randhie_visits.csv"
    visits = np.arange(13)
    data = {"confidential": np.loadtxt(path, skiprows=1)}
    data |= {kind: np.array(results[name("visits", kind)]["records"]) for kind in shown}
    shares = {kind: [float(np.mean(v == x)) for x in visits] for kind, v in data.items()}
    for number, (kind, values) in enumerate(shares.items()):
        place = visits + 0.2 * (number - 1.5)
        panel.bar(place, values, 0.2, color=_colour(kind), label=_short(kind))
    panel.set_title("share of each number of visits, one release")
    panel.set_xlabel("visits")
    return [{"visits": int(x), **{k: v[i] for k, v in shares.items()}} for i, x in enumerate(visits)]


def _colour(kind: str) -> str:
    return draw.COLOURS[list(KINDS).index(kind)] if kind in KINDS else draw.INK


def _short(kind: str) -> str:
    return {"exact": "Dirichlet process"}.get(kind, KINDS.get(kind, kind))


CELLS = {
    "table1": lambda size, folder: _cells("incomes", size, folder),
    "table1_visits": lambda size, folder: _cells("visits", size, folder),
}
DRAW = {
    "table1": lambda results, size, folder: _figure("incomes", results, folder),
    "table1_visits": lambda results, size, folder: _figure("visits", results, folder),
}
