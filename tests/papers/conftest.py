"""The reproductions of papers are tested at night, but for what says whether figures agree."""

from __future__ import annotations

from pathlib import Path

import pytest

BY_DAY = {"test_agreement.py"}


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in BY_DAY:
            item.add_marker(pytest.mark.matrix)
