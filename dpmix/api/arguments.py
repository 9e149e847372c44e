"""Arguments as callers of Python give them: numbers and files, and nothing that only looks like one."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import SupportsIndex, cast

from dpmix.errors import UsageError


def whole_of(given: object, name: str) -> int:
    """Return the whole number that an argument of this name gives.

    Raises
    ------
    UsageError
        For anything else, such as text, 2.0 or a truth value.
    """
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(cast(SupportsIndex, given))
    except TypeError:
        raise UsageError(f"{name}: must be a whole number, not {type(given).__name__}") from None


def real_of(given: object, name: str) -> float:
    """Return the number that an argument of this name gives.

    Raises
    ------
    UsageError
        For anything else, such as text or a truth value.
    """
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise UsageError(f"{name}: must be a number, not {type(given).__name__}")
    return float(given)


def file_of(given: object, name: str, what: str = "file") -> Path:
    """Return the path that an argument of this name gives, of a file or of `what` else.

    Raises
    ------
    UsageError
        When it is none, such as a table, or a release that is not on the disk.
    """
    if isinstance(given, str | os.PathLike):
        return Path(given)
    raise UsageError(f"{name}: must be the path of a {what}, not {type(given).__name__}")


def files_of(given: object, name: str) -> list[str]:
    """Return the files of an argument that takes one or several; as they were given, for messages.

    Raises UsageError as `file_of`.
    """
    found = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    return [each if isinstance(each, str) else str(file_of(each, name)) for each in found]


def check_outputs(**given: object) -> None:
    """Refuse outputs, by the names of their arguments, that are neither paths nor None.

    Raises UsageError as `file_of`.
    """
    for name, each in given.items():
        if each is not None:
            file_of(each, name)
