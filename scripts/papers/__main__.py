"""Make the figures of a paper from its specs: scripts/reproduce p1, p2, p3, p4 or p5."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import elsewhere
from papers import page, registry
from papers.pool import compute
from papers.registry import CELLS, FIGURES, PAPERS, cells_of

__all__ = ["CELLS", "FIGURES", "cells_of", "main"]

_LEFT = 75  # of sysexits.h: try again
_OF = {
    "sweeps": ("p1", "p4", "p5"),
    "replicates": ("p1",),
    "runs": ("p2", "p3", "p4", "p5"),
    "data": ("p2", "p4", "p5"),
}


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be at least 1")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/reproduce", description=__doc__)
    about = "; ".join(f"{key}: {paper.about}" for key, paper in PAPERS.items())
    parser.add_argument("paper", choices=list(PAPERS), help=about)
    parser.add_argument("--quick", action="store_true", help="less of all: about five minutes on two cores")
    parser.add_argument("--only", nargs="+", metavar="FIG", help="these figures alone, as fig3")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of results; default reproduced/p1")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="processes; default: all cores")
    parser.add_argument(
        "--sweeps", type=_positive, metavar="N", help="p1, p4, p5: sweeps of a chain, half of them burn-in"
    )
    parser.add_argument("--replicates", type=_positive, metavar="N", help="p1: data sets of each cell")
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="begin no cell after so many; exit 75 where some are left",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="put numbers and pictures there, between the paper's marks"
    )
    parser.add_argument("--runs", type=_positive, metavar="N", help="p2 to p5: runs of each kind and point")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="p2, p4, p5: folder of data that do not ship; default: that of DPMIX_DATA, then ../shared/data",
    )
    return parser


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    paper = PAPERS[options.paper]
    known = paper.figures
    chosen = [text if text in known else f"fig{text}" for text in options.only or known]
    for text, name in zip(options.only or known, chosen, strict=True):
        if name not in known:
            parser.error(f"argument --only: {text} is none of {', '.join(known)}")
    if options.page and not options.page.is_file():
        parser.error(f"argument --page: {options.page} is not there")
    options.figures = sorted(set(chosen), key=known.index)
    for key, papers_of in _OF.items():
        if options.paper not in papers_of and getattr(options, key) is not None:
            parser.error(f"argument --{key}: is not for {options.paper}")
    return options


def _size(options: argparse.Namespace) -> Any:
    paper = PAPERS[options.paper]
    size = paper.quick if options.quick else paper.full
    if options.paper == "p1":
        sweeps = max(20, options.sweeps or size.sweeps)
        size = replace(size, sweeps=sweeps, replicates=options.replicates or size.replicates)
        return replace(size, rounds=(sweeps,)) if options.sweeps else size
    if options.paper in ("p4", "p5") and options.sweeps:
        size = replace(size, rounds=(max(40, options.sweeps),))
    if options.runs:
        runs = max(2, options.runs)  # one has no spread
        if options.paper == "p4":
            return replace(size, runs=runs, releases=runs)
        if options.paper == "p5":
            return replace(size, releases=runs, replicates=runs, real=runs)
        more = {"distances": runs, "replicates": runs} if options.paper == "p2" else {}
        size = replace(size, runs=runs, **more)
    return size


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then draw every figure and write the numbers behind it."""
    options = _options(arguments)
    paper, size = PAPERS[options.paper], _size(options)
    folder: Path = options.output or Path("reproduced") / (
        options.paper + ("-quick" if options.quick else "")
    )
    folder.mkdir(parents=True, exist_ok=True)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    data = options.data or elsewhere.folder()
    skipped = paper.prepare(options.figures, folder, data)
    for figure, why in skipped.items():
        print(f"reproduce: {figure} is skipped: {why}", file=sys.stderr)
    figures = [figure for figure in options.figures if figure not in skipped]
    start = time.perf_counter()
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        cells = cells_of(figures, size, paper.cells(folder))
        results, failed = compute(cells, size, folder, jobs, options.minutes)
        if not options.only:
            paper.beside(folder, size)
    except KeyboardInterrupt:
        print("reproduce: interrupted; the same command goes on after the finished cells", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    done = []
    for figure in figures:
        own = paper.cells(folder)[figure](size)
        missing = [cell.name for cell in own if cell.name in failed]
        if missing:
            print(f"reproduce: {figure} is not drawn, for {', '.join(missing)} failed", file=sys.stderr)
            continue
        there = [cell.name in results for cell in own if not getattr(cell, "replicate", 0)]
        if not (any(there) if figure in paper.partly else all(there)):
            continue  # time was up; what there is of further data sets is drawn
        paper.draw[figure](results, size, folder)
        done.append(figure)
    words = paper.findings(results, size, folder, done)
    if words is not None:
        (folder / "findings.md").write_text(words, encoding="utf-8")
        if options.page:
            page.fill(options.page, options.paper, words, paper.shown, folder)
    left = [cell.name for cell in cells if cell.name not in results and cell.name not in failed]
    about = {
        "size": vars(size),
        "figures": done,
        "failed": failed,
        "skipped": skipped,
        "cells": len(results),
        "left": len(left),
        "seconds": round(time.perf_counter() - start),
        "seconds_of_cells": round(sum(result["elapsed"] for result in results.values())),
        "processor_seconds_of_cells": round(sum(result["cpu"] for result in results.values())),
        "note": registry.NOTES[options.paper],
    }
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    spent = (
        f"{about['seconds_of_cells']} s in all pieces, {about['processor_seconds_of_cells']} s of processors"
    )
    print(f"reproduce: {len(done)} figures in {folder}; {len(results)} cells, {spent}")
    if left and not failed:
        print(f"reproduce: {len(left)} cells are left; the same command goes on with them", file=sys.stderr)
        return _LEFT
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
