"""Files as callers of Python name them: paths, or what a verb returned that stands for its file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpmix.errors import UsageError

__all__ = ["file_of", "files_of"]


def file_of(given: object, name: str) -> Path:
    """Return the path that an argument of this name gives.

    Raises
    ------
    UsageError
        When it is none, such as a table, or a release that is not on the disk.
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise UsageError(f"{name}: must be the path of a file, not {type(given).__name__}")


def files_of(given: object, name: str) -> list[str]:
    """Return the files of an argument that takes one or several; as they were given, for messages.

    Raises
    ------
    UsageError
        As `file_of`.
    """
    found = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    return [each if isinstance(each, str) else str(file_of(each, name)) for each in found]
