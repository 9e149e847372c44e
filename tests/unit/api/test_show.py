"""`dpmix show`: what each kind of file says, and one sentence for what is none."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.show import _table_section
from dpmix.errors import DataError
from dpmix.release.release_file import write_release, write_synthetic
from dpmix.results.as_text import to_text
from dpmix.results.nodes import Tree
from dpmix.store.frames import Frame
from tests.helpers.chains_files import states_of_mixture, write_chains
from tests.helpers.discrete_releases import pitman_yor
from tests.helpers.seeds import rng_of
from tests.helpers.shown_files import HOSTILE, a_release, called, write_regression, write_work
from tests.helpers.specs import ROOT

GROUPED = {
    "kind": "perturbed_histogram",
    "domain": [[0.0, 4.0]],
    "bins": 2,
    "noise": "geometric",
    "scale": [1.0],
    "groups": {"sex": ["f", "m"]},
    "column": "age",
}


def test_a_release_says_guarantee_mechanism_columns_and_first_values(tmp_path: Path, capsys: Any) -> None:
    write_release(tmp_path / "r.h5", a_release([[1.25], [2.5], [3], [4], [5], [6], [7]], ["pay"]))
    code, out, err = called(capsys, "show", tmp_path / "r.h5")
    assert (code, err) == (0, "")
    for words in (
        "a release by laplace",
        "(epsilon = 2, delta = 0)-DP for the replacement of one record, local model.",
        "Laplace noise of scale 5 was added to each of 7 records",
        "pay in [0, 10]",
        "7 records",
        "1.25",
    ):
        assert words in " ".join(out.split())
    code, out, _ = called(capsys, "show", tmp_path / "r.h5", "--json")
    found = json.loads(out)
    assert found["kind"] == "release" and found["n"] == 7 and found["shape"] == [7, 1]
    assert found["columns"] == [{"name": "pay", "domain": [0.0, 10.0]}]
    assert found["first"] == [{"pay": value} for value in (1.25, 2.5, 3.0, 4.0, 5.0)]
    assert found["epsilon"] == 2.0 and found["rho"] is None and found["private"] is True
    write_release(tmp_path / "u.h5", a_release([[1.25]], ["pay"], unit="dollars"))
    assert "pay in [0, 10] dollars" in called(capsys, "show", tmp_path / "u.h5")[1]


def test_records_as_they_are_are_not_shown(tmp_path: Path, capsys: Any) -> None:
    raw = a_release([[1.25], [9.75]], ["pay"], {"kind": "none"}, private=False, epsilon=float("inf"))
    write_release(tmp_path / "r.h5", raw)
    for option in ([], ["--json"]):
        code, out, _ = called(capsys, "show", tmp_path / "r.h5", *option)
        assert code == 0 and "1.25" not in out and "9.75" not in out
    assert "1.25" not in raw._repr_html_() and "not shown" in raw._repr_html_()


def test_a_grouped_release_says_its_groups_and_the_total(tmp_path: Path, capsys: Any) -> None:
    release = a_release([[5], [6], [7], [8]], ["age"], GROUPED, adjacency="replacement, private groups")
    write_release(tmp_path / "r.h5", release)
    out = " ".join(called(capsys, "show", tmp_path / "r.h5")[1].split())
    assert "sex (f, m); how many records each has is private" in out
    assert "100 confidential records" in out
    first = json.loads(called(capsys, "show", tmp_path / "r.h5", "--json")[1])["first"]
    assert first[2] == {"sex": "m", "lower": 0.0, "upper": 2.0, "count": 7}


def test_a_tally_says_its_cells(tmp_path: Path, capsys: Any) -> None:
    write_release(tmp_path / "r.h5", a_release(np.arange(30.0) / 3, ["pay"]))
    dpmix.tally([tmp_path / "r.h5"], output=tmp_path / "t.h5", quiet=True)
    found = json.loads(called(capsys, "show", tmp_path / "t.h5", "--json")[1])
    cells = found["shape"][0]
    assert found["kind"] == "tally" and found["n"] == 30
    assert f"counts in {cells} cells" in called(capsys, "show", tmp_path / "t.h5")[1]


def test_chains_say_model_sampler_and_draws(tmp_path: Path, capsys: Any) -> None:
    rng = rng_of("show chains")
    write_chains(tmp_path / "c.h5", [states_of_mixture(50, rng), states_of_mixture(50, rng)])
    code, out, _ = called(capsys, "show", tmp_path / "c.h5")
    text = " ".join(out.split())
    assert code == 0 and "chains, finished" in text and "2 (ids 0, 1) x 50 draws" in text
    assert "Dirichlet-process mixture of normals" in text and "seed: 20241107" in text
    found = json.loads(called(capsys, "show", tmp_path / "c.h5", "--json")[1])
    assert found["finished"] is True and found["chains"] == [0, 1] and found["draws"] == 50
    assert "z" not in found and "observed" not in found


def test_an_interrupted_fit_says_how_far_it_got(tmp_path: Path, capsys: Any) -> None:
    folder = write_work(tmp_path / "c.h5", [40, 13, 0])
    for name in (tmp_path / "c.h5", folder):
        found = json.loads(called(capsys, "show", name, "--json")[1])
        assert found["kind"] == "interrupted" and found["finished"] is False
        assert found["saved"] == {"0": 40, "1": 13, "2": 0} and found["draws"] == 40
    assert "fit --resume" in called(capsys, "show", folder)[1]
    assert called(capsys, "export", folder, "-o", "-")[0] == 3
    (folder / "run.json").write_text('{"chains": 3}')
    code, _, err = called(capsys, "show", folder)
    assert code == 3 and "run.json is damaged" in err


def test_a_summary_says_its_table(tmp_path: Path, capsys: Any) -> None:
    write_regression(tmp_path / "c.h5")
    summary = dpmix.summarize(tmp_path / "c.h5", tmp_path / "s.h5")
    found = json.loads(called(capsys, "show", tmp_path / "s.h5", "--json")[1])
    rows = {row["name"]: row for row in found["parameters"]}
    assert rows["beta[age]"]["mean"] == summary.parameters["beta[age]"].mean
    assert found["kind"] == "summary" and found["warnings"] == summary.warnings
    out = called(capsys, "show", tmp_path / "s.h5")[1]
    assert "beta[age]" in out and "2.5%" in out and "Warnings:" in out


def test_a_summary_says_dates_and_what_tells_large_numbers_apart() -> None:
    frame = Frame(
        {
            "parameter": ["mean", "other"],
            "mean": np.array([18663.2, 1e9 + 0.4617]),
            "sd": np.array([34.8, 0.0261]),
            "date": ["2021-02-05", None],
            "quantiles[0.025]": np.array([18592.0, 1e9 + 0.4112]),
            "quantiles[0.975]": np.array([18733.1, 1e9 + 0.5145]),
        }
    )
    text = to_text(Tree("", "", "", (_table_section("parameters", frame),)))
    head, dated, large = (line.split() for line in text.splitlines())
    assert head == ["mean", "sd", "2.5%", "97.5%"]
    assert dated == ["mean", "2021-02-05", "34.8", "2020-11-26", "2021-04-16"]
    assert large == ["other", "1000000000.46", "0.0261", "1000000000.41", "1000000000.51"]


def test_released_values_far_from_zero_are_told_apart(tmp_path: Path, capsys: Any) -> None:
    write_release(tmp_path / "r.h5", a_release([[1e9 + 0.1992], [1e9 + 0.8417]], ["x"]))
    assert "1000000000.842" in called(capsys, "show", tmp_path / "r.h5")[1]


def test_without_a_guarantee_nothing_is_proved(tmp_path: Path, capsys: Any) -> None:
    for name, facts in (("none", {"epsilon": None}), ("seeded", {"private": False}), ("good", {})):
        write_release(tmp_path / f"{name}.h5", a_release([[1.0], [2.0]], ["x"], proved=True, **facts))
        text = called(capsys, "show", tmp_path / f"{name}.h5")[1]
        assert ("the guarantee is proved" in text) == (name == "good")


def test_a_ledger_shows_neither_key_nor_fingerprint(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n2\n3\n")
    spec = {
        "data": {"path": str(tmp_path / "t.csv"), "columns": ["x"], "domain": [0, 10]},
        "mechanism": {"kind": "laplace", "epsilon": 0.5},
        "privacy": {"dataset": "d", "ledger": str(tmp_path / "l.json"), "budget": {"epsilon": 2}},
    }
    dpmix.privatize(spec, tmp_path / "r.h5", new_ledger=True, quiet=True)
    ledger = json.loads((tmp_path / "l.json").read_text())
    marks = [entry["fingerprint"] for entry in ledger["entries"] if entry.get("fingerprint")]
    secrets = [ledger["key"], marks[0]["rows"], marks[0]["file"]]
    shown = [called(capsys, "show", tmp_path / "l.json", *option)[1] for option in ([], ["--json"])]
    shown.append(called(capsys, "export", tmp_path / "l.json", "-o", "-")[1])
    for text in shown:
        assert "laplace" in text
        assert not any(secret in text for secret in secrets)
    assert json.loads(shown[1])["datasets"][0]["budget"]["epsilon"] == 2
    (tmp_path / "l.json").write_text((tmp_path / "l.json").read_text()[:-40])
    code, _, err = called(capsys, "show", tmp_path / "l.json")
    assert code == 3 and "cut short" in err


def test_synthetic_records_specs_and_cards(tmp_path: Path, capsys: Any) -> None:
    release = pitman_yor([{"name": "town", "categories": ["red", "green", "blue"]}])
    write_synthetic(tmp_path / "s.csv", release)
    out = " ".join(called(capsys, "show", tmp_path / "s.csv")[1].split())
    assert "synthetic records, drawn by pitman_yor" in out and "town (red, green, blue)" in out
    code, _, err = called(capsys, "show", tmp_path / "s.csv.json")
    assert code == 3 and "show s.csv" in err
    spec = ROOT / "configs" / "faithful_laplace.yaml"
    assert "Dirichlet-process mixture" in " ".join(called(capsys, "show", spec)[1].split())
    sweep = next(iter((ROOT / "configs" / "sweeps").glob("*.yaml")))
    assert "the spec of a sweep over" in " ".join(called(capsys, "show", sweep)[1].split())
    write_release(tmp_path / "r.h5", a_release([[1.0]], ["x"]))
    dpmix.card(tmp_path / "r.h5", tmp_path / "card.yaml")
    assert "a card" in called(capsys, "show", tmp_path / "card.yaml")[1]
    (tmp_path / "t.csv").write_text("x\n4711\n")
    code, out, err = called(capsys, "show", tmp_path / "t.csv")
    assert code == 3 and "no account" in err and "4711" not in out + err


def test_a_hostile_name_does_nothing_on_a_terminal_or_in_a_page(tmp_path: Path, capsys: Any) -> None:
    release = a_release([[1.0], [2.0]], [HOSTILE])
    write_release(tmp_path / "r.h5", release)
    assert "\x1b" not in called(capsys, "show", tmp_path / "r.h5")[1]
    for html in (release._repr_html_(), dpmix.show(tmp_path / "r.h5")._repr_html_()):
        assert "<script" not in html and "&lt;script" in html


def some_files(folder: Path) -> list[Path]:
    rng = rng_of("damaged files")
    write_release(folder / "r.h5", a_release(np.arange(12.0), ["x"]))
    write_chains(folder / "c.h5", [states_of_mixture(20, rng), states_of_mixture(20, rng)])
    write_regression(folder / "n.h5")
    dpmix.tally([folder / "r.h5"], output=folder / "t.h5", quiet=True)
    dpmix.summarize(folder / "n.h5", folder / "s.h5")
    write_synthetic(folder / "y.csv", pitman_yor([{"name": "town", "categories": ["red", "green", "blue"]}]))
    return sorted(folder.iterdir())


@pytest.mark.parametrize("turns", [16, pytest.param(40, marks=pytest.mark.matrix)])
def test_damaged_files_are_answered_by_one_sentence(turns: int, tmp_path: Path, capsys: Any) -> None:
    files = some_files(tmp_path)
    chance = random.Random(22)
    target = tmp_path / "damaged"
    for turn in range(turns):
        source = chance.choice(files)
        data = bytearray(source.read_bytes())
        how = turn % 4
        if how == 0:
            del data[chance.randrange(len(data)) :]
        elif how == 1:
            for _ in range(20):
                data[chance.randrange(len(data))] = chance.randrange(256)
        elif how == 2:
            data[:] = chance.randbytes(chance.randrange(500))
        else:
            start = chance.randrange(len(data))
            data[start : start + 200] = bytes(len(data[start : start + 200]))
        path = target.with_suffix(chance.choice((source.suffix, ".h5", ".csv", ".yaml", ".json", ".txt", "")))
        path.write_bytes(data)
        for command in (["show", path, "--json"], ["show", path], ["export", path, "-o", "-"]):
            code, _, err = called(capsys, *command)
            assert code in (0, 3), (turn, source, command, err)
            assert code == 0 or err.count("\n") == 1, (turn, source, command, err)
            assert "internal" not in err
        path.unlink()


def test_what_is_no_file_of_ours(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "empty.h5").touch()
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "object.json").write_text('{"a": 1}')
    (tmp_path / "bad.yaml").write_text("a: [1")
    (tmp_path / "odd.yaml").write_text("nonsense: 3\n")
    (tmp_path / "page.html").write_text("<html>")
    os.mkfifo(tmp_path / "pipe")
    for name in (
        "empty.h5",
        "list.json",
        "object.json",
        "bad.yaml",
        "odd.yaml",
        "page.html",
        "pipe",
        "gone",
        "",
    ):
        code, out, err = called(capsys, "show", tmp_path / name)
        assert (code, out, err.count("\n")) == (3, "", 1), (name, err)
    assert called(capsys, "show", "-")[0] == 3


def test_in_python(tmp_path: Path) -> None:
    write_release(tmp_path / "r.h5", a_release([[1.5], [2.5]], ["x"]))
    shown = dpmix.show(tmp_path / "r.h5")
    assert shown.to_frame().columns["x"].tolist() == [1.5, 2.5]  # type: ignore[union-attr]
    assert "release" in repr(shown) and "<table>" in shown._repr_html_()
    with pytest.raises(KeyError, match="values"):
        shown.to_frame("draws")
    shutil.copy(ROOT / "configs" / "faithful_laplace.yaml", tmp_path / "s.yaml")
    with pytest.raises(DataError, match="no table"):
        dpmix.show(tmp_path / "s.yaml").to_frame()


@pytest.mark.parametrize(
    ("mechanism", "released", "given"),
    [
        ({"kind": "smoothed_histogram", "bins": 1, "draws": 1}, "1 draw", "given 1 draw of 2 records"),
        ({"kind": "perturbed_histogram", "bins": 1}, "1 noisy count", "given 1 noisy count of 2 records"),
    ],
)
def test_one_of_a_kind_is_singular(
    mechanism: dict[str, Any], released: str, given: str, tmp_path: Path, capsys: Any
) -> None:
    spec = {"data": {"columns": ["x"], "domain": [[0, 1]]}, "mechanism": mechanism | {"epsilon": 1.0}}
    path, held = tmp_path / "r.h5", {"x": [0.25, 0.5]}
    dpmix.privatize(spec, path, data=held, yes=True)
    text = dpmix.show(path).to_text()
    assert f"released:   {released}\n" in text
    assert "1 bins" not in text
    model = {"model": {"kind": "mixture"}, "sampler": {"iterations": 11, "burn_in": 10, "chains": 1}}
    (tmp_path / "s.yaml").write_text(json.dumps({"mechanism": spec["mechanism"]} | model))
    assert "1 cells" not in capsys.readouterr().err
    code, said, _ = called(
        capsys, "fit", tmp_path / "s.yaml", "--release", path, "-o", tmp_path / "c.h5", "--dry-run"
    )
    assert code == 0
    assert given in said
    assert "and keep 1 draw of each" in said
