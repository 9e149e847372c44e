"""What may be wrong around a command: read-only folders, a clock that goes back, a full output."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["become_nobody", "closed", "fill_output", "set_clock_back"]

_NOBODY = 65534
_BACK = datetime.timedelta(days=3650)


@contextlib.contextmanager
def closed(folder: Path) -> Iterator[None]:
    """Let nobody write in a folder, and to what is in it, for a while; whose it is may still, if root."""
    inside = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in inside}
    for path, mode in modes.items():
        path.chmod(mode & 0o7555 | 0o444)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def become_nobody() -> None:
    """Give up what root may do beyond others, for good."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def set_clock_back() -> None:
    """Put the clock that this process sees back by ten years."""
    real, seconds = datetime.datetime, time.time

    class Past(real):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return real.now(tz) - _BACK

    datetime.datetime = Past  # type: ignore[misc]
    time.time = lambda: seconds() - _BACK.total_seconds()
    for name, module in list(sys.modules.items()):
        if name.startswith("dpmix") and getattr(module, "datetime", None) is real:
            vars(module)["datetime"] = Past


def fill_output() -> None:
    """Let standard output be a device that is always full."""
    os.dup2(os.open("/dev/full", os.O_WRONLY), sys.stdout.fileno())
