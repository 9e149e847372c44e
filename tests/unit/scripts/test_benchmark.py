"""The benchmark runs; what it measures is never asserted, for machines differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import augmentation, large, performance, versus
from benchmarks.cells import cells, select
from benchmarks.table import growth
from dpmix.spec import load_spec
from dpmix.summary.diagnostics import MIN_DRAWS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.matrix
def test_tiny_run_prints_json(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = [sys.executable, str(ROOT / "scripts" / "benchmark"), "--quick", "--seconds", "0.2"]
    command += ["--cells", "tiny", "--json", "-", "--markdown", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert [cell["sampler"] for cell in report["cells"]] == ["neal8", "neal3"]
    for cell in report["cells"][:1]:
        assert cell["nanoseconds"] > 0 and cell["floor_many"] > cell["floor_few"] > 0
        assert cell["peak_mb"] >= cell["start_mb"] > 0
        assert 1 < cell["in_play"] < 60
        assert cell["saved_draws"] % 2 == 0
        assert set(cell["ess_per_second"]) == {"clusters", "density_-5", "density_0", "density_2.5"}
        assert all(speed > 0 for speed in cell["ess_per_second"].values())
    other = report["cells"][1]
    assert other["setting"] == "truncated" and other["ess_per_second"]["clusters"] > 0
    text = page.read_text(encoding="utf-8")
    assert "| neal8 | 60 |" in text and "| truncated, eps = 5 | neal3 | 60 |" in text
    assert done.stderr.count(" ns a record-update") == 2


def test_cells_are_chosen_by_parts_of_their_names() -> None:
    names = [cell.name for cell in select(["slice/eps5", "n1000"])]
    assert "slice/eps5/n200" in names and "blocked/none/n1000" in names
    assert "slice/eps50/n200" not in names and "neal8-3/eps5/n200" not in names
    assert len({cell.name for cell in cells()}) == len(cells())
    with pytest.raises(ValueError, match="no cell matches 'gibbs'"):
        select(["gibbs"])


def test_counts_beside_neal8_go_on_where_they_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cases of as many seconds are not measured again; others are, and kept."""
    work, sampled = tmp_path / "work.jsonl", []
    told = {"ms": 1.0, "ess": {"clusters": 2.0}, "rhat": 1.0}
    monkeypatch.setattr(versus, "_run", lambda *_: sampled.append(1))
    monkeypatch.setattr(versus, "_told", lambda _: told)
    cases = ((60, 5.0), (60, 50.0))
    once = versus.versus(0.5, cases[:1], work)
    assert len(sampled) == 4
    assert versus.versus(0.5, cases, work)[:1] == once and len(sampled) == 8
    assert versus.versus(0.5, cases, work) and len(sampled) == 8
    assert versus.versus(0.25, cases, work) and len(sampled) == 16


def test_growth_is_the_exponent() -> None:
    results = [{"n": n, "sweeps_per_second": 3e6 / n**1.25} for n in (200, 1000, 5000)]
    assert growth(results) == pytest.approx(1.25)
    assert growth(results[:1]) is None


MADE_UP: dict[str, Any] = {
    "machine": {
        "date": "2026-01-01",
        "cpu": "a processor",
        "cores": 2,
        "system": "Linux",
        "python": "3.11",
        "versions": {"dpmix": "1.0"},
        "load": [0.5, 0.5, 0.5],
    },
    "load_after": [0.6, 0.5, 0.5],
    "cells": {
        "idle": {"cpu": 1.25, "wall": 2.0},
        "tasks": [{"what": "a fit", "command": "fit", "wall": 3.0, "cpu": 2.5, "mb": 200.0}],
        "mechanisms": [
            {
                "name": "laplace",
                "times": {1_000: 0.01, 10_000: 0.1},
                "each": 1e-5,
                "floor": 2e-8,
                "library": 9e-6,
            }
        ],
        "synthesizers": [
            {
                "name": "pitman_yor",
                "times": {1_000: 1e-4, 10_000: 1e-3},
                "times_n": {},
                "each": 1e-7,
                "floor": 1e-8,
            }
        ],
        "growth": [
            {
                "name": "neal8",
                "what": "m",
                "values": [1, 2],
                "times": [1e-7, 2e-7],
                "clusters": [5.0, 6.0],
                "floors": [40.0, 80.0],
                "growth": 1.0,
            }
        ],
        "threads": {"sweeps": 100, "1": (2.0, 2.0), "2": (1.0, 2.0)},
        "billion": [
            {"n": 10**9, "cpu": [60.0, 61.0], "rhat": 1.001, "ess": 2500.0, "by": "a, b", "sweeps": 120_000}
        ],
    },
}
UNTITLED = ("idle", "billion")
"""Parts of the page that stand under the title of another."""


