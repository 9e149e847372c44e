"""Progress off a terminal: plain lines once work takes long, then each minute, and none when quiet."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.run import progress
from dpmix.run.progress import ChainProgress, Due, show_fit, show_phase, show_work
from dpmix.sweeping.pool import Progress, show_sweep
from tests.helpers.chains_files import states_of_mixture, write_chains


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress.time, "monotonic", found.monotonic)
    return found


def test_lines_are_due_after_ten_seconds_and_then_each_minute(clock: Clock) -> None:
    due, said = Due(), []
    for second in range(200):
        clock.at = 1000.0 + second
        if due.now():
            said.append(second)
    assert said == [10, 70, 130, 190]


def test_work_says_how_much_is_done(clock: Clock, capsys: Any) -> None:
    with show_work("counting", 2000, quiet=False) as tell:
        for done, second in ((10, 5), (500, 11), (900, 30), (1500, 72), (2000, 140)):
            clock.at = 1000.0 + second
            tell(done)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["dpmix: counting: 500 of 2,000", "dpmix: counting: 1,500 of 2,000"]


def test_a_caller_is_told_in_place_of_the_terminal(clock: Clock, capsys: Any) -> None:
    told: list[tuple[int, int]] = []
    with show_work(
        "counting", 7, quiet=False, progress=lambda done, total: told.append((done, total))
    ) as tell:
        clock.at += 100
        tell(3)
    assert told == [(3, 7)] and capsys.readouterr().err == ""


def test_chains_say_how_many_sweeps_are_done(clock: Clock, capsys: Any) -> None:
    boards = [ChainProgress(0, 1000), ChainProgress(1, 1000)]
    with show_fit(quiet=False) as watch:
        watch.chains(boards)
        boards[0].done, clock.at = 600, 1011.0
        watch.chains(boards)
        watch.chains(boards)
        boards[0].done = boards[1].done = 1000
        clock.at = 1100.0
        watch.chains(boards)
    assert capsys.readouterr().err == "dpmix: 2 chains: 600 of 2,000 sweeps (30%)\n"


def test_a_sweep_says_what_is_running(clock: Clock, capsys: Any) -> None:
    with show_sweep(12, 3, quiet=False) as board:
        running = {0: Progress("a", stage="fitting"), 1: Progress("b")}
        board.show(running)
        clock.at += 11
        board.show(running)
    assert capsys.readouterr().err == "dpmix: 3 of 12 runs done; now a (fitting), b (starting)\n"


def test_a_phase_says_how_long_it_has_taken(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(progress, "_FIRST", 0.02)
    monkeypatch.setattr(progress, "_NEXT", 0.02)
    with show_phase("summarizing", quiet=False):
        time.sleep(0.3)
    said = capsys.readouterr().err.splitlines()
    assert len(said) >= 2 and set(said) == {"dpmix: summarizing: 0 s so far"}
    time.sleep(0.06)
    assert capsys.readouterr().err == ""  # the thread has ended with the block


@pytest.mark.parametrize("show", ["phase", "work", "fit", "sweep"])
def test_quiet_says_nothing(show: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    if show == "phase":
        with show_phase("summarizing", quiet=True):
            time.sleep(0.05)
    elif show == "work":
        with show_work("counting", 9, quiet=True) as tell:
            tell(1)
    elif show == "fit":
        with show_fit(quiet=True) as watch, watch.phase("compiling"):
            watch.chains([ChainProgress(0, 10)])
            watch.chains([ChainProgress(0, 10)])
    else:
        with show_sweep(2, 0, quiet=True) as board:
            board.show({0: Progress("a")})
    assert capsys.readouterr() == ("", "")


def test_an_error_ends_the_phase(capsys: Any) -> None:
    with pytest.raises(ValueError, match="no"), show_phase("summarizing", quiet=False):
        raise ValueError("no")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_python_shows_what_the_command_line_shows(
    quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """`summarize` said nothing in Python, where every other verb did."""
    monkeypatch.setattr(progress, "_FIRST", 0.0)
    monkeypatch.setattr(progress, "_NEXT", 0.05)
    chains = write_chains(tmp_path / "c.h5", [states_of_mixture(20, np.random.default_rng(1))])
    dpmix.summarize(chains, quiet=quiet)
    assert ("dpmix: summarizing: " in capsys.readouterr().err) is not quiet
