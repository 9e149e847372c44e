"""Section 5 of the paper on released posteriors: errors by number of records, prior and categories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from papers import draw
from papers.p3.cells import METHODS, Cell, Crossing, Results, Size, counts_of, spec_of

__all__ = ["CELLS", "DRAW", "PAIRS", "PRIORS", "SHARES", "points", "prior_name", "table"]

SHARES: dict[str, tuple[float, ...]] = {
    "two": (0.1, 0.9),
    "even": (0.5, 0.5),
    "three": (0.2, 0.3, 0.5),
    "four": (0.1, 0.2, 0.3, 0.4),
    "five": (0.1, 0.15, 0.2, 0.25, 0.3),
}
SPECS = {"two": "beta_binomial.yaml", "even": "beta_binomial.yaml"}
OF_TWO = ("theorem", "certified", "laplace2", "laplace1", "geometric1")
OF_MORE = ("theorem", "laplace2", "truncated", "geometric2")
OF_THREE = ("theorem", "certified", "laplace2", "truncated", "geometric2")
PRIORS = (1, 2, 5, 10, 20, 40, 80, 200, 500)
FIVES = (5, 5, 5)
PAIRS = (
    ("two", "theorem", "laplace2"),
    ("two", "theorem", "laplace1"),
    ("two", "theorem", "geometric2"),
    ("two", "scale", "laplace2"),
    ("two", "scale", "laplace1"),
    ("two", "certified", "laplace2"),
    ("two", "certified", "laplace1"),
    ("two", "certified", "geometric1"),
    ("even", "theorem", "laplace2"),
    ("even", "certified", "laplace2"),
    ("even", "certified", "laplace1"),
)
CERTIFIED_THREE = 97
_SMALL, _LARGE = (300, 400, 500, 650, 800), (14_000, 16_000, 18_000, 20_000)
_DENSE = (*range(300, 801, 50), *range(14_000, 20_001, 1000))
_POINTS = {
    "two": (100, 200, *_SMALL, 1000, 1500, 2000, 5000, *_LARGE, 50_000),
    "three": (10, 30, 60, 90, 300, 500, 800, 1000, 1500, 5000, *_LARGE, 50_000),
    "four": (30, 100, 300, 1000, 2000, 5000, 10_000, 30_000),
    "five": (30, 100, 300, 1000, 3000, 10_000, 30_000),
}
_GRID = (20, 50, 100, 150, 200, 300, 400, 500, 650, 800, 1000, 1500, 2000, 3000, 5000, 10_000, 20_000)


def name(of: str, n: int, method: str) -> str:
    """Return the name of a cell."""
    return f"{of}/n{n}/{method}"


def crossing_name(of: str, method: str, against: str) -> str:
    """Return the name of the cell of a crossing."""
    return f"crossing/{of}/{method}/{against}"


def prior_name(entry: int, method: str) -> str:
    """Return the name of a cell of Figure 3."""
    return f"prior/a{entry}/{method}"


def points(of: str, size: Size) -> tuple[int, ...]:
    """Return the numbers of records of a figure."""
    few = _DENSE if size.dense and of in ("two", "three") else ()
    return tuple(sorted({*few, *_POINTS[of], 100_000, size.largest}))


def methods_at(of: str, n: int) -> tuple[str, ...]:
    """Return the methods that there are for n records."""
    if of == "two":
        return (*OF_TWO, "scale") if n in (650, 1000, 2000) else OF_TWO
    return OF_THREE if of == "three" and n <= CERTIFIED_THREE else OF_MORE


def _cells_of(of: str, size: Size) -> list[Cell]:
    prior = (1.0,) * len(SHARES[of])
    return [
        Cell(
            name(of, n, method),
            SPECS.get(of, "dirichlet_multinomial.yaml"),
            (spec_of(method, prior, n),),
            method,
            counts_of(SHARES[of], n),
            size.runs,
        )
        for n in points(of, size)
        for method in methods_at(of, n)
    ]


def _crossings(size: Size) -> list[Cell]:
    found: list[Cell] = []
    for of, method, against in PAIRS:
        cheap = method == "theorem"
        grid = (*_GRID, 50_000, 100_000, size.largest) if cheap else _GRID
        found.append(
            Crossing(
                crossing_name(of, method, against),
                SPECS[of],
                (),
                method,
                (),
                0,
                against=against,
                grid=tuple(sorted(set(grid))),
                shares=SHARES[of],
            )
        )
    return found


def _priors(size: Size) -> list[Cell]:
    return [
        Cell(
            prior_name(entry, method),
            "balanced_priors.yaml",
            (spec_of(method, (float(entry),) * 3, sum(FIVES)),),
            method,
            FIVES,
            size.runs,
        )
        for entry in PRIORS
        for method in OF_THREE
    ]


def table(results: Results, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each cell that was computed: exact expected error, mean of the runs, and times."""
    rows = []
    for each in names:
        result = results[each]
        own = result["mechanism"]
        certificate = own["certificate"] or {}
        rows.append(
            {
                "cell": each,
                "exact": result["exact"],
                "mean": result["mean"],
                "se": result["se"],
                "median": result["five"][2],
                "epsilon": result["guarantee"]["epsilon"],
                "delta": result["guarantee"]["delta"],
                "gamma": own["gamma"],
                "exponent_scale": own["exponent_scale"],
                "certified_epsilon": certificate.get("epsilon"),
                "certified_delta": certificate.get("delta"),
                "scale": (own["scale"] or [None])[0],
                "seconds_first": result["seconds_first"],
                "seconds_each": result["seconds_each"],
            }
        )
    return rows


