"""The benchmark runs; what it measures is never asserted, for machines differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import augmentation
from benchmarks.cells import cells, select
from benchmarks.table import growth

ROOT = Path(__file__).resolve().parents[1]


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


def test_growth_is_the_exponent() -> None:
    results = [{"n": n, "sweeps_per_second": 3e6 / n**1.25} for n in (200, 1000, 5000)]
    assert growth(results) == pytest.approx(1.25)
    assert growth(results[:1]) is None


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
