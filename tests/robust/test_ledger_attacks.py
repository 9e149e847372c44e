"""Ways around a budget that is spent: none of them leads to one more release.

Each attack is a function that tries for one more release of the same people, and gives it where it succeeds.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.errors import DataError, PrivacyError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.fingerprint import Marks, rows_digest
from dpmix.privacy.ledger import START, Book, digest_of
from dpmix.privacy.noise import AdditiveNoise
from dpmix.release.release_file import read_release
from dpmix.store.ledger_file import read_ledger
from tests.unit.cli.test_cli import outcome

NOISE = {"kind": "laplace", "epsilon": 0.5}
DRAWS = {"kind": "smoothed_histogram", "bins": 5, "epsilon": 0.5, "records": 3}


def spent_budget(folder: Path, **data: Any) -> Path:
    """Write a table and a spec in a folder, spend the whole budget, and return the spec."""
    rng = np.random.default_rng(3)
    rows = [f"{y:.6f},{x:.6f}" for y, x in rng.uniform(0, 1, (40, 2))]
    (folder / "people.csv").write_text("\n".join(["y,x", *rows]) + "\n")
    spec = {
        "data": {"path": "people.csv", "columns": ["y"], "domain": [[0.0, 1.0]], **data},
        "mechanism": NOISE,
        "privacy": {"ledger": "ledger.json", "dataset": "people", "budget": {"epsilon": 0.5}},
    }
    path = folder / "spec.json.yaml"
    path.write_text(json.dumps(spec))
    dpmix.privatize(path, folder / "first.h5", new_ledger=True, quiet=True)
    return path


def by_no_name(spec: Path) -> Any:
    """A spec that lost its line ``dataset``."""
    return dpmix.privatize(spec, overrides=["privacy.dataset=null", "privacy.budget=null"], quiet=True)


def by_another_name(spec: Path) -> Any:
    """The same file under a new name."""
    return dpmix.privatize(spec, dataset="others", quiet=True)


def by_another_name_and_yes(spec: Path) -> Any:
    """The same, insisted upon."""
    return dpmix.privatize(spec, dataset="others", yes=True, quiet=True)


def by_a_mistyped_ledger(spec: Path) -> Any:
    """A path that leads nowhere."""
    return dpmix.privatize(spec, ledger=spec.parent / "leger.json", quiet=True)


def by_a_mistyped_folder(spec: Path) -> Any:
    """A folder that is not there."""
    return dpmix.privatize(spec, ledger=spec.parent / "gone" / "ledger.json", quiet=True)


def by_a_copied_spec(spec: Path) -> Any:
    """The spec and its data in another folder, where its ledger is not."""
    copy = spec.parent / "copy"
    copy.mkdir()
    for name in (spec.name, "people.csv"):
        shutil.copy(spec.parent / name, copy / name)
    return dpmix.privatize(copy / spec.name, quiet=True)


def by_a_fresh_ledger_in_its_place(spec: Path) -> Any:
    """``--new-ledger`` where there is one."""
    return dpmix.privatize(spec, new_ledger=True, quiet=True)


def by_sorting_the_file(spec: Path) -> Any:
    """Other bytes, the same rows, under another name."""
    lines = (spec.parent / "people.csv").read_text().splitlines()
    (spec.parent / "sorted.csv").write_text("\n".join([lines[0], *sorted(lines[1:])]) + "\n")
    return dpmix.privatize(spec, overrides=["data.path=sorted.csv"], dataset="others", quiet=True)


def by_another_format(spec: Path) -> Any:
    """The same rows as an npy file, under another name."""
    table = np.loadtxt(spec.parent / "people.csv", delimiter=",", skiprows=1)
    np.save(spec.parent / "people.npy", table[::-1, :1])
    return dpmix.privatize(spec, overrides=["data.path=people.npy"], dataset="others", quiet=True)


def by_packing_and_other_columns(spec: Path) -> Any:
    """The same bytes, packed, of which another column is taken, under another name."""
    (spec.parent / "p.csv.gz").write_bytes(gzip.compress((spec.parent / "people.csv").read_bytes()))
    wanted = ["data.path=p.csv.gz", "data.columns=[x]"]
    return dpmix.privatize(spec, overrides=wanted, dataset="others", quiet=True)


def by_synthesis(spec: Path) -> Any:
    """Another command, other bounds, another name."""
    wanted = [f"synthesis={json.dumps(DRAWS)}", "data.domain=[[0.2, 0.9]]"]
    return dpmix.synthesize(spec, overrides=wanted, dataset="others", quiet=True)


def by_calling_it_a_part(spec: Path) -> Any:
    """The same table as a public part of itself."""
    part = ["data.part={of: people, public: true}", "privacy.budget=null"]
    return dpmix.privatize(spec, overrides=part, dataset="half", quiet=True)


def by_a_part_of_something_else(spec: Path) -> Any:
    """The same table as a public part of a table that is new."""
    part = ["data.part={of: crowd, public: true}", "privacy.budget=null"]
    return dpmix.privatize(spec, overrides=part, dataset="half", quiet=True)


ATTACKS: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "no name": (by_no_name, UsageError, "privacy.dataset: missing, and the ledger knows people; name the"),
    "another name": (by_another_name, PrivacyError, "but the ledger knows the same data as people, so that"),
    "insisting": (by_another_name_and_yes, PrivacyError, "but the ledger knows the same data as people"),
    "mistyped ledger": (by_a_mistyped_ledger, PrivacyError, "there is no such ledger; correct the path"),
    "mistyped folder": (by_a_mistyped_folder, PrivacyError, "there is no such ledger; correct the path"),
    "copied spec": (by_a_copied_spec, PrivacyError, "there is no such ledger; correct the path"),
    "new ledger": (by_a_fresh_ledger_in_its_place, UsageError, "is there already; leave that out"),
    "sorted": (by_sorting_the_file, PrivacyError, "but the ledger knows the same data as people"),
    "another format": (by_another_format, PrivacyError, "but the ledger knows the same data as people"),
    "packed": (by_packing_and_other_columns, PrivacyError, "but the ledger knows the same data as people"),
    "synthesis": (by_synthesis, PrivacyError, "but the ledger knows the same data as people"),
    "part": (by_calling_it_a_part, PrivacyError, "but the ledger knows the same data as people"),
    "other part": (by_a_part_of_something_else, PrivacyError, "but the ledger knows the same data as people"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_spent_budget_is_not_escaped(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    spec = spent_budget(tmp_path)
    attack, error, said = ATTACKS[name]
    before = (tmp_path / "ledger.json").read_bytes()
    drawn: list[int] = []
    monkeypatch.setattr(AdditiveNoise, "add", lambda *args: drawn.append(1))
    with pytest.raises(error) as caught:
        attack(spec)
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert not drawn and (tmp_path / "ledger.json").read_bytes() == before


@pytest.mark.parametrize("column", ["y", "g"])
def test_what_stands_for_missing_values_makes_no_other_table(column: str, tmp_path: Path) -> None:
    rows = ["0.25,p", "NA,p", "0.5,NA", "0.75,", ",q"]
    (tmp_path / "people.csv").write_text("\n".join(["y,g", *rows]) + "\n")
    (tmp_path / "sorted.csv").write_text("\n".join(["y,g", *sorted(rows)]) + "\n")

    def spec(path: str, stands: Any, name: str) -> dict[str, Any]:
        data = {"path": str(tmp_path / path), "columns": [column], "missing": {column: stands}}
        ledger = {"ledger": str(tmp_path / "l.json"), "dataset": name}
        if column == "y":
            return {"data": data | {"domain": [[0, 1]]}, "mechanism": NOISE, "privacy": ledger}
        posterior = {"kind": "posterior", "epsilon": 1.0, "prior": [1, 1] if stands == "p" else [1, 1, 1]}
        return {"data": data | {"categories": ["p", "q"]}, "mechanism": posterior, "privacy": ledger}

    one, other = (0.5, 0.25) if column == "y" else ("p", "category")
    dpmix.privatize(spec("people.csv", one, "people"), new_ledger=True, quiet=True)
    with pytest.raises(PrivacyError, match="but the ledger knows the same data as people"):
        dpmix.privatize(spec("sorted.csv", other, "others"), quiet=True)
    if column == "g":  # nor does a category that reads as a missing value
        given = spec("sorted.csv", other, "others")
        given["data"] |= {"path": str(tmp_path / "listed.csv"), "categories": ["p", "q", "NA"]}
        given["data"].pop("missing")
        listed = [row if row[-1] in "pqA" else row + "NA" for row in sorted(rows)]
        (tmp_path / "listed.csv").write_text("\n".join(["y,g", *listed]) + "\n")
        with pytest.raises(PrivacyError, match="but the ledger knows the same data as people"):
            dpmix.privatize(given, quiet=True)


def test_the_same_table_goes_on_under_its_name_and_another_one_only_as_an_edition(tmp_path: Path) -> None:
    spec = spent_budget(tmp_path)
    more = ["privacy.budget=null"]
    dpmix.api.spending.set_budget(
        tmp_path / "ledger.json", "people", dpmix.api.spending.Budget(5.0, 0.0), quiet=True
    )
    dpmix.privatize(spec, overrides=[*more, "data.columns=[x]"], quiet=True)  # another column of the file
    lines = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "people.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    dpmix.privatize(spec, overrides=more, quiet=True)  # the same rows in another order
    (tmp_path / "people.csv").write_text("\n".join([*lines, "0.5,0.5"]) + "\n")
    with pytest.raises(PrivacyError, match="is not the one released under this name before; name"):
        dpmix.privatize(spec, overrides=more, quiet=True)
    dpmix.privatize(spec, overrides=more, yes=True, quiet=True)
    dpmix.privatize(spec, overrides=more, quiet=True)  # which is known from here on
    book = read_ledger(tmp_path / "ledger.json")
    assert [e["edition"] for e in book.entries if e["type"] == "spend"] == [1, 1, 1, 2, 2]
    assert book.account("people").to_json()["composition"]["epsilon"] == pytest.approx(2.5)


def test_the_key_and_the_marks_stay_in_the_ledger(tmp_path: Path, capsys: Any) -> None:
    spec = spent_budget(tmp_path)
    ledger = json.loads((tmp_path / "ledger.json").read_text())
    marks = next(e["fingerprint"] for e in ledger["entries"] if e["type"] == "spend")
    assert (tmp_path / "ledger.json").stat().st_mode & 0o777 == 0o600
    out = outcome(capsys, "ledger", "show", tmp_path / "ledger.json", "--json")[1]
    out += outcome(capsys, "ledger", "show", tmp_path / "ledger.json")[1]
    out += outcome(capsys, "privatize", spec, "-o", tmp_path / "b.h5", "--set", "privacy.budget=null")[2]
    for secret in (ledger["key"], marks["rows"], marks["file"], marks["key"], "fingerprint"):
        assert secret not in out
        assert secret.encode() not in (tmp_path / "first.h5").read_bytes()
    # under another key the same table has other marks
    again = Marks(("y",), rows_digest({"y": np.array([1.0, 2.0])}), b"x" * 32)
    one, other = again.keyed("0" * 64), again.keyed("1" * 64)
    assert one["columns"] == other["columns"] == ["y"]
    assert all(one[name] != other[name] for name in ("key", "rows", "file"))


def test_rows_are_known_whatever_their_order_and_form() -> None:
    numbers, texts = np.array([1.0, 2.0, 2.0, -0.0]), ["a", "b", "c", "1.0"]
    one = rows_digest({"u": numbers, "v": texts})
    order = [3, 1, 0, 2]
    assert one == rows_digest({"v": [texts[i] for i in order], "u": numbers[order]})
    assert one == rows_digest({"u": ["1", "2.0", "2", "0"], "v": ["a", "b", "c", "1"]})
    for other in (
        {"u": numbers, "v": ["b", "a", "c", "1.0"]},  # the same columns, other rows
        {"u": numbers, "w": texts},
        {"u": numbers},
        {"u": numbers[:3], "v": texts[:3]},
        {"u": np.array([1.0, 2.0, 1.0, 0.0]), "v": texts},
    ):
        assert rows_digest(other) != one  # type: ignore[arg-type]


def test_a_bypassed_ledger_is_said_aloud_and_recorded(tmp_path: Path, capsys: Any) -> None:
    spec = spent_budget(tmp_path)
    assert read_release(tmp_path / "first.h5").ledger == "entered"
    before = (tmp_path / "ledger.json").read_bytes()
    code, out, err = outcome(capsys, "privatize", spec, "-o", tmp_path / "b.h5", "--no-ledger", "--quiet")
    assert (code, out) == (0, "")
    assert err == (
        f"dpmix: warning: --no-ledger: nothing is entered in {tmp_path / 'ledger.json'}: what this release "
        "costs is counted nowhere, and it records that\n"
    )
    assert read_release(tmp_path / "b.h5").ledger == "bypassed"
    assert (tmp_path / "ledger.json").read_bytes() == before
    code, out, _ = outcome(capsys, "privatize", spec, "-o", tmp_path / "c.h5", "--no-ledger", "--dry-run")
    assert code == 0 and "would enter nothing in" in out
    code, _, err = outcome(capsys, "privatize", spec, "-o", tmp_path / "c.h5", "--set", "privacy=null")
    assert code == 2 and "privacy: null takes out the ledger" in err and "--no-ledger goes by it" in err
    own = {key: value for key, value in json.loads(spec.read_text()).items() if key != "privacy"}
    (tmp_path / "plain.yaml").write_text(json.dumps(own))
    plain = ("privatize", tmp_path / "plain.yaml", "-o")
    assert outcome(capsys, *plain, tmp_path / "c.h5", "--no-ledger")[0] == 0  # where none is configured
    assert read_release(tmp_path / "c.h5").ledger is None
    for more, said in (
        (("--ledger", tmp_path / "l.json"), "--no-ledger: enters nothing, and --ledger asks for an entry"),
        (("--new-ledger",), "--no-ledger: enters nothing, and --new-ledger asks for an entry"),
    ):
        code, _, err = outcome(capsys, *plain, tmp_path / "d.h5", "--no-ledger", *more)
        assert code == 2 and said in err
    code, _, err = outcome(capsys, *plain, tmp_path / "d.h5", "--new-ledger")
    assert code == 2 and "--new-ledger: names no file; say which by --ledger FILE or privacy.ledger" in err
    wanted = ("synthesize", spec, "--set", f"synthesis={json.dumps(DRAWS)}", "--no-ledger", "-o")
    assert outcome(capsys, *wanted, tmp_path / "s.csv")[0] == 0
    assert json.loads((tmp_path / "s.csv.json").read_text())["ledger"] == "bypassed"


def test_exit_codes_of_names_and_ledgers(tmp_path: Path, capsys: Any) -> None:
    spec, free = spent_budget(tmp_path), ("--set", "privacy.budget=null")
    run = ("privatize", spec, *free, "--force", "-o", tmp_path / "r.h5")
    for code, more in (
        (4, ("--ledger", tmp_path / "gone.json")),
        (0, ("--ledger", tmp_path / "new.json", "--new-ledger", "--dry-run")),
        (0, ("--ledger", tmp_path / "new.json", "--new-ledger", "--set", "privacy.dataset=null")),
        (2, ("--ledger", tmp_path / "new.json", "--new-ledger")),
        (2, ("--ledger", tmp_path / "new.json", "--set", "privacy.dataset=null")),
        (0, ("--ledger", tmp_path / "new.json", "--set", "privacy.dataset=null", "--dataset", "data")),
        (4, ("--ledger", tmp_path / "new.json", "--dataset", "people")),
        (2, ("--dataset", "")),
    ):
        found, _, err = outcome(capsys, *run, *more)
        assert found == code, (more, err)
    budget = ("ledger", "budget", tmp_path / "b.json", "--rho", "1")
    assert [outcome(capsys, *budget, *more)[0] for more in ((), ("--new-ledger",), ("--new-ledger",))] == [
        4,
        0,
        2,
    ]
    assert outcome(capsys, *budget)[0] == 2  # it knows a name now
    assert outcome(capsys, *budget, "--dataset", "data")[0] == 0
    assert read_ledger(tmp_path / "b.json").datasets == ("data",)


def test_two_starts_at_once_leave_one_ledger(tmp_path: Path, monkeypatch: Any) -> None:
    spec = spent_budget(tmp_path)
    fresh = tmp_path / "fresh.json"
    real = dpmix.api.privatize.load_data

    def slow(checked: Any) -> Any:  # somebody else starts it while the data are read
        if not fresh.exists():
            fresh.write_text(Book().to_text())
        return real(checked)

    monkeypatch.setattr("dpmix.api.privatize.load_data", slow)
    with pytest.raises(UsageError, match="is there already"):
        dpmix.privatize(spec, ledger=fresh, new_ledger=True, quiet=True)
    assert read_ledger(fresh).entries == []


def old_ledger() -> str:
    """Return a ledger as version 1 wrote it."""
    budget = {"type": "budget", "budget": {"epsilon": 2.0, "delta": 0.0}}
    guarantee = {"epsilon": 0.5, "delta": 0.0, "rho": 0.1, "adjacency": "replacement", "trust": "local"}
    spend = {"type": "spend", "mechanism": {"kind": "laplace", "columns": ["y"]}, "guarantee": guarantee}
    spend |= {"composition": {"epsilon": 0.5, "delta": 0.0, "rho": 0.1}, "dpmix_version": "0.1.0"}
    end = {"type": "release", "spend": 2, "output": None}
    entries: list[dict[str, Any]] = []
    for number, own in enumerate((budget, spend, end), 1):
        head = entries[-1]["digest"] if entries else START
        entry = {"number": number, "dataset": "people", "time": "t", "previous": head, **own}
        entries.append(entry | {"digest": digest_of(entry)})
    return json.dumps({"format": "dpmix ledger", "version": 1, "entries": entries})


def test_a_ledger_of_version_1_is_read_and_gets_a_key(tmp_path: Path) -> None:
    spec = spent_budget(tmp_path)
    ledger = tmp_path / "old.json"
    ledger.write_text(old_ledger())
    ledger.chmod(0o644)
    assert read_ledger(ledger).key is None
    assert read_ledger(ledger).account("people").spent.whole == (Guarantee(0.5, 0.0, 0.1),)
    for _ in range(2):
        dpmix.privatize(spec, ledger=ledger, overrides=["privacy.budget=null"], quiet=True)
    assert ledger.stat().st_mode & 0o777 == 0o600
    document = json.loads(ledger.read_text())
    assert document["version"] == 2 and len(document["key"]) == 64
    assert document["entries"][:3] == json.loads(old_ledger())["entries"]
    account = read_ledger(ledger).account("people")
    assert account.to_json()["composition"]["epsilon"] == pytest.approx(1.5)
    assert account.accountant == "sums"


def test_a_changed_key_is_damage(tmp_path: Path) -> None:
    spent_budget(tmp_path)
    ledger = tmp_path / "ledger.json"
    key = json.loads(ledger.read_text())["key"]
    ledger.write_text(ledger.read_text().replace(key, key[::-1]))
    with pytest.raises(DataError, match="is damaged: entry 2 is none"):
        read_ledger(ledger)
