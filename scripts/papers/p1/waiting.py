"""Section 6: waiting times of blood donors, simulated because theirs are not public. Figures 6 and 14."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from papers import draw, truth
from papers.p1.cells import Cell, Results, Size

__all__ = ["CELLS", "DRAW", "NOISES", "RUN", "SAMPLERS", "SETTLED", "name", "table"]

DATA = "waiting_times"
_BASE = "model.base={kind: truncated_nig, empirical: paper}"
NOISES = {
    "gaussian": ("Gaussian", "mechanism={kind: gaussian, rho: 17.8}"),
    "laplace-paper": ("Laplace, paper's scale", "mechanism={kind: laplace, rho: 17.8, calibration: paper}"),
    "laplace-exact": ("Laplace, exact scale", "mechanism={kind: laplace, rho: 17.8, calibration: exact}"),
    "none": ("no noise", "mechanism={kind: none}"),
}
SAMPLERS = {
    "neal5": ("Neal 5", ("sampler.kind=private_neal5",)),
    "slice": ("slice, proposals", ("sampler.kind=private_slice", "sampler.latent=metropolis")),
    "posterior": ("settled", ("sampler.kind=counts",)),
    "neal2": ("Neal 2, truncated base", (_BASE, "sampler.kind=neal2")),
    "truncated": ("settled, truncated base", (_BASE, "sampler.kind=neal8")),
}
RUN = {
    "gaussian": tuple(SAMPLERS),
    "laplace-paper": ("neal5", "slice", "posterior"),
    "laplace-exact": ("neal5", "slice", "posterior"),
    "none": ("posterior",),
}
SETTLED = ("posterior", "truncated")
_SETTLE = dict.fromkeys(SETTLED, 72_000)  # sweeps at most, of those that are to settle


def name(noise: str, sampler: str, replicate: int = 0) -> str:
    """Return the name of a cell."""
    return f"waiting/{noise}/{sampler}/r{replicate}"


def _cell(noise: str, sampler: str, replicate: int) -> Cell:
    own = ("sampler.kind=neal8",) if noise == "none" else SAMPLERS[sampler][1]
    kept = sampler == "posterior"
    return Cell(
        name(noise, sampler, replicate),
        "waiting_times.yaml",
        (NOISES[noise][1], *own),
        _SETTLE.get(sampler, 0),
        replicate,
        baseline=kept,
        released=kept,
    )


def figure6(results: Results, size: Size, folder: Path) -> None:
    """Densities by mechanism with the deconvolution estimate, and bands beside those without noise."""
    rows: list[dict[str, Any]] = []
    noisy = [noise for noise in NOISES if noise != "none"]
    plain = results[name("none", "posterior")]
    with draw.panels(
        folder / "fig6.png",
        2,
        3,
        "Figure 6: SIMULATED waiting times, n = 100, ρ = 17.8",
        (3.2, 2.4),
        sharey=True,
    ) as (figure, axes):
        for column, noise in enumerate(noisy):
            top, bottom = axes[:, column]
            draw.release_steps(top, plain["released"], "records without noise")
            draw.release_steps(bottom, plain["released"], "records without noise")
            for number, sampler in enumerate(RUN[noise]):
                draw.curve(top, results[name(noise, sampler)], SAMPLERS[sampler][0], number)
            result = results[name(noise, "posterior")]
            draw.curve(top, result, "deconvolution KDE", 5, "baseline")
            draw.band(bottom, result, 0, "95% band, noisy")
            draw.curve(bottom, result, "mean, noisy", 0)
            draw.band(bottom, plain, 1, "95% band, no noise")
            draw.curve(bottom, plain, "mean, no noise", 1)
            for panel in (top, bottom):
                draw.true_line(panel, result, DATA)
                panel.set_xlim(4.2, 7.8)
            top.set_title(f"{NOISES[noise][0]}, scale {result['mechanism']['scale'][0]:.3f}")
        axes[0, 0].set_ylim(0.0, 2.2)
        handles = [
            h
            for panel in (axes[0, 0], axes[1, 0])
            for h in zip(*panel.get_legend_handles_labels(), strict=True)
        ]
        known = {label: handle for handle, label in handles}
        figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=4)
    for noise, samplers in RUN.items():
        for sampler in samplers:
            rows += draw.density_rows(
                {"density": {"baseline": [None] * 200, **results[name(noise, sampler)]["density"]}},
                mechanism=noise,
                sampler=sampler,
            )
    draw.save_table(folder / "fig6.csv", rows)
    draw.save_table(folder / "fig6_cells.csv", table(results))


def table(results: Results) -> list[dict[str, Any]]:
    """Return a row a run: scale, distances from the truth and from the posterior without noise, bands."""
    return [
        {
            "mechanism": noise,
            "sampler": sampler,
            "data_set": result["replicate"] + 1,
            "scale": result["mechanism"].get("scale", [0.0])[0] if noise != "none" else 0.0,
            "hellinger_to_truth": truth.distance(result, DATA),
            "hellinger_to_no_noise": truth.apart(
                result, results[name("none", "posterior", result["replicate"])]
            ),
            "band_width": truth.band_width(result),
            **_baseline(result),
            "modes": len(truth.modes(result)),
            "clusters_mean": result["clusters_mean"],
            "rhat": result["rhat"],
        }
        for noise, samplers in RUN.items()
        for sampler in samplers
        for result in draw.replicates(results, name(noise, sampler))
        if name("none", "posterior", result["replicate"]) in results
    ]


def _baseline(result: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of the deconvolution estimate, None where there is none."""
    there = "baseline" in result["density"]
    return {
        "kde_hellinger_to_truth": truth.distance(result, DATA, "baseline") if there else None,
        "kde_modes": len(truth.modes(result, "baseline")) if there else None,
        "kde_bandwidth": result["density"].get("baseline_bandwidth"),
    }


def figure14(results: Results, size: Size, folder: Path) -> None:
    """Histograms of the releases."""
    rows: list[dict[str, Any]] = []
    with draw.panels(
        folder / "fig14.png",
        1,
        len(NOISES),
        "Figure 14: releases of SIMULATED waiting times",
        (2.6, 2.2),
        sharex=True,
        sharey=True,
    ) as (_, axes):
        for panel, (noise, (label, _)) in zip(axes[0], NOISES.items(), strict=True):
            released = results[name(noise, "posterior")]["released"]
            panel.hist(
                released, bins=np.linspace(2.0, 9.5, 31), density=True, color=draw.COLOURS[0], alpha=0.7
            )
            panel.axvspan(4.49, 7.6, color="#DDDDDD", alpha=0.5, lw=0, zorder=0)
            panel.set_title(label)
            rows += [{"mechanism": noise, "released": value} for value in released]
        axes[0, 0].set_ylabel("density")
    draw.save_table(folder / "fig14.csv", rows)


def _cells(
    size: Size, samplers: tuple[str, ...] = tuple(SAMPLERS), data_sets: int | None = None
) -> list[Cell]:
    return [
        _cell(noise, sampler, replicate)
        for replicate in range(data_sets or size.replicates)
        for noise in NOISES
        for sampler in RUN[noise]
        if sampler in samplers
    ]


CELLS = {"fig6": _cells, "fig14": lambda size: _cells(size, ("posterior",), 1)}
DRAW = {"fig6": figure6, "fig14": figure14}
