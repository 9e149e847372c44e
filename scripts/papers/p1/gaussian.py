"""Section 4.3: three normals under Gaussian noise. Figures 4, 5 and 13."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median
from typing import Any

from dpmix.privacy.conversions import gaussian_delta
from papers import draw, truth
from papers.p1.cells import Cell, Results, Size, tag

__all__ = ["CELLS", "DELTAS", "DRAW", "EPSILONS", "NOISES", "SAMPLERS", "classical_scale", "name", "table"]

DATA = "three_gaussians"
WIDTH = 20.0
EPSILONS = (5.0, 10.0, 25.0, 50.0)
DELTAS = (0.01, 0.1, 0.25)
_TRUNCATED, _PLAIN = "model.base.kind=truncated_nig", "model.base.kind=nig"
SAMPLERS = {  # the paper's three, and the posterior under each base, settled
    "neal2": ("Neal 2, truncated base", (_TRUNCATED, "sampler.kind=neal2")),
    "neal3": ("Neal 3, truncated base", (_TRUNCATED, "sampler.kind=neal3")),
    "truncated": ("settled, truncated base", (_TRUNCATED, "sampler.kind=neal8")),
    "neal5": ("Neal 5, plain base", (_PLAIN, "sampler.kind=private_neal5")),
    "plain": ("settled (counts), plain base", (_PLAIN, "sampler.kind=counts")),
}
SETTLE = {"truncated": 72_000, "plain": 72_000}  # sweeps at most, of those that are to settle
NOISES = {"classical": "classical scale\n(NON-PRIVATE comparison)", "analytic": "analytic scale"}


def classical_scale(epsilon: float, delta: float) -> float:
    """Return the noise of the paper's code, which is not (epsilon, delta)-DP for epsilon above 1."""
    return WIDTH / epsilon * math.sqrt(2.0 * math.log(1.25 / delta))


def name(noise: str, epsilon: float, delta: float, sampler: str, replicate: int = 0) -> str:
    """Return the name of a cell."""
    return f"gaussian/{noise}/eps{tag(epsilon)}/delta{tag(delta)}/{sampler}/r{replicate}"


def _cell(noise: str, epsilon: float, delta: float, sampler: str, replicate: int) -> Cell:
    if noise == "classical":
        mechanism = f"mechanism={{kind: gaussian, scale: {classical_scale(epsilon, delta)!r}}}"
    else:
        mechanism = f"mechanism={{kind: gaussian, epsilon: {epsilon}, delta: {delta}}}"
    return Cell(
        name(noise, epsilon, delta, sampler, replicate),
        "gaussian_normal.yaml",
        (mechanism, *SAMPLERS[sampler][1]),
        SETTLE.get(sampler, 0),
        replicate,
    )


def _cells(size: Size, deltas: tuple[float, ...], noises: tuple[str, ...] = tuple(NOISES)) -> list[Cell]:
    """Return all samplers under the paper's noise, the settled ones alone under that which protects."""
    return [
        _cell(noise, epsilon, delta, sampler, replicate)
        for replicate in range(size.replicates)
        for noise in noises
        for delta in deltas
        for epsilon in EPSILONS
        for sampler in (SAMPLERS if noise == "classical" else SETTLE)
    ]


