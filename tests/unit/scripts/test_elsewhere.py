"""Data that do not ship are looked for in one place."""

from __future__ import annotations

from pathlib import Path

import pytest

import elsewhere
from benchmarks import columns
from tests.helpers.specs import ROOT


def test_data_that_do_not_ship_are_where_the_variable_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPMIX_DATA", raising=False)
    assert elsewhere.folder() == (ROOT.parent / "shared" / "data").resolve()
    monkeypatch.setenv("DPMIX_DATA", str(tmp_path))
    assert elsewhere.folder() == tmp_path.resolve()
    age = next(column for column in columns.COLUMNS if column.field == "age")
    (tmp_path / age.file).touch()
    assert age.path == tmp_path.resolve() / age.file
