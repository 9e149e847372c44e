"""The ledger's file: what must not be taken for it or replace it, and entries that nobody wrote."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dpmix.api.spending import ledger_text, set_budget, show_ledger
from dpmix.errors import DataError, PrivacyError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import Budget
from dpmix.privacy.ledger import Account, Book
from dpmix.store.atomic import check_output, publish, write_bytes


def test_a_file_that_is_no_note_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / "poetry.lock"
    lock.write_text('# generated\n[[package]]\nname = "x"\n')
    before = lock.read_bytes()
    with pytest.raises(DataError, match=r"cannot be locked by poetry.lock, which is another file"):
        set_budget(tmp_path / "poetry", "d", Budget(epsilon=1.0, delta=0.0), new_ledger=True)
    assert lock.read_bytes() == before and not (tmp_path / "poetry").exists()
    for short in (b"", b"0000", b"000000000001 13df", b"\0" * 78):  # as a crash may leave it
        lock.write_bytes(short)
        set_budget(tmp_path / "poetry", "d", Budget(epsilon=1.0, delta=0.0), new_ledger=True)
        (tmp_path / "poetry").unlink()


def test_nothing_replaces_a_ledger(tmp_path: Path) -> None:
    data = tmp_path / "other"
    data.write_text("work")
    ledger = tmp_path / "ledger.json"
    set_budget(ledger, "d", Budget(epsilon=1.0, delta=0.0), new_ledger=True)
    before = ledger.read_bytes()
    for write in (
        lambda: write_bytes(ledger, b"<html>", force=True),
        lambda: check_output(ledger, force=True),
        lambda: publish(data, ledger, force=True),
    ):
        with pytest.raises(UsageError, match="is a ledger of releases, which nothing replaces"):
            write()
    assert ledger.read_bytes() == before and data.exists()


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e20, 1e99, 1e100])
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-6, 1.0 - 2.0**-53])
def test_budgets_of_any_size_leave_a_ledger_that_can_be_read(
    size: float, delta: float, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.json"
    for budget in (Budget(epsilon=size, delta=delta), Budget(rho=size)):
        set_budget(ledger, "d", budget, new_ledger=not ledger.exists())
        assert show_ledger(ledger)["datasets"][0]["remaining"]["epsilon"] > 0.0
        for guarantee in (Guarantee(size / 4, 0.0, None), Guarantee(None, None, size / 4)):
            if budget.rho is None and not delta and guarantee.epsilon is None:
                continue
            account = Account("d", budget=budget)
            with contextlib.suppress(PrivacyError):
                account = account.allow(guarantee)
            assert account.in_words()


@pytest.mark.parametrize(
    ("spend", "more"),
    [
        ({"epsilon": 10**400}, None),
        ({"epsilon": True}, None),
        ({"epsilon": 1e200}, None),
        ({"trust": {"a": 1}}, None),
        ({"mechanism": {"kind": "laplace", "columns": 5}}, None),
        ({"mechanism": {"kind": ["x"]}}, None),
        ({"mechanism": None}, None),
        ({}, {"spend": 1, "output": {}}),
        ({}, {"spend": 1, "output": {"file": "a"}}),
        ({}, {"spend": True, "output": None}),
        ({}, {"type": "budget", "budget": {"epsilon": 10**400, "delta": 0}}),
    ],
)
def test_entries_made_anew_with_nonsense_are_damage(
    spend: dict[str, Any], more: dict[str, Any] | None, tmp_path: Path
) -> None:
    guarantee = {"epsilon": 1.0, "delta": 0.0, "rho": None, "adjacency": "replacement", "trust": "local"}
    mechanism = spend.pop("mechanism", {"kind": "laplace", "columns": ["x"]})
    entries = [{"type": "spend", "mechanism": mechanism, "guarantee": guarantee | spend}]
    entries[0] |= {"composition": {}, "dpmix_version": "1"}
    path = tmp_path / "ledger.json"
    path.write_text(chained(entries[:1] if more is None else [*entries, {"type": "release", **more}]))
    with pytest.raises(DataError, match=r"is damaged: entry \d (is none|states no|finishes no)"):
        show_ledger(path)


def test_a_release_is_finished_once_and_signs_are_no_commands(tmp_path: Path) -> None:
    guarantee = {"epsilon": 1.0, "delta": 0.0, "rho": None, "adjacency": "replacement", "trust": "local"}
    mechanism = {"kind": "x\x1b[31m", "columns": ["a\nb"]}
    spend = {"type": "spend", "mechanism": mechanism, "guarantee": guarantee}
    end = {"type": "release", "spend": 1, "output": None}
    path = tmp_path / "ledger.json"
    path.write_text(chained([spend | {"composition": {}, "dpmix_version": "1"}, end]))
    text = ledger_text(show_ledger(path))
    assert "x?[31m of a?b: " in text and "\x1b" not in text
    path.write_text(chained([spend | {"composition": {}, "dpmix_version": "1"}, end, end]))
    with pytest.raises(DataError, match="entry 3 finishes no release"):
        show_ledger(path)


def chained(entries: list[dict[str, Any]]) -> str:
    """Write entries as a ledger whose digests are right."""
    book = Book()
    for entry in entries:
        numbered = {"number": len(book.entries) + 1, "dataset": "d", "time": "t", "previous": book.head}
        whole = numbered | entry
        digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
        book.entries.append(whole | {"digest": digest})
    return book.to_text()


@pytest.mark.parametrize(
    ("mechanism", "holds"),
    [
        ({"kind": "posterior", "calibration": "theorem", "proved": False, "columns": ["x"]}, False),
        ({"kind": "posterior", "calibration": "theorem", "columns": ["x"]}, False),
        ({"kind": "posterior", "calibration": "certified", "columns": ["x"]}, True),
        ({"kind": "gaussian", "columns": ["x"], "proved": True}, True),
    ],
)
def test_entries_of_before_say_whether_their_sum_is_proved(
    mechanism: dict[str, Any], holds: bool, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.json"
    guarantee = {"epsilon": 1.0, "delta": 1e-4, "rho": None, "adjacency": "replacement", "trust": "global"}
    spend = {"type": "spend", "mechanism": mechanism, "guarantee": guarantee, "composition": {}}
    ledger.write_text(chained([spend | {"dpmix_version": "0.1.0"}]))
    before = ledger.read_text()
    (shown,) = show_ledger(ledger)["datasets"]
    assert shown["proved"] is holds
    lines = ledger_text(show_ledger(ledger)).split("\n")
    assert [(", which is not proved" in line) for line in lines] == [False, False, not holds, not holds]
    assert ledger.read_text() == before
    set_budget(ledger, "d", Budget(epsilon=3.0, delta=0.01), quiet=True)
    entries = json.loads(ledger.read_text())["entries"]
    assert entries[0] == json.loads(before)["entries"][0]
    (shown,) = show_ledger(ledger)["datasets"]
    left = "epsilon = 2 remains" + " if what is not proved holds" * (not holds)
    assert shown["words"].endswith(left) and shown["remaining"]["epsilon"] == 2.0
