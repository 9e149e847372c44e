"""Sweeps: a finished run is taken for done where it read what it would read now, and nowhere else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from dpmix.api import sweep as verbs
from dpmix.api.sweep import prepare
from dpmix.errors import SpecError
from dpmix.spec.load import load_spec
from dpmix.sweeping.folder import identity_of
from tests.unit.sweeping.test_sweep_plan import BASE, confidential


def finish(contents: dict[str, Any], folder: Path) -> None:
    """Leave a folder as a sweep does whose runs are all finished."""
    ready = prepare(contents, folder, new_ledger="data" in contents["base"])
    ready.folder.open()
    for run in ready.plan.runs:
        own = ready.folder.run(run.name)
        own.begin(identity_of(ready.specs[run.name]))
        own.result.write_text(json.dumps({"run": run.name, "seed": 1}))


def test_runs_of_another_release_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    contents, out = confidential(tmp_path, 100.0), tmp_path / "out"
    finish(contents, out)
    path = tmp_path / "d.csv"
    path.write_text("x,y\n" + "".join(f"{k / 30:.3f},0.5\n" for k in range(30)))
    contents["base"]["data"]["column"] = "y"
    anew: dict[str, Any] = {"new_ledger": True}
    for again, own in ((verbs.sweep, anew), (verbs.gather, {}), (verbs.plan, anew)):
        with pytest.raises(SpecError) as caught:
            again(contents, out, **own)
        said = str(caught.value)
        assert said.startswith(f"data: {out}")
        assert "holds a run of another release of confidential data; give another folder, or " in said
    assert not (tmp_path / "l.json").exists()
    assert list(out.glob("releases/*")) == []
    for kept in out.rglob("*.json"):
        assert "d.csv" not in kept.read_text()


def test_nothing_is_released_for_runs_that_are_finished(tmp_path: Path) -> None:
    contents, out = confidential(tmp_path, 100.0), tmp_path / "out"
    finish(contents, out)
    anew = {"new_ledger": True}
    assert prepare(contents, out, **anew).release_plan() == []
    assert (
        len(prepare(contents, out, force=True, **anew).release_plan()) == 3
    )  # two, and what they would leave
    next(out.glob("runs/*epsilon=2*neal8*/result.json")).unlink()
    assert len(prepare(contents, out, **anew).release_plan()) == 2


def sanitized(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "r.csv").write_text("x\n" + "".join(f"{k}\n" for k in range(-9, 10)))
    base = copy.deepcopy(BASE) | {"release": {"path": str(tmp_path / "r.csv"), "column": "x"}}
    del base["data"]
    base["mechanism"]["domain"] = [-10, 10]
    return {"base": base, "grid": {"model.concentration": [1, 2]}}


def test_sanitized_values_that_changed_are_noticed(tmp_path: Path) -> None:
    contents, out = sanitized(tmp_path), tmp_path / "out"
    finish(contents, out)
    assert [row["status"] for row in verbs.sweep(contents, out, quiet=True).rows] == ["finished"] * 2
    (tmp_path / "r.csv").write_text("x\n" + "".join(f"{k}\n" for k in range(-9, 9)))
    with pytest.raises(SpecError, match=r"^release.path: .* holds a run of other values than"):
        verbs.sweep(contents, out)
    for name in ("concentration=1", "concentration=2"):  # runs that came to nothing stand in nobody's way
        (out / "runs" / name / "result.json").unlink()
    assert "would do 2 of 2 runs" in verbs.plan(contents, out)


def test_sanitized_values_need_a_mechanism_before_anything_runs(tmp_path: Path) -> None:
    contents = sanitized(tmp_path) | {"set": {"mechanism": None}}
    with pytest.raises(
        SpecError, match=r"^run concentration=1: mechanism: missing; say which noise the values"
    ):
        verbs.sweep(contents, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "r.csv.json").write_text("{}")  # an account, which says how they were made
    assert "would do 2 of 2 runs" in verbs.plan(contents, tmp_path / "out")


def test_the_code_of_a_custom_model_that_changed_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("one = 1\n")
    base = copy.deepcopy(BASE) | {"model": {"kind": "custom", "file": str(path)}}
    base["sampler"] = {"seed": 1}
    before = identity_of(load_spec(base))
    assert identity_of(load_spec(base)) == before
    path.write_text("one = 11\n")
    assert identity_of(load_spec(base))["reads"]["model"] != before["reads"]["model"]


def test_runs_under_other_names_are_found_and_renamed(tmp_path: Path, capsys: Any) -> None:
    contents, out = sanitized(tmp_path), tmp_path / "out"
    finish(contents, out)
    (out / "error.png").write_bytes(b"of a sweep before")
    wider = contents | {"grid": {"model.concentration": [1, 2], "model.discount": [0.0, 0.1]}}
    assert "would do 2 of 4 runs" in verbs.plan(wider, out)
    assert sorted(path.name for path in out.glob("runs/*")) == ["concentration=1", "concentration=2"]
    result = verbs.gather(wider, out)
    found = {row["run"]: row["status"] for row in result.rows}
    assert list(found.values()) == ["finished", "missing"] * 2
    assert (out / "runs" / "concentration=1_discount=0" / "result.json").exists()
    assert {row["model.discount"] for row in result.rows} == {0.0, 0.1}
    assert not (out / "error.png").exists()
    narrow = contents | {"grid": {"model.concentration": [2]}, "set": {"model.discount": 0.1}}
    assert "would do 1 of 1 runs" in verbs.plan(narrow, out)
    verbs.gather(narrow, out)
    assert f"{out}/runs holds 2 finished runs that this sweep does not have" in capsys.readouterr().err
    half = out / "runs" / "concentration=2_discount=0" / "result.json"  # as where a renaming is broken off
    half.write_text(half.read_text().replace("concentration=2_discount=0", "run"))
    one = contents | {"grid": {"model.concentration": [2]}}
    assert [row["run"] for row in verbs.gather(one, out).rows] == ["run"]
    assert (out / "runs" / "run" / "result.json").exists()


def test_a_run_that_is_given_twice_in_other_words_is_refused(tmp_path: Path) -> None:
    twice = {"base": BASE, "list": [{"mechanism.epsilon": 1}, {"mechanism.epsilon": 1.0}]}
    with pytest.raises(SpecError, match=r"^list: epsilon=1-2 is the same run as epsilon=1-1; take one"):
        prepare(twice, tmp_path / "out")


def test_changed_runs_are_done_anew_by_force_and_others_stay(tmp_path: Path) -> None:
    contents, out = sanitized(tmp_path), tmp_path / "out"
    finish(contents, out)
    path = tmp_path / "sweep.yaml"
    path.write_text(json.dumps(contents | {"grid": {"model.concentration": [1, 3]}}))
    finish(json.loads(path.read_text()), out)  # the last is left of it
    changed = contents | {
        "list": [
            {"name": "concentration=1", "model.concentration": 1},
            {"name": "concentration=2", "model.concentration": 5},
        ]
    }
    path.write_text(json.dumps({key: value for key, value in changed.items() if key != "grid"}))
    for again, said in (
        (verbs.gather, f"or remove {out}/runs/concentration=2"),
        (verbs.plan, "or --force to make all"),
    ):
        with pytest.raises(SpecError, match="holds a run that has 2.*, not 5") as caught:
            again(path, out)
        assert said in str(caught.value)
    with pytest.raises(SpecError, match="or --force to make such runs anew"):
        verbs.emit(path, out, "sbatch")
    verbs.emit(path, out, "sbatch", force=True)
    assert (out / "runs" / "concentration=1" / "result.json").exists()
    assert not (out / "runs" / "concentration=2").exists()
    assert (out / "runs" / "concentration=3" / "result.json").exists()


def test_what_runs_said_is_told(tmp_path: Path, capsys: Any) -> None:
    contents, out = sanitized(tmp_path), tmp_path / "out"
    finish(contents, out)
    (out / "runs" / "concentration=2" / "log.txt").write_text("dpmix: warning: 3 values were clamped\nmore\n")
    verbs.gather(contents, out)
    said = "1 of 2 runs had something to say; concentration=2: warning: 3 values were clamped"
    assert said in capsys.readouterr().err


def test_runs_under_other_names_are_done_anew_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents, out = sanitized(tmp_path), tmp_path / "out"
    finish(contents, out)
    ordered: list[str] = []
    monkeypatch.setattr(
        verbs, "_work", lambda ready, orders, *rest: ordered.extend(o["name"] for o in orders)
    )
    one = contents | {"grid": {"model.concentration": [2]}}
    verbs.sweep(one, out, force=True, quiet=True)
    assert ordered == ["run"]
    verbs.sweep(one, out, quiet=True)
    assert ordered == ["run"]  # found where it was
