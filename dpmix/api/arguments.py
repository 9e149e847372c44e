"""Arguments as callers of Python give them: numbers and files, and nothing that only looks like one."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Sequence
from pathlib import Path
from typing import SupportsIndex, cast

from dpmix.errors import UsageError
from dpmix.store.atomic import check_output, check_page, check_suffix

PathLike = str | os.PathLike[str]
"""A file or folder, as callers of Python name it."""


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


def check_results(
    files: Sequence[str],
    output: PathLike | None,
    report: PathLike | None,
    what: str,
    *,
    force: bool,
) -> None:
    """Check before any work that writing a result and its page destroys nothing unasked.

    `files` are the chains that it is of, and `what` it is called: summary.

    Raises UsageError and DataError as `file_of` and `dpmix.store.atomic.check_output`.
    """
    check_outputs(output=output, report=report)
    targets = [Path(target) for target in (output, report) if target is not None]
    for target in targets:
        if any(os.path.realpath(target) == os.path.realpath(file) for file in files):
            raise UsageError(f"{target} is one of the chains files; give the output another name")
        check_output(target, force=force)
    if output is not None:
        check_suffix(output, f"a {what}")
    if report is not None:
        check_page(report)
    if len({os.path.realpath(target) for target in targets}) < len(targets):
        raise UsageError(f"the {what} and the report cannot both be {targets[0]}")
