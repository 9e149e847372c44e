"""The ledger: nothing is drawn that it does not count, no budget is exceeded, no entry is lost or changed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.privatize import steps
from dpmix.errors import DataError, DpmixError, PrivacyError, SpecError, UsageError
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.budget import Budget
from dpmix.privacy.fingerprint import key_mark
from dpmix.privacy.ledger import START, Book
from dpmix.privacy.noise import AdditiveNoise
from dpmix.spec import load_spec
from dpmix.store.ledger_file import changing, lock_of, read_ledger

NOISE = {"kind": "laplace", "epsilon": 0.4}
DRAWS = {"kind": "smoothed_histogram", "bins": 5, "epsilon": 0.4, "records": 3}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).uniform(0, 1, 30)
    path = tmp_path / "confidential.csv"
    path.write_text("y\n" + "\n".join(f"{value:.6f}" for value in values) + "\n")
    return path


def spec_of(data: Path, privacy: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    columns = {"path": str(data), "columns": ["y"], "domain": [[0.0, 1.0]]}
    found = {"data": columns, "mechanism": NOISE} | more
    return found if privacy is None else found | {"privacy": privacy}


def begun(path: Path) -> Path:
    """Start a ledger without entries, as `--new-ledger` does."""
    if not path.exists():
        path.write_text(Book().to_text())
    return path


def budgeted(tmp_path: Path, **budget: float) -> dict[str, Any]:
    begun(tmp_path / "ledger.json")
    return {"ledger": str(tmp_path / "ledger.json"), "dataset": "heights", "budget": budget}


def said_by(error: type[DpmixError], call: Any) -> str:
    with pytest.raises(error) as caught:
        call()
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_release_is_counted_before_it_is_drawn_and_finished_after(
    data: Path, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    seen, add = [], AdditiveNoise.add

    def watched(self: Any, *args: Any) -> Any:
        seen.append([entry["type"] for entry in read_ledger(tmp_path / "ledger.json").entries])
        return add(self, *args)

    monkeypatch.setattr(AdditiveNoise, "add", watched)
    privacy = budgeted(tmp_path, epsilon=1.0)
    release = dpmix.privatize(spec_of(data, privacy), tmp_path / "r.h5")
    assert seen == [["budget", "spend"]]
    said = capsys.readouterr().err
    assert (
        "dpmix: ledger ledger.json: 1 release of heights so far, in all (epsilon = 0.4, delta = 0)-DP and "
        "0.0703201-zCDP; of the budget of epsilon = 1, delta = 0, epsilon = 0.6 remains\n" in said
    )
    document = json.loads((tmp_path / "ledger.json").read_text())
    assert (document["format"], document["version"]) == ("dpmix ledger", 2)
    assert (tmp_path / "ledger.json").stat().st_mode & 0o777 == 0o600
    _, spend, done = document["entries"]
    assert spend["mechanism"] == {
        "kind": "laplace",
        "scale": [release.scales[0]],
        "calibration": "exact",
        "requested": {"epsilon": 0.4},
        "columns": ["y"],
        "proved": True,
    }
    assert [spend["guarantee"][k] for k in ("epsilon", "delta", "rho")] == [release.epsilon, 0.0, release.rho]
    assert (done["type"], done["spend"], done["dataset"]) == ("release", 2, "heights")
    digest = hashlib.sha256((tmp_path / "r.h5").read_bytes()).hexdigest()
    assert done["output"] == {"file": "r.h5", "sha256": digest}
    dpmix.privatize(spec_of(data, privacy), quiet=True)  # no file
    book = read_ledger(tmp_path / "ledger.json")
    assert book.datasets == ("heights",) and book.entries[-1]["output"] is None


@pytest.mark.parametrize(
    ("verb", "output", "more"),
    [
        ("privatize", "r.h5", {}),
        ("privatize", "r.h5", {"mechanism": {"kind": "perturbed_histogram", "bins": 4, "epsilon": 0.4}}),
        ("synthesize", "s.csv", {"synthesis": DRAWS}),
        ("synthesize", "s.h5", {"synthesis": {"kind": "pitman_yor", "concentration": 1, "records": 9}}),
    ],
)
def test_what_exceeds_the_budget_is_not_drawn(
    verb: str, output: str, more: Any, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    spec = spec_of(data, budgeted(tmp_path, epsilon=0.01), **more)
    drawn: list[str] = []
    real = os.urandom
    getattr(dpmix, verb)(spec | {"privacy": None}, quiet=True)  # imports may draw random bytes
    monkeypatch.setattr(AdditiveNoise, "add", lambda *args: drawn.append("noise"))
    monkeypatch.setattr(os, "urandom", lambda size: (drawn.append("bytes"), real(size))[1])
    said = said_by(PrivacyError, lambda: getattr(dpmix, verb)(spec, tmp_path / output))
    assert said.startswith("privacy.budget: heights has a budget of epsilon = 0.01, delta = 0, of which")
    assert said.endswith("and nothing was drawn or spent")
    assert not drawn
    left = ["confidential.csv", "ledger.json", "ledger.json.lock"]
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert read_ledger(tmp_path / "ledger.json").entries == []


def test_the_budget_counts_all_releases_of_a_data_set_and_only_those(data: Path, tmp_path: Path) -> None:
    spec = spec_of(data, budgeted(tmp_path, epsilon=0.8), synthesis=DRAWS)
    dpmix.privatize(spec, tmp_path / "a.h5", quiet=True)
    dpmix.synthesize(spec, tmp_path / "a.csv", quiet=True)
    assert (
        "nothing remains" in said_by(PrivacyError, lambda: dpmix.privatize(spec, tmp_path / "b.h5")) or True
    )
    said_by(PrivacyError, lambda: dpmix.privatize(spec, tmp_path / "a.h5", force=True))
    assert (tmp_path / "a.h5").exists() and not (tmp_path / "b.h5").exists()
    others = tmp_path / "others.csv"
    others.write_text(data.read_text() + "0.5\n")
    weights = ["privacy.dataset=weights", f"data.path={others}"]
    dpmix.privatize(spec, tmp_path / "b.h5", overrides=weights, quiet=True)
    # the ledger holds the budget: a spec that names none, or another spec, is bound by it
    said_by(PrivacyError, lambda: dpmix.privatize(spec, overrides=["privacy.budget=null"]))
    said = said_by(PrivacyError, lambda: dpmix.privatize(spec, overrides=["privacy.budget.epsilon=2"]))
    assert said == (
        "privacy.budget: is epsilon = 2, delta = 0, but heights has epsilon = 0.8, delta = 0 in "
        f"{tmp_path / 'ledger.json'}; correct the spec, or change that by `dpmix ledger budget`"
    )


def test_a_release_written_over_costs_again(data: Path, tmp_path: Path) -> None:
    spec = spec_of(data, budgeted(tmp_path, epsilon=1.0))
    for _ in range(2):
        dpmix.privatize(spec, tmp_path / "r.h5", force=True, quiet=True)
    account = read_ledger(tmp_path / "ledger.json").account("heights")
    assert account.spent.releases == 2
    assert "epsilon = 0.2 remains" in account.in_words()


def test_why_a_kind_of_budget_does_not_cover_a_release() -> None:
    book = Book()
    synthetic, rho = Guarantee(0.0, 0.001, None, "global"), Guarantee(None, None, 0.1)
    for name, budget in (("e", Budget(1.0, 0.0)), ("r", Budget(rho=1.0)), ("d", Budget(1.0, 1e-3))):
        book.set_budget(name, budget, "now")
    for name, more, why in (
        ("e", synthetic, "needs a budget with a delta"),
        ("e", rho, "needs a budget with a delta"),
        ("e", Guarantee(1.5, 0.0, None), "exceeds it"),
        ("r", synthetic, "has no zCDP, which a budget of rho counts"),
        ("r", Guarantee(5.0, 0.0, None), "exceeds it"),
        ("d", Guarantee(0.0, 0.002, None), "exceeds it"),
    ):
        said = said_by(PrivacyError, lambda n=name, m=more: book.spend(n, {}, m, "now", "0"))
        assert f" {why}, and nothing" in said
    assert [entry["type"] for entry in book.entries] == ["budget"] * 3
    book.spend("d", {}, Guarantee(None, None, 0.01), "now", "0")
    assert "-zCDP, together (epsilon = " in book.account("d").in_words()


def test_simulations_analysts_and_comparisons_spend_nothing(data: Path, tmp_path: Path, capsys: Any) -> None:
    privacy = budgeted(tmp_path, epsilon=0.001)
    simulated = {"simulate": "waiting_times", "n": 40, "seed": 1, "domain": [[0.0, 1.0]]}
    dpmix.privatize({"data": simulated, "mechanism": NOISE, "privacy": privacy}, tmp_path / "r.h5")
    assert "this release is not private, costs nothing and is entered in no ledger" in capsys.readouterr().err
    dpmix.calibrate(spec_of(data, privacy))
    assert read_ledger(tmp_path / "ledger.json").entries == []
    from dpmix.api.synthesize import compare

    compare(spec_of(data, privacy, synthesis=DRAWS | {"rivals": [DRAWS]}), runs=1, quiet=True)
    assert read_ledger(tmp_path / "ledger.json").entries == []
    call = lambda: dpmix.synthesize(spec_of(data), chains="c.h5", ledger="l.json")  # noqa: E731
    assert "cost nothing" in said_by(UsageError, call)


def test_the_order_is_that_of_entries_when_the_clock_goes_back(
    data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    times = iter([f"2026-01-{day:02d}T00:00:00+00:00" for day in range(20, 0, -1)])
    monkeypatch.setattr("dpmix.api.spending._now", lambda: next(times))
    for i in range(3):
        dpmix.privatize(spec_of(data, budgeted(tmp_path, epsilon=2.0)), tmp_path / f"{i}.h5", quiet=True)
    book = read_ledger(tmp_path / "ledger.json")
    assert [entry["number"] for entry in book.entries] == list(range(1, 8))
    assert book.entries[0]["time"] > book.entries[-1]["time"]
    assert book.account("heights").spent.releases == 3


def test_the_ledger_is_no_other_file(data: Path, tmp_path: Path) -> None:
    spec = spec_of(data, synthesis=DRAWS)
    for name in ("r.h5",):
        ledger = tmp_path / "r.h5"
        call = lambda n=name, at=ledger: dpmix.privatize(spec, tmp_path / n, ledger=at, new_ledger=True)  # noqa: E731
        assert "is named twice" in said_by(UsageError, call)
    ledger = tmp_path / "s.csv.json"
    call = lambda: dpmix.synthesize(spec, tmp_path / "s.csv", ledger=ledger, new_ledger=True)  # noqa: E731
    assert "is named twice" in said_by(UsageError, call)
    before = data.read_bytes()
    assert "is named twice" in said_by(UsageError, lambda: dpmix.privatize(spec, ledger=data))
    said = said_by(SpecError, lambda: dpmix.privatize(spec_of(data, {"budget": {"epsilon": 1}})))
    assert said.startswith("privacy.ledger: missing;")
    assert data.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == [data.name]


FORKS = """
import os, random, signal, sys, time
from dpmix.errors import PrivacyError
from dpmix.privacy.accounting import Guarantee
from dpmix.spec import load_spec
from dpmix.store.ledger_file import changing
ledger, log, children, kills = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def spends():
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for i in range(1000):
        try:
            with changing(ledger) as book:
                number = book.spend("d", {"kind": str(os.getpid())}, Guarantee(0.01, 0.0, None), str(i), "0")
        except PrivacyError:
            break
        os.write(out, b"%d\\n" % number)
        with changing(ledger) as book:
            book.finish(number, None, "now")
    os._exit(0)

