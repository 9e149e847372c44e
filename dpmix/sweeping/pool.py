"""Several processes at once, each doing one run after the other; what breaks one run costs no other."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from dpmix.run.progress import Due, terminal

if TYPE_CHECKING:
    from rich.table import Table

PATIENCE = 60.0
"""Seconds that others wait for the end of a first run that had to compile, once it samples."""

WORKER = (sys.executable, "-m", "dpmix.api.sweep_run")


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Parameters
    ----------
    name : str
        The run.
    row : mapping or None
        Its result, where it is finished.
    message : str
        What went wrong, where it failed.
    code : int
        Exit code that `dpmix` would have had: 0 finished, 130 interrupted.
    seconds : float
        Wall time.
    """

    name: str
    row: Mapping[str, Any] | None
    message: str
    code: int
    seconds: float


@dataclass
class Progress:
    """How far a run is; written by the thread of its process, read by whoever shows it."""

    name: str
    began: float = field(default_factory=time.monotonic)
    stage: str = "starting"
    share: float | None = None


class Pool:
    """Processes that do runs.

    Parameters
    ----------
    runs : sequence of mapping
        What the processes are told of each run, for JSON; each has a ``name``.
    jobs : int
        Number of processes.
    command : sequence of str
        What a process is: it reads lines of JSON and answers each with lines of JSON, of which the last has
        the key ``finished``, ``failed`` or ``interrupted``.
    kept : callable, optional
        How many compiled functions are kept on the disk. Where the first run adds some before it samples, the
        others wait for its end too, as its summary may need more of them, but no longer than `PATIENCE`.
    """

    def __init__(
        self,
        runs: Sequence[Mapping[str, Any]],
        jobs: int,
        command: Sequence[str] = WORKER,
        kept: Callable[[], int] = int,
    ) -> None:
        self._left = deque(runs)
        self._kept, self._before, self._waiting = kept, kept(), False
        self._command = list(command)
        self._lock = threading.Lock()
        self._ended: deque[Outcome] = deque()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._stopping = False
        self._warm = threading.Event()
        self._running: dict[int, Progress] = {}
        self._threads = [
            threading.Thread(target=self._work, args=(place,)) for place in range(min(jobs, len(runs)))
        ]

    def start(self) -> None:
        """Start working."""
        for thread in self._threads:
            thread.start()

    @property
    def working(self) -> bool:
        """Whether anything is still being done."""
        return any(thread.is_alive() for thread in self._threads)

    def running(self) -> dict[int, Progress]:
        """Return how far the runs are that are being done, by the place of their process."""
        with self._lock:
            return dict(self._running)

    def ended(self) -> list[Outcome]:
        """Return the runs that ended since the last call."""
        with self._lock:
            found = list(self._ended)
            self._ended.clear()
        return found

    def stop(self) -> None:
        """Ask all processes to save their state and stop; asking again changes nothing."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            self._left.clear()
            self._warm.set()
            for process in self._processes.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)

    def _work(self, place: int) -> None:
        """Do runs in one process, or in a new one where that ended."""
        if place > 0:  # what the first compiles, the others find compiled
            self._warm.wait()
        process: subprocess.Popen[str] | None = None
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            while (told := self._next()) is not None:
                board = Progress(str(told["name"]))
                with self._lock:
                    self._running[place] = board
                process = self._process(place, process, errors)
                outcome = self._run(process, told, board, errors)
                self._warm.set()
                with self._lock:
                    self._ended.append(outcome)
                    self._running.pop(place, None)
            _close(process)

    def _sampling(self) -> None:
        """Let the others begin as the first run samples, or where it had to compile, when it ends."""
        if self._kept() == self._before:
            self._warm.set()
            return
        self._waiting = True
        timer = threading.Timer(PATIENCE, self._warm.set)
        timer.daemon = True
        timer.start()

    def _next(self) -> Mapping[str, Any] | None:
        with self._lock:
            return self._left.popleft() if self._left else None

    def _process(
        self, place: int, process: subprocess.Popen[str] | None, errors: IO[str]
    ) -> subprocess.Popen[str]:
        if process is not None and process.poll() is None:
            return process
        _close(process)
        with self._lock:
            fresh = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C is for us, who stop them
            )
            self._processes[place] = fresh
            if self._stopping:
                fresh.send_signal(signal.SIGTERM)
        return fresh

    def _run(
        self, process: subprocess.Popen[str], told: Mapping[str, Any], board: Progress, errors: IO[str]
    ) -> Outcome:
        """Have a process do a run, and follow it to its end."""
        assert process.stdin is not None and process.stdout is not None

        def outcome(row: Mapping[str, Any] | None, message: str, code: int) -> Outcome:
            return Outcome(board.name, row, message, code, time.monotonic() - board.began)

        try:
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended: there is nothing to read either
        for line in process.stdout:
            said = json.loads(line)
            if "finished" in said:
                return outcome(said["finished"], "", 0)
            if "failed" in said:
                return outcome(None, str(said["failed"]), int(said["code"]))
            if "interrupted" in said:
                process.wait()
                return outcome(None, "interrupted", 130)
            board.stage, board.share = str(said["stage"]), said.get("share")
            if board.share is not None and not self._waiting and not self._warm.is_set():
                self._sampling()
        code = process.wait()
        if self._stopping:
            return outcome(None, "interrupted", 130)
        return outcome(None, _how_it_ended(code, errors), 5)


def _close(process: subprocess.Popen[str] | None) -> None:
    """Tell a process that there is no more to do, and wait for its end."""
    if process is None:
        return
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # what was not sent to a process that ended
        process.stdin.close()
    process.wait()
    process.stdout.close()


def _how_it_ended(code: int, errors: IO[str]) -> str:
    """Say how a process ended that should not have, with the last that it said."""
    errors.seek(0)
    said = errors.read().strip().splitlines()
    last = f" ({said[-1].strip()[:200]})" if said else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"its process was ended by {name}{last}"
    return f"its process ended with code {code}{last}"


# How a sweep is shown while it runs: a live table on a terminal, lines elsewhere


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
        from rich.live import Live

        self._last: deque[Outcome] = deque(maxlen=_ENDED_SHOWN)
        self._running: Mapping[int, Progress] = {}
        self._begin = time.monotonic()
        self._live = Live(console=terminal(), get_renderable=self._table, transient=True)
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


def show_sweep(total: int, done: int, quiet: bool) -> AbstractContextManager[Board]:
    """Give what shows a sweep on standard error: a live table where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        return nullcontext(Board(total, done, quiet))
    return closing(_Terminal(total, done))
