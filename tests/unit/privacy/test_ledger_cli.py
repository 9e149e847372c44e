"""The ledger from the command line: what is printed, what it exits with, and what it leaves alone."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import opendp.mod
import pytest

import dpmix
from dpmix.api import confidential
from dpmix.errors import DataError
from dpmix.spec import load_spec
from dpmix.spec.describe import describe
from tests.helpers.confidential import CASES, write_confidential
from tests.helpers.specs import ROOT, message
from tests.unit.cli.test_cli import outcome

SPEC = ROOT / "configs" / "faithful_ledger.yaml"
SYNTHESIS = "synthesis={kind: smoothed_histogram, bins: 5, epsilon: 0.5, records: 4}"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return a copy of the shipped spec that reads the shipped data and has its ledger in `tmp_path`."""
    text = SPEC.read_text("utf-8").replace("data/faithful.csv", str(ROOT / "configs/data/faithful.csv"))
    path = tmp_path / "spec.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_budget_is_spent_shown_and_exceeded(spec: Path, capsys: Any) -> None:
    folder, ledger = spec.parent, spec.parent / "faithful_ledger.json"
    run = ("privatize", spec, "--set", "privacy.budget.epsilon=1.5", "-o")
    code, out, err = outcome(capsys, *run, folder / "a.h5", "--dry-run")
    assert (code, out) == (4, "") and f"{ledger}: there is no such ledger; correct the path or put it" in err
    code, out, _ = outcome(capsys, *run, folder / "a.h5", "--dry-run", "--new-ledger")
    assert code == 0
    assert f"would start the ledger {ledger}: 1 release of faithful so far, in all (epsilon = 1" in out
    assert [path.name for path in folder.iterdir()] == ["spec.yaml"]
    for name in ("a.h5", "b.h5"):
        code, _, err = outcome(capsys, *run, folder / name, *(["--new-ledger"] if name == "a.h5" else []))
        assert (code, f"wrote {folder / name}" in err) == (0, True)
    before = ledger.read_bytes()
    for more in ((), ("--dry-run",), ("--force",)):
        code, out, err = outcome(capsys, *run, folder / "c.h5", *more)
        assert (code, out) == (4, "")
        assert err.startswith(
            "dpmix: error: privacy.budget: faithful has a budget of epsilon = 1.5, delta = "
        )
        assert err.endswith("exceeds it, and nothing was drawn or spent\n") and err.count("\n") == 1
    assert ledger.read_bytes() == before and not (folder / "c.h5").exists()

    code, out, _ = outcome(capsys, "ledger", "show", ledger)
    assert code == 0
    assert out.startswith(f"{ledger}: 5 entries, unbroken to ")
    assert "2 releases of faithful so far, in all (epsilon = 2, delta = 2e-07)-DP and 0.0456832-zCDP, " in out
    assert out.count("perturbed_histogram of eruptions: (epsilon = 1, delta = 1e-07)-DP and ") == 2
    code, out, _ = outcome(capsys, "ledger", "show", ledger, "--json", "--dataset", "faithful")
    (found,) = json.loads(out)["datasets"]
    assert found["releases"] == 2 and found["budget"] == {"epsilon": 1.5, "delta": 1e-6}
    assert found["composition"]["epsilon"] == pytest.approx(2.0) and found["epsilon_at_delta"] < 1.41
    assert 0 < found["remaining"]["epsilon"] < 0.12
    assert [e["output"]["file"] for e in found["history"] if e["type"] == "spend"] == ["a.h5", "b.h5"]

    change = ("ledger", "budget", ledger, "--dataset", "faithful", "--epsilon", 4, "--delta", "1e-6")
    assert outcome(capsys, *change)[0] == 0
    assert outcome(capsys, *change, "--quiet")[0] == 0  # the same again is no entry
    code, _, err = outcome(capsys, *run, folder / "c.h5")
    assert (
        code == 4 and "is epsilon = 1.5, delta = 1e-06, but faithful has epsilon = 4, delta = 1e-06 in" in err
    )
    assert outcome(capsys, "privatize", spec, "--set", "privacy.budget=null", "-o", folder / "c.h5")[0] == 0
    assert json.loads(outcome(capsys, "ledger", "show", ledger, "--json")[1])["entries"] == 8


