"""What all tests have: an order, threads, and a collector of garbage that leaves alone what lives on."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

FIRST = {Path(__file__).parent / "exact", Path(__file__).parent / "unit" / "models"}

# each worker has one processor; threads of a worker's linear algebra would wait for those of the other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what compiles the same code one after the other, so that one worker has both.

    A worker begins with one half of the tests, and takes what another has left from the end. Functions that
    compiled code calls are kept by the process alone, so that another compiles them again.
    """
    items.sort(key=lambda item: item.path.parent not in FIRST)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage seldom, and never among the tests: compiling makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
