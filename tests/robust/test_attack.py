"""`scripts/attack`: what it prints, and that it finds what is planted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix.privacy.noise
from attacking import groups, ledger, order
from attacking.__main__ import main
from attacking.outcome import best_accuracy, guessed, table
from tests.unit.cli.test_cli import outcome


def test_the_best_accuracy_is_that_of_randomized_response() -> None:
    """Under (eps, delta): tell with probability delta, else answer randomly with odds e^eps."""
    for epsilon, delta in ((1.0, 0.0), (0.3, 0.1), (4.0, 0.5)):
        truth = delta + (1 - delta) * np.exp(epsilon) / (1 + np.exp(epsilon))
        assert best_accuracy(epsilon, delta) == pytest.approx(float(truth))
    assert best_accuracy(1.0) == pytest.approx(0.7310586)


@pytest.mark.parametrize(("hits", "beaten"), [(73, False), (85, False), (99, True)])
def test_an_accuracy_counts_as_above_the_bound_where_chance_does_not_explain_it(
    hits: int, beaten: bool
) -> None:
    releases = [[0] * 50, [1] * hits + [0] * (50 - hits) if hits <= 50 else [1] * 50]
    first = 100 - hits if hits > 50 else 0
    releases[0] = [1] * first + [0] * (50 - first)
    found = guessed("x", releases, lambda one: one == 1, best_accuracy(1.0))
    assert (found.reached, found.allowed, found.beaten) == (f"{hits / 100:.3f}", "0.731", beaten)
    assert ("BEATEN" in table("t", ("a", "b"), [found])) is beaten


def test_row_order_and_groups_quickly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick", "--runs", "150", "--only", "order", "groups"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("two files, log_moments each: sizes"))
    assert "1.000" in row and "no joint guarantee is stated" in row
    assert sum("shuffled" in line for line in lines) == 4
    assert lines[-1].startswith("no attack did better than it may; 15 releases of each table")


def test_a_release_in_its_own_order_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dpmix.privacy.noise, "random_order", lambda n: np.arange(n))
    monkeypatch.setattr(order, "FILES", {"laplace": order.FILES["laplace"]})
    assert main(["--runs", "40", "--only", "order"]) == 1
    assert "BEATEN" in capsys.readouterr().out


def test_a_joint_guarantee_of_two_groups_would_be_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from dpmix.privacy.accounting import Guarantee

    stated: Any = lambda parts: Guarantee(2.0, 0.0, None)  # noqa: E731
    monkeypatch.setattr(groups, "in_parallel", stated)
    found = groups._by_files(tmp_path, *_people(), 60)
    assert [each.beaten for each in found] == [True]


def _people() -> tuple[Any, Any, Any]:
    row = {"care": 0.1, "food": 0.3, "rest": 0.6}
    return [row] * 200, [row] * 200, {"care": 0.98, "food": 0.01, "rest": 0.01}


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_the_ledger_is_not_got_around(
    processes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By commands in processes of their own, or by day in this one."""

    def here(folder: Path, arguments: Sequence[str]) -> tuple[int, str]:
        monkeypatch.chdir(folder)
        code, out, err = outcome(capsys, *arguments)
        return code, (out + err).replace(f"{folder}{os.sep}", "")

    if not processes:
        monkeypatch.setattr(ledger, "_dpmix", here)
    assert main(["--quick", "--only", "ledger"]) == 0
    said = capsys.readouterr().out
    assert "BEATEN" not in said and said.count("refused") >= 10