def test_a_ledger_is_named_on_the_command_line(spec: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(spec.parent)
    Path("deep").mkdir()
    moved = spec.rename("deep/spec.yaml")
    both = ("synthesize", moved, "--set", SYNTHESIS, "--ledger", "l.json", "-o")
    code, _, err = outcome(capsys, *both, "s.csv", "--new-ledger")
    assert code == 0
    assert "dpmix: ledger l.json: 1 release of faithful so far, in all (epsilon = 0.5, delta = 0)-DP" in err
    shown = json.loads(outcome(capsys, "ledger", "show", "l.json", "--json")[1])
    assert shown["datasets"][0]["history"][1]["mechanism"]["generator"] == "smoothed_histogram"
    code, out, _ = outcome(capsys, *both, "t.csv", "--dry-run")
    assert code == 0 and "would enter this in the ledger" in out
    assert sorted(p.name for p in Path().iterdir()) == [
        "deep",
        "l.json",
        "l.json.lock",
        "s.csv",
        "s.csv.json",
    ]
    odd = "odd 😀 'é' #: {x}.json"
    code, _, err = outcome(capsys, *both[:-3], "--ledger", odd, "--new-ledger", "-o", "t.csv")
    assert (code, Path(odd).is_file()) == (0, True), err
    for option in ("--compare", "--chains=s.csv"):
        code, _, err = outcome(capsys, *both, "u.csv", option)
        assert (code, err) == (
            2,
            f"dpmix: error: --ledger: {option[:9].rstrip('=')} spends nothing, so leave it out\n",
        )


def test_wrong_calls_exit_as_the_interface_says(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "l.json").write_text("{}")
    for code, arguments, said in (
        (2, ("ledger",), "Missing command (see dpmix ledger --help)"),
        (2, ("ledger", "show"), "Missing argument 'LEDGER' (see dpmix ledger show --help)"),
        (
            2,
            ("ledger", "budget", "l.json"),
            "--epsilon: missing; say {epsilon: 1.0, delta: 0.0} or {rho: 0.5}",
        ),
        (2, ("ledger", "budget", "l.json", "--rho", "0"), "--rho: 0.0 must be greater than 0"),
        (2, ("ledger", "budget", "l.json", "--rho", "nan"), "--rho: must be a finite number, not nan"),
        (
            2,
            ("ledger", "budget", "l.json", "--rho", "1", "--delta", "0"),
            "--delta: give either epsilon and delta, or rho, not both",
        ),
        (2, ("ledger", "budget", "l.json", "--rho", "1", "--dataset", ""), "--dataset: "),
        (3, ("ledger", "show", tmp_path / "gone.json"), f"{tmp_path / 'gone.json'}: no such ledger"),
        (3, ("ledger", "show", tmp_path), f"{tmp_path}: is a directory, not a ledger"),
        (3, ("ledger", "show", tmp_path / "l.json"), f"{tmp_path / 'l.json'}: is no ledger of dpmix"),
        (3, ("ledger", "budget", tmp_path / "l.json", "--rho", "1"), f"{tmp_path / 'l.json'}: is no ledger"),
        (
            4,
            ("ledger", "budget", tmp_path / "gone.json", "--rho", "1"),
            f"{tmp_path / 'gone.json'}: there is no such ledger; correct the path or put it back, or start",
        ),
        (
            2,
            ("ledger", "budget", tmp_path / "l.json", "--rho", "1", "--new-ledger"),
            f"--new-ledger: {tmp_path / 'l.json'} is there already",
        ),
    ):
        found, out, err = outcome(capsys, *arguments)
        assert (found, out) == (code, ""), arguments
        assert err.startswith(f"dpmix: error: {said}") and err.count("\n") == 1, (arguments, err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["l.json", "l.json.lock"]
    code, _, err = outcome(capsys, "ledger", "show", tmp_path / "l.json", "--dataset", "x")
    assert code == 3


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("privacy.budget={epsilon: 0}", "privacy.budget.epsilon: 0 must be greater than 0"),
        ("privacy.budget={delta: 0.1}", "privacy.budget.epsilon: missing; say {epsilon: 1.0, delta: 0.0} or"),
        ("privacy.budget={epsilon: 1, delta: 1}", "privacy.budget.delta: 1 must be less than 1"),
        (
            "privacy.budget={epsilon: 1, rho: 1}",
            "privacy.budget.epsilon: give either epsilon and delta, or r",
        ),
        ("privacy.dataset=' x'", "privacy.dataset: must be a name of at most 200 printable characters"),
        ('privacy.dataset="a\\nb"', "privacy.dataset: must be a name of at most 200 printable characters"),
        ("privacy.ledger=3", "privacy.ledger: must be the path of a file, not 3"),
        ("privacy.bugdet={rho: 1}", "privacy.bugdet: unknown key"),
    ],
)
def test_wrong_sections_are_refused(override: str, said: str) -> None:
    assert message(override).startswith(said)


