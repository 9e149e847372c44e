"""Imports that others try, and that we do without."""

import contextlib
import sys
from collections.abc import Iterator

__all__ = ["absent"]


@contextlib.contextmanager
def absent(module: str) -> Iterator[None]:
    """Let a module that was not imported before look as if it were not installed."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # means: cannot be imported
    try:
        yield
    finally:
        del sys.modules[module]
