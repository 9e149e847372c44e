"""Chains as jobs of a cluster, without one: killed halfway, finished, bit for bit those of one process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml

import dpmix
from tests.helpers.fits import DRIVER, release_file, small_spec

CLUSTER = Path(__file__).parents[3] / "scripts" / "cluster"
SNAKEMAKE = shutil.which("snakemake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
LONG: dict[str, Any] = {"iterations": 24000, "burn_in": 500, "chains": 2}

# The program as the jobs find it: it notes every start from nothing; a chain that has added two segments of
# draws does `act` the first time, and at four segments `then`.
PROGRAM = """
import os, pathlib, signal, sys, time
from dpmix.run.workspace import Workspace
notes, begin, save = pathlib.Path({notes!r}), Workspace.start, Workspace.add
def started(self, manifest):
    with open(notes / "starts", "a") as file:
        file.write(self.path.name + chr(10))
    begin(self, manifest)
def saved(self, chain, *rest):
    save(self, chain, *rest)
    for turn, what in enumerate((act, then)):
        if len(self.segments(chain)) == 2 * turn + 2 and not (notes / f"{{chain}}.{{turn}}").exists():
            (notes / f"{{chain}}.{{turn}}").touch()
            what(chain)
    if (notes / f"{{chain}}.1").exists():
        chains.CHECKPOINT_SECONDS = 60.0
def act(chain):
    {act}
def then(chain):
    {then}
