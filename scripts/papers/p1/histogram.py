"""Appendix C: three betas, draws from a smoothed histogram of the whole sample. Figures 7 and 8."""

from __future__ import annotations

from math import floor
from pathlib import Path
from typing import Any

from papers import draw, truth
from papers.p1.beta import DATA, EPSILONS
from papers.p1.cells import Cell, Results, Size, tag

__all__ = ["BASES", "CELLS", "DRAW", "MULTIPLES", "SAMPLERS", "name"]

N = 250
MULTIPLES = (2, 4, 6)  # L
DRAWN = floor(N**0.6 + 1)  # k
RUN = (
    EPSILONS[0],
    EPSILONS[1],
    EPSILONS[-1],
)  # between the last two the weight is nearly 0, and little changes
BASES = {  # shape and rate: of the text, that read as shape and scale, of Figure 8
    "g2": (2.0, 2.0),
    "s2": (2.0, 0.5),
    "g90": (90.0, 2.0),
}
SAMPLERS = {
    "posterior": ("settled (counts)", ("sampler.kind=counts",)),
    "neal5": ("marginal (Neal 5)", ("sampler.kind=private_neal5",)),
    "slice": ("conditional (slice, proposals)", ("sampler.kind=private_slice", "sampler.latent=metropolis")),
}
_SETTLE = 8_000  # sweeps at most of a posterior


def bins(multiple: int) -> int:
    """Return the number of bins m for a multiple L."""
    return multiple * floor(N**0.2 + 1)


def name(base: str, multiple: int, epsilon: float, sampler: str, replicate: int = 0) -> str:
    """Return the name of a cell."""
    return f"histogram/{base}/L{multiple}/eps{tag(epsilon)}/{sampler}/r{replicate}"


def _cell(base: str, multiple: int, epsilon: float, sampler: str, replicate: int) -> Cell:
    shape, rate = BASES[base]
    overrides = (
        f"data.n={N}",
        f"mechanism.bins={bins(multiple)}",
        f"mechanism.draws={DRAWN}",
        f"mechanism.epsilon={tag(epsilon)}",
        f"model.base={{a_shape: {shape}, a_rate: {rate}, b_shape: {shape}, b_rate: {rate}}}",
        *SAMPLERS[sampler][1],
    )
    return Cell(
        name(base, multiple, epsilon, sampler, replicate),
        "smoothed_histogram_beta.yaml",
        overrides,
        _SETTLE if sampler == "posterior" else 0,
        replicate,
    )


def _cells(size: Size, bases: tuple[str, ...]) -> list[Cell]:
    """Return the posteriors, and once, where the paper is content, its two samplers beside them."""
    return [
        _cell(base, multiple, epsilon, sampler, replicate)
        for replicate in range(size.replicates)
        for base in bases
        for multiple in MULTIPLES
        for epsilon in RUN
        for sampler in (SAMPLERS if replicate == 0 and multiple == 4 else ("posterior",))
    ]


def table(results: Results, bases: tuple[str, ...] = tuple(BASES)) -> list[dict[str, Any]]:
    """Return a row a run: weight of the uniform density, acceptance, distance from the truth."""
    return [
        {
            "base": base,
            "L": multiple,
            "epsilon": epsilon,
            "sampler": sampler,
            "data_set": result["replicate"] + 1,
            "weight": result["mechanism"]["weight"],
            "acceptance": result["acceptance"]["mean"],
            "acceptance_bound": result["acceptance"]["bound"],
            "hellinger_to_truth": truth.distance(result, DATA),
            "hellinger_to_prior": result["hellinger"],
            "edge_mass": truth.edge_mass(result),
            "modes": " ".join(f"{x:.2f}" for x in truth.modes(result)),
            "ess": result["ess"],
            "rhat": result["rhat"],
        }
        for base in bases
        for multiple in MULTIPLES
        for epsilon in RUN
        for sampler in SAMPLERS
        for result in draw.replicates(results, name(base, multiple, epsilon, sampler))
    ]


def _figure(
    results: Results, size: Size, folder: Path, figure_name: str, bases: tuple[str, ...], title: str
) -> None:
    rows: list[dict[str, Any]] = []
    lines = [(base, multiple) for base in bases for multiple in MULTIPLES]
    with draw.panels(folder / f"{figure_name}.png", len(lines), len(RUN), title, sharex=True) as (
        figure,
        axes,
    ):
        for line, (base, multiple) in enumerate(lines):
            for column, epsilon in enumerate(RUN):
                panel, result = axes[line, column], None
                for number, (sampler, (label, _)) in enumerate(SAMPLERS.items()):
                    found = results.get(name(base, multiple, epsilon, sampler))
                    if found is None:
                        continue
                    result = found
                    draw.curve(panel, found, label, number)
                    rows += draw.density_rows(found, base=base, L=multiple, epsilon=epsilon, sampler=sampler)
                if result is None:
                    panel.axis("off")
                    continue
                draw.true_line(panel, result, DATA, 1.6)
                panel.set_title(f"ε = {tag(epsilon)}, w = {result['mechanism']['weight']:.2g}")
            shape, rate = BASES[base]
            axes[line, -1].yaxis.set_label_position("right")
            axes[line, -1].set_ylabel(f"L = {multiple}\nGamma({shape:g}, {rate:g})")
        draw.legend(figure, axes[1, -1])
    draw.save_table(folder / f"{figure_name}.csv", rows)
    draw.save_table(folder / f"{figure_name}_cells.csv", table(results, bases))


def figure7(results: Results, size: Size, folder: Path) -> None:
    """Densities under the base measures of the text and of the code."""
    _figure(results, size, folder, "fig7", ("g2", "s2"), "Figure 7: smoothed histogram, n = 250, 28 draws")


def figure8(results: Results, size: Size, folder: Path) -> None:
    """Densities under the concentrated base measure."""
    _figure(
        results, size, folder, "fig8", ("g90",), "Figure 8: smoothed histogram, base measure Gamma(90, 2)"
    )


CELLS = {"fig7": lambda size: _cells(size, ("g2", "s2")), "fig8": lambda size: _cells(size, ("g90",))}
DRAW = {"fig7": figure7, "fig8": figure8}
