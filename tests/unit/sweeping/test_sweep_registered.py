"""What is registered is known in the processes of a sweep, and refused where their jobs cannot know it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.specs import ROOT
from tests.unit.sweeping.test_sweep_plan import BASE

SCRIPT = """
import json, sys
sys.path.insert(0, "mine")  # which the processes that are started are not told by their environment
import known_spread, pair, uniform_noise, restaurant
from dpmix.errors import DpmixError
import dpmix
{more}
spec = json.load(open("sweep.json"))
try:
    {verb}
except DpmixError as error:
    print(error)
"""
SWEEP = "print(dpmix.sweep(spec, 'out', jobs=1, quiet=True).codes)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a stranger's files, and a sweep that needs all of them."""
    (tmp_path / "mine").mkdir()
    for name in ("uniform_noise", "known_spread", "restaurant", "pair"):
        text = (ROOT / "tests" / "robust" / "stranger" / f"{name}.py").read_text()
        (tmp_path / "mine" / f"{name}.py").write_text(text.replace("tests.robust.stranger.", ""))
    base = BASE | {
        "mechanism": {"kind": "uniform_noise", "half_width": 0.8, "domain": [-10, 10]},
        "model": {"kernel": "known_spread", "within": 1.0, "base": {"mu0": 0.0, "sd": 4.0}},
        "sampler": {"kind": "restaurant", "iterations": 30, "burn_in": 10, "chains": 1, "seed": 1},
    }
    sweep = {"base": base, "grid": {"mechanism.half_width": [0.5, 2]}}
    (tmp_path / "sweep.json").write_text(json.dumps(sweep))
    return tmp_path


def said(folder: Path, verb: str, more: str = "") -> str:
    """Return what a script says that registers and then does something; interpreted, as runs are short."""
    (folder / "script.py").write_text(SCRIPT.format(verb=verb, more=more))
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_sweep_knows_what_was_registered_where_it_began(folder: Path) -> None:
    assert said(folder, SWEEP) == "(0, 0)"
    assert (folder / "out" / "table.csv").read_text().count("\n") == 3


def test_what_the_processes_cannot_import_is_refused_by_name(folder: Path) -> None:
    own = (
        "from dpmix.spec.capabilities import SamplerCapabilities\n"
        "from dpmix.samplers.sweeps import by_sweeps\n"
        "class Own(restaurant.Restaurant): pass\n"
        "by_sweeps(restaurant._sweep, Own)\n"
        "dpmix.register(SamplerCapabilities('own', exact=True), algorithm=Own)\n"
    )
    words = said(folder, SWEEP, own)
    assert words.startswith(
        "register: own is defined in the script that runs, which the processes of a sweep"
    )
    assert not list((folder / "out").glob("*/chains.h5"))


def test_jobs_of_a_cluster_are_refused_by_name(folder: Path) -> None:
    words = said(
        folder, "emit('sweep.json', 'out', 'sbatch', quiet=True)", "from dpmix.api.sweep import emit"
    )
    assert words.startswith("--emit: jobs run dpmix by its command, which does not know known_spread, ")
    assert not (folder / "out").exists()
