"""From whatever stops a command to one short message and the exit code."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NoReturn

from dpmix.errors import DpmixError
from dpmix.numerics.in_words import printable


class Messages:
    """Standard error that drops what cannot be written, as on a full disk: the work goes on all the same.

    Names in messages, which may be somebody else's, do nothing at a terminal.
    """

    def __init__(self, stream: Any, says: Callable[[str], str] = printable) -> None:
        self._stream, self._says = stream, says

    @property
    def unchanged(self) -> Messages:
        """The same for bars, which move and colour what they write."""
        return Messages(self._stream, str)

    def write(self, text: str) -> int:
        """Write text, or do without."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(self._says(text))
        return len(text)

    def flush(self) -> None:
        """Flush, or do without."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def messages(stream: Any) -> Messages:
    """Return a standard error that takes whatever is said; `stream` is None where the process has none.

    Its descriptor is then taken, lest a file that is opened gets it, and what libraries say.
    """
    return stream if isinstance(stream, Messages) else Messages(stream or open(os.devnull, "w"))


_CALLED_BACK = "_raw_object_cache_"  # what the compiler calls from C begins so; exceptions get lost there
_LATER = 0.05  # seconds


def interrupt(number: int, frame: FrameType | None) -> None:
    """Take a signal as Python takes Ctrl-C, a little later where the exception would be lost."""
    if not put_off(number, frame):
        raise KeyboardInterrupt


def put_off(number: int, frame: FrameType | None) -> bool:
    """Send a signal again a little later where an exception would be lost; return whether it is sent."""
    while frame is not None:
        if frame.f_code.co_name.startswith(_CALLED_BACK):
            again = threading.Timer(_LATER, os.kill, (os.getpid(), number))
            again.daemon = True
            again.start()
            return True
        frame = frame.f_back
    return False


def stopping() -> tuple[signal.Signals, ...]:
    """Return the signals that ask to stop: Ctrl-C, SIGTERM, a terminal that goes (not under `nohup`)."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)  # which not every system has
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, hangup


def heed_signals() -> None:
    """Have signals that ask to stop interrupt this process, so that what is half written is cleaned up."""
    for number in stopping()[1:]:
        signal.signal(number, interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started us holds it off
        signal.signal(signal.SIGINT, interrupt)


def end(code: int) -> NoReturn:
    """End this process with an exit code, whatever signal comes now that nothing is left to interrupt.

    Python dies by SIGINT, whatever the code, where that had interrupted text that was executed; other text
    that is executed makes it forget. Work that was broken off may still hold threads, and is still ended by
    a signal.
    """
    exec("")
    if code == 0:
        atexit.register(_deafen)
    sys.exit(code)


def _deafen() -> None:
    for number in stopping():
        signal.signal(number, signal.SIG_IGN)


def run(command: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run one command of the Typer application, and turn every error into one short message.

    Returns
    -------
    int
        The exit code: 0 done, 2 bad usage or spec, 3 bad data or file, 4 privacy request that cannot be met,
        5 sampler failed or not converged (or an internal error), 130 interrupted.
    """
    debug = "--debug" in arguments
    try:
        code = command(args=list(arguments), prog_name="dpmix", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt as stop:
        return interrupted(stop)
    except SystemExit as stop:
        return _closed_pipe() if stop.code == 1 else int(stop.code or 0)
    except BrokenPipeError:
        return _closed_pipe()
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        code, lines = explain(error)
        for line in lines:
            print(f"dpmix: error: {line}", file=sys.stderr)
        return code


def interrupted(stop: KeyboardInterrupt) -> int:
    """Say what was saved of the work that a signal has stopped, and return the exit code, 130."""
    print(f"dpmix: {str(stop) or 'interrupted'}", file=sys.stderr)
    return 130


def explain(error: Exception) -> tuple[int, list[str]]:
    """Return the exit code of an error, and what to tell the user, without a traceback."""
    if isinstance(error, DpmixError):
        return error.exit_code, str(error).splitlines()
    if hasattr(error, "format_message"):  # a usage error of the command line's parser
        return _usage(error)
    if isinstance(error, OSError):
        name = error.filename or ("standard output" if _printing(error) else "")
        return 3, [f"{name}: {error.strerror or error}" if name else f"{error.strerror or error}"]
    if isinstance(error, MemoryError):
        return 5, ["out of memory; a smaller run or fewer stored values would need less"]
    detail = " ".join(str(error).split())[:200]
    return 5, [f"internal error: {type(error).__name__}: {detail} (run with --debug for the traceback)"]


def _printing(error: Exception) -> bool:
    """Whether it was raised where results and help are printed."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    module = "" if where is None else str(where.tb_frame.f_globals.get("__name__"))
    return module.startswith(("dpmix.cli", "typer.", "click.", "rich."))


def _usage(error: Any) -> tuple[int, list[str]]:
    message = " ".join(str(error.format_message()).split())
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "dpmix")
    return 2, [f"{message.rstrip('.')} (see {command} --help)"]


def _closed_pipe() -> int:
    """Stop quietly when whoever reads the output has read enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
