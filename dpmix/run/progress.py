"""Progress on standard error: live on a terminal, and elsewhere a plain line once work takes long."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_FIRST, _NEXT = 10.0, 60.0  # seconds after which work off a terminal says how far it is, and between lines


class Due:
    """Tells when a line off a terminal is due: after ten seconds, and then every minute."""

    def __init__(self) -> None:
        self._next = time.monotonic() + _FIRST

    def now(self) -> bool:
        """Return whether it is time, and count from here if so."""
        if time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + _NEXT
        return True


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


_COMPILING = {
    True: "dpmix: compiling, once for this kind of fit; 10 s to a minute",
    False: "dpmix: compiling what is not kept on disk; 10 s to a minute",
}


class Watch:
    """Sees a fit go on, and shows nothing."""

    def phase(self, text: str) -> AbstractContextManager[Any]:
        """Show `text` while the block runs."""
        return nullcontext()

    def compiling(self, kept: bool) -> None:
        """Say that code is compiled that was not on disk, whether or not it is kept there."""

    def chains(self, boards: Sequence[ChainProgress]) -> None:
        """Show how far the chains are."""


class _Lines(Watch):
    """Says now and then in a line what takes long."""

    def __init__(self) -> None:
        self._due: Due | None = None

    def phase(self, text: str) -> AbstractContextManager[Any]:
        return _now_and_then(text)

    def compiling(self, kept: bool) -> None:
        print(_COMPILING[kept], file=sys.stderr, flush=True)

    def chains(self, boards: Sequence[ChainProgress]) -> None:
        if self._due is None:
            self._due = Due()
        total, done = sum(board.total for board in boards), sum(board.done for board in boards)
        if done < total and self._due.now():
            many = f"{len(boards)} chain{'s' * (len(boards) > 1)}"
            _line(f"{many}: {done:,} of {total:,} sweeps ({100 * done // total}%)")


def terminal() -> Console:
    """Return standard error as rich writes to it."""
    from rich.console import Console

    return Console(file=getattr(sys.stderr, "unchanged", sys.stderr))


class _TerminalWatch(Watch):
    """Shows a fit on a terminal: a line for what is done once, and a bar for each chain."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._console = terminal()
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

    def compiling(self, kept: bool) -> None:
        self._console.print(_COMPILING[kept], highlight=False)

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


def show_fit(quiet: bool) -> AbstractContextManager[Watch]:
    """Give what shows a fit on standard error: live where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(Watch() if quiet else _Lines())
    return closing(_TerminalWatch())


def show_phase(what: str, quiet: bool) -> AbstractContextManager[Any]:
    """Show that something goes on whose end is not known, while the block runs.

    The block must start no process by forking: off a terminal a thread says the lines.
    """
    if quiet:
        return nullcontext()
    return terminal().status(what) if sys.stderr.isatty() else _now_and_then(what)


@contextmanager
def _now_and_then(what: str) -> Iterator[None]:
    """Say from another thread how long the block has run, while it runs."""
    ended, begin = threading.Event(), time.monotonic()

    def tell() -> None:
        pause = _FIRST
        while not ended.wait(pause):
            pause = _NEXT
            _line(f"{what}: {time.monotonic() - begin:,.0f} s so far")

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _line(text: str) -> None:
    print(f"dpmix: {text}", file=sys.stderr, flush=True)


@contextmanager
def show_work(
    what: str, total: int, quiet: bool, progress: Callable[[int, int], None] | None = None
) -> Iterator[Callable[[int], None]]:
    """Give what is told how much of `total` is done: a bar on a terminal, else a plain line now and then.

    `progress`, where a caller gave one, is told how much is done and the total, in place of both.
    """
    if progress is not None:
        yield lambda done: progress(done, total)
        return
    if quiet:
        yield lambda done: None
        return
    if not sys.stderr.isatty():
        due = Due()

        def tell(done: int) -> None:
            if done < total and due.now():
                _line(f"{what}: {done:,} of {total:,}")

        yield tell
        return
    from rich.progress import Progress

    with Progress(console=terminal(), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