def test_the_page_says_what_was_measured() -> None:
    page = " ".join(performance.page(MADE_UP).split())
    for line in (
        "| a fit | fit | 2.5 | 200 |",
        "starts sampling 2.00 s after its command does, by the clock on the wall, and after 1.25 s",
        "| laplace | 10.0 ms | 100 ms | – | – | 10.0 us | 20.0 ns | 9.00 us | 1.00 |",
        "| pitman_yor | 100 us | 1.00 ms | – | – | 100 ns | 10.0 ns | 10 | 1.00 | – |",
        "| neal8 | m | 1: 100, 2: 200 | 1.00 | 40.0 – 80.0 | 5.5 |",
        "was 2.0 s and 1.0 s, while 1.0 and 2.0 of",
        "| 1,000,000,000 | 120,000 | 121 | 1.0010 | 2,500 | a, b |",
    ):
        assert line in page
    assert performance.page(MADE_UP | {"cells": {}}).count("## ") == 0
    for part, found in MADE_UP["cells"].items():
        titles = performance.page(MADE_UP | {"cells": {part: found}}).count("\n## ")
        assert titles == (part not in UNTITLED), part
    with pytest.raises(ValueError, match="no part is 'speed'; parts are idle, samplers"):
        performance.select(["speed"])


@pytest.mark.parametrize("sampler", [{}, large._LONG])
def test_short_chains_of_large_releases_have_diagnostics(sampler: dict[str, Any]) -> None:
    short = load_spec(large._SPEC | {"sampler": large._SPEC["sampler"] | sampler}, large._SHORT[1::2]).sampler
    assert (short.iterations - short.burn_in) // short.thin >= MIN_DRAWS


@pytest.mark.parametrize(
    ("model", "sampler"),
    [(model, sampler) for model, samplers in augmentation.SAMPLERS.items() for sampler in samplers],
)
def test_models_by_augmentation_are_of_releases_as_they_are_stated(model: str, sampler: str) -> None:
    built = augmentation.BUILD[model](10, 1.0, augmentation.SAMPLERS[model][sampler])
    assert built.make_chain(np.random.default_rng(1)) is not None


@pytest.mark.matrix
@pytest.mark.parametrize("part", performance.PARTS)
def test_every_part_of_the_page_is_measured(part: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "benchmark"), "--performance", "--seconds", "0.02"]
    command += ["--cells", part, "--json", "-", "--markdown", str(tmp_path / "page.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["cells"]) == [part]
    assert (tmp_path / "page.md").read_text("utf-8").count("\n## ") == (part not in UNTITLED)


@pytest.mark.matrix
def test_augmentation_is_measured_too(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.md"
    command = [sys.executable, str(ROOT / "scripts" / "benchmark"), "--augmentation", "--seconds", "0.02"]
    command += ["--cells", "plain/eps0.1/n10", "naive_bayes/plain/eps1/n100/growth"]
    command += ["--json", str(figures), "--markdown", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cells = json.loads(figures.read_text(encoding="utf-8"))["cells"]
    assert [cell["offers"] for cell in cells] == [10, 10, 100]
    for cell in cells[:2]:
        assert cell["nanoseconds"] > 0 and cell["floor"] > 0 and cell["ess_per_second"] > 0
        assert cell["acceptance"] > 0.9
    text = page.read_text(encoding="utf-8")
    assert text.count("| 10 | 0.1 | plain |") == 2 and "## naive_bayes" in text
    with pytest.raises(ValueError, match="no cell matches 'gibbs'"):
        augmentation.select(["gibbs"])