_LOOK = {  # geometric noise of either sensitivity looks alike: no figure has both
    method: (draw.COLOURS[colour], draw.STYLES[style])
    for method, colour, style in (
        ("theorem", 0, 0),
        ("certified", 2, 2),
        ("laplace2", 3, 3),
        ("truncated", 4, 4),
        ("laplace1", 5, 3),
        ("geometric2", 1, 1),
        ("geometric1", 1, 1),
    )
}


def _lines(
    panel: Axes, results: Results, of: str, size: Size, low: float, high: float, methods: Sequence[str]
) -> None:
    """Draw exact errors as lines and means of runs as points with 95% intervals, between two numbers."""
    for method in methods:
        at = [n for n in points(of, size) if low <= n <= high and method in methods_at(of, n)]
        if not at:
            continue
        found = [results[name(of, n, method)] for n in at]
        values = [result["mean"] if result["exact"] is None else result["exact"] for result in found]
        colour, style = _LOOK[method]
        panel.plot(at, values, color=colour, ls=style, lw=1.3, label=METHODS[method][0])
        means = [result["mean"] for result in found]
        half = [1.96 * result["se"] for result in found]
        panel.errorbar(at, means, half, color=colour, ls="", marker="o", ms=2.5, lw=0.8)
    panel.set_xlabel("records n")


def _by_size(axes: Any, results: Results, of: str, size: Size, methods: Sequence[str]) -> None:
    """Draw errors against n: small sizes, large ones, and all of them."""
    small, large, wide = axes
    for panel, low, high in ((small, 300, 800), (large, 14_000, 20_000), (wide, 0, 10**9)):
        _lines(panel, results, of, size, low, high, methods)
        panel.set_title(f"n from {low:,} to {high:,}")
    small.set_ylabel("mean Hellinger error")
    large.set_xticks(_LARGE)
    small.set_ylim(bottom=0.0)
    large.set_ylim(bottom=0.0)
    _wide(wide)


