"""Standard input in place of a file, names that promise another format, and never a file named "-"."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.cli.commands import app
from dpmix.data.tables import load_mixed, load_table
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.release.release_file import read_release
from dpmix.run.exit_codes import run
from dpmix.spec import load_spec
from dpmix.store.atomic import check_output, check_suffix
from dpmix.store.ledger_file import read_ledger

MODEL = "model={kind: mixture, base: {mu0: 0, lambda: 0.1, a: 3, b: 3}}"
SWEEP = """
base:
  data: {simulate: three_gaussians, n: 20}
  mechanism: {kind: none}
  sampler: {seed: 1}
  model: {kind: mixture, concentration: 1, base: {mu0: 0, lambda: 1, a: 3, b: 3}}
list: [{name: a, data.seed: 1}]
"""
TABLE = "x,w\n" + "".join(f"{i / 10},{'ab'[i % 2]}\n" for i in range(40))
SPEC = """
data: {path: '-', columns: [x], domain: [[0, 4]]}
mechanism: {kind: laplace, epsilon: 1.0}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SPEC)
    (tmp_path / "d.csv").write_text(TABLE)
    (tmp_path / "-").write_text("a file of that name, which is never opened\n")
    return tmp_path


def given(monkeypatch: pytest.MonkeyPatch, text: str | bytes = TABLE) -> None:
    raw = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))


@pytest.mark.parametrize(
    "keys", [["data.path=-"], ['data.path="-"'], []], ids=["--set", "quoted", "in the spec"]
)
def test_privatize_reads_standard_input(
    keys: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if keys:
        (folder / "s.yaml").write_text(SPEC.replace("'-'", "d.csv"))
    given(monkeypatch)
    command = ["privatize", "s.yaml", "-o", "r.h5", *(part for key in keys for part in ("--set", key))]
    assert run(app, command) == 0
    assert read_release("r.h5").n == 40
    assert load_spec("s.yaml", keys).to_dict()["data"]["path"] == "-"
    assert sorted(os.listdir(folder)) == ["-", "d.csv", "r.h5", "s.yaml"]
    given(monkeypatch, "")
    assert run(app, [*command, "--force"]) == 3
    assert "standard input is empty" in capsys.readouterr().err
    given(monkeypatch, b"\xff\xfe")
    assert run(app, [*command, "--force"]) == 3
    assert "standard input is not a text file in UTF-8" in capsys.readouterr().err


def test_a_lone_dash_of_yaml_is_meant_so_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "s.yaml").write_text(SPEC.replace("'-'", "-"))
    given(monkeypatch)
    assert dpmix.privatize(folder / "s.yaml").n == 40


def test_synthesize_reads_numbers_and_labels_of_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec: dict[str, Any] = {
        "data": {
            "path": "-",
            "columns": ["x", "w"],
            "domain": {"x": [0, 4]},
            "categories": {"w": ["a", "b"]},
        },
        "synthesis": {"kind": "perturbed_histogram", "bins": 2, "epsilon": 20.0},
    }
    given(monkeypatch)
    assert dpmix.synthesize(spec, folder / "s.csv", quiet=True).n == 40
    assert (folder / "s.csv").read_text().startswith("x,w\n")


def test_a_dry_run_counts_and_calibrate_leaves_it_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    smoothed = ["--set", "mechanism={kind: smoothed_histogram, bins: 4, draws: 5, epsilon: 1.0}"]
    given(monkeypatch)
    assert run(app, ["privatize", "s.yaml", "-o", "r.h5", "--dry-run", *smoothed]) == 0
    assert "x of standard input" in capsys.readouterr().out
    given(monkeypatch)
    assert run(app, ["calibrate", "s.yaml", *smoothed]) == 2
    assert "mechanism.n: missing; standard input is read by the release alone" in capsys.readouterr().err
    assert run(app, ["calibrate", "s.yaml", *smoothed, "--set", "mechanism.n=40"]) == 0
    assert run(app, ["calibrate", "s.yaml"]) == 0
    draws = ["--set", "synthesis={kind: pitman_yor, records: 1, concentration: 1}"]
    assert run(app, ["calibrate", "s.yaml", *draws]) == 2
    assert "synthesis.n: missing" in capsys.readouterr().err
    assert sys.stdin.read() == TABLE


