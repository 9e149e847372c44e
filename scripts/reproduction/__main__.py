"""Make the figures of Beraha, Favaro and Rao (2024) from the specs in configs/p1: scripts/reproduce p1."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from reproduction import beta, defect, findings, gaussian, histogram, normal, waiting
from reproduction.cells import FULL, QUICK, Cell, Results, Size
from reproduction.pool import compute

__all__ = ["CELLS", "FIGURES", "cells_of", "main"]

_PARTS: tuple[Any, ...] = (normal, beta, gaussian, waiting, histogram)
CELLS: dict[str, Callable[[Size], list[Cell]]] = {k: f for part in _PARTS for k, f in part.CELLS.items()}
_DRAW: dict[str, Callable[[Results, Size, Path], None]] = {
    k: f for part in _PARTS for k, f in part.DRAW.items()
}
FIGURES = tuple(f"fig{number}" for number in range(1, 15))


def cells_of(figures: list[str], size: Size) -> list[Cell]:
    """Return the cells that some figures need, each once."""
    found: dict[str, Cell] = {}
    for figure in figures:
        for cell in CELLS[figure](size):
            known = found.setdefault(cell.name, cell)
            assert known == cell, cell.name
    return list(found.values())


def _figure(text: str) -> str:
    name = text if text.startswith("fig") else f"fig{text}"
    if name not in FIGURES:
        raise argparse.ArgumentTypeError(f"{text} is none of {FIGURES[0]} to {FIGURES[-1]}")
    return name


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/reproduce", description=__doc__)
    parser.add_argument("paper", choices=["p1"], help="Beraha, Favaro and Rao (2024)")
    parser.add_argument("--quick", action="store_true", help="short chains: about five minutes on two cores")
    parser.add_argument("--only", nargs="+", type=_figure, metavar="FIG", help="these figures alone, as fig3")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of results; default reproduced/p1")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes; default: all cores")
    parser.add_argument(
        "--sweeps", type=_positive, metavar="N", help="sweeps of a chain, half of them burn-in"
    )
    parser.add_argument("--replicates", type=_positive, metavar="N", help="data sets of Figures 2 and 10")
    return parser


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then draw every figure and write the numbers behind it."""
    options = _parser().parse_args(arguments)
    size = QUICK if options.quick else FULL
    size = replace(
        size, sweeps=max(20, options.sweeps or size.sweeps), replicates=options.replicates or size.replicates
    )
    folder: Path = options.output or Path("reproduced") / ("p1-quick" if options.quick else "p1")
    folder.mkdir(parents=True, exist_ok=True)
    figures = sorted(set(options.only or FIGURES), key=FIGURES.index)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    start = time.perf_counter()
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        results, failed = compute(cells_of(figures, size), size, folder, jobs)
        if not options.only:
            defect.compute(folder, size)
    except KeyboardInterrupt:
        print("reproduce: interrupted; the same command goes on after the finished cells", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    done = []
    for figure in figures:
        missing = [cell.name for cell in CELLS[figure](size) if cell.name in failed]
        if missing:
            print(f"reproduce: {figure} is not drawn, for {', '.join(missing)} failed", file=sys.stderr)
            continue
        _DRAW[figure](results, size, folder)
        done.append(figure)
    if len(done) == len(FIGURES):
        (folder / "findings.md").write_text(findings.text(results, size, folder), encoding="utf-8")
    about = {
        "size": vars(size),
        "figures": done,
        "failed": failed,
        "cells": len(results),
        "seconds": round(time.perf_counter() - start),
        "note": "simulated data and noise; nothing here is private",
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(f"reproduce: {len(done)} figures in {folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