Workspace.start, Workspace.add = started, saved
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with spec and release, the chains of one process, and their summary."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "spec.yaml").write_text(yaml.safe_dump(small_spec(**LONG)), "utf-8")
    dpmix.fit(folder / "spec.yaml", release_file(folder), folder / "whole.h5", quiet=True)
    return folder


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    """Folder to run in: spec and release of `whole`, and a folder of programs."""
    for name in ("spec.yaml", "release.h5"):
        shutil.copy2(whole / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(place: Path, name: str, text: str) -> None:
    path = place / "bin" / name
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def install_dpmix(place: Path, act: str, then: str = "pass") -> None:
    more = PROGRAM.format(notes=str(place), act=act, then=then)
    install(place, "dpmix", f"#!{sys.executable}\n" + DRIVER.format(checkpoint=0.02, more=more))


def environment(place: Path, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SLURM")}
    root = Path(__file__).parents[3]
    path = f"{place / 'bin'}{os.pathsep}{kept['PATH']}"
    return kept | {"PATH": path, "PYTHONPATH": str(root)} | more


def check_same(folder: Path, whole: Path, chains: int = LONG["chains"]) -> None:
    """Check that the files of single chains hold what one process has, and nothing is left beside them."""
    assert not list(folder.glob("*.partial"))
    with h5py.File(whole / "whole.h5") as one:
        of_chains = [name for name, item in one["posterior"].items() if item.shape[:1] == (LONG["chains"],)]
        assert {"chain", "n_clusters", "mean", "weights"} <= set(of_chains)
        for k in range(chains):
            with h5py.File(folder / f"chain-{k}.h5") as part:
                for name in of_chains:
                    found, expected = part["posterior"][name][0], one["posterior"][name][k]
                    if found.ndim == 2:  # filled up to the largest number of components of all chains
                        assert np.isnan(expected[:, found.shape[1] :]).all()
                        expected = expected[:, : found.shape[1]]
                    assert found.tobytes() == expected.tobytes(), (k, name)


def array_task(place: Path, task: int) -> subprocess.CompletedProcess[str]:
    slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_JOB_ID": "77", "SLURM_CPUS_PER_TASK": "1"}
    return subprocess.run(
        [str(CLUSTER / "array.sbatch"), "spec.yaml", "release.h5", "chains"],
        cwd=place,
        env=environment(place, **slurm),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.matrix
def test_tasks_of_an_array_are_killed_halfway_and_finished(whole: Path, place: Path) -> None:
    # task 0 is told that its time is nearly over, as Slurm tells the script; task 1 is killed
    act = "os.kill(os.getppid(), signal.SIGUSR1) if chain == 0 else os.kill(os.getpid(), signal.SIGKILL)"
    install_dpmix(place, act + "\n    time.sleep(1)")
    install(place, "scontrol", f'#!/bin/sh\necho "$*" >> {place}/scontrol.log\n')
    for task, code in ((0, 130), (1, 128 + signal.SIGKILL)):
        first = array_task(place, task)
        assert first.returncode == code, first.stderr
        assert (place / "chains" / f"chain-{task}.h5.partial").is_dir()
        assert not (place / "chains" / f"chain-{task}.h5").exists()
    assert (place / "scontrol.log").read_text() == "requeue 77_0\n"
    for task in (0, 1):
        again = array_task(place, task)
        assert again.returncode == 0, again.stderr
    assert (place / "starts").read_text().split() == ["chain-0.h5.partial", "chain-1.h5.partial"]
    check_same(place / "chains", whole)


def test_an_array_script_outside_of_an_array_says_so(place: Path) -> None:
    def run(*arguments: str, **more: str) -> tuple[int, str]:
        command = [str(CLUSTER / "array.sbatch"), *arguments]
        env = environment(place, **more)
        done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    code, said = run("spec.yaml", "release.h5", "chains")
    assert code == 2 and said.startswith("array.sbatch: SLURM_ARRAY_TASK_ID is not set")
    code, said = run("spec.yaml", SLURM_ARRAY_TASK_ID="0")
    assert code == 2 and said.startswith("array.sbatch: give a spec, a release file")
    assert not (place / "chains").exists()


def snakemake(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert SNAKEMAKE is not None
    return subprocess.run(
        [SNAKEMAKE, "--snakefile", str(CLUSTER / "Snakefile"), "--cores", "1", *arguments],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
        check=False,
    )


CONFIG = ("--config", "spec=spec.yaml", "release=release.h5")
ABSENT = "snakemake is not installed: pip install '.[cluster]'"
needs_snakemake = pytest.mark.skipif(SNAKEMAKE is None, reason=ABSENT)


@needs_snakemake
@pytest.mark.matrix
def test_a_workflow_is_killed_halfway_and_finished(whole: Path, place: Path) -> None:
    # first the job alone is killed, which is tried again; then everything, as when a machine fails
    alone, everything = "os.kill(os.getpid(), signal.SIGKILL)", "os.killpg(os.getpgrp(), signal.SIGKILL)"
    install_dpmix(place, alone, everything)
    config = (*CONFIG, "chains=1")
    assert snakemake(place, *config, "--retries", "1").returncode == -signal.SIGKILL
    assert {path.name for path in place.glob("0.*")} == {"0.0", "0.1"}
    assert [path.name for path in (place / "chains").iterdir()] == ["chain-0.h5.partial"]
    done = snakemake(place, *config, "--rerun-incomplete", "--nolock")
    assert done.returncode == 0, done.stderr
    assert (place / "starts").read_text().split() == ["chain-0.h5.partial"]
    check_same(place / "chains", whole, chains=1)
    found = json.loads((place / "chains" / "summary.json").read_text("utf-8"))
    with h5py.File(whole / "whole.h5") as one:
        expected = one["posterior"]["n_clusters"][0].mean()
    assert found["parameters"]["n_clusters"]["mean"] == pytest.approx(expected, rel=1e-12)
    assert {"summary.h5", "report.html"} <= {path.name for path in (place / "chains").iterdir()}


@needs_snakemake
@pytest.mark.matrix
def test_a_workflow_makes_all_chains_of_the_spec_and_one_summary(whole: Path, place: Path) -> None:
    install_dpmix(place, "pass")
    done = snakemake(place, *CONFIG, "output=many", 'set=["summary.level=0.9"]')
    assert done.returncode == 0, done.stderr
    check_same(place / "many", whole)
    expected = dpmix.summarize(whole / "whole.h5").to_json()
    found = json.loads((place / "many" / "summary.json").read_text("utf-8"))
    for scalar, own in expected["parameters"].items():
        for key in ("mean", "sd", "rhat", "ess_bulk", "mcse"):
            assert found["parameters"][scalar][key] == own[key], (scalar, key)
    with h5py.File(place / "many" / "chain-1.h5") as part:
        assert yaml.safe_load(part.attrs["spec"])["summary"]["level"] == 0.9
    done = snakemake(place, *CONFIG, "output=many", 'set=["summary.level=0.9"]', "--dry-run")
    assert "Nothing to be done" in done.stdout + done.stderr


@needs_snakemake
@pytest.mark.parametrize(
    ("config", "said"),
    [
        (["spec=spec.yaml", "relase=release.h5"], "config: relase is unknown"),
        pytest.param(["release=release.h5"], "config: spec is missing", marks=pytest.mark.matrix),
        pytest.param(["spec=spec.yaml", "chains=0"], "must be a whole number", marks=pytest.mark.matrix),
    ],
)
def test_a_wrong_config_of_the_workflow_is_refused(place: Path, config: list[str], said: str) -> None:
    done = snakemake(place, "--config", *config, "--dry-run")
    assert done.returncode != 0 and said in done.stderr + done.stdout


@pytest.mark.matrix
def test_the_profile_names_options_of_snakemake() -> None:
    profile = yaml.safe_load((CLUSTER / "slurm" / "config.yaml").read_text("utf-8"))
    assert profile["executor"] == "slurm" and profile["retries"] >= 1 and profile["rerun-incomplete"] is True
    if SNAKEMAKE is None:
        pytest.skip(ABSENT)
    known = subprocess.run([SNAKEMAKE, "--help"], capture_output=True, text=True, check=True).stdout
    if "--slurm-requeue" not in known:
        pytest.skip("snakemake-executor-plugin-slurm is not installed: pip install '.[cluster]'")
    assert all(f"--{option}" in known for option in profile)
