"""Ways around a budget that is spent: each is refused, or said aloud and recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from attacking.outcome import Outcome
from dpmix.release.release_file import read_release

__all__ = ["attack"]

ROOT = Path(__file__).resolve().parents[2]
ROWS = [f"{1 + i % 9}" for i in range(60)]


def attack(folder: Path, runs: int) -> list[Outcome]:
    """Spend a budget of epsilon 1, and try to release more of the same people."""
    if "--new-ledger" not in _dpmix(folder, ["privatize", "--help"])[1]:
        return [Outcome("a spent budget", "not tried", "this version knows no --new-ledger")]
    there = folder / "curator"
    there.mkdir()
    (there / "people.csv").write_text("\n".join(["x", *ROWS]) + "\n")
    (there / "sorted.csv").write_text("\n".join(["x", *sorted(ROWS)]) + "\n")
    privacy = {"ledger": "ledger.json", "dataset": "people", "budget": {"epsilon": 1.0}}
    _spec(there / "s.yaml", privacy=privacy)
    first = ["privatize", "s.yaml", "-o", "r0.h5", "--new-ledger"]
    code, said = _dpmix(there, first)
    if code:
        return [Outcome("the first release, within its budget", said, "goes through", beaten=True)]
    nameless = {key: value for key, value in privacy.items() if key == "ledger"}
    _spec(there / "nameless.yaml", privacy=nameless)
    _spec(there / "mistyped.yaml", privacy=privacy | {"ledger": "legder.json"})
    _spec(there / "renamed.yaml", privacy={"ledger": "ledger.json", "dataset": "others"})
    _spec(there / "sorted.yaml", "sorted.csv", privacy={"ledger": "ledger.json", "dataset": "others"})
    part = {"of": "people"}
    _spec(there / "part.yaml", privacy={"ledger": "ledger.json", "dataset": "men"}, part=part)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    for name in ("s.yaml", "people.csv"):
        shutil.copy(there / name, elsewhere / name)
    bare = {"data": _data("people.csv"), "mechanism": {"kind": "laplace", "epsilon": 1.0}}
    (there / "bare.yaml").write_text(yaml.safe_dump(bare))
    ways: list[tuple[str, Path, str, Sequence[str]]] = [
        ("once more", there, "s.yaml", ()),
        ("no name of the data set", there, "nameless.yaml", ()),
        ("a mistyped ledger", there, "mistyped.yaml", ()),
        ("the spec copied elsewhere", elsewhere, "s.yaml", ()),
        ("a new ledger in place of the one there", there, "s.yaml", ("--new-ledger",)),
        ("the same data under another name", there, "renamed.yaml", ()),
        ("their rows sorted, under another name", there, "sorted.yaml", ()),
        ("--dataset with another name", there, "s.yaml", ("--dataset", "others")),
        ("as a part of a table, not public", there, "part.yaml", ()),
        ("the ledger taken out by --set", there, "s.yaml", ("--set", "privacy=null")),
    ]
    found = []
    for number, (what, place, spec, options) in enumerate(ways):
        output = place / f"way{number}.h5"
        code, said = _dpmix(place, ["privatize", spec, "-o", output.name, *options])
        went = output.exists() or code not in (2, 4)
        found.append(Outcome(what, f"exit {code}: {_short(said)}", "refused", beaten=went))
    bypassed = there / "bypassed.h5"
    code, said = _dpmix(there, ["privatize", "s.yaml", "-o", bypassed.name, "--no-ledger"])
    recorded = code == 0 and read_release(bypassed).ledger == "bypassed" and "ledger" in said
    words = "goes through, said and recorded in the release" if recorded else f"exit {code}: {_short(said)}"
    return [*found, Outcome("--no-ledger", words, "said and recorded", beaten=not recorded)]


def _data(name: str) -> dict[str, object]:
    return {"path": name, "columns": ["x"], "domain": [[0, 10]]}


def _spec(path: Path, data: str = "people.csv", part: object = None, **sections: object) -> None:
    held = {"data": _data(data), "mechanism": {"kind": "laplace", "epsilon": 1.0}} | sections
    if part is not None:
        held["data"] = _data(data) | {"part": part}
    path.write_text(yaml.safe_dump(held))


def _dpmix(folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
    """Run the command line; return its exit code and all that it said."""
    known = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "dpmix", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": known, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).replace(f"{folder}{os.sep}", "")


def _short(said: str) -> str:
    """Return the error of a command, or the last line, without much of a path."""
    lines = said.strip().splitlines() or [""]
    line = next((line for line in lines if "error: " in line), lines[-1]).split("error: ")[-1]
    return line if len(line) <= 90 else line[:88] + ".."
