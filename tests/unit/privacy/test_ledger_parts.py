"""Public parts of one table: the largest of them counts, and nothing is stated where they are not public."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dpmix
from dpmix.api.spending import set_budget
from dpmix.errors import PrivacyError, SpecError, UsageError
from dpmix.privacy.accounting import Adjacency, Guarantee
from dpmix.privacy.budget import Budget
from dpmix.privacy.ledger import Book
from dpmix.release.release_file import read_release
from dpmix.store.ledger_file import read_ledger
from tests.unit.cli.test_cli import outcome

NOISE = {"kind": "laplace", "epsilon": 0.5}
DRAWS = {"kind": "smoothed_histogram", "bins": 5, "epsilon": 0.5, "records": 3}
PARTS = "replacement, public parts"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Write a table and its two parts."""
    rows = [f"{(7 * i) % 40 / 40}" for i in range(40)]
    for name, own in (("people", rows), ("women", rows[:22]), ("men", rows[22:])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["y", *own]) + "\n")
    return tmp_path


def spec_of(folder: Path, name: str, part: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    data = {"path": str(folder / f"{name}.csv"), "columns": ["y"], "domain": [[0.0, 1.0]]}
    if part is not None:
        data["part"] = part
    return {
        "data": data,
        "mechanism": NOISE,
        "synthesis": DRAWS,
        "privacy": {"ledger": str(folder / "l.json"), "dataset": name, **more},
    }


PUBLIC = {"of": "people", "public": True}


def test_parts_count_as_their_maximum_and_the_whole_adds(people: Path, capsys: Any) -> None:
    women, men = spec_of(people, "women", PUBLIC), spec_of(people, "men", PUBLIC)
    budget = {"budget": {"epsilon": 1.5}}
    release = dpmix.privatize(
        women | {"privacy": women["privacy"] | budget}, people / "w.h5", new_ledger=True
    )
    assert release.adjacency == PARTS and read_release(people / "w.h5").adjacency == PARTS
    err = capsys.readouterr().err
    assert "-zCDP for the replacement of one record that stays in its part of the table, local model" in err
    assert "dpmix: ledger l.json: 1 release of people so far, in all (epsilon = 0.5, delta = 0)-DP" in err
    assert "; part women: 1 release, (epsilon = 0.5, delta = 0)-DP and " in err
    for _ in range(2):
        dpmix.privatize(men, quiet=True)
    synthetic = dpmix.synthesize(women, people / "w.csv", quiet=True)
    assert synthetic.adjacency == PARTS
    assert json.loads((people / "w.csv.json").read_text())["adjacency"] == PARTS
    assert "stays in its part" in json.loads((people / "w.csv.json").read_text())["guarantee"]
    book = read_ledger(people / "l.json")
    assert book.datasets == ("people",) and book.names == ("people", "women", "men")
    account = book.account("men")
    assert account.dataset == "people" and account.budget == Budget(1.5, 0.0)
    shown = account.to_json()
    assert shown["composition"]["epsilon"] == pytest.approx(1.0) and shown["releases"] == 4
    assert shown["remaining"]["epsilon"] == pytest.approx(0.5) and shown["adjacency"] == PARTS
    assert [part["remaining"]["epsilon"] for part in shown["parts"]] == pytest.approx([0.5, 0.5])
    whole = dpmix.privatize(spec_of(people, "people"), quiet=True)
    assert whole.adjacency == "replacement"
    for spec in (women, men, spec_of(people, "people")):
        with pytest.raises(PrivacyError, match="of which next to nothing remains"):
            dpmix.privatize(spec, quiet=True)
    dpmix.privatize(
        spec_of(people, "children", PUBLIC), overrides=[f"data.path={_children(people)}"], quiet=True
    )
    code, out, _ = outcome(capsys, "ledger", "show", people / "l.json")
    assert code == 0
    assert "in all (epsilon = 1.5, delta = 0)-DP and " in out
    assert "(the largest over its 3 parts, for the replacement of one record that stays in its part)" in out
    assert "; of the budget of epsilon = 1.5, delta = 0, next to nothing remains for all records\n" in out
    assert "  part women: 2 releases, (epsilon = 1, delta = 0)-DP and " in out
    assert "  part children: 1 release, (epsilon = 0.5, delta = 0)-DP and " in out
    assert out.count("part men, laplace of y: ") == 2
    assert outcome(capsys, "ledger", "show", people / "l.json", "--dataset", "men")[1] == out


def _children(folder: Path) -> Path:
    path = folder / "children.csv"
    path.write_text("y\n0.25\n0.5\n0.125\n")
    return path


def test_a_part_that_is_not_public_is_refused_wherever_it_stands(people: Path, capsys: Any) -> None:
    path = people / "spec.yaml"
    for part in ({"of": "people"}, {"of": "people", "public": False}):
        spec = spec_of(people, "women", part)
        for contents in (spec, spec | {"privacy": None}):
            path.write_text(json.dumps(contents))
            for arguments in (
                ("privatize", path, "-o", people / "r.h5"),
                ("privatize", path, "-o", people / "r.h5", "--dry-run"),
                ("privatize", path, "-o", people / "r.h5", "--no-ledger"),
                ("synthesize", path, "-o", people / "r.csv"),
                ("validate", path),
            ):
                code, out, err = outcome(capsys, *arguments)
                assert (code, out) == (4, ""), arguments
                assert err.startswith("dpmix: error: data.part.public: is not true; where a replaced record")
                assert "data.group" in err and err.count("\n") == 1
    assert not (people / "l.json").exists()
    path.write_text(json.dumps(spec_of(people, "women", PUBLIC)))
    code, out, _ = outcome(capsys, "privatize", path, "-o", people / "r.h5", "--dry-run", "--new-ledger")
    assert code == 0 and "a public part of people" in out and "stays in its part of the table" in out


def test_without_a_ledger_a_part_is_stated_all_the_same(people: Path) -> None:
    spec = spec_of(people, "women", PUBLIC) | {"privacy": None}
    assert dpmix.privatize(spec, quiet=True).adjacency == PARTS
    simulated = {"simulate": "waiting_times", "n": 9, "seed": 1, "domain": [[0, 200]], "part": PUBLIC}
    assert dpmix.privatize({"data": simulated, "mechanism": NOISE}, quiet=True).adjacency == PARTS


def test_a_part_needs_a_name_and_keeps_its_place(people: Path) -> None:
    women = spec_of(people, "women", PUBLIC)
    with pytest.raises(SpecError, match=r"privacy.dataset: missing; name the part"):
        dpmix.privatize(women, overrides=["privacy.dataset=null"], new_ledger=True)
    with pytest.raises(PrivacyError, match="women cannot be a part of itself"):
        dpmix.privatize(women, overrides=["data.part.of=women"], new_ledger=True)
    dpmix.privatize(women, new_ledger=True, quiet=True)
    for own, overrides, said in (
        ("women", ["data.part=null"], r"data.part: missing; the ledger knows women as a part of people, so"),
        ("women", ["data.part.of=crowd"], "is crowd, but the ledger knows women as a part of people; a part"),
        (
            "men",
            ["data.part.of=women"],
            "knows women as a part of people, so that it cannot have parts",
        ),
        (
            "people",
            ["data.part.of=world"],
            "knows people as a table of its own, which cannot become a part",
        ),
    ):
        with pytest.raises(PrivacyError, match=said):
            dpmix.privatize(spec_of(people, own, PUBLIC), overrides=overrides, quiet=True)
    with pytest.raises(UsageError, match="women is a part of people, whose budget counts for it; name"):
        dpmix.api.spending.set_budget(people / "l.json", "women", Budget(1.0, 0.0))
    with pytest.raises(PrivacyError, match="knows the same data as women"):  # one table as two parts
        dpmix.privatize(spec_of(people, "women", PUBLIC), dataset="ladies", quiet=True)


def test_a_budget_in_a_parts_spec_is_the_wholes(people: Path) -> None:
    dpmix.privatize(spec_of(people, "women", PUBLIC, budget={"epsilon": 1.0}), new_ledger=True, quiet=True)
    with pytest.raises(PrivacyError, match="is epsilon = 2, delta = 0, but people has epsilon = 1, delta"):
        dpmix.privatize(spec_of(people, "men", PUBLIC, budget={"epsilon": 2.0}), quiet=True)
    dpmix.privatize(spec_of(people, "people", budget={"epsilon": 1.0}), quiet=True)
    with pytest.raises(
        PrivacyError,
        match="people, whose part women is, has a budget of .* of which next to nothing remains",
    ):
        dpmix.privatize(spec_of(people, "women", PUBLIC), quiet=True)


def test_entries_that_mix_relations_are_damage_and_never_written() -> None:
    book = Book()
    plain = Guarantee(0.5, 0.0, None)
    with pytest.raises(PrivacyError, match="is none for women, a part of a table"):
        book.spend("women", {"kind": "laplace"}, plain, "t", "0", whole="people")
    with pytest.raises(PrivacyError, match="is none for a whole table"):
        book.spend("people", {"kind": "laplace"}, plain.of_public_part(), "t", "0")
    assert book.entries == [] and book.names == ()
    book.spend(
        "people", {"kind": "x"}, Guarantee(0.5, 0.0, None, "global", Adjacency.PRIVATE_GROUPS), "t", "0"
    )
    book.spend("women", {"kind": "x"}, plain.of_public_part(), "t", "0", whole="people")
    again = Book.parse(book.to_text())
    assert again.account("women") == book.account("people")
    assert again.account("people").to_json()["adjacency"] == PARTS


@pytest.mark.parametrize("other", ["MEN", "me\u0301n", "m\u00e9N"])
def test_names_that_read_alike_are_not_counted_apart(people: Path, other: str) -> None:
    """The table may have changed, so that its fingerprint does not tell."""
    known = "men" if other == "MEN" else "m\u00e9n"
    budget = {"budget": {"epsilon": 0.5}}
    dpmix.privatize(spec_of(people, "men", dataset=known, **budget), quiet=True, new_ledger=True)
    before = (people / "l.json").read_bytes()
    said = f"is {other}, which differs from {known}, that the ledger knows, in capitals or in the encoding"
    for spec, key in (
        (spec_of(people, "women", dataset=other, **budget), "privacy.dataset"),
        (spec_of(people, "women", {"of": other, "public": True}), "data.part.of"),
    ):
        with pytest.raises(PrivacyError, match=f"{key}: {said}"):
            dpmix.privatize(spec, quiet=True)
    with pytest.raises(PrivacyError, match=said):
        set_budget(people / "l.json", other, Budget(9.0, 0.0))
    assert (people / "l.json").read_bytes() == before


def test_names_that_a_ledger_has_already_stay() -> None:
    book = Book()
    for name in ("men", "Men"):  # as earlier versions entered them
        book.spend(name, NOISE, Guarantee(0.5, 0.0, None), "t", "0")
    assert [book.name(name) for name in ("men", "Men")] == ["men", "Men"]
    assert book.name("men\u00b2") == "men\u00b2"  # which is told from men2, and from men