def test_the_analyst_is_not_told_of_the_ledger() -> None:
    spec = load_spec(SPEC)
    assert spec.privacy is not None and spec.privacy.budget is not None
    stated = describe(spec)["privacy"]
    assert stated == f"data set faithful in ledger {spec.privacy.ledger}, budget epsilon = 3, delta = 1e-06"
    assert spec.privacy.ledger == SPEC.parent / "faithful_ledger.json"
    assert spec.for_analyst().privacy is None
    assert load_spec(SPEC, ["privacy.budget={epsilon: 2}"]).privacy.budget.delta == 0.0  # type: ignore[union-attr]
    assert load_spec({"privacy": {}}).privacy.dataset is None  # type: ignore[union-attr]
    assert "ledger" not in dpmix.calibrate(spec, quiet=True)


@pytest.mark.parametrize(
    ("verb", "kind", "columns", "own"), CASES, ids=[f"{i}-{c[1]}" for i, c in enumerate(CASES)]
)
def test_no_kind_draws_noise_beyond_the_budget(
    verb: str,
    kind: str,
    columns: dict[str, Any],
    own: dict[str, Any],
    tmp_path: Path,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    drawn: list[str] = []
    bytes_of, add = os.urandom, opendp.mod.Measurement.__call__
    monkeypatch.setattr(os, "urandom", lambda size: (drawn.append("bytes"), bytes_of(size))[1])
    monkeypatch.setattr(
        opendp.mod.Measurement, "__call__", lambda *given: (drawn.append("noise"), add(*given))[1]
    )
    section = {"privatize": "mechanism", "synthesize": "synthesis"}[verb]
    spec, ledger, output = (tmp_path / name for name in ("spec.yaml", "l.json", "out.h5"))
    data = {"path": str(write_confidential(tmp_path)), **columns}
    privacy = {"ledger": str(ledger), "budget": {"epsilon": 1e-4, "delta": 1e-9}}
    spec.write_text(json.dumps({"data": data, section: {"kind": kind, **own}, "privacy": privacy}))
    assert outcome(capsys, verb, spec, "-o", tmp_path / "free.h5", "--no-ledger")[0] == 0
    assert drawn
    drawn.clear()
    code, _, err = outcome(capsys, verb, spec, "-o", output, "--new-ledger")
    assert code == 4 and err.splitlines()[-1].endswith("exceeds it, and nothing was drawn or spent")
    assert not drawn and not output.exists() and not ledger.exists()


@pytest.mark.parametrize("verb", ["privatize", "synthesize"])
def test_of_several_that_write_one_output_one_spends(
    verb: str, spec: Path, capsys: Any, monkeypatch: Any
) -> None:
    """Others come while the first draws, and after a process was killed that had the output."""
    folder, ledger = spec.parent, spec.parent / "faithful_ledger.json"
    output = folder / ("a.h5" if verb == "privatize" else "a.csv")
    run = (verb, spec, "-o", output, "--set", SYNTHESIS)
    (folder / f".{output.name}.claim.partial").touch()
    module = importlib.import_module(f"dpmix.api.{verb}")
    write = "write_release" if verb == "privatize" else "write_synthetic"
    while_drawing = getattr(module, write)
    others = []

    def drawing(*arguments: Any, **options: Any) -> Any:
        if not others:
            others.extend(["begun"])
            others.extend(outcome(capsys, *run, *more) for more in ((), ("--force",)))
        return while_drawing(*arguments, **options)

    monkeypatch.setattr(module, write, drawing)
    assert outcome(capsys, *run, "--new-ledger")[0] == 0
    said = (
        f"dpmix: error: another process is writing {output}; give another name, or wait for it; nothing was "
    )
    assert [(code, out, err) for code, out, err in others[1:]] == [(2, "", f"{said}drawn or spent\n")] * 2
    entries = json.loads(ledger.read_text())["entries"]
    assert [entry["type"] for entry in entries] == ["budget", "spend", "release"]
    assert outcome(capsys, *run, "--force")[0] == 0  # one after the other, each is asked for
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("verb", ["privatize", "synthesize"])
@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (MemoryError, 5), (ValueError, 5)])
def test_what_breaks_off_after_the_entry_says_that_it_counts(
    error: type[BaseException], code: int, verb: str, spec: Path, capsys: Any, monkeypatch: Any
) -> None:
    folder, ledger = spec.parent, spec.parent / "faithful_ledger.json"
    run = (verb, spec, "-o", folder / ("a.h5" if verb == "privatize" else "a.csv"), "--set", SYNTHESIS)

    def broken(*_: Any, **__: Any) -> None:
        raise error

    module = importlib.import_module(f"dpmix.api.{verb}")
    monkeypatch.setattr(module, "write_release" if verb == "privatize" else "write_synthetic", broken)
    found, _, err = outcome(capsys, *run, "--new-ledger", "--quiet")
    assert found == code
    assert f"dpmix: warning: the release is entered in {ledger} all the same, and counts there\n" in err
    assert json.loads(ledger.read_text())["entries"][-1]["type"] == "spend"


