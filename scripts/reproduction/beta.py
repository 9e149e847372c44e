"""Section 4.2: three betas under wavelet and Laplace noise. Figures 3 and 12."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reproduction import draw, truth
from reproduction.cells import Cell, Results, Size, tag

__all__ = ["CELLS", "DATA", "DRAW", "EPSILONS", "MECHANISMS", "name"]

DATA = "three_betas"
EPSILONS = (2.0, 10.0, 50.0, 100.0, 250.0)
LEVELS = (2, 4, 6)
MECHANISMS = {
    **{f"paper{j}": f"wavelet, J = {j}, paper's scale" for j in LEVELS},
    **{f"exact{j}": f"wavelet, J = {j}, exact scale" for j in LEVELS},
    "laplace": "Laplace",
}
# Gamma(2, 2) is shape and rate by the paper's Appendix B; read as shape and scale it lets narrow kernels in
_BASE = "model.base={a_shape: 2.0, a_rate: 0.5, b_shape: 2.0, b_rate: 0.5}"
SAMPLERS = {
    "neal5": ("Neal 5, m = 1", ("sampler.kind=private_neal5",)),
    "neal8": ("Neal 8, exact", ("sampler.kind=neal8",)),
    "scale": ("Neal 5, Gamma(2, scale 2)", ("sampler.kind=private_neal5", _BASE)),
}


def name(mechanism: str, epsilon: float, sampler: str) -> str:
    """Return the name of a cell."""
    return f"beta/{mechanism}/eps{tag(epsilon)}/{sampler}"


def _cell(mechanism: str, epsilon: float, sampler: str) -> Cell:
    overrides = [f"mechanism.epsilon={tag(epsilon)}", *SAMPLERS[sampler][1]]
    if mechanism != "laplace":
        overrides += [f"mechanism.calibration={mechanism[:-1]}", f"mechanism.levels={mechanism[-1]}"]
    spec = "laplace_beta.yaml" if mechanism == "laplace" else "wavelet_beta.yaml"
    return Cell(name(mechanism, epsilon, sampler), spec, tuple(overrides), longer=4)


def _cells3(size: Size) -> list[Cell]:
    """Return Neal 5 under both readings of the base measure; the exact sampler where size allows."""
    found = [_cell(m, e, "neal5") for m in MECHANISMS for e in EPSILONS]
    found += [_cell(m, e, "scale") for m in MECHANISMS for e in EPSILONS if size.every or "exact" not in m]
    beside = list(MECHANISMS) if size.every else ["paper4"]
    return found + [_cell(m, e, "neal8") for m in beside for e in (EPSILONS if size.every else EPSILONS[2:])]


def _table(results: Results) -> list[dict[str, Any]]:
    rows = []
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            for sampler in SAMPLERS:
                result = results.get(name(mechanism, epsilon, sampler))
                if result is None:
                    continue
                rows.append(
                    {
                        "mechanism": mechanism,
                        "epsilon": epsilon,
                        "sampler": sampler,
                        "scale": result["mechanism"]["scale"][0],
                        "actual_epsilon": result["guarantee"]["epsilon"],
                        "acceptance": result["acceptance"]["mean"],
                        "acceptance_bound": result["acceptance"]["bound"],
                        "hellinger_to_truth": truth.distance(result, DATA),
                        "hellinger_to_prior": result["hellinger"],
                        "edge_mass": truth.edge_mass(result),
                        "modes": " ".join(f"{x:.2f}" for x in truth.modes(result)),
                        "clusters_mean": result["clusters_mean"],
                        "clusters_rhat": result["clusters_rhat"],
                    }
                )
    return rows


def figure3(results: Results, size: Size, folder: Path) -> None:
    """Densities by mechanism and epsilon."""
    rows: list[dict[str, Any]] = []
    with draw.panels(
        folder / "fig3.png", len(MECHANISMS), len(EPSILONS), "Figure 3: three betas, n = 250", sharex=True
    ) as (figure, axes):
        for line, (mechanism, label) in enumerate(MECHANISMS.items()):
            for column, epsilon in enumerate(EPSILONS):
                panel = axes[line, column]
                for number, sampler in enumerate(SAMPLERS):
                    result = results.get(name(mechanism, epsilon, sampler))
                    if result is None:
                        continue
                    if sampler == "neal5":
                        draw.band(panel, result)
                    draw.curve(panel, result, SAMPLERS[sampler][0], number)
                    rows += draw.density_rows(result, mechanism=mechanism, epsilon=epsilon, sampler=sampler)
                draw.true_line(panel, results[name(mechanism, epsilon, "neal5")], DATA, 1.6)
                panel.set_title(f"ε = {tag(epsilon)}" if line == 0 else "")
            axes[line, 0].set_ylabel(label.replace(", paper", ",\npaper").replace(", exact", ",\nexact"))
        draw.legend(figure, axes[1, 3])
    draw.save_table(folder / "fig3.csv", rows)


def figure12(results: Results, size: Size, folder: Path) -> None:
    """Draw the acceptance rates of Neal 5 beside the bound exp(-epsilon)."""
    rows = [row for row in _table(results) if row["sampler"] == "neal5"]
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
                heights = [r["acceptance"] for r in rows if r["mechanism"] == mechanism]
                label, shade = (f"J = {j}", number) if kind != "laplace" else ("Laplace", 3)
                panel.plot(EPSILONS, heights, "o-", ms=3, color=draw.COLOURS[shade], label=label)
            panel.plot(EPSILONS, np.exp(-np.array(EPSILONS)), "--", color=draw.INK, lw=1, label="exp(−ε)")
            panel.set(title=title, xscale="log", xlabel="ε", ylim=(-0.03, 1.03))
            panel.set_xticks(EPSILONS, [tag(e) for e in EPSILONS])
            panel.minorticks_off()
            panel.legend()
        axes[0, 0].set_ylabel("acceptance rate")
    draw.save_table(folder / "fig12.csv", rows)


CELLS = {
    "fig3": _cells3,
    "fig12": lambda size: [_cell(m, e, "neal5") for m in MECHANISMS for e in EPSILONS],
}
DRAW = {"fig3": figure3, "fig12": figure12}
