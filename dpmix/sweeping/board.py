"""How a sweep is shown while it runs: a live table on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dpmix.run.progress import Due
from dpmix.sweeping.pool import Outcome, Progress

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Board", "show_sweep"]

_ENDED_SHOWN = 8
_FIGURES = (
    ("hellinger", "Hellinger"),
    ("ks", "KS"),
    ("acceptance", "acceptance"),
    ("rhat_max", "R-hat"),
    ("ess_bulk_min", "ESS"),
)


def in_brief(row: Mapping[str, Any]) -> str:
    """Return the figures of a finished run in a few words."""
    found = [f"{title} {row[key]:.3g}" for key, title in _FIGURES if row.get(key) is not None]
    errors = [
        f"{key} {value:.3g}" for key, value in row.items() if key.startswith("error[") and value is not None
    ]
    return ", ".join(errors[:3] + found if "hellinger" not in row and "ks" not in row else found)


class Board:
    """Says a line on standard error for every run that ends.

    Parameters
    ----------
    total : int
        Runs of the sweep.
    done : int
        Of these, those that were finished before.
    quiet : bool
        Whether only failures are said.
    """

    def __init__(self, total: int, done: int, quiet: bool) -> None:
        self.total, self.done, self.failed, self.quiet = total, done, 0, quiet
        self._due = Due()

    def ended(self, outcome: Outcome) -> None:
        """Take note of a run that ended."""
        if outcome.row is not None:
            self.done += 1
        elif outcome.code != 130:
            self.failed += 1
        self._say(outcome)

    def show(self, running: Mapping[int, Progress]) -> None:
        """Show what is running: now and then, in a line."""
        if running and not self.quiet and self._due.now():
            names = ", ".join(f"{board.name} ({board.stage})" for _, board in sorted(running.items()))
            print(f"dpmix: {self.done} of {self.total} runs done; now {names}", file=sys.stderr, flush=True)

    def _say(self, outcome: Outcome) -> None:
        if outcome.row is None and outcome.code != 130:
            print(f"dpmix: run {outcome.name} failed: {outcome.message}", file=sys.stderr, flush=True)
        elif outcome.row is not None and not self.quiet:
            text = f"{outcome.name} ({outcome.seconds:.1f} s): {in_brief(outcome.row)}"
            print(f"dpmix: [{self.done}/{self.total}] {text}", file=sys.stderr, flush=True)


class _Terminal(Board):
    """Shows a table of what is running and what ended last."""

    def __init__(self, total: int, done: int) -> None:
        super().__init__(total, done, False)
        from rich.console import Console
        from rich.live import Live

        self._last: deque[Outcome] = deque(maxlen=_ENDED_SHOWN)
        self._running: Mapping[int, Progress] = {}
        self._begin = time.monotonic()
        self._live = Live(console=Console(stderr=True), get_renderable=self._table, transient=True)
        self._live.start()

    def show(self, running: Mapping[int, Progress]) -> None:
        self._running = dict(running)

    def _say(self, outcome: Outcome) -> None:
        self._last.append(outcome)
        if outcome.row is None and outcome.code != 130:
            words = f"dpmix: run {outcome.name} failed: {outcome.message}"
            self._live.console.print(words, markup=False, highlight=False)

    def _table(self) -> Table:
        from rich.markup import escape
        from rich.table import Table

        spent = time.monotonic() - self._begin
        title = f"{self.done} of {self.total} runs done, {self.failed} failed, {spent:,.0f} s"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name in ("run", "is", "seconds", "what"):
            table.add_column(name, justify="right" if name == "seconds" else "left", no_wrap=name == "run")
        for outcome in self._last:
            fine = outcome.row is not None
            what = in_brief(outcome.row) if outcome.row is not None else outcome.message
            state, style = ("done", "dim") if fine else ("failed", "red")
            table.add_row(outcome.name, state, f"{outcome.seconds:.1f}", escape(what), style=style)
        for place in sorted(self._running):
            board = self._running[place]
            what = "" if board.share is None else f"{100 * board.share:.0f}%"
            table.add_row(board.name, board.stage, f"{time.monotonic() - board.began:.1f}", what)
        return table

    def close(self) -> None:
        """Take the table away."""
        self._live.stop()


@contextmanager
def show_sweep(total: int, done: int, quiet: bool) -> Iterator[Board]:
    """Give what shows a sweep on standard error: a live table where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield Board(total, done, quiet)
        return
    board = _Terminal(total, done)
    try:
        yield board
    finally:
        board.close()
