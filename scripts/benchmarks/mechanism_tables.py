"""Tables of mechanisms side by side: distances, coverage and widths, and how well chains mixed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.mechanisms import EPSILONS, MECHANISMS, POINTS, POPULATIONS, Cell, here, read
from benchmarks.table import table

__all__ = ["tables"]

Floats = NDArray[np.float64]


def _held(strings: Sequence[str], population: str) -> str:
    """Return the share of places and repeats where the band holds the truth, its error, and the worst place.

    Only between the outer hundredths: beyond, next to no record lies, and a distribution function of 1e-9 is
    below any equal-tailed band. The standard error is that of a mean over repeats, for places are dependent.
    """
    (lo, hi), cdf = POPULATIONS[population].domain, POPULATIONS[population].cdf
    below = cdf(lo + (hi - lo) * (np.arange(POINTS) + 0.5) / POINTS)
    marks: Floats = np.array([[float(mark == "1") for mark in string] for string in strings])
    marks = marks[:, (below > 0.01) & (below < 0.99)]
    shares, places = marks.mean(axis=1), marks.mean(axis=0)
    error = f" ± {shares.std(ddof=1) / len(shares) ** 0.5:.3f}" if len(shares) > 1 else ""
    return f"{shares.mean():.3f}{error} ({places.min():.2f})"


def _thousandths(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None and np.isfinite(value)]
    return f"{1e3 * float(np.mean(known)):.1f}" if known else "-"


def tables(work: Path) -> str:
    """Write tables of the repeats in a file of results, by population, mechanism and epsilon."""
    found, estimates = read(work)
    lines: list[str] = []
    for name in here():
        rows, checks = [], []
        for mechanism in MECHANISMS:
            for epsilon in EPSILONS:
                cell = Cell(name, mechanism, epsilon)
                own = [each for (key, _), each in found.items() if key == cell.name]
                if not own:
                    continue
                other = [each for (key, _), each in estimates.items() if key == cell.name]
                row = [mechanism, f"{epsilon:g}", f"{len(own)}", _thousandths([each.w1 for each in own])]
                row += [
                    _thousandths([each.ems for each in other]),
                    _thousandths([each.kde for each in other]),
                ]
                row.append(_held([each.cdf for each in own], name))
                if own[0].density:
                    row.append(_held([each.density for each in own], name))
                row.append(f"{1e3 * np.mean([each.cdf_width for each in own]):.1f}")
                if own[0].density:
                    row.append(f"{np.mean([each.density_width for each in own]):.3f}")
                rows.append(row)
                rhats, sizes = [each.rhat for each in own], [each.ess for each in own]
                checks.append(
                    [
                        mechanism,
                        f"{epsilon:g}",
                        f"{np.median(rhats):.3f}, {max(rhats):.2f}",
                        f"{np.median(sizes):.0f}, {min(sizes):.0f}",
                        f"{sum(each.times > 1 for each in own)}",
                        f"{np.median([each.seconds for each in own if each.times == 1] or [np.nan]):.1f}",
                    ]
                )
        if not rows:
            continue
        dense = POPULATIONS[name].density is not None
        head = [
            "mechanism",
            "epsilon",
            "repeats",
            "W1: posterior",
            "EMS",
            "KDE",
            "held, distribution function",
        ]
        head += ["held, density"] * dense + ["width, distribution function"] + ["width, density"] * dense
        lines += [f"## {name}", "", *table(head, rows), ""]
        head = [
            "mechanism",
            "epsilon",
            "R-hat: median, largest",
            "ESS: median, least",
            "longer",
            "s of processor",
        ]
        lines += [*table(head, checks), ""]
    return "\n".join(lines)
