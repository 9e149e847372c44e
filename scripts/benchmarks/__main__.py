"""Speed, mixing and memory of every sampler, in one run: scripts/benchmark."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.cells import ALGORITHMS, LARGE, Cell, select
from benchmarks.table import machine, markdown

ROOT = Path(__file__).resolve().parents[1]
FULL, QUICK = 15.0, 1.0  # seconds a cell
OTHERS = {
    "augmentation": "naive Bayes and linear regression given noisy statistics",
    "compositions": "methods for compositions",
    "mechanisms": "what releases by each local mechanism tell at equal epsilon, for docs/mechanisms.md,",
    "performance": "mechanisms, generators of synthetic records and whole commands, for docs/performance.md,",
}
"""Modules that measure other models, each under a flag of its name, and what they measure."""


def _work(cell: Cell, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.worker", json.dumps(cell.to_json()), str(seconds)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"benchmark: {cell.name} failed")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _compiled(cell: Cell) -> tuple[str, str, bool, bool, str]:
    """Cells of one key run the same compiled functions."""
    algorithm = ALGORITHMS[cell.sampler]
    latent = algorithm.get("latent", "exact")
    return algorithm["kind"], latent, cell.epsilon is None, cell.n == LARGE, cell.setting


def _seconds(cell: Cell, options: argparse.Namespace) -> float:
    seconds: float = options.seconds or (QUICK if options.quick else FULL)
    return 2.0 * seconds if cell.n == 5_000 and not options.quick else seconds  # slow mixing: more draws


def run(chosen: list[Cell], options: argparse.Namespace) -> dict[str, Any]:
    """Measure the cells one after the other, each compiled in a process before its own."""
    before, results, compiled = machine(), [], set()
    for number, cell in enumerate(chosen, 1):
        start = time.perf_counter()
        if _compiled(cell) not in compiled:
            _work(cell, 0.0)
            compiled.add(_compiled(cell))
        result = _work(cell, _seconds(cell, options))
        results.append(result)
        ess = result.get("ess_per_second", {}).get("clusters")
        print(
            f"[{number}/{len(chosen)}] {cell.name}: {result['nanoseconds']:.0f} ns a record-update"
            f" ({result['over_floor']:.1f} x floor)"
            + (f", ESS {ess:.3g}/s" if ess is not None else "")
            + f", {result['peak_mb']:.0f} MB, cpu/wall {result['cpu_over_wall']:.2f}"
            + f" [{time.perf_counter() - start:.0f} s]",
            file=sys.stderr,
            flush=True,
        )
    after = machine()
    return {"machine": before, "load_after": after["load"], "quick": options.quick, "cells": results}


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; tables go to standard output unless files are named."""
    parser = argparse.ArgumentParser(prog="scripts/benchmark", description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"about {QUICK:g} s a cell, not {FULL:g}")
    parser.add_argument("--seconds", type=float, help="seconds to spend on a cell")
    parser.add_argument(
        "--cells",
        nargs="+",
        default=[],
        metavar="PART",
        help="measure these alone: parts of names such as slice/eps5/n1000, or tiny",
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures here; - for standard output")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables here; - for standard output")
    parser.add_argument(
        "--work",
        metavar="FILE",
        type=Path,
        help="with --mechanisms, or --performance --cells versus: file of what is measured, a line each, "
        "which is not made again",
    )
    for name, what in OTHERS.items():
        parser.add_argument(
            f"--{name}", dest="other", action="store_const", const=name, help=f"measure {what} instead"
        )
    options = parser.parse_args(arguments)
    resumes = options.other == "mechanisms" or (options.other, options.cells) == ("performance", ["versus"])
    if options.work is not None and not resumes:
        parser.error("--work: is for --mechanisms and for --performance --cells versus alone")
    if options.other == "mechanisms":
        return _mechanisms(options, parser)
    if options.other:
        module = import_module(f"benchmarks.{options.other}")
        seconds = options.seconds or (QUICK if options.quick else FULL)
        if options.cells and not hasattr(module, "select"):
            parser.error(f"--cells: is not for --{options.other}, which measures all of its own")
        try:
            which = [module.select(options.cells)] if options.cells else []
        except ValueError as error:
            parser.error(str(error))
        before = machine()
        kept = {"work": options.work} if options.work is not None else {}
        results = module.run(seconds, *which, **kept)
        report = {
            "machine": before,
            "load_after": machine()["load"],
            "quick": options.quick,
            "cells": results,
        }
        _write(options, report, module.page(report) if hasattr(module, "page") else module.tables(results))
        return 0
    try:
        chosen = select(options.cells)
    except ValueError as error:
        parser.error(str(error))
    report = run(chosen, options)
    command = "scripts/benchmark" + (" --quick" if options.quick else "")
    _write(options, report, markdown(report, f"{command} --markdown docs/benchmarks.md"))
    return 0


def _mechanisms(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Measure mechanisms repeat by repeat, and write tables of all repeats that there are."""
    for name in ("seconds", "json"):
        if getattr(options, name):
            parser.error(f"--{name}: is not for --mechanisms, whose repeats --work keeps")
    module = import_module("benchmarks.mechanisms")
    try:
        cells = module.select(options.cells)
    except ValueError as error:
        parser.error(str(error))
    with TemporaryDirectory() as folder:
        work = options.work or Path(folder) / "work.jsonl"
        module.fill(work, cells, most=1 if options.quick else module.REPEATS)
        text = import_module("benchmarks.mechanism_tables").tables(work)
    if options.markdown and options.markdown != "-":
        Path(options.markdown).write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


def _write(options: argparse.Namespace, report: dict[str, Any], page: str) -> None:
    """Write figures and tables where the options say."""
    texts = {"json": json.dumps(report, indent=1) + "\n", "markdown": page}
    if not options.json and not options.markdown:
        options.markdown = "-"
    for kind, text in texts.items():
        target = getattr(options, kind)
        if target == "-":
            print(text, end="")
        elif target:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(target).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
