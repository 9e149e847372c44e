"""Audits of other programs: faults planted in them are found, right ones pass, and nothing runs unasked."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.auditing.inputs import numbers_of
from dpmix.errors import DataError, SpecError
from tests.unit.cli.test_cli import outcome

CLAIM: dict[str, Any] = {
    "data": {"path": "never_opened.csv", "columns": ["x"], "domain": [0, 1]},
    "audit": {"epsilon": 1.0},
}


def summing(scale: float) -> Any:
    """Return a program that releases a sum of zeros and ones with two-sided geometric noise."""
    real, success = random.SystemRandom(), -math.expm1(-1 / scale)

    def noisy_sum(table: Any) -> int:
        up, down = (math.floor(math.log(1 - real.random()) / math.log1p(-success)) for _ in range(2))
        return int(np.asarray(table, dtype=float).sum()) + up - down

    return noisy_sum


def test_a_right_program_passes_and_its_faulty_twin_does_not() -> None:
    right = dpmix.audit(CLAIM, program=summing(1.0), runs=4000, quiet=True)
    assert right.consistent
    assert not right.weak
    assert 0.6 < right.bound <= 1.0
    assert (right.kind, right.records, right.fault) == ("noisy_sum", 20, "")
    faulty = dpmix.audit(CLAIM, program=summing(0.5), runs=4000, quiet=True)
    assert not faulty.consistent
    assert faulty.bound > 1.2


def test_what_a_program_leaks_by_the_length_of_its_release_is_found() -> None:
    def tells(table: Any) -> list[float]:
        return [0.0] * (1 + int(np.asarray(table, dtype=float).sum() > 0.5))

    assert dpmix.audit(CLAIM, program=tells, runs=400, quiet=True).bound > 2


def test_noise_in_floating_point_and_noise_used_twice_are_found() -> None:
    """The sum with NumPy's Laplace noise: forks draw the same, and the last bits tell the sums apart."""
    rng = np.random.default_rng(3)

    def laplace(table: Any) -> float:
        return float(np.asarray(table, dtype=float).sum() + rng.laplace(0, 1))

    found = dpmix.audit(CLAIM, program=laplace, runs=4000, quiet=True)
    assert not found.consistent
    assert found.repeats
    assert "lowest bit" in found.event
    assert "noise THE SAME in both" in found.to_text()


def test_seeded_noise_is_found() -> None:
    def seeded(table: Any) -> float:
        return float(np.asarray(table, dtype=float).sum() + np.random.default_rng(7).laplace(0, 1))

    assert not dpmix.audit(CLAIM, program=seeded, runs=400, quiet=True).consistent


def test_tables_given_must_be_neighbours() -> None:
    one, other = np.zeros((30, 1)), np.zeros((30, 1))
    other[4] = 1
    found = dpmix.audit({"audit": {"epsilon": 1.0}}, program=summing(1.0), tables=(one, other), runs=2000)
    assert (found.records, found.consistent) == (30, True)
    assert "one record is replaced" in found.neighbours
    shorter = dpmix.audit({"audit": {"epsilon": 1.0}}, program=summing(1.0), tables=(one, one[1:]), runs=200)
    assert "a record more" in shorter.neighbours
    other[:2] = 1
    with pytest.raises(DataError, match="differ in 3 records; neighbouring tables differ in one"):
        dpmix.audit({"audit": {"epsilon": 1.0}}, program=summing(1.0), tables=(one, other))
    with pytest.raises(DataError, match="are equal, and no release tells equal tables apart"):
        dpmix.audit({"audit": {"epsilon": 1.0}}, program=summing(1.0), tables=(one, one))
    with pytest.raises(SpecError, match="audit: missing"):
        dpmix.audit({"mechanism": {"kind": "laplace", "epsilon": 1.0}}, program=summing(1.0))


SCRIPT = """\
x=$(od -An -N2 -tu2 /dev/urandom)
awk -F, -v u="$x" 'NR > 1 { s += $1 } END {
  u = (u + 0.5) / 65536 - 0.5
  print "sum"; print s - SCALE * (u < 0 ? -1 : 1) * log(1 - 2 * (u < 0 ? -u : u))
}' "$1" > "$2"
"""