@pytest.mark.parametrize("verb", ["privatize", "synthesize"])
def test_what_fails_after_the_entry_says_that_it_counts(
    verb: str, spec: Path, capsys: Any, monkeypatch: Any
) -> None:
    folder, ledger = spec.parent, spec.parent / "faithful_ledger.json"
    run = (verb, spec, "-o", folder / ("a.h5" if verb == "privatize" else "a.csv"), "--set", SYNTHESIS)

    def full(*_: Any, **__: Any) -> None:
        raise DataError("cannot write it: No space left on device")

    module = importlib.import_module(f"dpmix.api.{verb}")
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_release" if verb == "privatize" else "write_synthetic", full)
        code, _, err = outcome(capsys, *run, "--new-ledger")
    assert code == 3
    said = f"No space left on device; the release is entered in {ledger} all the same, and counts there\n"
    assert err.endswith(said)
    before = ledger.read_bytes()
    assert b'"spend"' in before

    def written_by_another(*values: Any) -> Any:
        Path(run[3]).write_text("of another", "utf-8")
        return marks_of(*values)

    marks_of = confidential.marks_of
    monkeypatch.setattr(confidential, "marks_of", written_by_another)
    code, _, err = outcome(capsys, *run)
    assert (code, "exists already" in err, "counts there" in err) == (2, True, False)
    assert ledger.read_bytes() == before


def test_a_ledger_leaves_the_temporary_files_of_its_neighbours(spec: Path, capsys: Any) -> None:
    folder = spec.parent
    own = folder / ".faithful_ledger.json.0123456789ab.partial"
    other = folder / ".faithful_ledger.json.2.0123456789ab.partial"
    for path in (own, other):
        path.write_text("half", "utf-8")
    assert outcome(capsys, "privatize", spec, "-o", folder / "a.h5", "--new-ledger")[0] == 0
    assert (own.exists(), other.exists()) == (False, True)
