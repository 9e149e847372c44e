"""The workflow of a sweep under Snakemake's own executor: runs fail or are killed, and specs change."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dpmix.api import sweep as verbs
from dpmix.errors import SpecError
from tests.unit.sweeping.test_sweep_plan import sweep_of

SNAKEMAKE = shutil.which("snakemake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
ABSENT = "snakemake is not installed: pip install '.[cluster]'"

# What the jobs call: it stands for `python -m dpmix sweep .. --run NAME`, and writes what that does but for
# fits. The run `epsilon=5` fails while there is a file `fail`; all is killed while there is a file `kill`.
PROGRAM = """#!{python}
import json, os, pathlib, signal, sys
sys.path.insert(0, {root!r})
here = pathlib.Path({here!r})
arguments = sys.argv[3:]
if "--run" not in arguments:
    from dpmix.cli import main
    sys.argv = ["dpmix", *arguments]
    sys.exit(main())
name = arguments[arguments.index("--run") + 1]
with open(here / "calls", "a") as file:
    file.write(name + chr(10))
if name == "epsilon=5" and (here / "kill").exists():
    os.killpg(os.getpgrp(), signal.SIGKILL)
from dpmix.sweeping.folder import Folder
own = Folder(here / "my out").run(name)
own.begin(json.loads((here / "my out" / "jobs" / (name + ".json")).read_text()))
if name == "epsilon=5" and (here / "fail").exists():
    own.fail("it went wrong", 3)
    sys.exit(3)
own.result.write_text(json.dumps({{"run": name, "seed": 1}}))
"""


@pytest.mark.skipif(SNAKEMAKE is None, reason=ABSENT)
@pytest.mark.matrix
def test_a_workflow_is_killed_fails_changes_and_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, spec, out = tmp_path / "python", tmp_path / "sweep.yaml", tmp_path / "my out"
    root = str(Path(__file__).parents[3])
    program.write_text(PROGRAM.format(python=sys.executable, root=root, here=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    spec.write_text(json.dumps(sweep_of()))
    workflow = verbs.emit(spec, out, "snakemake", quiet=True)

    def snakemake(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(SNAKEMAKE), "--snakefile", str(workflow), "--cores", "1", "--keep-going", *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            start_new_session=True,
            check=False,
        )

    def states() -> list[str]:
        with (out / "table.csv").open(newline="") as file:
            return [f"{row['run']} {row['status']} {row['message']}".strip() for row in csv.DictReader(file)]

    def calls() -> list[str]:
        found = (tmp_path / "calls").read_text().split()
        (tmp_path / "calls").write_text("")
        return found

    (tmp_path / "kill").touch()
    assert snakemake().returncode == -signal.SIGKILL
    (tmp_path / "kill").rename(tmp_path / "fail")
    assert snakemake("--unlock").returncode == 0
    done = snakemake("--rerun-incomplete")
    assert done.returncode != 0
    assert states() == ["epsilon=1 finished", "epsilon=5 failed it went wrong"], done.stderr
    (tmp_path / "fail").unlink()
    done = snakemake()
    assert done.returncode == 0, done.stderr
    assert states() == ["epsilon=1 finished", "epsilon=5 finished"]
    assert set(calls()) == {"epsilon=1", "epsilon=5"}
    assert "Nothing to be done" in snakemake().stderr

    spec.write_text(json.dumps(sweep_of(grid={"mechanism.epsilon": [1, 5, 9]})))
    done = snakemake()
    assert done.returncode != 0
    said = f"{spec} has changed since this workflow was written; write it anew with dpmix sweep"
    assert said in done.stderr
    verbs.emit(spec, out, "snakemake", force=True, quiet=True)
    done = snakemake()
    assert done.returncode == 0, done.stderr
    assert calls() == ["epsilon=9"]
    assert len(states()) == 3
    spec.write_text(json.dumps(sweep_of(set={"sampler.thin": 2})))
    said = (
        r"^sampler.thin: .* holds a run that has 1, not 2; give another folder, or --force to make such runs"
    )
    with pytest.raises(SpecError, match=said):
        verbs.emit(spec, out, "snakemake", quiet=True)
    assert {row.split()[1] for row in states()} == {"finished"}
    verbs.emit(
        spec, out, "snakemake", force=True, quiet=True
    )  # docs/sweep.md: those that differ are made anew
    done = snakemake()
    assert done.returncode == 0, done.stderr
    assert set(calls()) == {"epsilon=1", "epsilon=5"}
    assert states() == ["epsilon=1 finished", "epsilon=5 finished"]
