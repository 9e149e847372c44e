"""Coverage of default fits on fixed populations: what is counted, and its table."""

from __future__ import annotations

import numpy as np
import pytest

from scripts.verification import page as of_ranks
from scripts.verification.cases import all_cases
from scripts.verification.coverage import DOMAIN, MECHANISMS, POPULATIONS, Run, into, page, truth_of

NORMAL, LAPLACE = "one normal", "laplace, epsilon = 4"
NAMES = tuple(truth_of(np.arange(100.0), [14.0, 39.0, 79.0]))


def test_figures_of_a_population_are_named_as_in_summaries():
    found = truth_of(np.arange(1.0, 101.0), [15.0])
    assert found["mean"] == pytest.approx(50.5)
    assert found["quantile[0.05]"] == pytest.approx(5.0)
    assert found["cdf[15]"] == pytest.approx(0.15)


def test_two_far_apart_leave_the_middle_empty():
    values = POPULATIONS["two far apart"](np.random.default_rng(1), 10_000)
    assert np.mean((values > 35.0) & (values < 60.0)) < 1e-3
    assert DOMAIN[0] < values.min() < values.max() < DOMAIN[1]


def test_a_row_counts_what_holds_by_quantity_and_by_verdict():
    right, wrong = dict.fromkeys(NAMES, True), dict.fromkeys(NAMES, False)
    runs = [
        Run(LAPLACE, NORMAL, 400, 0, right, "usable", 1.01),
        Run(LAPLACE, NORMAL, 400, 1, right | {"sd": False}, "usable", 1.01),
        Run(LAPLACE, NORMAL, 400, 2, wrong, "with care", 1.01),
    ]
    head, _, row = page(runs).splitlines()
    assert LAPLACE in MECHANISMS
    assert head.startswith("| population | release | fits | usable | mean | sd |")
    assert row == (
        "| one normal | `laplace`, epsilon = 4 | 3 | 2 | 2 | 1 | 2 | 2 | 2 | 2 | 2 | 6 of 9 | 19 of 20 |"
    )


def test_ranks_and_coverage_each_replace_their_own_part_of_the_page(tmp_path):
    path, (case, *_) = tmp_path / "page.md", all_cases()
    results = {case.name: {"ranks": {"mean": list(range(100))}}}

    def ranks(commit: str) -> None:
        of_ranks.write(path, [case], results, {}, {"commit": commit})

    ranks("one")
    into(path, "| a |\n|---|\n| 1 |\n")  # a section of its own where there is none
    path.write_text(path.read_text().replace("| a |", "How.\n\n| a |") + "\nWhy.\n\n## Else\n\nMore.\n")
    ranks("another")
    text = path.read_text()
    assert "commit another" in text and "commit one" not in text
    assert "How.\n\n| a |\n|---|\n| 1 |\n\nWhy.\n\n## Else\n\nMore.\n" in text
    into(path, "| a |\n|---|\n| 2 |\n| 3 |\n")
    assert path.read_text() == text.replace("| 1 |\n\nWhy", "| 2 |\n| 3 |\n\nWhy")
