"""Runs cells on several processes, each result in a file of its own as soon as it is there."""

from __future__ import annotations

import math
import multiprocessing
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from dpmix.errors import DpmixError

from .kept import clear_work

__all__ = ["Cell", "Results", "compute", "run_cell"]

Results = dict[str, dict[str, Any]]


class Cell(Protocol):
    """What is run: it knows its name, its spec and how to compute and find its result."""

    @property
    def name(self) -> str:
        """Unique among cells."""

    @property
    def spec(self) -> str:
        """File of its spec."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """What it changes there."""

    def finished(self, size: Any, folder: Path) -> dict[str, Any] | None:
        """Return its result where it was computed with these settings, else None."""

    def run(self, size: Any, folder: Path) -> dict[str, Any]:
        """Compute its result, write it to `folder` and return it."""


def run_cell(cell: Cell, size: Any, folder: Path) -> dict[str, Any]:
    """Compute the result of a cell."""
    return cell.run(size, folder)


def compute(
    cells: Sequence[Cell], size: Any, folder: Path, jobs: int, minutes: float | None = None
) -> tuple[Results, dict[str, str]]:
    """Return the results of all cells by name, and what went wrong by name; finished ones are not run again.

    Where `minutes` are given, no cell begins later than that: some may then be neither here nor there.

    Raises
    ------
    KeyboardInterrupt
        On SIGINT or SIGTERM; what is finished stays.
    """
    found: Results = {}
    left: list[Cell] = []
    failed: dict[str, str] = {}
    for cell in cells:
        known = cell.finished(size, folder)
        if known is None:
            left.append(cell)
        else:
            found[cell.name] = known
    if found:
        print(f"reproduce: {len(found)} of {len(cells)} cells are there already", file=sys.stderr)
    start = time.perf_counter()
    end = math.inf if minutes is None else start + 60.0 * minutes
    try:
        for number, (cell, result) in enumerate(_run(_ordered(left), size, folder, jobs, end), 1):
            if isinstance(result, str):
                failed[cell.name] = result
                print(f"reproduce: {cell.name} failed: {result}", file=sys.stderr)
            else:
                found[cell.name] = result
            spent = time.perf_counter() - start
            print(f"[{number}/{len(left)}, {spent:.0f} s] {cell.name}", file=sys.stderr, flush=True)
    finally:
        clear_work(folder)
    return found, failed


def _ordered(cells: Sequence[Cell]) -> list[Cell]:
    """Put one cell of each program first, so that processes do not compile the same one at once.

    What is left goes by data sets, where cells have several: all cells of the first one come first, so that
    what a run that was stopped has is of one kind.
    """
    first: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        program = (cell.spec, " ".join(o for o in cell.overrides if "kind" in o or "sampler" in o))
        first.setdefault(program, cell)
    heads = list(first.values())
    rest = [cell for cell in cells if cell not in heads]
    return heads + sorted(rest, key=lambda cell: int(getattr(cell, "replicate", 0)))


def _run(
    cells: Sequence[Cell], size: Any, folder: Path, jobs: int, end: float
) -> Iterator[tuple[Cell, dict[str, Any] | str]]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            if time.perf_counter() > end:
                return
            yield cell, _safely(cell, size, folder)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_signals) as pool:
        try:
            futures = {pool.submit(_safely, cell, size, folder): cell for cell in cells}
            for future in as_completed(futures):
                if time.perf_counter() > end:
                    for other in futures:
                        other.cancel()
                if not future.cancelled():
                    yield futures[future], future.result()
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()
            pool.shutdown(cancel_futures=True)
            raise


def _safely(cell: Cell, size: Any, folder: Path) -> dict[str, Any] | str:
    try:
        return run_cell(cell, size, folder)
    except DpmixError as error:
        return str(error)


def _leave_signals() -> None:
    """Leave SIGINT from the keyboard to the parent, which ends its children."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
