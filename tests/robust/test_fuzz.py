"""Damaged inputs of the kinds that are quick to answer, by day half of them.

`scripts/fuzz` tries all kinds.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzzing.case import judge, run_case
from fuzzing.files import prepare
from fuzzing.mutate import mutate_bytes, mutate_text, mutate_value

CASES = {"values": 60, "text": 50, "set": 50, "csv": 40, "stream": 40, "ledger": 30}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to damage."""
    folder = tmp_path_factory.mktemp("sound")
    prepare(folder, fits=False)
    return folder


@pytest.mark.parametrize(
    ("target", "cases"),
    [
        *[(name, count // 2) for name, count in CASES.items()],
        *(pytest.param(name, count, marks=pytest.mark.matrix) for name, count in CASES.items()),
    ],
)
def test_damage_is_answered_with_a_sentence(sound: Path, target: str, cases: int) -> None:
    outcomes = [run_case(sound, target, number, seed=11) for number in range(cases)]
    faults = [outcome for outcome in outcomes if outcome.fault]
    assert not faults, "\n".join(f"{o.number}: {o.fault}: {o.command}: {o.said}" for o in faults)
    assert sum(outcome.code != 0 for outcome in outcomes) > cases / 4  # damage does harm


def test_a_bad_answer_is_seen() -> None:
    assert judge(2, "dpmix: error: data.path: missing\n") == ""
    assert judge(0, "") == ""
    assert judge(1, "") == "exit code 1"
    assert judge(5, "dpmix: error: internal error: KeyError\n") == "an internal error"
    assert judge(3, "Traceback (most recent call last):\n") == "an internal error"
    assert judge(3, "no such file\n") == "no error line"
    assert judge(2, "dpmix: error: " + "x" * 2000) == "a message that is too long"
    assert judge(2, "dpmix: error: <class 'int'> expected") == "Python's own words"


def test_the_same_seed_does_the_same_damage() -> None:
    text, value = "a: [1, 2]\nb: {c: d}\n" * 3, {"a": [1, 2], "b": {"c": "d"}}
    for seed in range(20):
        one, other = (random.Random(seed) for _ in range(2))
        assert mutate_text(text, one) == mutate_text(text, other)
        assert mutate_bytes(text.encode(), one) == mutate_bytes(text.encode(), other)
        assert repr(mutate_value(value, one)) == repr(mutate_value(value, other))
    assert value == {"a": [1, 2], "b": {"c": "d"}}


def test_an_alias_bomb_and_a_huge_grid_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpmix.cli.commands import app
    from dpmix.run.exit_codes import run

    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    path = tmp_path / "bomb.yaml"
    path.write_text(bomb)
    assert run(app, ["validate", str(path)]) == 2
    path.write_text("model: {kind: mixture, base: {mu0: 0, lambda: 1, a: 1, b: 1}}\n")
    assert run(app, ["validate", str(path), "--set", "summary.grid=[0, 1, 1000000000]"]) == 2
    assert all(len(line) < 700 for line in capsys.readouterr().err.splitlines())