def _wide(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title("all sizes")


def figure1(results: Results, size: Size, folder: Path) -> None:
    """Errors of the beta posterior against n."""
    title = (
        f"Figure 1: beta(1, 1), 10% successes, ε = 0.8, δ = 1e-8; {size.runs} runs (points), exact (lines)"
    )
    with draw.panels(folder / "fig1.png", 1, 3, title, (3.1, 2.9)) as (figure, axes):
        _by_size(axes[0], results, "two", size, OF_TWO)
        draw.legend(figure, axes[0, -1], 3)
    names = [name("two", n, method) for n in points("two", size) for method in methods_at("two", n)]
    draw.save_table(folder / "fig1.csv", table(results, names))
    rows = []
    for of, method, against in PAIRS:
        for n, own, other in results[crossing_name(of, method, against)]["rows"]:
            where = {"successes": SHARES[of][0], "method": method, "against": against}
            rows.append({**where, "n": n, "error": own, "error_against": other})
    draw.save_table(folder / "crossings.csv", rows)


def figure2(results: Results, size: Size, folder: Path) -> None:
    """Errors of the Dirichlet posterior of three categories against n."""
    title = f"Figure 2: Dirichlet(1, 1, 1), shares 20%, 30%, 50%, ε = 0.8, δ = 1e-8; {size.runs} runs"
    with draw.panels(folder / "fig2.png", 1, 3, title, (3.1, 2.9)) as (figure, axes):
        _by_size(axes[0], results, "three", size, OF_THREE)
        draw.legend(figure, axes[0, -1], 3)
    names = [name("three", n, method) for n in points("three", size) for method in methods_at("three", n)]
    draw.save_table(folder / "fig2.csv", table(results, names))


def figure3(results: Results, size: Size, folder: Path) -> None:
    """Boxes of errors given (5, 5, 5), by balanced prior: quartiles, median, and range of the runs."""
    title = f"Figure 3: counts (5, 5, 5), prior (a, a, a), ε = 0.8, δ = 1e-8; {size.runs} runs"
    with draw.panels(folder / "fig3.png", 1, 1, title, (9.3, 3.3)) as (figure, axes):
        panel = axes[0, 0]
        for number, method in enumerate(OF_THREE):
            colour = _LOOK[method][0]
            found = [results[prior_name(entry, method)] for entry in PRIORS]
            keys = ("whislo", "q1", "med", "q3", "whishi")
            boxes = [dict(zip(keys, r["five"], strict=True)) | {"fliers": []} for r in found]
            place = np.arange(len(PRIORS)) + 0.16 * (number - 2)
            panel.bxp(
                boxes,
                positions=place,
                widths=0.13,
                manage_ticks=False,
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": colour, "alpha": 0.55, "lw": 0.6},
                medianprops={"color": draw.INK, "lw": 1.1},
                whiskerprops={"lw": 0.6},
                capprops={"lw": 0.6},
            )
            means = [r["mean"] if r["exact"] is None else r["exact"] for r in found]
            panel.plot(
                place, means, "D", ms=3.0, color=colour, mec=draw.INK, mew=0.5, label=METHODS[method][0]
            )
        panel.set_xticks(range(len(PRIORS)), [str(entry) for entry in PRIORS])
        panel.set_xlabel("a of the prior (a, a, a)")
        panel.set_ylabel("Hellinger error (diamond: mean)")
        panel.set_ylim(bottom=0.0)
        draw.legend(figure, panel, 3)
    names = [prior_name(entry, method) for entry in PRIORS for method in OF_THREE]
    draw.save_table(folder / "fig3.csv", table(results, names))


def larger(results: Results, size: Size, folder: Path) -> None:
    """Errors and times in four and five categories, which the paper could not run."""
    title = f"More categories: prior of ones, ε = 0.8, δ = 1e-8; {size.runs} runs"
    words = {"four": "four: 10, 20, 30, 40%", "five": "five: 10, 15, 20, 25, 30%"}
    with draw.panels(folder / "larger.png", 1, 3, title, (3.1, 2.9)) as (figure, axes):
        for panel, (of, label) in zip(axes[0], words.items(), strict=False):
            _lines(panel, results, of, size, 0, 10**9, OF_MORE)
            _wide(panel)
            panel.set_title(label)
        axes[0, 0].set_ylabel("mean Hellinger error")
        panel = axes[0, 2]
        for number, (of, label) in enumerate((("three", "three"), ("four", "four"), ("five", "five"))):
            at = points(of, size)
            each = [1e3 * results[name(of, n, "theorem")]["seconds_each"] for n in at]
            panel.plot(at, each, color=draw.COLOURS[5 - number], marker="o", ms=2.5, lw=1.0, label=label)
        panel.set_xscale("log")
        panel.set_ylim(bottom=0.0)
        panel.set_xlabel("records n")
        panel.set_title("ms a draw after the first, theorem")
        panel.legend()
        draw.legend(figure, axes[0, 0], 2)
    names = [name(of, n, method) for of in words for n in points(of, size) for method in OF_MORE]
    draw.save_table(folder / "larger.csv", table(results, names))


CELLS = {
    "fig1": lambda size: _cells_of("two", size) + _crossings(size),
    "fig2": lambda size: _cells_of("three", size),
    "fig3": _priors,
    "larger": lambda size: _cells_of("three", size) + _cells_of("four", size) + _cells_of("five", size),
}
DRAW = {"fig1": figure1, "fig2": figure2, "fig3": figure3, "larger": larger}
