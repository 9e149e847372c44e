"""The suite's comparisons with exact posteriors and joint laws, run with their numbers written down.

A plugin of pytest: every comparison that a test makes by `tests.oracles.mc.discrepancies` (in Monte Carlo
standard errors) or `tests.oracles.joint.joint_p_values` is noted under the test that made it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

__all__ = ["FILES", "QUICK", "run_exact"]

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "tests/exact/test_posterior_exact*.py",
    "tests/exact/test_geweke*.py",
    "tests/exact/test_counts_*.py",
    "tests/exact/test_learned_base.py",
    "tests/exact/test_samplers_agree.py",
    "tests/exact/test_discrete_exact.py",
    "tests/*/test_models_*.py",
    "tests/unit/models/test_models_*.py",
)
QUICK = ("tests/exact/test_posterior_exact.py",)
_TARGET = "DPMIX_VERIFY_NOTES"


class Notes:
    """What the test that runs has compared so far."""

    def __init__(self) -> None:
        self.now = ""
        self.found: dict[str, dict[str, Any]] = {}

    def note(self, key: str, values: Any) -> None:
        """Keep the largest of values, and how many there were."""
        values = np.abs(np.asarray(values, dtype=np.float64)).ravel()
        own = self.found.setdefault(self.now, {})
        if values.size:
            own[key] = max(own.get(key, 0.0), float(values.max()))
            own[f"{key}s"] = own.get(f"{key}s", 0) + int(values.size)


_notes = Notes()


def pytest_configure(config: pytest.Config) -> None:
    """Put the noting functions in the place of those that tests are about to import."""
    from tests.oracles import joint, mc

    gaps, p_values = mc.discrepancies, joint.joint_p_values

    def discrepancies(*args: Any, **keys: Any) -> Any:
        found = gaps(*args, **keys)
        _notes.note("gap", found)
        return found

    def joint_p_values(*args: Any, **keys: Any) -> Any:
        found = p_values(*args, **keys)
        _notes.note("minus log10 p", -np.log10(np.maximum(list(found.values()), 1e-300)))
        return found

    mc.discrepancies, joint.joint_p_values = discrepancies, joint_p_values


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note under this test from here."""
    _notes.now = item.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep how the test ended."""
    if report.when == "call" or report.outcome == "failed":
        own = _notes.found.setdefault(report.nodeid, {})
        own |= {"outcome": report.outcome, "seconds": report.duration}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the notes."""
    Path(os.environ[_TARGET]).write_text(json.dumps(_notes.found), encoding="utf-8")


def run_exact(patterns: Sequence[str], folder: Path, commit: str, *, matrix: bool) -> dict[str, Any]:
    """Run the tests of files, each file in a process of its own, one after the other.

    Parameters
    ----------
    patterns : sequence of str
        Of files, relative to the repository.
    folder : Path
        Of the results, a file each; those that are there are not computed again.
    commit : str
        To note with them.
    matrix : bool
        Whether the tests are those marked ``matrix``, or all others.

    Returns
    -------
    dict
        ``commit``, of each file, and ``tests``: by name, what each compared, and how it ended.
    """
    commits: dict[str, str] = {}
    tests: dict[str, Any] = {}
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        target = folder / "exact" / f"{path.stem}{'.matrix' if matrix else ''}.json"
        try:
            found = json.loads(target.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            found = {"commit": commit, "tests": _run(path, target, matrix)}
            target.write_text(json.dumps(found), encoding="utf-8")
        commits[target.stem] = found["commit"]
        tests |= found["tests"]
    return {"commit": commits, "tests": tests}


def _run(path: Path, target: Path, matrix: bool) -> dict[str, Any]:
    """Run the tests of one file; return what they compared, nothing where none has the marker."""
    marker = "matrix" if matrix else "not matrix"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "scripts.verification.exact"]
    target.parent.mkdir(parents=True, exist_ok=True)
    notes = target.with_suffix(".notes")
    notes.unlink(missing_ok=True)
    done = subprocess.run(
        [*command, "-m", marker, str(path.relative_to(ROOT))],
        cwd=ROOT,
        env={**os.environ, _TARGET: str(notes.resolve())},
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode not in (0, 1, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"verify: the tests of {path.name} ended with {done.returncode}")
    found: dict[str, Any] = json.loads(notes.read_text(encoding="utf-8"))
    notes.unlink()
    return found
