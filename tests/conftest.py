"""What all tests have: a collector of garbage that leaves alone what lives as long as the session."""

from __future__ import annotations

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Look for garbage seldom, and never among the tests: compiling makes millions of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