def test_an_error_of_standard_input_names_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, "x\n1\nsecret\n")
    with pytest.raises(DataError, match="^standard input: the cell of column 'x' in record 2") as caught:
        load_table(Path("-"), ["x"])
    assert "secret" not in str(caught.value)
    given(monkeypatch)
    numbers, texts = load_mixed(Path("-"), ["x"], ["w"])
    assert (len(numbers["x"]), texts["w"][:2]) == (40, ("a", "b"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="there is none"):
        load_table(Path("-"), ["x"])


@pytest.mark.parametrize(
    "key",
    ["release.path", "privacy.ledger", "model={kind: custom, file: '-'}"],
)
def test_no_other_path_is_a_stream(key: str, folder: Path) -> None:
    override = key if "=" in key else f"{key}=-"
    with pytest.raises(SpecError, match=r'must be the path of a file, not "-"'):
        load_spec(folder / "s.yaml", [override])


def test_a_fit_of_unprotected_data_wants_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    model = {"kind": "mixture", "base": {"mu0": 0, "lambda": 0.1, "a": 3, "b": 3}}
    spec = {"data": {"path": "-", "columns": ["x"]}, "mechanism": {"kind": "none"}, "model": model}
    with pytest.raises(SpecError, match=r"data\.path: - is for what is released"):
        dpmix.fit(spec, output=folder / "c.h5")


@pytest.mark.parametrize(
    "command",
    [
        ["privatize", "s.yaml", "-o", "-"],
        ["privatize", "s.yaml", "-o", "r.h5", "--ledger", "-"],
        ["privatize", "-", "-o", "r.h5"],
        [
            "synthesize",
            "s.yaml",
            "-o",
            "-",
            "--set",
            "synthesis={kind: pitman_yor, records: 1, concentration: 1}",
        ],
        ["fit", "s.yaml", "--release", "d.csv", "-o", "-", "--set", MODEL],
        ["summarize", "d.csv", "-o", "-"],
        ["summarize", "d.csv", "-o", "x.h5", "--report", "-"],
        ["summarize", "d.csv", "d.csv", "--contrast", "-o", "-"],
        ["sweep", "w.yaml", "-o", "-"],
        ["init", "laplace", "-o", "-"],
    ],
)
def test_nothing_is_written_under_that_name(
    command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "-").unlink()
    (folder / "w.yaml").write_text(SWEEP)
    given(monkeypatch)
    assert run(app, command) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "-" in said.err and said.err.count("\n") == 1
    assert sorted(os.listdir(folder)) == ["d.csv", "s.yaml", "w.yaml"]
    assert sys.stdin.read() == TABLE  # and nothing is read


@pytest.mark.parametrize("name", ["r.csv", "r", "r.h5.gz", "r.json", "r.HDF", "h5", "r.h5 "])
def test_a_release_is_named_as_an_hdf5_file(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given(monkeypatch)
    for more in ([], ["--dry-run"], ["--ledger", "ledger.json"]):
        assert run(app, ["privatize", "s.yaml", "-o", name, *more]) == 2
        assert "ends in .h5 or .hdf5 or .nc" in capsys.readouterr().err
    with pytest.raises(UsageError, match=r"ends in \.h5 or \.hdf5 or \.nc"):
        dpmix.privatize(folder / "s.yaml", folder / name)
    assert sys.stdin.read() == TABLE
    assert sorted(os.listdir(folder)) == ["-", "d.csv", "s.yaml"]


@pytest.mark.parametrize("name", ["r.h5", "r.hdf5", "r.nc", "R.NC"])
def test_names_of_hdf5_files_do(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch)
    dpmix.privatize(folder / "s.yaml", folder / name)
    assert read_release(folder / name).n == 40
    assert len(read_ledger(folder / "none.json").entries) == 0


def test_other_files_are_not_named_as_another_format(tmp_path: Path) -> None:
    for name in ("c.csv", "c.json", "c.HTML", "c.csv.gz"):
        with pytest.raises(UsageError, match="a chains file is an HDF5 file"):
            check_suffix(tmp_path / name, "a chains file")
    for name in ("c", "c.h5", "c.v2", "c.nc"):
        check_suffix(tmp_path / name, "a chains file")
    with pytest.raises(UsageError, match="is no file to write"):
        check_output("-")


def test_a_pipe_in_a_shell(folder: Path) -> None:
    """Also where there is no standard input at all."""
    command = f"{sys.executable} -m dpmix privatize s.yaml"
    done = subprocess.run(f"cat d.csv | {command} -o r.h5 -q", shell=True, check=False, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert np.isfinite(read_release("r.h5").values).all()
    done = subprocess.run(f"{command} -o q.h5 <&-", shell=True, check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stderr == "dpmix: error: data.path: - is standard input, and there is none\n"
