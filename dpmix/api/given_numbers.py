"""Numbers as callers of Python name them: of Python or numpy, and nothing that only looks like one."""

from __future__ import annotations

import numbers
import operator
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
