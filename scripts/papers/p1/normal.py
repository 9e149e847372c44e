"""Section 4.1: three normals under Laplace noise. Figures 1, 2, 9, 10 and 11."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1.cells import Cell, Results, Size, tag

__all__ = ["CELLS", "DRAW", "EPSILONS", "SAMPLERS", "SIZES", "cell", "name", "values"]

DATA = "three_gaussians"
SIZES = (50, 200, 500, 1000)
EPSILONS = (1.0, 2.0, 5.0, 10.0, 50.0)
SAMPLERS = {  # the paper's own, and the posterior that they all have, settled by the sampler over counts
    "neal5": ("Neal 5, m = 1", ("sampler.kind=private_neal5", "sampler.auxiliary=1")),
    "neal5x5": ("Neal 5, m = 5", ("sampler.kind=private_neal5", "sampler.auxiliary=5")),
    "slice": ("slice, proposals", ("sampler.kind=private_slice", "sampler.latent=metropolis")),
    "posterior": ("settled (counts)", ("sampler.kind=counts",)),
}
SETTLE = {"posterior": 72_000}  # sweeps at most, of those that are to settle


def name(n: int, epsilon: float, sampler: str, replicate: int = 0) -> str:
    """Return the name of a cell."""
    return f"normal/n{n}/eps{tag(epsilon)}/{sampler}/r{replicate}"


def cell(n: int, epsilon: float, sampler: str, replicate: int = 0) -> Cell:
    """Return a cell of section 4.1; replicates differ in data, noise and chains."""
    overrides = (f"data.n={n}", f"mechanism.epsilon={tag(epsilon)}", *SAMPLERS[sampler][1])
    return Cell(
        name(n, epsilon, sampler, replicate),
        "laplace_normal.yaml",
        overrides,
        SETTLE.get(sampler, 0),
        replicate,
        baseline=replicate == 0 and n == 200 and sampler == "posterior",
    )


def labelled(n: int, epsilon: float, replicate: int) -> Cell:
    """Return a cell of Figure 10: Neal 8, which has allocations and mixes best of those that have."""
    overrides = (f"data.n={n}", f"mechanism.epsilon={tag(epsilon)}", "sampler.kind=neal8")
    called = name(n, epsilon, "labels", replicate)
    return Cell(called, "laplace_normal.yaml", overrides, 24_000, replicate, clustering=True)


def _cells(size: Size, sizes: Iterable[int], samplers: Iterable[str]) -> list[Cell]:
    return [
        cell(n, epsilon, sampler, r)
        for r in range(size.replicates)
        for n in sizes
        for epsilon in EPSILONS
        for sampler in samplers
    ]


def _cells10(size: Size) -> list[Cell]:
    return [labelled(n, e, r) for r in range(size.replicates) for n in SIZES for e in EPSILONS]


def values(results: Results, n: int, epsilon: float, sampler: str, key: str) -> list[float]:
    """Return a number of all replicates of a cell, without those that have none."""
    found = []
    for result in draw.replicates(results, name(n, epsilon, sampler)):
        value = result["acceptance"]["mean"] if key == "acceptance" else _figure(result, key)
        if value is not None:
            found.append(float(value))
    return found


def _figure(result: dict[str, Any], key: str) -> float | None:
    if key == "sweep_ms":
        return float(1e3 * result["seconds"] / (result["sweeps"] * result["chains"]))
    if key == "ess_per_1000":
        ess = result["clusters_ess"]
        kept = result["sweeps"] - result["sweeps"] // 2
        return None if ess is None else float(1e3 * ess / (kept * result["chains"]))
    return None if result[key] is None else float(result[key])


def figure1(results: Results, size: Size, folder: Path) -> None:
    """Densities at n = 200 by epsilon, and the Hellinger distance to the prior."""
    rows: list[dict[str, Any]] = []
    with draw.panels(folder / "fig1.png", 2, 3, "Figure 1: n = 200, Laplace noise") as (figure, axes):
        for panel, epsilon in zip(axes.ravel(), EPSILONS, strict=False):
            for number, (sampler, (label, _)) in enumerate(SAMPLERS.items()):
                result = results[name(200, epsilon, sampler)]
                draw.curve(panel, result, label, number)
                rows += draw.density_rows(_bare(result), n=200, epsilon=epsilon, sampler=sampler)
            result = results[name(200, epsilon, "posterior")]
            draw.curve(panel, result, "deconvolution KDE", 4, "baseline")
            rows += [
                {**row, "sampler": "deconvolution_kde", "mean": y, "lower": None, "upper": None}
                for row, y in zip(
                    draw.density_rows(_bare(result), n=200, epsilon=epsilon, sampler=""),
                    result["density"]["baseline"],
                    strict=True,
                )
            ]
            draw.true_line(panel, result, DATA, 2.2)
            panel.set_title(f"ε = {tag(epsilon)}")
        last = axes[1, 2]
        for number, (sampler, _) in enumerate(SAMPLERS.items()):
            heights = [results[name(200, e, sampler)]["hellinger"] for e in EPSILONS]
            last.plot(EPSILONS, heights, "o-", ms=3, lw=1.0, color=draw.COLOURS[number])
        last.set(xscale="log", ylim=(0, None), xlabel="ε", title="Hellinger distance to the prior")
        last.set_xticks(EPSILONS, [tag(e) for e in EPSILONS], minor=False)
        last.minorticks_off()
        draw.legend(figure, axes[0, 0], 3)
    draw.save_table(folder / "fig1.csv", rows)


def _bare(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result whose density has no baseline, so that the tables have the same columns."""
    return {"density": {k: v for k, v in result["density"].items() if k != "baseline"}}


