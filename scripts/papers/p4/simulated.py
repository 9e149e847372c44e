"""Section 4.1: mean squared errors of alpha (Figure 2) and of E[x], and coverage (Figure 3), by method."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers import draw
from papers.kept import tag
from papers.p4.cells import GROUPS, METHODS, Cell, Results, Size

__all__ = ["ALPHAS", "CELLS", "CHOSEN", "DRAW", "EPSILONS", "OPEN", "SIZES", "ratio", "values"]

ALPHAS = (
    (3.3, 4.4),
    (0.5, 0.5, 0.5),
    (2.2, 3.3, 4.4),
    (2.0, 20.0, 2.0),
    (2.2, 3.3, 4.4, 5.5, 6.6),
)
SIZES = (1000, 5000)
EPSILONS = (0.25, 0.5, 1.5, 1e10)
OPEN = GROUPS["open"]
"""The methods that see the data."""
CHOSEN = ("DPBoots", "DPMCMC p1", "DPreMCMC p4", "DPABC p5")
"""Those that the paper goes on with."""
_PRIVATE = tuple(method for method in METHODS if method not in OPEN)
_HIGHEST = 1e4  # of an error that is drawn in its place

Floats = NDArray[np.float64]


def name(alpha: int, n: int, epsilon: float, group: str) -> str:
    """Return the name of a cell; those that see the data have no epsilon."""
    place = f"alpha{alpha + 1}/n{n}"
    return f"{place}/{group}" if group == "open" else f"{place}/eps{tag(epsilon)}/{group}"


def _cells(size: Size) -> list[Cell]:
    found = {}
    for i, alpha in enumerate(ALPHAS):
        for n in SIZES if i < size.large else SIZES[:1]:
            for epsilon in EPSILONS:
                for group, methods in GROUPS.items():
                    cell = Cell(
                        name(i, n, epsilon, group),
                        "p4/compositions.yaml",
                        (
                            f"data.alpha={list(alpha)}",
                            f"summary.truth={list(alpha)}",
                            f"data.n={n}",
                            *(() if group == "open" else (f"mechanism.epsilon={epsilon!r}",)),
                        ),
                        methods,
                        size.runs,
                        size.rounds,
                        size.draws,
                    )
                    found[cell.name] = cell
    return list(found.values())


def values(results: Results, method: str, key: str, alpha: int, n: int, epsilon: float) -> Floats:
    """Return error_alpha, error_mean or coverage of a method, one for each data set."""
    group = next(group for group, methods in GROUPS.items() if method in methods)
    return np.array([row[method][key] for row in results[name(alpha, n, epsilon, group)]["rows"]])


def alphas_at(results: Results, n: int) -> list[int]:
    """Return the numbers of the alphas that there are for n records."""
    return [i for i in range(len(ALPHAS)) if name(i, n, 0.0, "open") in results]


def ratio(results: Results, method: str, key: str, n: int, epsilon: float, to: str = "DPMCMC p1") -> float:
    """Return how many times as large the median error of a method is, in the geometric mean over alphas."""
    logs = [
        math.log(np.median(values(results, method, key, i, n, epsilon)))
        - math.log(np.median(values(results, to, key, i, n, epsilon)))
        for i in alphas_at(results, n)
    ]
    return math.exp(float(np.mean(logs)))


def _errors(path: Path, key: str, what: str, methods: tuple[str, ...], results: Results) -> None:
    """Median errors by method: a row of panels for each n, a panel for each alpha, a colour for each eps."""
    runs = max(len(result["rows"]) for name, result in results.items() if name.startswith("alpha"))
    title = f"{what}, median over {runs} data sets; lines: given the data; beyond {_HIGHEST:g} drawn there"
    places = np.arange(len(methods))
    with draw.panels(path, len(SIZES), len(ALPHAS), title, (2.3, 2.9), sharex=True) as (shown, axes):
        for row, n in enumerate(SIZES):
            for i, alpha in enumerate(ALPHAS):
                panel = axes[row, i]
                if i not in alphas_at(results, n):
                    panel.set_visible(False)
                    continue
                for number, epsilon in enumerate(EPSILONS):
                    middle = [np.median(values(results, m, key, i, n, epsilon)) for m in methods]
                    panel.plot(
                        np.minimum(middle, _HIGHEST),
                        places + 0.15 * (number - 1.5),
                        "o",
                        ms=3.2,
                        color=draw.COLOURS[number],
                        label=f"ε = {tag(epsilon)}",
                    )
                panel.axvline(
                    np.median(values(results, OPEN[0], key, i, n, 0.0)),
                    color=draw.INK,
                    lw=0.9,
                    label="given the data",
                )
                panel.set_xscale("log")
                panel.set_yticks(places, methods if i == 0 else [""] * len(methods))
                panel.set_ylim(len(methods) - 0.4, -0.6)
                below = SIZES[row + 1 :]
                panel.tick_params(labelbottom=all(i not in alphas_at(results, size) for size in below))
                panel.grid(axis="y", color="#EEEEEE", lw=0.6)
                panel.set_title(
                    f"{'(' + ', '.join(format(a, 'g') for a in alpha) + ')'}, n = {n}", fontsize=8
                )
        draw.legend(shown, axes[0, 0], 5)


def _coverage(path: Path, results: Results) -> None:
    """Coverage of the ellipsoid of a predictive record, for the Bayesian ones of the methods chosen."""
    methods = CHOSEN[1:]
    title = (
        "Coverage of 95% predictive ellipsoids, median over data sets and alphas, with the range over alphas"
    )
    with draw.panels(path, 1, len(SIZES), title, (3.6, 2.5), sharey=True) as (shown, axes):
        for column, n in enumerate(SIZES):
            panel = axes[0, column]
            for number, method in enumerate(methods):
                found = np.array(
                    [
                        [
                            np.median(values(results, method, "coverage", i, n, e))
                            for i in alphas_at(results, n)
                        ]
                        for e in EPSILONS
                    ]
                )
                middle = np.median(found, axis=1)
                panel.errorbar(
                    np.arange(len(EPSILONS)) + 0.15 * (number - 1),
                    middle,
                    (middle - found.min(axis=1), found.max(axis=1) - middle),
                    fmt="o",
                    ms=3.5,
                    lw=1.1,
                    color=draw.COLOURS[number],
                    label=method,
                )
            panel.axhline(0.95, color=draw.INK, lw=0.9)
            panel.set_xticks(range(len(EPSILONS)), [tag(e) for e in EPSILONS])
            panel.set_xlabel("ε")
            panel.set_title(f"n = {n}")
        draw.legend(shown, axes[0, 0], 3)


def _rows(results: Results, keys: tuple[str, ...], methods: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {
            "alpha": " ".join(format(a, "g") for a in alpha),
            "n": n,
            "epsilon": "" if method in OPEN else epsilon,
            "method": method,
            **{key: float(np.median(values(results, method, key, i, n, epsilon))) for key in keys},
        }
        for i, alpha in enumerate(ALPHAS)
        for n in SIZES
        if i in alphas_at(results, n)
        for method in methods
        for epsilon in (EPSILONS[:1] if method in OPEN else EPSILONS)
    ]


def _second(results: Results, size: Size, folder: Path) -> None:
    _errors(folder / "fig2.png", "error_alpha", "Mean squared error of α", _PRIVATE, results)
    draw.save_table(folder / "fig2.csv", _rows(results, ("error_alpha",), tuple(METHODS)))


def _third(results: Results, size: Size, folder: Path) -> None:
    _errors(folder / "fig3.png", "error_mean", "Mean squared error of E[x | α]", CHOSEN, results)
    _coverage(folder / "fig3_coverage.png", results)
    draw.save_table(folder / "fig3.csv", _rows(results, ("error_mean",), tuple(METHODS)))
    draw.save_table(folder / "fig3_coverage.csv", _rows(results, ("coverage",), CHOSEN[1:]))


CELLS = {"fig2": _cells, "fig3": _cells}
DRAW = {"fig2": _second, "fig3": _third}
