"""Commands in forked children that something happens to: a signal, at a moment or a step, or no room.

The parent has imported everything and compiled what is needed, and has no threads, so that a child is at work
within milliseconds, and what happens to it happens there.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpmix.run.runner
import dpmix.store.h5
from breaking.circumstances import become_nobody, closed
from dpmix.cli.commands import app
from dpmix.run.exit_codes import run

__all__ = ["Ended", "Fate", "perform", "warm_up"]

_STEPS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "fcntl.flock")


@dataclass(frozen=True)
class Fate:
    """What happens to a command.

    Parameters
    ----------
    number : int
        Signal that it gets; 0 for none.
    after : float or None
        Seconds until then.
    step : int or None
        Steps until then: calls that change, lock or flush what is on the disk. The signal comes before the
        next one.
    full : int or None
        Steps until the disk is full, from when on nothing can be written.
    size : int or None
        Bytes that a file may have.
    before : callable, optional
        Called in the child first.
    closed : bool
        Whether the folder and what is in it can be read only; root becomes nobody for that.
    name : str
        What it is called where neither a signal nor a full disk is the matter.
    """

    number: int = 0
    after: float | None = None
    step: int | None = None
    full: int | None = None
    size: int | None = None
    before: Callable[[], None] | None = None
    closed: bool = False
    name: str = ""

    def __str__(self) -> str:
        """Say it in few words."""
        name = signal.Signals(self.number).name if self.number else self.name or "nothing"
        when = "" if self.after is None else f" after {self.after:.4f} s"
        when += "" if self.step is None else f" at step {self.step}"
        when += "" if self.full is None else f" disk full from step {self.full}"
        return f"{name}{when}" + ("" if self.size is None else f" files of {self.size} bytes at most")


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal), what it said, its steps and seconds."""

    code: int
    out: str
    err: str
    steps: int
    seconds: float


def warm_up(arguments: Sequence[object], folder: Path) -> None:
    """Run a command in this process, so that children find imported and compiled what it needs."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
            code = run(app, list(map(str, arguments)))
    finally:
        os.chdir(before)
    if code != 0:
        raise SystemExit(f"dpmix {' '.join(map(str, arguments))} fails by itself: {said.getvalue()}")


def perform(arguments: Sequence[object], folder: Path, fate: Fate | None = None) -> Ended:
    """Run a command in a folder, in a child to which something happens.

    Parameters
    ----------
    arguments : sequence
        What follows ``dpmix`` on the command line.
    folder : Path
        Where it runs; what it does elsewhere is no step.
    fate : Fate, optional
        Nothing where left out.
    """
    fate = fate or Fate()
    told = {name: folder.with_name(f"{folder.name}.{name}") for name in ("out", "err", "steps")}
    for path in told.values():
        path.write_bytes(b"")
    sys.stdout.flush()
    sys.stderr.flush()
    begin = time.monotonic()
    with closed(folder) if fate.closed else contextlib.nullcontext():
        child = os.fork()
        if child == 0:
            _be(list(map(str, arguments)), folder, fate, told)
        if fate.after is not None:
            time.sleep(fate.after)
            os.kill(child, fate.number)
        _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - begin
    out, err, steps = (path.read_text("utf-8", "replace") for path in told.values())
    for path in told.values():
        path.unlink()
    return Ended(os.waitstatus_to_exitcode(status), out, err, len(steps), seconds)


def _be(arguments: list[str], folder: Path, fate: Fate, told: dict[str, Path]) -> None:
    """Be the child; never return."""
    code = 70
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line has it
        os.chdir(folder)
        for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
            handle = os.open(told[name], os.O_WRONLY | os.O_APPEND)
            os.dup2(handle, stream.fileno())
        dpmix.run.runner.CHECKPOINT_SECONDS = 0.0
        _count_steps(folder, fate, told["steps"])
        if fate.before is not None:
            fate.before()
        if fate.closed:
            become_nobody()
        if fate.size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (fate.size, resource.RLIM_INFINITY))
        code = run(app, arguments)
        sys.stdout.flush()
    finally:
        os._exit(code)


def _count_steps(folder: Path, fate: Fate, told: Path) -> None:
    """Let the fate come at its step, and note each."""
    notes = os.open(told, os.O_WRONLY | os.O_APPEND)
    inside, held, state = os.fsencode(folder), False, 0
    real_write, real_sync, real_pwrite = dpmix.store.h5.Sink.write, os.fsync, os.pwrite

    def step() -> None:
        nonlocal held, state
        if held:
            return
        held = True
        state += 1
        if fate.size is None:
            os.write(notes, b".")
        if fate.step is not None and state >= fate.step and fate.number and state == fate.step:
            os.kill(os.getpid(), fate.number)
        held = False
        if fate.full is not None and state >= fate.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event not in _STEPS or held:
            return
        if event == "open" and not (isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if event in ("os.remove", "os.rmdir") and fate.full is not None:
            return  # which a full disk allows
        if event != "fcntl.flock" and not _within(given[0], inside):
            return
        step()

    def write(self: Any, data: Any) -> int:
        try:
            step()
        except OSError as error:
            self.error = self.error or error
        return real_write(self, data)

    def sync(handle: int) -> None:
        step()
        real_sync(handle)

    def pwrite(*given: Any) -> int:
        step()
        return real_pwrite(*given)

    dpmix.store.h5.Sink.write = write  # type: ignore[method-assign]
    os.fsync, os.pwrite = sync, pwrite  # type: ignore[assignment]
    sys.addaudithook(hook)


def _within(path: Any, folder: bytes) -> bool:
    try:
        found = os.fsencode(path)
    except TypeError:  # a file that is open already
        return False
    return found.startswith(folder) or not found.startswith(b"/")