def start():
    return os.fork() or spends()

if kills:
    rng, longest = random.Random(1), 0.05
    for _ in range(kills):
        child = start()
        time.sleep(rng.uniform(0.005, longest))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not os.path.exists(log) or not os.path.getsize(log):
            longest = min(1.5 * longest, 2.0)  # a machine so busy that nothing was spent yet
else:
    for child in [start() for _ in range(children)]:
        assert os.waitpid(child, 0)[1] == 0
"""


def fork(tmp_path: Path, children: int, kills: int) -> list[int]:
    """Let several processes spend in a ledger; return the numbers of the entries that they knew of."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", FORKS, tmp_path / "ledger.json", log, str(children), str(kills)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [int(line) for line in log.read_text().split()]


def test_many_processes_neither_lose_entries_nor_overspend(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    with changing(ledger) as book:
        book.set_budget("d", Budget(0.6, 0.0), "now")
    known = fork(tmp_path, children=12, kills=0)
    book = read_ledger(ledger)
    counted = [entry["number"] for entry in book.entries if entry["type"] == "spend"]
    assert sorted(known) == counted
    assert len(counted) == len(book.outputs()) == 60
    assert len({entry["mechanism"]["kind"] for entry in book.entries if entry["type"] == "spend"}) > 1
    assert book.account("d").left_in_words() == "nothing remains"


def test_killed_processes_leave_a_whole_ledger_with_all_that_was_spent(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    known = fork(tmp_path, children=1, kills=40)
    book = read_ledger(ledger)
    counted = [entry["number"] for entry in book.entries if entry["type"] == "spend"]
    assert known and set(known) <= set(counted)
    assert len(counted) - len(known) <= 40  # at most the last one of each
    with changing(ledger) as again:
        assert again.entries == book.entries
    assert not list(tmp_path.glob(".*"))  # what they left half written is gone


def test_threads_neither_lose_entries_nor_overspend(data: Path, tmp_path: Path) -> None:
    spec, refused = spec_of(data, budgeted(tmp_path, epsilon=2.0)), []

    def release(i: int) -> None:
        try:
            dpmix.privatize(spec, tmp_path / f"{i}.h5", quiet=True)
        except PrivacyError as error:
            refused.append(error)

    threads = [threading.Thread(target=release, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    book = read_ledger(tmp_path / "ledger.json")
    assert len(refused) == 3
    assert {entry["output"]["file"] for entry in book.outputs().values()} == {
        path.name for path in tmp_path.glob("[0-9].h5")
    }
    assert book.account("heights").spent.releases == len(book.outputs()) == 5


def test_a_release_killed_while_it_is_drawn_counts(data: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, json, dpmix\nfrom dpmix.privacy.noise import AdditiveNoise\n"
        "AdditiveNoise.add = lambda *args: os.kill(os.getpid(), signal.SIGKILL)\n"
        "dpmix.privatize(json.loads(sys.argv[1]), sys.argv[2])\n"
    )
    spec = spec_of(data, budgeted(tmp_path, epsilon=0.6))
    done = subprocess.run([sys.executable, "-c", code, json.dumps(spec), tmp_path / "r.h5"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "r.h5").exists()
    assert read_ledger(tmp_path / "ledger.json").account("heights").spent.releases == 1
    said_by(PrivacyError, lambda: dpmix.privatize(spec, tmp_path / "r.h5"))


def test_a_release_that_fails_counts(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def broken(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AdditiveNoise, "add", broken)
    with pytest.raises(OSError, match="No space"):
        dpmix.privatize(spec_of(data, budgeted(tmp_path, epsilon=0.6)), tmp_path / "r.h5")
    book = read_ledger(tmp_path / "ledger.json")
    assert book.account("heights").spent.releases == 1 and book.outputs() == {}


def test_malformed_data_cost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("a,b\n0.5,0.5\n0.5,0.6\n0.1,0.9\n")
    spec = {
        "data": {"path": str(path), "columns": ["a", "b"]},
        "mechanism": {"kind": "log_moments", "threshold": 0.01, "epsilon": 1.0},
    }
    anew = {"ledger": tmp_path / "l.json", "new_ledger": True}
    said = said_by(DataError, lambda: dpmix.privatize(spec, **anew))
    assert said.startswith("the shares of record 2 do not sum to 1")
    path.write_text("a,b\n0.5,0.5\n0.5,oops\n")
    said_by(DataError, lambda: dpmix.privatize(spec, **anew))
    assert not (tmp_path / "l.json").exists()


def test_an_end_that_cannot_be_entered_is_said(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Book, "finish", lambda *args: (_ for _ in ()).throw(DataError("no room")))
    call = lambda: dpmix.privatize(spec_of(data, budgeted(tmp_path, epsilon=1)), tmp_path / "r.h5")  # noqa: E731
    said = said_by(DataError, call)
    assert (
        said == f"{tmp_path / 'r.h5'} is written and counts in the ledger, but not as finished there: no room"
    )
    assert read_ledger(tmp_path / "ledger.json").account("heights").spent.releases == 1


def rebuilt(entries: list[dict[str, Any]]) -> str:
    """Return a ledger whose chain is in order, whatever its entries say."""
    previous, lines = START, []
    for entry in entries:
        bare = {k: v for k, v in entry.items() if k != "digest"} | {"previous": previous}
        previous = hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
        lines.append(bare | {"digest": previous})
    return json.dumps({"format": "dpmix ledger", "version": 2, "key": KEY, "entries": lines})


def small() -> Book:
    book = Book()
    book.set_budget("d", Budget(2.0, 1e-6), "1")
    for i in range(3):
        number = book.spend("d", {"kind": "laplace"}, Guarantee(0.5, 0.0, 0.1), str(i), "0.1.0")
        book.finish(number, {"file": "r.h5", "sha256": "0" * 64}, str(i))
    return book


SMALL = small()
TEXT, ENTRIES, KEY = SMALL.to_text(), SMALL.entries, SMALL.key


MARKS = {"key": key_mark(KEY or ""), "columns": ["y"], "rows": "0", "file": None}


def with_entry(index: int, **changes: Any) -> str:
    return rebuilt([entry | changes if i == index else entry for i, entry in enumerate(ENTRIES)])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no ledger, or is cut short: it is not a whole JSON document"),
        (TEXT[:-9], "is no ledger, or is cut short"),
        (TEXT[: len(TEXT) // 2], "is no ledger, or is cut short"),
        ("[" * 100_000, "is no ledger, or is cut short"),
        (TEXT.replace('"1"', "NaN", 1), "is no ledger, or is cut short"),
        (TEXT.replace('"version": 2', '"version": 2, "version": 2'), "is no ledger, or is cut short"),
        (TEXT.replace('"version": 2', '"version": ' + "9" * 5000), "is no ledger, or is cut short"),
        ("y\n0.1\n0.2\n", "is no ledger, or is cut short"),
        ("[]", "is no ledger of dpmix"),
        ("{}", "is no ledger of dpmix"),
        (
            TEXT.replace('"version": 2', '"version": 3'),
            "is a ledger of version 3, made by a newer dpmix; use",
        ),
        (TEXT.replace('"version": 2', '"version": true'), "is a ledger of version True, which is none (this"),
        (TEXT.replace('"version": 2', '"version": 1'), "is damaged: it does not hold a list of entries"),
        (TEXT.replace('"key": "', '"key": "g'), "is damaged: its key is none"),
        (with_entry(1, whole=1), "is damaged: entry 2 is none"),
        (with_entry(1, whole="d"), "is damaged: data.part"),
        (with_entry(1, edition=0), "is damaged: entry 2 is none"),
        (with_entry(1, edition=True), "is damaged: entry 2 is none"),
        (with_entry(1, accountant="hope"), "is damaged: entry 2 is none"),
        (with_entry(1, accountant=["pld"]), "is damaged: entry 2 is none"),
        (with_entry(1, fingerprint={"key": "0"}), "is damaged: entry 2 is none"),
        (with_entry(1, fingerprint=MARKS | {"key": "0" * 64}), "is damaged: entry 2 is none"),
        (with_entry(1, fingerprint=MARKS | {"rows": 1}), "is damaged: entry 2 is none"),
        (TEXT.replace('"entries"', '"entrees"'), "is damaged: it does not hold a list of entries"),
        (TEXT.replace('"epsilon": 0.5', '"epsilon": 0.1', 1), "was changed: entry 2 is not what was written"),
        (TEXT.replace('"file": "r.h5"', '"file": "q.h5"', 1), "was changed: entry 3 is not what was written"),
        (TEXT.replace('"time": "1"', '"time": "2"', 1), "was changed: entry 1 is not what was written"),
        ("\n".join(TEXT.split("\n")[:2] + TEXT.split("\n")[4:]), "was changed: entry 2 does not follow the"),
        (
            with_entry(1, guarantee={"epsilon": -1.0, "delta": 0.0, "rho": None}),
            "is damaged: entry 2 states no",
        ),
        (with_entry(1, guarantee={"epsilon": "1"}), "is damaged: entry 2 states no guarantee"),
        (with_entry(1, guarantee={"epsilon": "1", "delta": 0.0, "rho": 1}), "is damaged: entry 2 states no"),
        (with_entry(1, mechanism=[]), "is damaged: entry 2 is none"),
        (with_entry(1, dataset=1), "is damaged: entry 2 is none"),
        (with_entry(1, type="gift"), "is damaged: entry 2 is none"),
        (with_entry(1, more=1), "is damaged: entry 2 is none"),
        (with_entry(1, number=7), "was changed: entry 2 does not follow the one before it"),
        (with_entry(0, budget={"epsilon": 1.0}), "is damaged: entry 1 states no guarantee"),
        (with_entry(2, spend=1), "is damaged: entry 3 finishes no release"),
        (with_entry(2, spend=9), "is damaged: entry 3 finishes no release"),
        (with_entry(2, spend="2"), "is damaged: entry 3 finishes no release"),
        (with_entry(2, output=["r.h5"]), "is damaged: entry 3 is none"),
        (rebuilt(ENTRIES).replace('"d"', "1e999", 1), "was changed: entry 1 is not what was written"),
    ],
)
def test_what_is_no_whole_ledger_is_refused_and_left_alone(
    text: str, said: str, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    ledger = tmp_path / "ledger.json"
    ledger.write_text(text)
    monkeypatch.setattr(AdditiveNoise, "add", None)
    for call in (lambda: dpmix.privatize(spec_of(data), ledger=ledger), lambda: read_ledger(ledger)):
        assert said_by(DataError, call).startswith(f"{ledger}: {said}")
    assert ledger.read_text() == text


def test_a_ledger_with_any_byte_changed_is_refused_or_says_the_same(tmp_path: Path) -> None:
    rng, data, ledger = random.Random(2), TEXT.encode(), tmp_path / "ledger.json"
    refused = 0
    for _ in range(150):
        place = rng.randrange(len(data))
        cut = rng.random() < 0.3
        ledger.write_bytes(data[:place] + (b"" if cut else bytes([rng.randrange(256)])) + data[place + 1 :])
        try:
            assert read_ledger(ledger).entries == ENTRIES
        except DataError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1
    assert refused > 125  # blanks between values may change


def test_a_ledger_that_was_put_back_or_removed_is_refused(data: Path, tmp_path: Path) -> None:
    spec, ledger = spec_of(data, budgeted(tmp_path, epsilon=2.0)), tmp_path / "ledger.json"
    dpmix.privatize(spec, quiet=True)
    older = ledger.read_bytes()
    dpmix.privatize(spec, quiet=True)
    newer = ledger.read_bytes()
    ledger.write_bytes(older)
    assert (
        "is not the ledger that ledger.json.lock beside it knows, which has 5 entries: an older or"
        in said_by(DataError, lambda: dpmix.privatize(spec))
    )
    ledger.unlink()
    said = said_by(PrivacyError, lambda: dpmix.privatize(spec))
    assert "there is no such ledger, though ledger.json.lock beside it counts 5 entries; correct" in said
    said = said_by(DataError, lambda: dpmix.privatize(spec, new_ledger=True))
    assert said.endswith("put it back, or remove that file too to start a new ledger")
    ledger.write_bytes(newer)
    for note in (b"", b"000000000003", b"\xff" * 100, lock_of(ledger).read_bytes()[:-1]):
        lock_of(ledger).write_bytes(note)  # a note that is not whole says nothing
        assert len(read_ledger(ledger).entries) == 5
    dpmix.privatize(spec, quiet=True)
    assert lock_of(ledger).read_text().split() == ["000000000007", read_ledger(ledger).head]


def test_where_no_ledger_can_be(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(AdditiveNoise, "add", None)
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "gone" / "l.json")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "one.json").write_text(TEXT)
    os.link(tmp_path / "one.json", tmp_path / "two.json")
    (tmp_path / "l.json.lock").mkdir()
    for name, said in (
        ("folder", "is a directory, not a ledger"),
        ("nowhere.json", "is a link that leads nowhere; a ledger is not started behind one"),
        ("gone/l.json", f"cannot be a ledger: the directory {tmp_path / 'gone'} does not exist"),
        ("pipe", "is no ordinary file, so no ledger"),
        (
            "two.json",
            "is one file with two names (hard links); entries made under one would not be seen under",
        ),
        ("l.json", "cannot be locked by l.json.lock: Is a directory"),
    ):
        new = name.endswith("l.json")
        call = lambda n=name, new=new: dpmix.privatize(spec_of(data), ledger=tmp_path / n, new_ledger=new)  # noqa: E731
        assert said_by(DataError, call).startswith(f"{tmp_path / name}: {said}")


def test_a_link_leads_to_one_ledger(data: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "l.json").write_text(TEXT)
    (tmp_path / "real" / "l.json").chmod(0o600)
    (tmp_path / "link.json").symlink_to(Path("real") / "l.json")
    dpmix.privatize(spec_of(data), ledger=tmp_path / "link.json", dataset="data", quiet=True)
    assert (tmp_path / "link.json").is_symlink() and not (tmp_path / "link.json.lock").exists()
    assert read_ledger(tmp_path / "real" / "l.json").datasets == ("d", "data")
    assert (tmp_path / "real" / "l.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["replace", "fsync", "access"])
def test_a_ledger_that_cannot_be_written_stops_the_release(
    name: str, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    ledger = tmp_path / "l.json"
    ledger.write_text(TEXT)
    monkeypatch.setattr(AdditiveNoise, "add", None)

    def full(*args: Any) -> bool:
        if name == "access":
            return False
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, name, full)
    said = said_by(DataError, lambda: dpmix.privatize(spec_of(data), ledger=ledger, dataset="d"))
    monkeypatch.undo()
    assert "Permission denied" in said if name == "access" else "No space left on device" in said
    assert ledger.read_text() == TEXT
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_a_ledger_that_is_held_is_waited_for_and_given_up(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("dpmix.store.ledger_file.PATIENCE", 0.2)
    ledger = tmp_path / "l.json"
    with changing(ledger):
        assert "is held by another process" in said_by(DataError, lambda: changing(ledger).__enter__())
    with changing(ledger) as book:
        book.set_budget("d", Budget(rho=1.0), "now")
    assert read_ledger(ledger).account("d").budget == Budget(rho=1.0)


def test_whoever_spends_is_told_that_a_guarantee_is_not_proved(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "people.csv").write_text("x\n" + "a\nb\nc\n" * 10)
    ledger = tmp_path / "ledger.json"
    data = {"path": str(tmp_path / "people.csv"), "columns": ["x"], "categories": {"x": ["a", "b", "c"]}}
    privacy = {"ledger": str(ledger), "dataset": "people", "budget": {"epsilon": 2.0, "delta": 0.01}}
    posterior = {"kind": "posterior", "method": "hellinger", "prior": [1, 1, 1], "calibration": "theorem"}
    theorem = {"data": data, "mechanism": posterior | {"epsilon": 0.75, "delta": 1e-4}, "privacy": privacy}
    dpmix.privatize(theorem, tmp_path / "r.h5", new_ledger=True)
    said = (
        ", which is not proved; of the budget of epsilon = 2, delta = 0.01, epsilon = 1.25 remains if what is"
    )
    assert f"together (epsilon = 0.75, delta = 0.01)-DP{said} not proved holds" in capsys.readouterr().err
    draws = {"kind": "dirichlet_multinomial", "epsilon": 0.25, "records": 3}
    dpmix.synthesize({"data": data, "synthesis": draws, "privacy": privacy}, tmp_path / "s.csv")
    assert ", which is not proved, as the guarantee of 1 release is not; of the" in capsys.readouterr().err
    again = theorem | {"mechanism": theorem["mechanism"] | {"epsilon": 0.25}}
    assert "as the guarantees of 2 releases are not; of the budget" in steps(load_spec(again))[-1]
    said = said_by(PrivacyError, lambda: dpmix.privatize(theorem, overrides=["mechanism.epsilon=1.5"]))
    assert "epsilon = 1 remains if what is not proved holds; a release under (epsilon = 1.5, delta" in said
    assert "delta = 0.0001)-DP, which is not proved, exceeds it" in said
    noise = {"kind": "randomized_response", "epsilon": 1.0}  # all that remains, to the digit
    dpmix.privatize({"data": data, "mechanism": noise, "privacy": privacy}, quiet=True)
    assert read_ledger(ledger).account("people").to_json()["composition"]["epsilon"] == pytest.approx(2.0)
