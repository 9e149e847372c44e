"""What is too long for every day is run by `scripts/nightly`, which fails where one of its steps does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.specs import ROOT

BY_DAY = {"test", "setup-env", "update-golden", "benchmark", "nightly"}  # benchmarks judge nothing
STEPS = ("demo", "newcomer", "attack", "columns", "reproduce", "fuzz", "kill", "matrix", "verify")


def test_every_script_that_judges_is_a_step() -> None:
    scripts = {path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and not path.suffix}
    lines = (ROOT / "scripts" / "nightly").read_text().splitlines()
    called = {
        name for line in lines if not line.startswith("#") for name in re.findall(r"scripts/(\w+)", line)
    }
    assert scripts - called <= BY_DAY
    page = (ROOT / "CONTRIBUTING.md").read_text().partition("`scripts/nightly` runs")[2]
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `scripts/")]
    assert [re.findall(r"scripts/(\w+)", row)[0] for row in rows] == [
        "test" if step == "matrix" else step for step in STEPS
    ]


@pytest.mark.parametrize("options", [(), ("--quick",)], ids=["whole", "quick"])
@pytest.mark.parametrize("failing", ["", "demo", "attack", "matrix"])
def test_a_night_fails_where_a_step_does(options: tuple[str, ...], failing: str, tmp_path: Path) -> None:
    """In a copy whose scripts do nothing, but for one that fails."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copy(ROOT / "scripts" / "nightly", scripts)
    for step in ("setup-env", "test", *STEPS):
        code = int(step == failing or (failing, step) == ("matrix", "test"))
        (scripts / step).write_text(f"#!/bin/sh\nexit {code}\n")
        (scripts / step).chmod(0o755)
    run = {"cwd": tmp_path, "capture_output": True, "text": True}
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], [*named, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], check=True, **run)  # type: ignore[call-overload]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(shutil.which("sh") or "/bin/sh")
    environment = os.environ | {"DPMIX_VENV": str(tmp_path)}
    done = subprocess.run([scripts / "nightly", *options], env=environment, check=False, **run)  # type: ignore[call-overload]
    told = dict(re.findall(r"^  (\w+) +(passed|FAILED 1) ", done.stdout, re.MULTILINE))
    assert told == {step: "FAILED 1" if step == failing else "passed" for step in STEPS}, done.stderr
    assert done.returncode == (1 if failing else 0)