def figure2(results: Results, size: Size, folder: Path) -> None:
    """Draw acceptance, effective sample size and time of a sweep, medians over replicates."""
    rows = [
        {
            "n": n,
            "epsilon": e,
            "sampler": sampler,
            "replicates": len(values(results, n, e, sampler, "clusters_mean")),
            **{
                key: median(found) if (found := values(results, n, e, sampler, key)) else None
                for key in ("acceptance", "ess_per_1000", "sweep_ms", "clusters_mean", "clusters_rhat")
            },
            "exp_minus_eps": np.exp(-e),
        }
        for n in SIZES
        for e in EPSILONS
        for sampler in SAMPLERS
    ]
    titles = ("acceptance rate", "ESS per 1000 sweeps", "ms a sweep")
    with draw.panels(folder / "fig2.png", 3, 4, "Figure 2: samplers under Laplace noise", sharex=True) as (
        figure,
        axes,
    ):
        for line, key in enumerate(("acceptance", "ess_per_1000", "sweep_ms")):
            for column, n in enumerate(SIZES):
                panel = axes[line, column]
                for number, (sampler, (label, _)) in enumerate(SAMPLERS.items()):
                    heights = [r[key] for r in rows if r["n"] == n and r["sampler"] == sampler]
                    other = key == "acceptance" and sampler == "posterior"  # of other proposals
                    if None not in heights and not other:
                        panel.plot(
                            EPSILONS, heights, "o-", ms=3, lw=1.1, color=draw.COLOURS[number], label=label
                        )
                    else:
                        panel.plot([], [], "o-", ms=3, color=draw.COLOURS[number], label=label)
                if line == 0:
                    panel.plot(
                        EPSILONS, np.exp(-np.array(EPSILONS)), "--", color=draw.INK, lw=1, label="exp(−ε)"
                    )
                    panel.set(title=f"n = {n}", ylim=(-0.03, 1.03))
                else:
                    panel.set_yscale("log")
                panel.set_xscale("log")
                panel.set_xticks(EPSILONS, [tag(e) for e in EPSILONS])
                panel.minorticks_off()
            axes[line, 0].set_ylabel(titles[line])
        draw.legend(figure, axes[0, 0])
    draw.save_table(folder / "fig2.csv", rows)


def figure9(results: Results, size: Size, folder: Path) -> None:
    """Densities of the slice sampler with bands, by n and epsilon."""
    rows: list[dict[str, Any]] = []
    with draw.panels(
        folder / "fig9.png",
        len(SIZES),
        len(EPSILONS),
        "Figure 9: settled posterior, mean and 95% bands",
        sharex=True,
    ) as (figure, axes):
        for line, n in enumerate(SIZES):
            for column, epsilon in enumerate(EPSILONS):
                result, panel = results[name(n, epsilon, "posterior")], axes[line, column]
                draw.band(panel, result, 1)
                draw.curve(panel, result, "posterior mean", 1)
                draw.true_line(panel, result, DATA, 2.5)
                panel.set_title(f"n = {n}, ε = {tag(epsilon)}")
                rows += draw.density_rows(_bare(result), n=n, epsilon=epsilon)
        draw.legend(figure, axes[0, 0])
    draw.save_table(folder / "fig9.csv", rows)


