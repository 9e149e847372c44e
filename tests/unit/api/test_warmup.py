"""Warming up: what fits of a spec need is compiled and kept, without confidential data."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dpmix
from dpmix.api.warmup import Warmed, _keep_bytecode
from dpmix.cli import commands
from dpmix.errors import SpecError
from dpmix.run import exit_codes
from dpmix.samplers.state import SERIAL_LIMIT
from dpmix.spec import RunSpec
from dpmix.spec.starters import starter
from dpmix.spec.sweep_spec import load_sweep
from dpmix.sweeping.plan import make_plan

module = importlib.import_module("dpmix.api.warmup")  # the package has the function by that name

MULTINOMIAL: dict[str, Any] = {  # whose draws need no compiled code
    "mechanism": {"kind": "posterior", "prior": [1.0, 1.0], "epsilon": 1.0, "n": 40, "method": "laplace"},
    "model": {"kind": "multinomial"},
}


def test_a_spec_is_tried_on_made_up_records(tmp_path: Path, capsys: Any) -> None:
    """Nothing is left behind, and the confidential file is not so much as looked for."""
    data = {"path": str(tmp_path / "nowhere.csv"), "column": "vote", "categories": ["a", "b"]}
    spec = MULTINOMIAL | {"data": data, "privacy": {"ledger": str(tmp_path / "l.json")}}
    found = dpmix.warmup(spec)
    assert found.place is not None
    assert found.compiled >= 0
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_of_a_sweep_one_run_of_each_kind_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(starter("sweep"))
    tried: list[RunSpec] = []
    monkeypatch.setattr(module, "_try", lambda spec, *_: tried.append(spec))
    assert exit_codes.run(commands.app, ["warmup", str(path), "--set", "set.sampler.iterations=3000"]) == 0
    runs = [run.spec() for run in make_plan(load_sweep(path)).runs]
    kinds = {(run.mechanism.kind, run.sampler.kind) for run in runs if run.mechanism is not None}
    assert 1 <= len(tried) < len(runs)
    assert {(run.mechanism.kind, run.sampler.kind) for run in tried if run.mechanism is not None} == kinds
    assert {run.sampler.iterations for run in tried} == {3000}
    assert exit_codes.run(commands.app, ["warmup", str(path), "--release", str(path)]) == 2
    assert "--release: does not go with a sweep" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["neal8", "private_slice"])
def test_where_n_is_unknown_many_records_are_tried_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(module, "fit", lambda spec, source, *_, **__: sizes.append(len(source.values)))
    monkeypatch.setattr(module, "summarize", lambda _: None)
    spec = {
        "mechanism": {"kind": "laplace", "epsilon": 1, "domain": [0, 1]},
        "model": {"base": {"mu0": 0, "lambda": 0.1, "a": 3, "b": 3}},
        "sampler": {"kind": kind},
    }
    dpmix.warmup(spec)
    assert sizes == [50, SERIAL_LIMIT + 1]
    sizes.clear()
    dpmix.warmup(spec | {"data": {"simulate": "three_betas", "n": 70, "domain": [0, 1]}})
    assert sizes == [70]


def test_what_was_done_is_said_in_a_sentence(tmp_path: Path) -> None:
    assert Warmed(2.0, 0, tmp_path).in_words() == f"nothing to compile: all is in {tmp_path} (2.0 s)"
    assert Warmed(2.0, 1, tmp_path).in_words() == f"compiled 1 function in 2.0 s, kept in {tmp_path}"
    assert "DPMIX_CACHE_DIR" in Warmed(2.0, 3, None).in_words()
    assert Warmed(2.0, 1, tmp_path, ("m.py",)).in_words() == (
        f"of m.py nothing is kept: every fit compiles it anew; what else it needs is in {tmp_path} (2.0 s)"
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": None}, "model: missing; warmup compiles what fitting a model needs"),
        ({"mechanism": None}, "mechanism: missing; say how the release is made, or give --release FILE"),
        ({"sampler": {"kind": "neal9"}}, 'sampler.kind: "neal9" is unknown'),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused(change: dict[str, Any], expected: str) -> None:
    spec = {key: value for key, value in (MULTINOMIAL | change).items() if value is not None}
    with pytest.raises(SpecError, match=expected.replace("?", r"\?")):
        dpmix.warmup(spec)


def test_a_release_that_is_not_there_exits_3(tmp_path: Path, capsys: Any) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text(
        "mechanism: {kind: laplace, epsilon: 1, domain: [0, 1]}\nmodel: {base: {empirical: true}}\n"
    )
    code = exit_codes.run(commands.app, ["warmup", str(spec), "--release", str(tmp_path / "r.h5")])
    assert (code, capsys.readouterr().err) == (3, f"dpmix: error: {tmp_path / 'r.h5'}: no such file\n")


IMPORTING = """
import gc
import importlib
import pkgutil
import sys
from numba.core import event
from dpmix.numerics import jit as _jit
LATE = "arviz_stats matplotlib opendp pandas scipy.linalg scipy.special scipy.stats xarray".split()
LATE += ["dpmix.mechanisms.wavelet.curator", "numba.np.arraymath"]
with event.install_recorder("numba:compile") as compiled:
    import dpmix.api.fit, dpmix.models
    summaries = ("meaning", "compositions", "composition_results", "_account", "_advice")
    assert not [name for name in sys.modules if name.endswith(summaries)]
    for found in pkgutil.walk_packages(dpmix.models.__path__, "dpmix.models."):
        if not found.name.endswith(summaries):
            importlib.import_module(found.name)
    print(*(name for name in LATE if name in sys.modules))
    made = ["dispatcher" in vars(found) for found in gc.get_objects() if isinstance(found, _jit._Compiled)]
    print(len(made) > 300, sum(made) < 5)
    dpmix.spec.load_spec({{"mechanism": {{"kind": "laplace", "epsilon": 1, "domain": [0, 1]}}}})
    print("dpmix.mechanisms.wavelet.section" in sys.modules)
    import dpmix.api.privatize, dpmix.api.summarize, dpmix.api.synthesize
    {more}
