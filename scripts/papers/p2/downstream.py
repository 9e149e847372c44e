"""Section 4.1 and Appendix C.1: inference from a release on the law behind the records. Table 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpmix.data.simulations import beta_grid_law
from papers import draw
from papers.p2.cells import FUNCTIONALS, Cell, Results, Size

__all__ = ["CELLS", "DRAW", "FUNCTIONALS", "KINDS", "table", "truths"]

_GRID = "snap: {step: 0.01, domain: [0.005, 0.995]}"
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dp": ("Dirichlet process, δ = 0.05 (53 records)", ("synthesis.delta=0.05",)),
    "dp-large": (
        "Dirichlet process, 400 records (δ = 0.28)",
        ("synthesis.delta=null", "synthesis.records=400"),
    ),
    "perturbed": (
        "noisy counts, ε = 1",
        (
            "mechanism={kind: perturbed_histogram, bins: 100, epsilon: 1.0, noise: laplace, "
            "domain: [0.0, 1.0]}",
        ),
    ),
    "perturbed-draws": (
        "1000 draws from noisy counts, ε = 1",
        (f"synthesis={{kind: perturbed_histogram, epsilon: 1.0, records: 1000, noise: laplace, {_GRID}}}",),
    ),
    "smoothed": (
        "64 draws, smoothed histogram, ε = 1",
        ("mechanism={kind: smoothed_histogram, bins: 100, epsilon: 1.0, draws: 64, domain: [0.0, 1.0]}",),
    ),
}


def name(kind: str) -> str:
    """Return the name of a cell."""
    return f"table2/{kind}"


def _cells(size: Size) -> list[Cell]:
    return [
        Cell(name(kind), "downstream.yaml", overrides, "downstream", size.replicates, rounds=size.rounds)
        for kind, (_, overrides) in KINDS.items()
    ]


def truths() -> dict[str, float]:
    """Return the functionals of the law that the records come from."""
    grid, weights = beta_grid_law()
    below = np.cumsum(weights)
    found = {"mean": float(grid @ weights), "tail[0.5]": float(weights[grid > 0.5].sum())}
    return found | {f"quantile[{q:g}]": float(grid[np.searchsorted(below, q)]) for q in (0.25, 0.5, 0.75)}


def table(results: Results) -> list[dict[str, Any]]:
    """Return a row for each kind of release and functional."""
    rows = []
    for kind in KINDS:
        result = results[name(kind)]
        for functional, truth in truths().items():
            found = [run["parameters"][functional] for run in result["rows"]]
            mean, lower, upper = (np.array([f[key] for f in found]) for key in ("mean", "lower", "upper"))
            seconds = np.array([run["seconds"] for run in result["rows"]])
            ess = np.array([f["ess"] or np.nan for f in found]) / seconds
            rows.append(
                {
                    "kind": kind,
                    "functional": functional,
                    "truth": truth,
                    "bias": float(np.mean(mean - truth)),
                    "rmse": float(np.sqrt(np.mean((mean - truth) ** 2))),
                    "coverage": float(np.mean((lower <= truth) & (truth <= upper))),
                    "length": float(np.mean(upper - lower)),
                    "seconds": float(np.median(seconds)),
                    "ess_per_second": float(np.nanmedian(ess)),
                    "released": result["release"]["released"],
                    "delta": result["release"]["delta"],
                    "replicates": len(found),
                }
            )
    return rows


def figure(results: Results, size: Size, folder: Path) -> None:
    """Errors and coverage of each functional, by kind of release."""
    rows = table(results)
    with draw.panels(
        folder / "table2.png",
        1,
        2,
        f"Table 2: posteriors given a release, {size.replicates} data sets",
        (4.0, 3.0),
    ) as (shown, axes):
        for number, (kind, (label, _)) in enumerate(KINDS.items()):
            own = [row for row in rows if row["kind"] == kind]
            place = np.arange(len(FUNCTIONALS)) + 0.12 * (number - 2)
            by_name = {row["functional"]: row for row in own}
            for panel, key in zip(axes[0], ("rmse", "coverage"), strict=True):
                values = [by_name[f][key] for f in FUNCTIONALS]
                panel.plot(place, values, "o", ms=4, color=draw.COLOURS[number], label=label)
        for panel, title in zip(
            axes[0], ("root mean squared error", "coverage of 95% intervals"), strict=True
        ):
            panel.set_xticks(range(len(FUNCTIONALS)), ["mean", "Q1", "median", "Q3", "Pr(X > 1/2)"])
            panel.set_title(title)
        axes[0, 0].set_ylim(bottom=0.0)
        axes[0, 1].set_ylim(-0.03, 1.05)
        axes[0, 1].axhline(0.95, color=draw.INK, lw=0.7, ls=":")
        draw.legend(shown, axes[0, 0], 2)
    draw.save_table(folder / "table2.csv", rows)


CELLS = {"table2": _cells}
DRAW = {"table2": figure}