def figure10(results: Results, size: Size, folder: Path) -> None:
    """Draw the adjusted Rand index with the truth, median and range over replicates."""
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        for e in EPSILONS:
            found = [
                results[c.name]["ari"]
                for c in _cells10(size)
                if c.name in results and c.name.startswith(name(n, e, "labels")[:-1])
            ]
            point, mean = ([a[key] for a in found] for key in ("vi", "mean"))
            low, mid, high = np.quantile(point, [0.025, 0.5, 0.975])
            row = {"n": n, "epsilon": e, "replicates": len(found), "median": mid, "low": low, "high": high}
            rows.append({**row, "posterior_mean_median": median(mean)})
    with draw.panels(
        folder / "fig10.png",
        1,
        4,
        "Figure 10: adjusted Rand index of the point estimate (VI loss)",
        sharey=True,
    ) as (figure, axes):
        for panel, n in zip(axes[0], SIZES, strict=True):
            chosen = [r for r in rows if r["n"] == n]
            panel.fill_between(
                EPSILONS,
                [r["low"] for r in chosen],
                [r["high"] for r in chosen],
                color=draw.COLOURS[1],
                alpha=0.22,
                lw=0,
                label="95% of replicates",
            )
            panel.plot(
                EPSILONS, [r["median"] for r in chosen], "o-", ms=3, color=draw.COLOURS[1], label="median"
            )
            means = [r["posterior_mean_median"] for r in chosen]
            panel.plot(EPSILONS, means, "s:", ms=3, color=draw.COLOURS[0], label="mean over the posterior")
            panel.set(title=f"n = {n}", xscale="log", ylim=(-0.05, 1.05), xlabel="ε")
            panel.set_xticks(EPSILONS, [tag(e) for e in EPSILONS])
            panel.minorticks_off()
        draw.legend(figure, axes[0, 0])
    draw.save_table(folder / "fig10.csv", rows)


def figure11(results: Results, size: Size, folder: Path) -> None:
    """Posterior of the number of clusters."""
    rows: list[dict[str, Any]] = []
    with draw.panels(
        folder / "fig11.png", len(SIZES), len(EPSILONS), "Figure 11: number of clusters", sharey=True
    ) as (figure, axes):
        for line, n in enumerate(SIZES):
            for column, epsilon in enumerate(EPSILONS):
                panel = axes[line, column]
                for number, sampler in enumerate(("neal5", "slice", "posterior")):
                    counts = results[name(n, epsilon, sampler)]["n_clusters"]
                    support = np.array(counts["support"])
                    shift = 0.28 * (number - 1)
                    colour, label = draw.COLOURS[number], SAMPLERS[sampler][0]
                    panel.bar(support + shift, counts["probability"], 0.28, color=colour, label=label)
                    rows += [
                        {"n": n, "epsilon": epsilon, "sampler": sampler, "clusters": k, "probability": p}
                        for k, p in zip(support.tolist(), counts["probability"], strict=True)
                    ]
                panel.set_title(f"n = {n}, ε = {tag(epsilon)}")
                panel.set_xlim(0.3, 20.7)
        draw.legend(figure, axes[0, 0])
    draw.save_table(folder / "fig11.csv", rows)


def distances(results: Results, n: int, sampler: str) -> list[float]:
    """Return the Hellinger distances of the posterior means from the truth, by epsilon."""
    return [truth.distance(results[name(n, e, sampler)], DATA) for e in EPSILONS]


CELLS = {
    "fig1": lambda size: _cells(size, (200,), SAMPLERS),
    "fig2": lambda size: _cells(size, SIZES, SAMPLERS),
    "fig9": lambda size: _cells(size, SIZES, ("posterior",)),
    "fig10": _cells10,
    "fig11": lambda size: _cells(size, SIZES, ("neal5", "slice", "posterior")),
}
DRAW = {"fig1": figure1, "fig2": figure2, "fig9": figure9, "fig10": figure10, "fig11": figure11}
