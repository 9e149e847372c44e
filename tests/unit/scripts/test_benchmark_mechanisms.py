"""The benchmark of mechanisms side by side: its cells, its file of results, and its tables."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from scipy import stats

from benchmarks import mechanism_tables, mechanisms
from benchmarks.mechanisms import Cell, Estimated, Found, estimated, fill, read, repeated, select

WAVE = Cell("Beta(5, 2)", "square_wave", 1.0)
FOUND = Found(0.002, "0" * 14 + "01" * 18, "0" + "1" * 49, 0.018, 0.23, 1.02, 80.0, 3.0)


def test_repeats_come_one_after_the_other_and_slow_mechanisms_after_ten_of_the_others():
    wanted = [(cell.mechanism, repeat) for cell, repeat in repeated() if "incomes" not in cell.population]
    assert len(wanted) == 4 * (3 * mechanisms.REPEATS + 2 * mechanisms.FEW_REPEATS)
    assert [repeat for _, repeat in wanted[:24]] == [0] * 12 + [1] * 12
    assert wanted.index(("gaussian", 0)) > wanted.index(("laplace", 9))
    assert {cell.n for cell in mechanisms.CELLS if cell.mechanism == "wavelet"} == {10_000}


def test_parts_of_names_select_cells():
    assert select(["Beta(5, 2)/square_wave/eps1"]) == [WAVE]
    assert len(select([])) == 52
    assert len(select(["recorded incomes/laplace"])) == 4
    with pytest.raises(ValueError, match=r"--cells: none has 'eps7' in its name; names are such as Beta"):
        select(["eps7"])


def test_what_is_in_the_file_is_not_made_again(tmp_path, monkeypatch):
    work = tmp_path / "work.jsonl"
    made = []
    monkeypatch.setattr(mechanisms, "measured", lambda cell, repeat, times: made.append(repeat) or FOUND)
    monkeypatch.setattr(mechanisms, "estimated", lambda cell, repeat: Estimated(0.004, None, 70))
    fill(work, [WAVE], most=2)
    fill(work, [WAVE], most=3)
    assert made == [0, 1, 2]
    found, estimates = read(work)
    assert found[WAVE.name, 2] == FOUND
    assert len(estimates) == 3


def test_tables_have_means_coverage_and_how_chains_mixed(tmp_path):
    work = tmp_path / "work.jsonl"
    lines = [[f"{WAVE.name}/{i}", asdict(FOUND)] for i in range(2)]
    lines.append([f"{WAVE.name}/0", asdict(Estimated(0.0047, None, 70))])
    work.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    text = mechanism_tables.tables(work)
    row = next(line for line in text.splitlines() if line.startswith("| square_wave | 1 | 2 |"))
    held = "0.500 ± 0.000 (0.00) | 1.000 ± 0.000 (1.00)"
    assert row == f"| square_wave | 1 | 2 | 2.0 | 4.7 | - | {held} | 18.0 | 0.230 |"
    assert "| square_wave | 1 | 1.020, 1.02 | 80, 80 | 0 | 3.0 |" in text
    assert "incomes" not in text


def test_an_estimate_without_noise_to_speak_of_is_near_the_population(monkeypatch):
    """At 2,000 records and epsilon 4 the distance is about that of 2,000 records."""
    monkeypatch.setattr(mechanisms, "N", 2_000)
    found = estimated(Cell("Beta(5, 2)", "laplace", 4.0), 0)
    assert 0.001 < found.ems < 0.04
    assert found.kde is not None
    again = estimated(Cell("Beta(5, 2)", "laplace", 4.0), 0)
    assert again == found  # the same seed
    assert np.isfinite(estimated(WAVE, 0).ems)


def test_chains_that_disagree_are_made_again_once_and_longer(tmp_path, monkeypatch):
    """By R-hat alone, after all others; what the file has of both counts once, as the longer."""
    work, made = tmp_path / "work.jsonl", []

    def measured(cell, repeat, times):
        made.append((repeat, times))
        return replace(FOUND, rhat=1.2 if repeat == 1 else 1.01, times=times)

    monkeypatch.setattr(mechanisms, "measured", measured)
    monkeypatch.setattr(mechanisms, "estimated", lambda cell, repeat: Estimated(0.004, None, 70))
    fill(work, [WAVE], most=3)
    assert made == [(0, 1), (1, 1), (2, 1), (1, mechanisms.LONGER)]
    fill(work, [WAVE], most=3)
    assert len(made) == 4
    assert read(work)[0][WAVE.name, 1].times == mechanisms.LONGER


@pytest.mark.skipif(not mechanisms.INCOMES.exists(), reason="incomes of the survey do not ship")
def test_smooth_incomes_are_drawn_from_their_distribution():
    """A density that integrates to its distribution function, and draws that follow it: Kolmogorov's test."""
    population = mechanisms.POPULATIONS["incomes"]
    fine = (np.arange(4_000) + 0.5) * 50.0
    below, heights = population.cdf(fine), population.density(fine)
    np.testing.assert_allclose(np.diff(below)[60:], 25.0 * (heights[1:] + heights[:-1])[60:], atol=2e-6)
    assert population.cdf(np.array([200_000.0]))[0] == pytest.approx(1.0)
    drawn = population.draw(20_000, np.random.default_rng(1))
    assert drawn.max() <= 200_000.0
    assert stats.kstest(drawn, lambda y: np.interp(y, fine, below, left=0.0, right=1.0)).pvalue > 1e-3