def commanded(folder: Path, scale: str, **audit: Any) -> Path:
    """Write a program, and a spec that audits it."""
    (folder / "release.sh").write_text(SCRIPT.replace("SCALE", scale))
    tables = "".join(f", {key}: {value}" for key, value in audit.items())
    (folder / "spec.yaml").write_text(
        "data: {path: never_opened.csv, columns: [x], domain: [0, 1]}\n"
        f'audit: {{command: [sh, release.sh, "{{input}}", "{{output}}"], epsilon: 1{tables}}}\n'
    )
    return folder / "spec.yaml"


def test_a_command_is_run_only_where_that_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = commanded(tmp_path, "0.05")
    code, _, said = outcome(capsys, "audit", spec)
    assert (code, "--allow-code" in said) == (2, True)
    code, found, said = outcome(capsys, "audit", spec, "--allow-code", "--runs", "200")
    assert code == 4
    assert "THE CLAIM IS DISPROVED" in found
    assert "the claim is disproved" in said
    assert "release.sh {input} {output}, which claims epsilon = 1" in outcome(capsys, "validate", spec)[1]


def test_strict_fails_where_so_few_releases_could_show_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = commanded(tmp_path, "1", tables="[a.csv, b.csv]")
    (tmp_path / "a.csv").write_text("x\n0\n0\n1\n")
    (tmp_path / "b.csv").write_text("x\n1\n0\n1\n")
    arguments = ("audit", spec, "--allow-code", "--runs", "200", "--set", "audit.epsilon=9")
    assert outcome(capsys, *arguments)[0] == 0
    code, found, said = outcome(capsys, *arguments, "--strict")
    assert code == 4
    assert "weak" in found
    assert "this audit is weak" in said


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ("audit.command=[sh, -c, 'echo no {input} {output} >&2; exit 3']", 3, "ended with exit code 3: no /"),
        ("audit.command=[sh, -c, ': {input} {output}']", 3, "wrote no {output}"),
        ("audit.command=[sh, -c, ': > {output} {input}']", 3, "wrote an empty {output}"),
        ("audit.command=[no_such_program, '{input}', '{output}']", 2, "no_such_program cannot be run"),
        ("audit.command=[sh, release.sh, '{input}']", 2, "audit.command: names no {output}"),
        ("audit.tables=[a.csv]", 2, "audit.tables"),
        ("audit.tables=[a.csv, gone.csv]", 3, "gone.csv cannot be read"),
        ("audit.tables=[a.csv, c.csv]", 3, "c.csv has other columns than a.csv"),
        ("audit.tables=[a.csv, same.csv]", 3, "audit.tables: the two are equal"),
        ("audit.tables=[a.csv, three.csv]", 3, "audit.tables: the two differ in 3 records"),
        ("audit.tables=[a.csv, ./a.csv]", 2, "audit.tables: names"),
        ("data.domain=null", 2, "data.domain: missing for x"),
        ("audit.epsilon=0", 2, "audit.epsilon"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, code: int, message: str
) -> None:
    spec = commanded(tmp_path, "1")
    (tmp_path / "a.csv").write_text("x\n0\n")
    (tmp_path / "same.csv").write_text("x\n0\n")
    (tmp_path / "three.csv").write_text("x\n1\n1\n1\n")
    (tmp_path / "c.csv").write_text("y\n0\n")
    got, _, said = outcome(capsys, "audit", spec, "--allow-code", "--runs", "200", "--set", change)
    assert got == code, said
    assert message in said


def test_releases_are_numbers_and_words() -> None:
    assert numbers_of([["1.5", "a"], ["b", "inf"]]).tolist()[0] == 1.5
    assert len(set(numbers_of(["a", "b", "a"]).tolist())) == 2
    assert numbers_of(np.array([[1, 2], [3, 4]])).tolist() == [1, 2, 3, 4]
    with pytest.raises(DataError, match="at most 100,000"):
        numbers_of(np.zeros(100_001))
