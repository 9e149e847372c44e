"""Damaged files in the folder of a sweep: a sentence that names the file and says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpmix.cli import commands
from dpmix.run import exit_codes
from dpmix.sweeping.folder import RunFolder
from tests.unit.sweeping.test_sweep_plan import sweep_of

FINE = {
    "run": "epsilon=1",
    "name": "one",
    "seed": 1,
    "mechanism.kind": "laplace",
    "private": True,
    "ks": None,
}


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("failed.json", {}),
        ("failed.json", {"message": "it went wrong"}),
        ("failed.json", {"message": 3, "code": 5}),
        ("failed.json", {"message": "it went wrong", "code": "5"}),
        ("failed.json", {"message": "it went wrong", "code": True}),
        ("failed.json", {"message": "it went wrong", "code": 0}),
        ("failed.json", [1]),
        ("result.json", {}),
        ("result.json", FINE | {"seed": "1"}),
        ("result.json", FINE | {"seed": None}),
        ("result.json", FINE | {"run": "epsilon=5"}),
        ("result.json", FINE | {"hellinger": "0.5"}),
        ("result.json", FINE | {"hellinger": [0.5]}),
        ("result.json", FINE | {"hellinger": {"value": 0.5}}),
        ("result.json", FINE | {"hellinger": 10**400}),
        ("result.json", FINE | {"hellinger": float("nan")}),
        ("result.json", FINE | {"mechanism.epsilon": float("inf")}),
    ],
)
def test_damaged_files_are_named(name: str, contents: Any, tmp_path: Path, capsys: Any) -> None:
    spec, out = tmp_path / "sweep.yaml", tmp_path / "out"
    spec.write_text(json.dumps(sweep_of()))
    (out / "runs" / "epsilon=1").mkdir(parents=True)
    (out / "sweep.json").write_text("{}")
    path = out / "runs" / "epsilon=1" / name
    path.write_text(json.dumps(contents))
    assert exit_codes.run(commands.app, ["sweep", str(spec), "-o", str(out), "--gather"]) == 3
    assert capsys.readouterr().err == f"dpmix: error: {path} is damaged; remove its folder to run it again\n"


def test_what_runs_write_is_read(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "epsilon=1")
    run.fail("it went wrong", 5)
    assert run.failure() == {"message": "it went wrong", "code": 5}
    run.result.write_text(json.dumps(FINE))
    assert run.row() == FINE
