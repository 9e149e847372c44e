"""Commands that are killed, stopped or out of room; `scripts/kill` does so a thousand times."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from breaking.scenarios import SPECS
from dpmix.errors import DataError
from dpmix.store.atomic import check_output
from tests.helpers.specs import ROOT

PLANTED = """
import shutil, sys
import dpmix.store.atomic as atomic
def in_place(source, final):
    final.touch()
    for _ in range(500):
        atomic.fsync(final)
    shutil.move(source, final)
atomic._rename_new = in_place
sys.argv[1:] = ["--only", "hdf5", "--every", "--kills", "0", "--steps", "5"]
sys.path.insert(0, "scripts")
from breaking.__main__ import main
sys.exit(main())
"""


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, timeout=600, check=False
    )


def test_nothing_is_lost_and_nothing_half_done_looks_finished() -> None:
    names = ("force", "fit")
    often = ("--every", "--steps", "2", "--kills", "2", "--parametric", "posterior", "--seed", "5")
    done = _run("scripts/kill", *often, "--only", *names)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["faults"] == 0
    assert sum(told["broken_off"].values()) >= 6
    assert told["broken_off"]["SIGKILL"] > 1


def test_a_table_has_one_name_in_the_ledger_of_all_commands() -> None:
    """Or a command fails by itself, and nothing is broken off."""
    names: dict[str, set[str]] = {}
    for spec in SPECS.values():
        if "privacy" in spec:
            names.setdefault(spec["data"]["path"], set()).add(spec["privacy"]["dataset"])
    assert len(names) >= 4 and [path for path, known in names.items() if len(known) > 1] == []


@pytest.mark.matrix
def test_read_only_folders_full_outputs_and_a_clock_put_back() -> None:
    around = ("--around", "--kills", "0", "--parametric", "posterior", "--only", "privatize", "fit")
    done = _run("scripts/kill", *around)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["broken_off"]["read-only folder"] == told["broken_off"]["full output"] == 2
    assert told["broken_off"]["read-only checkpoint"] == 1 and told["broken_off"]["clock put back"] == 3


@pytest.mark.matrix
def test_what_is_written_under_its_own_name_at_once_is_found() -> None:
    done = _run("-c", PLANTED)
    assert done.returncode == 1, done.stderr
    assert "hdf5: SIGKILL at step" in done.stdout


@pytest.mark.parametrize("force", [False, True])
def test_devices_are_not_replaced(force: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.h5"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/null")):
        with pytest.raises(DataError, match="no ordinary file"):
            check_output(path, force=force)
