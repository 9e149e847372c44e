"""Section 4.2: three betas under wavelet and Laplace noise. Figures 3 and 12."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1.cells import Cell, Results, Size, tag

__all__ = ["CELLS", "DATA", "DRAW", "EPSILONS", "MECHANISMS", "SAMPLERS", "name", "table"]

DATA = "three_betas"
EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
LEVELS = (2, 4, 6)
MECHANISMS = {
    **{f"paper{j}": f"wavelet, J = {j}, paper's scale" for j in LEVELS},
    "laplace": "Laplace",
    **{f"exact{j}": f"wavelet, J = {j}, exact scale" for j in LEVELS},
}
# Gamma(2, 2) is shape and rate by the paper's Appendix B; read as shape and scale it lets narrow kernels in
_SCALE = "model.base={a_shape: 2.0, a_rate: 0.5, b_shape: 2.0, b_rate: 0.5}"
SAMPLERS = {
    "rate": "settled, Gamma(2, rate 2)",
    "scale": "settled, Gamma(2, scale 2)",
    "neal5": "Neal 5, Gamma(2, rate 2)",
}


def name(mechanism: str, epsilon: float, sampler: str, replicate: int = 0) -> str:
    """Return the name of a cell."""
    return f"beta/{mechanism}/eps{tag(epsilon)}/{sampler}/r{replicate}"


def _settling(mechanism: str, epsilon: float, sampler: str) -> tuple[str, int]:
    """Return what samples a posterior, and its longest chains.

    The sampler over counts costs six to ten times as much a sweep as Neal 8 on 250 records. It pays under
    much noise, and where single records do not leave a mode: under little noise and a prior against narrow
    kernels.
    """
    if mechanism != "laplace":
        return "neal8", 8_000 if mechanism.endswith("6") else 24_000
    if epsilon <= 10.0:
        return "counts", 8_000
    return ("counts", 2_000) if sampler == "rate" else ("neal8", 8_000)


def _cell(mechanism: str, epsilon: float, sampler: str, replicate: int) -> Cell:
    if sampler == "neal5":
        kind, longest = "private_neal5", 0
    else:
        kind, longest = _settling(mechanism, epsilon, sampler)
    overrides = [f"mechanism.epsilon={tag(epsilon)}", f"sampler.kind={kind}"]
    if sampler == "scale":
        overrides.append(_SCALE)
    if mechanism != "laplace":
        overrides += [f"mechanism.calibration={mechanism[:-1]}", f"mechanism.levels={mechanism[-1]}"]
    spec = "laplace_beta.yaml" if mechanism == "laplace" else "wavelet_beta.yaml"
    called = name(mechanism, epsilon, sampler, replicate)
    return Cell(called, spec, tuple(overrides), longest, replicate)


def _cells3(size: Size) -> list[Cell]:
    """Return the posteriors under both readings of the base measure; what is not in the paper once."""
    return [
        _cell(mechanism, epsilon, sampler, replicate)
        for replicate in range(size.replicates)
        for mechanism in MECHANISMS
        if replicate == 0 or "exact" not in mechanism
        for sampler in ("scale", "rate")
        if sampler == "scale" or "exact" not in mechanism
        for epsilon in EPSILONS
    ]


def _cells12(size: Size) -> list[Cell]:
    """Return the runs whose acceptance Figure 12 shows; what is not in the paper once."""
    return [
        _cell(mechanism, epsilon, "neal5", replicate)
        for replicate in range(size.replicates)
        for mechanism in MECHANISMS
        if replicate == 0 or "exact" not in mechanism
        for epsilon in EPSILONS
    ]


def table(results: Results) -> list[dict[str, Any]]:
    """Return a row a run: what is known of the density, and how the chains agree."""
    return [
        {
            "mechanism": mechanism,
            "epsilon": epsilon,
            "sampler": sampler,
            "data_set": result["replicate"] + 1,
            "scale": result["mechanism"]["scale"][0],
            "actual_epsilon": result["guarantee"]["epsilon"],
            "acceptance": result["acceptance"]["mean"],
            "acceptance_bound": result["acceptance"]["bound"],
            "hellinger_to_truth": truth.distance(result, DATA),
            "hellinger_to_prior": result["hellinger"],
            "edge_mass": truth.edge_mass(result),
            "modes": " ".join(f"{x:.2f}" for x in truth.modes(result)),
            "clusters_mean": result["clusters_mean"],
            "rhat": result["rhat"],
        }
        for mechanism in MECHANISMS
        for epsilon in EPSILONS
        for sampler in SAMPLERS
        for result in draw.replicates(results, name(mechanism, epsilon, sampler))
    ]


def figure3(results: Results, size: Size, folder: Path) -> None:
    """Densities by mechanism and epsilon."""
    rows: list[dict[str, Any]] = []
    shown = {
        mechanism: label
        for mechanism, label in MECHANISMS.items()
        if any(name(mechanism, e, "scale") in results for e in EPSILONS)
    }
    title = "Figure 3: three betas, n = 250, first data set"
    with draw.panels(folder / "fig3.png", len(shown), len(EPSILONS), title, sharex=True) as (figure, axes):
        for line, (mechanism, label) in enumerate(shown.items()):
            for column, epsilon in enumerate(EPSILONS):
                panel = axes[line, column]
                for number, sampler in enumerate(("rate", "scale")):
                    result = results.get(name(mechanism, epsilon, sampler))
                    if result is None:
                        continue
                    if sampler == "scale":
                        draw.band(panel, result, number)
                        draw.true_line(panel, result, DATA, 1.6)
                    draw.curve(panel, result, SAMPLERS[sampler], number)
                    rows += draw.density_rows(result, mechanism=mechanism, epsilon=epsilon, sampler=sampler)
                panel.set_title(f"ε = {tag(epsilon)}" if line == 0 else "")
                if not panel.lines:
                    panel.set_axis_off()  # its runs are not there
            axes[line, 0].set_ylabel(label.replace(", paper", ",\npaper").replace(", exact", ",\nexact"))
        draw.legend(figure, axes[0, 0])
    draw.save_table(folder / "fig3.csv", rows)


def figure12(results: Results, size: Size, folder: Path) -> None:
    """Draw the acceptance rates of Neal 5 beside the bound exp(-epsilon)."""
    rows = [row for row in table(results) if row["sampler"] == "neal5"]
    with draw.panels(
        folder / "fig12.png", 1, 3, "Figure 12: acceptance of Neal 5, three betas", (3.0, 2.4), sharey=True
    ) as (figure, axes):
        for panel, kind, title in zip(
            axes[0],
            ("paper", "exact", "laplace"),
            ("wavelet, paper's scale", "wavelet, exact scale", "Laplace"),
            strict=True,
        ):
            for number, j in enumerate(LEVELS):
                mechanism = kind if kind == "laplace" else f"{kind}{j}"
                if kind == "laplace" and j != LEVELS[0]:
                    continue
                own = [r for r in rows if r["mechanism"] == mechanism]
                heights = [median(r["acceptance"] for r in own if r["epsilon"] == e) for e in EPSILONS]
                label, shade = (f"J = {j}", number) if kind != "laplace" else ("Laplace", 3)
                panel.plot(EPSILONS, heights, "o-", ms=3, color=draw.COLOURS[shade], label=label)
            panel.plot(EPSILONS, np.exp(-np.array(EPSILONS)), "--", color=draw.INK, lw=1, label="exp(−ε)")
            panel.set(title=title, xscale="log", xlabel="ε", ylim=(-0.03, 1.03))
            panel.set_xticks(EPSILONS, [tag(e) for e in EPSILONS])
            panel.minorticks_off()
            panel.legend()
        axes[0, 0].set_ylabel("acceptance rate")
    draw.save_table(folder / "fig12.csv", rows)


CELLS = {"fig3": _cells3, "fig12": _cells12}
DRAW = {"fig3": figure3, "fig12": figure12}
