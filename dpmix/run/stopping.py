"""Stopping on SIGINT and SIGTERM: work that goes in pieces looks between them whether to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dpmix.errors import Interrupted

__all__ = ["Stop", "stop_on_signals"]


class Stop:
    """Whether to stop: asked by signals or by code, looked at by every thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._raises = False

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._event.is_set()

    def ask(self) -> None:
        """Ask everybody to stop."""
        self._event.set()

    def check(self) -> None:
        """Stop here if asked to.

        Raises
        ------
        Interrupted
            When asked.
        """
        if self.asked:
            raise Interrupted("interrupted; the state is saved: go on with --resume")

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let signals break off what runs in the block, which has no pieces to look between.

        Raises
        ------
        Interrupted
            When asked.
        """
        self._raises = True
        try:
            self.check()
            yield
        except KeyboardInterrupt:
            self.ask()
        finally:
            self._raises = False
        self.check()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take a signal; the second one ends the process, which loses nothing but what was never saved."""
        if self.asked:
            if hasattr(sys, "ps1"):  # an interactive session, which is not ours to end
                raise KeyboardInterrupt
            os.write(2, b"dpmix: stopped at once; go on from the last saved state with --resume\n")
            os._exit(128 + number)
        self.ask()
        if self._raises:
            raise KeyboardInterrupt


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Give a `Stop` that SIGINT and SIGTERM ask, in the main thread; elsewhere signals are left alone."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, stop.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