print(len(compiled.buffer))
"""


def test_importing_compiles_nothing_and_a_fit_starts_without_what_comes_later() -> None:
    command = [sys.executable, "-c", IMPORTING.format(more="pass")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n") == ["", "True True", "False", "0", ""], done.stdout + done.stderr


KEPT = """
import sys
import numpy as np
import own
from numba.core import event
with event.install_recorder("numba:compile") as compiled:
    print(own.cumulated(np.ones(3)).sum(), own.largest(np.arange(4.0)))
known = "numba.cpython.listobj numba.np.arraymath numba.np.linalg scipy.linalg coverage".split()
print(len(compiled.buffer) > 0, *(name for name in known if name in sys.modules))
"""


def test_kept_code_is_read_without_what_compiling_needs(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\n"
        "from dpmix.numerics.jit import njit\n"
        "@njit\ndef cumulated(x):\n    y = np.zeros(len(x))\n"
        "    for i in range(len(x)):\n        y[i] = x[: i + 1].copy().sum()\n    return y\n"
        "@njit\ndef largest(x):\n    return x[np.argmax(x)]\n"
    )
    environment = {**os.environ, "DPMIX_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", KEPT]

    def run() -> str:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    first, second = run(), run()
    assert first.startswith("6.0 3.0\nTrue numba.cpython.listobj numba.np.arraymath numba.np.linalg")
    assert second == "6.0 3.0\nFalse numba.np.arraymath numba.np.linalg\n"


def test_bytecode_is_written_where_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    for name in ("one.py", "inner/two.py"):
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("x = (\n")
    _keep_bytecode(tmp_path)
    found = sorted(path.name.split(".")[0] for path in tmp_path.rglob("*.pyc"))
    assert found == ["one", "two"]
    _keep_bytecode(tmp_path / "missing")


@pytest.mark.matrix
def test_fits_after_a_warm_up_compile_nothing(tmp_path: Path) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text(
        "data: {simulate: three_gaussians, n: 30, seed: 1, domain: [-10, 10]}\n"
        "mechanism: {kind: laplace, epsilon: 5}\n"
        "model: {base: {mu0: 0, lambda: 0.1, a: 3, b: 3}}\n"
        "sampler: {kind: neal8, iterations: 200, burn_in: 100, chains: 2, seed: 1}\n"
    )
    cache = tmp_path / "cache"

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "dpmix", *map(str, arguments)]
        environment = {**os.environ, "DPMIX_CACHE_DIR": str(cache)}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )
        return done.stderr

    assert f"kept in {cache}" in run("warmup", spec)
    kept = set(cache.rglob("*.nbc"))
    assert len(kept) > 3
    run("privatize", spec, "-o", "r.h5")
    run("fit", spec, "--release", "r.h5", "-o", "c.h5")
    run("summarize", "c.h5")
    assert set(cache.rglob("*.nbc")) == kept
    assert "nothing to compile" in run("warmup", spec, "--release", "r.h5")
