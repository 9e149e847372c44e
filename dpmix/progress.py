"""Live progress of chains on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpmix.chains import Progress

__all__ = ["show_chains"]


@contextmanager
def show_chains(quiet: bool) -> Iterator[Callable[[Sequence[Progress]], None]]:
    """Give a function that shows the progress of chains on standard error, where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda boards: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    bars = Bars(
        TextColumn("chain {task.fields[chain]}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    tasks: dict[int, TaskID] = {}
    begin = time.monotonic()

    def watch(boards: Sequence[Progress]) -> None:
        for board in boards:
            if board.chain not in tasks:
                tasks[board.chain] = bars.add_task("", total=board.total, chain=board.chain, note="")
            rate = (board.done - board.started_at) / max(time.monotonic() - begin, 1e-9)
            note = f"{rate:,.0f} iterations/s, {board.n_clusters} clusters"
            if board.acceptance_rate == board.acceptance_rate:
                note += f", acceptance {board.acceptance_rate:.2f}"
            bars.update(tasks[board.chain], completed=board.done, note=note)

    with bars:
        yield watch
