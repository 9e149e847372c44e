"""The papers that can be made again: their figures, what these need, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers import draw
from papers.p1 import agreement, beta, defect, findings, gaussian, histogram, normal, waiting
from papers.p1.cells import FULL, QUICK
from papers.p2 import cells as second
from papers.p2 import (
    convergence as p2convergence,
)
from papers.p2 import (
    downstream as p2downstream,
)
from papers.p2 import (
    findings as p2findings,
)
from papers.p2 import (
    utility as p2utility,
)
from papers.p3 import cells as third
from papers.p3 import figures as p3figures
from papers.p3 import findings as p3findings
from papers.p4 import cells as fourth
from papers.p4 import days as p4days
from papers.p4 import findings as p4findings
from papers.p4 import simulated as p4simulated
from papers.p5 import cells as fifth
from papers.p5 import findings as p5findings
from papers.p5 import real as p5real
from papers.p5 import simulated as p5simulated

__all__ = ["CELLS", "FIGURES", "NOTES", "PAPERS", "Paper", "cells_of"]

Cells = Mapping[str, Callable[[Any], list[Any]]]
_PARTS: tuple[Any, ...] = (normal, beta, gaussian, waiting, histogram)
CELLS: Cells = {k: f for part in _PARTS for k, f in part.CELLS.items()}
FIGURES = tuple(f"fig{number}" for number in range(1, 15))
NOTES = {
    "p1": "simulated data and noise; nothing here is private",
    "p2": "fig1 and table2: simulated data and noise, not private; table1 and table1_visits: public records, "
    "and what is measured of releases depends on them",
    "p3": "counts that are made up, and releases drawn with seeds; nothing here is private",
    "p4": "figures: simulated data and noise, not private; table2_days: simulated records with real noise; "
    "table2: public records, and what is measured of releases depends on them",
    "p5": "figures and tables: simulated data and noise, not private; anes, engel and incomes: public "
    "records, and what is measured of releases depends on them",
}


@dataclass(frozen=True)
class Paper:
    """A paper.

    Parameters
    ----------
    about : str
        What it is.
    figures : tuple of str
        Names of its figures and tables, in order.
    quick, full : object
        Sizes of its runs.
    cells : callable
        Gives, for a folder of results, the cells of each figure as a function of the size.
    draw : mapping of str to callable
        Draws a figure from results, size and folder.
    findings : callable
        Gives, from results, size, folder and the figures drawn, a table of numbers, or None.
    prepare : callable
        Makes what figures need, from the folder of results and that of the data; returns what is skipped and
        why.
    beside : callable
        Runs what belongs to no figure, from folder and size.
    shown : tuple of str
        Pictures that the page shows.
    partly : tuple of str
        Figures whose panels stay empty where their runs are not there.
    """

    about: str
    figures: tuple[str, ...]
    quick: Any
    full: Any
    cells: Callable[[Path], Cells]
    draw: Mapping[str, Callable[[Any, Any, Path], None]]
    findings: Callable[[Any, Any, Path, list[str]], str | None]
    prepare: Callable[[list[str], Path, Path], dict[str, str]]
    beside: Callable[[Path, Any], object]
    shown: tuple[str, ...]
    partly: tuple[str, ...] = ()


def cells_of(figures: list[str], size: Any, cells: Cells = CELLS) -> list[Any]:
    """Return the cells that some figures need, each once."""
    found: dict[str, Any] = {}
    for figure in figures:
        for cell in cells[figure](size):
            known = found.setdefault(cell.name, cell)
            assert known == cell, cell.name
    return list(found.values())


def _first_findings(results: Any, size: Any, folder: Path, done: list[str]) -> str | None:
    if not done:
        return None
    rows = agreement.rows(results, cells_of(list(FIGURES), size))
    draw.save_table(folder / "p1_cells.csv", rows)
    return findings.text(results, folder, done, agreement.text(rows))


def _second_cells(folder: Path) -> Cells:
    placed = {
        figure: (lambda size, make=make: make(size, folder)) for figure, make in p2utility.CELLS.items()
    }
    return {**p2convergence.CELLS, **placed, **p2downstream.CELLS}


def _prepare_second(figures: list[str], folder: Path, data: Path) -> dict[str, str]:
    why = p2utility.prepare(folder, data) if "table1" in figures else None
    return {} if why is None else {"table1": why}


def _fourth_cells(folder: Path) -> Cells:
    placed = {table: (lambda size, make=make: make(size, folder)) for table, make in p4days.CELLS.items()}
    return {**p4simulated.CELLS, **placed}


def _prepare_fourth(figures: list[str], folder: Path, data: Path) -> dict[str, str]:
    why = p4days.prepare(folder, data) if "table2" in figures else None
    return {} if why is None else {"table2": why}


def _fifth_cells(folder: Path) -> Cells:
    placed = {data: (lambda size, make=make: make(size, folder)) for data, make in p5real.CELLS.items()}
    return {**p5simulated.CELLS, **placed}


def _prepare_fifth(figures: list[str], folder: Path, data: Path) -> dict[str, str]:
    why = p5real.prepare(folder, data) if "incomes" in figures else None
    return {} if why is None else {"incomes": why}


PAPERS = {
    "p1": Paper(
        about="Beraha, Favaro and Rao (2024)",
        figures=FIGURES,
        quick=QUICK,
        full=FULL,
        cells=lambda folder: CELLS,
        draw={k: f for part in _PARTS for k, f in part.DRAW.items()},
        findings=_first_findings,
        prepare=lambda figures, folder, data: {},
        beside=defect.compute,
        shown=("fig2", "fig3", "defect"),
        partly=("fig3", "fig7", "fig8"),
    ),
    "p2": Paper(
        about="the paper on synthesis by Pitman-Yor processes",
        figures=("fig1", "table1", "table1_visits", "table2"),
        quick=second.QUICK,
        full=second.FULL,
        cells=_second_cells,
        draw={**p2convergence.DRAW, **p2utility.DRAW, **p2downstream.DRAW},
        findings=lambda results, size, folder, done: p2findings.text(results, size, done),
        prepare=_prepare_second,
        beside=lambda folder, size: None,
        shown=("fig1", "table1", "table2"),
    ),
    "p3": Paper(
        about="Bun, Farina, Gaboardi and Liu, on released posteriors",
        figures=("fig1", "fig2", "fig3", "larger"),
        quick=third.QUICK,
        full=third.FULL,
        cells=lambda folder: p3figures.CELLS,
        draw=p3figures.DRAW,
        findings=lambda results, size, folder, done: p3findings.text(results, size, done),
        prepare=lambda figures, folder, data: {},
        beside=lambda folder, size: None,
        shown=("fig1", "fig2", "fig3", "larger"),
    ),
    "p4": Paper(
        about="Guo, Barrientos and Pena, on compositional data",
        figures=(*p4simulated.CELLS, *p4days.CELLS),
        quick=fourth.QUICK,
        full=fourth.FULL,
        cells=_fourth_cells,
        draw={**p4simulated.DRAW, **p4days.DRAW},
        findings=lambda results, size, folder, done: p4findings.text(results, size, done),
        prepare=_prepare_fourth,
        beside=lambda folder, size: None,
        shown=("fig2", "table2"),
    ),
    "p5": Paper(
        about="Ju, Awan, Gong and Rao (2022)",
        figures=(*p5simulated.CELLS, *p5real.CELLS),
        quick=fifth.QUICK,
        full=fifth.FULL,
        cells=_fifth_cells,
        draw={**p5simulated.DRAW, **p5real.DRAW},
        findings=p5findings.text,
        prepare=_prepare_fifth,
        beside=lambda folder, size: None,
        shown=("fig1", "table1", "fig2", "table1_regression", "anes", "incomes"),
    ),
}