def table(results: Results) -> list[dict[str, Any]]:
    """Return a row a run: noise, its actual delta at this epsilon, ESS, distance from the truth."""
    rows = []
    for noise in NOISES:
        for delta in DELTAS:
            for epsilon in EPSILONS:
                for sampler in SAMPLERS:
                    for result in draw.replicates(results, name(noise, epsilon, delta, sampler, 0)):
                        scale = result["mechanism"]["scale"][0]
                        actual = gaussian_delta(epsilon, WIDTH / scale)
                        kept = (result["sweeps"] - result["sweeps"] // 2) * result["chains"]
                        ess = result["clusters_ess"]
                        rows.append(
                            {
                                "noise": noise,
                                "epsilon": epsilon,
                                "delta": delta,
                                "scale": scale,
                                "actual_delta": actual,
                                "reaches_delta": actual <= delta * (1.0 + 1e-5),
                                "sampler": sampler,
                                "data_set": result["replicate"] + 1,
                                "ess_per_1000": None if ess is None else 1e3 * ess / kept,
                                "ess_per_second": None if ess is None else 0.5 * ess / result["seconds"],
                                "clusters_mean": result["clusters_mean"],
                                "clusters_rhat": result["clusters_rhat"],
                                "acceptance": result["acceptance"]["mean"],
                                "hellinger_to_truth": truth.distance(result, DATA),
                                "hellinger_to_prior": result["hellinger"],
                            }
                        )
    return rows


def _densities(
    results: Results, folder: Path, figure_name: str, lines: list[tuple[str, float]], title: str
) -> None:
    rows: list[dict[str, Any]] = []
    with draw.panels(
        folder / f"{figure_name}.png", len(lines), len(EPSILONS), title, (2.5, 2.0), sharex=True
    ) as (
        figure,
        axes,
    ):
        for line, (noise, delta) in enumerate(lines):
            for column, epsilon in enumerate(EPSILONS):
                panel = axes[line, column]
                for number, (sampler, (label, _)) in enumerate(SAMPLERS.items()):
                    if noise != "classical" and sampler not in SETTLE:
                        continue
                    result = results[name(noise, epsilon, delta, sampler)]
                    draw.curve(panel, result, label, number)
                    rows += draw.density_rows(
                        result, noise=noise, delta=delta, epsilon=epsilon, sampler=sampler
                    )
                draw.true_line(panel, result, DATA, 1.8)
                panel.set_title(f"ε = {tag(epsilon)}, sd {result['mechanism']['scale'][0]:.3g}")
            axes[line, 0].set_ylabel(f"δ = {tag(delta)}\n{NOISES[noise]}")
        draw.legend(figure, axes[0, 0], 3)
    draw.save_table(folder / f"{figure_name}.csv", rows)


def figure4(results: Results, size: Size, folder: Path) -> None:
    """Densities at delta = 0.1 under both calibrations."""
    lines = [(noise, 0.1) for noise in NOISES]
    _densities(results, folder, "fig4", lines, "Figure 4: Gaussian noise, n = 250, δ = 0.1")


def figure13(results: Results, size: Size, folder: Path) -> None:
    """Densities at the other deltas."""
    lines = [(noise, delta) for noise in NOISES for delta in (0.01, 0.25)]
    _densities(results, folder, "fig13", lines, "Figure 13: Gaussian noise, n = 250, other δ")


def figure5(results: Results, size: Size, folder: Path) -> None:
    """Effective sample size of the number of clusters."""
    rows = table(results)
    with draw.panels(
        folder / "fig5.png",
        1,
        3,
        "Figure 5: ESS of the number of clusters, classical scale, medians over data sets",
        (3.0, 2.6),
        sharey=True,
    ) as (figure, axes):
        for panel, delta in zip(axes[0], DELTAS, strict=True):
            for number, (sampler, (label, _)) in enumerate(SAMPLERS.items()):
                wanted = ("classical", delta, sampler)
                own = [r for r in rows if (r["noise"], r["delta"], r["sampler"]) == wanted]
                heights = [median(r["ess_per_1000"] for r in own if r["epsilon"] == e) for e in EPSILONS]
                panel.plot(EPSILONS, heights, "o-", ms=3, lw=1.1, color=draw.COLOURS[number], label=label)
            panel.set(title=f"δ = {tag(delta)}", xscale="log", xlabel="ε", ylim=(0, None))
            panel.set_xticks(EPSILONS, [tag(e) for e in EPSILONS])
            panel.minorticks_off()
        axes[0, 0].set_ylabel("ESS per 1000 sweeps")
        draw.legend(figure, axes[0, 0], 3)
    draw.save_table(folder / "fig5.csv", rows)


CELLS = {
    "fig4": lambda size: _cells(size, (0.1,)),
    "fig5": lambda size: _cells(size, DELTAS, ("classical",)),
    "fig13": lambda size: _cells(size, (0.01, 0.25)),
}
DRAW = {"fig4": figure4, "fig5": figure5, "fig13": figure13}
