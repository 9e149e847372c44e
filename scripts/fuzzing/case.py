"""One case: damage a file, run the command, and judge what it says."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpmix.cli.commands import app
from dpmix.run.exit_codes import run
from fuzzing.files import fresh
from fuzzing.targets import STREAM, TARGETS

__all__ = ["Outcome", "run_case"]

CODES = (0, 2, 3, 4, 5)
_LONGEST = 700


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Parameters
    ----------
    target, number : str, int
        Which case.
    code : int or None
        Exit code; None where the process died or took too long.
    fault : str
        What is wrong with the answer; empty for nothing.
    said : str
        What it said on standard error.
    command : str
        The command.
    """

    target: str
    number: int
    code: int | None
    fault: str
    said: str = ""
    command: str = ""


def run_case(base: Path, target: str, number: int, seed: int = 0) -> Outcome:
    """Run case `number` of a target; the same seed gives the same damage."""
    rng = random.Random(f"{seed}/{target}/{number}")
    with tempfile.TemporaryDirectory(prefix="dpmix-fuzz-") as name:
        folder = Path(name) / "files"
        fresh(base, folder)
        command = list(TARGETS[target](folder, rng))
        own = {*_outputs(command), "out.h5.partial"}  # the work of a fit is its own to go on with or drop
        before = {path: _state(path) for path in folder.iterdir() if path.name not in own}
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _piped(folder / STREAM):
            code = run(app, command)
        said = err.getvalue()
        fault = judge(code, said)
        spent = {folder / "ledger.json", folder / "ledger.json.lock"}
        changed = [path.name for path, state in before.items() if path not in spent and _state(path) != state]
        if not fault and changed:
            fault = f"changed {', '.join(changed)}"
        if not fault and code != 0 and (folder / "out.h5").exists():
            fault = "left an output behind"
        if not fault and (Path("-").exists() or (folder / "-").exists()):
            fault = "made a file named -"
        return Outcome(target, number, code, fault, said, " ".join(command))


@contextlib.contextmanager
def _piped(path: Path) -> Iterator[None]:
    """Put a file, or nothing, on standard input."""
    held = path.read_bytes() if path.exists() else b""
    real, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(held), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = real


def judge(code: int, said: str) -> str:
    """Say what is wrong with an answer, in a few words; empty for nothing."""
    if code not in CODES:
        return f"exit code {code}"
    if "Traceback" in said or "internal error" in said:
        return "an internal error"
    if code == 0:
        return ""
    errors = [line for line in said.splitlines() if line.startswith("dpmix: error: ")]
    if not errors:
        return "no error line"
    if sum(map(len, errors)) > _LONGEST * len(errors) or len(said) > 5 * _LONGEST * len(errors):
        return "a message that is too long"
    if re.search(r"<(class|function|object)\b| at 0x[0-9a-f]{6,}", said):
        return "Python's own words"
    return ""


def _outputs(command: list[str]) -> set[str]:
    places = [i + 1 for i, word in enumerate(command[:-1]) if word == "-o"]
    return {Path(command[place]).name for place in places}


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size
