"""Progress of a fit on standard error: live on a terminal, and elsewhere what takes long and is done once."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

__all__ = ["ChainProgress", "Watch", "show_fit", "show_work"]

_FIRST, _NEXT = 10.0, 60.0  # seconds after which work off a terminal says how far it is, and between lines


@dataclass
class ChainProgress:
    """How far one chain is; written by its thread, read by whoever shows it.

    `note` says something of its state; `started_at` and `seconds_before` are what an interrupted run had
    done.
    """

    chain: int
    total: int
    done: int = 0
    note: str = ""
    acceptance_rate: float = math.nan
    seconds: float = 0.0
    started_at: int = 0
    seconds_before: float = 0.0


_COMPILING = "dpmix: compiling, once for this kind of fit; about 10 s"


class Watch:
    """Sees a fit go on, and shows nothing."""

    def phase(self, text: str) -> AbstractContextManager[Any]:
        """Show `text` while the block runs."""
        return nullcontext()

    def compiling(self) -> None:
        """Say that code is compiled that is not kept on disk."""

    def chains(self, boards: Sequence[ChainProgress]) -> None:
        """Show how far the chains are."""


class _Lines(Watch):
    """Says in a line what takes long without a word."""

    def compiling(self) -> None:
        print(_COMPILING, file=sys.stderr, flush=True)


class _Terminal(Watch):
    """Shows a fit on a terminal: a line for what is done once, and a bar for each chain."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("chain {task.fields[chain]}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._tasks: dict[int, Any] = {}
        self._begin = 0.0

    def phase(self, text: str) -> AbstractContextManager[Any]:
        self.close()
        return self._console.status(text)

    def compiling(self) -> None:
        self._console.print(_COMPILING, highlight=False)

    def chains(self, boards: Sequence[ChainProgress]) -> None:
        if not self._bars.live.is_started:
            self._bars.start()
            self._begin = time.monotonic()
        for board in boards:
            if board.chain not in self._tasks:
                self._tasks[board.chain] = self._bars.add_task(
                    "", total=board.total, chain=board.chain, note=""
                )
            self._bars.update(self._tasks[board.chain], completed=board.done, note=_note(board))

    def close(self) -> None:
        """Take the bars away."""
        self._bars.stop()


def _note(board: ChainProgress) -> str:
    spent = board.seconds - board.seconds_before
    if not spent > 0.0:
        return "waiting" if board.done < board.total else ""
    note = f"{(board.done - board.started_at) / spent:,.0f} iterations/s"
    if board.note:
        note += f", {board.note}"
    if board.acceptance_rate == board.acceptance_rate:  # not NaN
        note += f", acceptance {board.acceptance_rate:.2f}"
    return note


@contextmanager
def show_fit(quiet: bool) -> Iterator[Watch]:
    """Give what shows a fit on standard error: live where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield Watch() if quiet else _Lines()
        return
    watch = _Terminal()
    try:
        yield watch
    finally:
        watch.close()


@contextmanager
def show_work(what: str, total: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Give what is told how much of `total` is done: a bar on a terminal, else a plain line now and then."""
    if quiet:
        yield lambda done: None
        return
    if not sys.stderr.isatty():
        due = time.monotonic() + _FIRST

        def tell(done: int) -> None:
            nonlocal due
            if time.monotonic() >= due and done < total:
                due = time.monotonic() + _NEXT
                print(f"dpmix: {what}: {done:,} of {total:,}", file=sys.stderr, flush=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
