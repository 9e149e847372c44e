"""The main job on the shipped specs, as a user runs it: privatize, fit, summarize, a process each.

The specs are run at night; by day the commands of the README are (`tests/unit/repository/test_docs.py`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

import dpmix
from dpmix.data.tables import load_table
from dpmix.spec import load_spec
from tests.helpers.fits import assert_same, finish, start
from tests.helpers.specs import ROOT, SHIPPED

TINY = ("--set", "sampler.iterations=40", "--set", "sampler.burn_in=20", "--set", "sampler.chains=2")


def _run(*arguments: object) -> str:
    command = [sys.executable, "-m", "dpmix", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


SPECS = [
    pytest.param(path, id=path.stem)
    for path in SHIPPED
    if load_spec(path).mechanism is not None
    and load_spec(path).data is not None
    and path.stem != "advise"  # whose data are not there yet
    and getattr(load_spec(path).model, "kind", "") == "mixture"
]
SYNTHESIS = [
    pytest.param(path, id=path.stem)
    for path in SHIPPED
    if load_spec(path).synthesis is not None and load_spec(path).model is not None
]


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("path", SPECS)
def test_the_shipped_specs_run_from_end_to_end(path: Path, tmp_path: Path) -> None:
    release, chains = tmp_path / "release.h5", tmp_path / "chains.h5"
    summary, report = tmp_path / "summary.h5", tmp_path / "report.html"
    curator = tmp_path / "curator"
    shutil.copytree(path.parent, curator)
    spec = load_spec(path)
    ledger = ("--new-ledger",) if spec.privacy is not None and spec.privacy.ledger is not None else ()
    _run("privatize", curator / path.name, "-o", release, *ledger)
    _run("fit", curator / path.name, "--release", release, "-o", chains, *TINY)
    said = json.loads(_run("summarize", chains, "-o", summary, "--report", report, "--json"))
    assert sum(said["n_clusters"]["probability"]) == pytest.approx(1.0)
    data = spec.data
    assert data is not None
    for density in [said["density"]] if "grid" in said["density"] else said["density"].values():
        grid, mean = np.array(density["grid"]), np.array(density["mean"])
        assert 0.5 < np.trapezoid(mean, grid) < 1.01
    assert said["warnings"]  # forty sweeps are too few
    with h5py.File(release) as file:
        simulated, private = (bool(file["release"].attrs[name]) for name in ("simulated", "private"))
    assert simulated is not private
    for output in (chains, summary, report):
        content = output.read_bytes()
        assert str(curator).encode() not in content
        assert b".csv" not in content
        assert b"clamped" not in content
    if simulated:
        assert "simulated" in " ".join(said["warnings"])
        return
    with h5py.File(release) as file:
        trust = bytes(file["release"].attrs["trust"]).decode()
    with h5py.File(chains) as file:  # the records themselves are nowhere
        z = file["observed_data/z"][()]
        names = ("mean", "variance", "covariance", "a", "b", "weights")
        stored = [file[f"posterior/{name}"][()].ravel() for name in names if f"posterior/{name}" in file]
        assert ("posterior/allocations" in file) is (trust == "local")
    assert (said["clustering"] is not None) is (trust == "local")
    assert data.path is not None
    records = load_table(data.path, data.columns)[0]
    if trust == "local":
        assert len(records) == len(z)
    whole = bool(np.all(z == np.floor(z)))  # counts may agree with records by chance
    assert not np.isin(np.concatenate([*stored, z.ravel()[: 0 if whole else None]]), records).any()


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("path", SYNTHESIS)
def test_the_shipped_specs_of_synthesis_run_from_end_to_end(path: Path, tmp_path: Path) -> None:
    curator, made = tmp_path / "curator", tmp_path / "synthetic.csv"
    shutil.copytree(path.parent, curator)
    _run("synthesize", curator / path.name, "-o", made)
    spec = load_spec(path)
    assert spec.data is not None and spec.data.columns is not None and spec.data.path is not None
    said = json.loads((tmp_path / "synthetic.csv.json").read_text())
    records, names = load_table(made, None)
    assert names == spec.data.columns and len(records) == said["mechanism"]["records"]
    assert said["private"] and said["n"] == len(load_table(spec.data.path, names)[0])
    for i in range(len(names)):
        low, high = spec.data.bounds_of(i) or (0.0, 0.0)
        assert low <= records[:, i].min() and records[:, i].max() <= high
    chains, predicted = tmp_path / "chains.h5", tmp_path / "predicted.csv"
    _run("fit", curator / path.name, "--release", made, "-o", chains, *TINY)
    summary = json.loads(_run("summarize", chains, "--json"))
    for i, name in enumerate(names):
        low, high = spec.data.bounds_of(i) or (0.0, 0.0)
        mean = summary["parameters"]["mean" if len(names) == 1 else f"mean[{name}]"]["mean"]
        assert low < mean < high
    assert str(curator).encode() not in chains.read_bytes()
    _run("synthesize", path, "-o", predicted, "--chains", chains, "--set", "synthesis.records=30")
    assert load_table(predicted, None)[0].shape == (30, len(names))
    account = json.loads((tmp_path / "predicted.csv.json").read_text())
    assert account["private"] and account["delta"] == said["delta"] and account["epsilon"] == said["epsilon"]
    assert "costs nothing beyond the release" in account["guarantee"]


THREE = ROOT / "configs" / "three_gaussians.yaml"
SHORT = ("--set", "sampler.chains=2", "--set", "sampler.iterations=400", "--set", "sampler.burn_in=100")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a release and the chains of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    dpmix.privatize(THREE, folder / "r.h5", quiet=True)
    dpmix.fit(THREE, folder / "r.h5", folder / "whole.h5", overrides=SHORT[1::2], quiet=True)
    return folder


@pytest.mark.parametrize("size", [6000, pytest.param(60_000, marks=pytest.mark.matrix)])
def test_a_full_disk_loses_nothing_that_was_saved(size: int, whole: Path, tmp_path: Path) -> None:
    output = tmp_path / "c.h5"
    arguments = ("fit", THREE, "--release", whole / "r.h5", "-o", output, *SHORT)
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))"
    code, err = finish(start(*arguments, more=limit))
    assert code == 3, err
    assert err.startswith("dpmix: error: cannot write ")
    assert len(err.splitlines()) == 1
    assert not output.exists()
    dpmix.fit(THREE, whole / "r.h5", output, overrides=SHORT[1::2], resume=True, quiet=True)
    assert_same(output, whole / "whole.h5")


@pytest.mark.slow
@pytest.mark.matrix
def test_memory_does_not_grow_with_the_draws(whole: Path, tmp_path: Path) -> None:
    more = (
        "import resource\nchains.CHECKPOINT_BYTES = 2**20\nreal = fit.write_chains\n"
        "def told(*args, **options):\n    real(*args, **options)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)\nfit.write_chains = told"
    )
    peaks = []
    for iterations in (5_000, 40_000):  # `whole` has compiled what both need
        output = tmp_path / f"{iterations}.h5"
        arguments = ("fit", THREE, "--release", whole / "r.h5", "-o", output, "--set", "sampler.chains=1")
        arguments += ("--set", f"sampler.iterations={iterations}", "--set", "sampler.burn_in=0")
        process = start(*arguments, checkpoint=30.0, more=more)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        peaks.append(int(out) * (1 if sys.platform == "darwin" else 1024))
    assert peaks[1] - peaks[0] < 6 * 2**20  # the draws between them take 14 MB, most of them allocations
