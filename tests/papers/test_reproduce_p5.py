"""The paper on data augmentation, made again: specs validate, a run draws, missing data are skipped."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from dpmix.data import simulations
from dpmix.spec import load_spec
from papers import __main__ as command
from papers.p5 import findings as p5findings
from papers.p5 import real as p5real
from papers.p5 import simulated as p5simulated
from papers.p5.cells import CONFIGS, EPSILONS, FULL, LEVEL, QUICK, Cell, Size
from papers.registry import PAPERS, cells_of
from tests.helpers.specs import ROOT

P5 = PAPERS["p5"]
TINY = ["p5", "--quick", "--runs", "2", "--sweeps", "60", "--jobs", "1"]


@pytest.mark.parametrize("path", sorted((CONFIGS / "p5").glob("*.yaml")), ids=lambda path: path.stem)
def test_base_specs_validate(path):
    spec = load_spec(path)
    assert spec.mechanism is not None and spec.model is not None
    assert (spec.data.simulate is None) is (path.stem == "incomes")


@pytest.mark.parametrize("size", [QUICK, FULL], ids=["quick", "full"])
def test_cells_of_all_figures_validate(size, tmp_path):
    found = cells_of(list(P5.figures), size, P5.cells(tmp_path))
    assert len({cell.path(tmp_path).name for cell in found}) == len(found) == 47
    for cell in found if size is QUICK else found[::9]:
        load_spec(CONFIGS / cell.spec, cell.overrides)


def fake(figure, runs, sd, shift=0.0):
    """Return results with intervals of one sd around the truth, moved by `shift` sd each run."""
    subject = p5simulated.FIGURES.get(figure) or p5simulated.TABLES[figure][0]
    truth = p5simulated.truth(subject)
    rows = []
    for run in range(runs):
        mean = truth + shift * sd * run
        values = {"mean": mean, "lower": mean - sd, "upper": mean + sd}
        rows.append(
            {
                "parameters": {subject.parameter: {key: list(value) for key, value in values.items()}},
                "acceptance": {"mean": 0.5 + 0.1 * run, "least": 0.4},
            }
        )
    told = {"rhat": 1.005, "slowest": "p[0]", "ess": 300.0, "settled": True, "sweeps": 2000}
    rows = [row | told for row in rows]
    kinds = (False, True) if figure in p5simulated.FIGURES else (False,)
    return {
        p5simulated.name(figure, epsilon, plain): {"rows": rows, "cpu": 1.0}
        for epsilon in EPSILONS
        for plain in kinds
    }


def test_coverage_counts_the_intervals_that_hold_the_truth():
    # means 0, 0.6, 1.2 and 1.8 sd away: two of four intervals of one sd hold the truth
    covered, length = p5simulated.coverage(fake("table1", 4, 0.1, 0.6), "table1")
    assert covered == pytest.approx(np.full((5, 5), 0.5)) and length == pytest.approx(np.full((5, 5), 0.2))


def test_means_given_the_confidential_data_are_the_conjugate_ones():
    bayes = p5simulated.confidential_mean(p5simulated.BAYES)
    labels = simulations.naive_bayes(100, simulations.generators(1)[0])[:, -1]
    assert bayes == pytest.approx([(2 + np.sum(labels == i)) / 110 for i in range(1, 6)])
    line = p5simulated.confidential_mean(p5simulated.LINE)
    values = simulations.linear_regression(100, simulations.generators(1)[0])
    x = np.column_stack([np.ones(100), values[:, :2]])
    gradient = x.T @ (values[:, 2] - x @ line) / 2.0 - line / 4.0  # of the log posterior
    assert np.abs(gradient).max() < 1e-9
    clamped = p5simulated.confidential_mean(p5simulated.LINE, clamped=True)
    assert 0 < np.abs(clamped - line).max() < 0.5


def test_figures_tables_and_findings_are_drawn(tmp_path):
    results = fake("fig1", 3, 0.05, 0.5) | fake("table1", 3, 0.05, 0.5)
    size = Size(releases=3, replicates=3, real=2, rounds=(100,))
    for figure in ("fig1", "table1"):
        P5.draw[figure](results, size, tmp_path)
        assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "fig1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 25 and float(rows[0]["acceptance"]) == pytest.approx(0.6)
    assert float(rows[0]["bound"]) == pytest.approx(math.exp(-0.1)) and float(rows[0]["prior"]) == 0.2
    words = p5findings.text(results, size, tmp_path, ["fig1", "table1"])
    assert (
        "| fig1, Algorithm 1 | 5 of 5 | 15 of 15 posteriors settled; two chains each, sweeps: 15 of 2,000"
        in words
    )
    assert words.count("(0.36)") == 1 and "table1_regression" not in words
    with (tmp_path / "table1.csv").open() as file:
        assert list(csv.DictReader(file))[0]["p[3] = 0.446"] == "1.0"


@pytest.mark.matrix
def test_a_run_draws_all_and_then_finds_everything_done(tmp_path, capsys):
    rng = np.random.default_rng(3)
    rows = [
        f"{10 ** rng.normal(4, 0.4):.1f},{a:.0f},1,{s}"
        for a, s in zip(rng.uniform(20, 60, 60), rng.integers(1, 25, 60), strict=True)
    ]
    (tmp_path / p5real.INCOMES).write_text("income,age,sex,schooling\n" + "\n".join(rows) + "\n")
    arguments = [*TINY, "--data", str(tmp_path), "--output", str(tmp_path / "o")]
    assert command.main(arguments) == 0
    for figure in P5.figures:
        assert (tmp_path / "o" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "o" / f"{figure}.csv").exists()
    results = {p.stem: json.loads(p.read_text()) for p in (tmp_path / "o" / "cells").glob("*.json")}
    for name, result in results.items():
        real = name.split("-")[0] in p5real.SUBJECTS
        assert (result["release"]["private"], result["release"]["simulated"]) == (real, not real)
    assert all(0 <= r["acceptance"]["least"] <= 1 for r in results["fig1-eps1-algorithm1"]["rows"])
    first, second = (row["parameters"]["p"]["mean"] for row in results["fig1-eps1"]["rows"])
    assert first != second  # other noise on the same data
    capsys.readouterr()
    assert command.main(arguments) == 0
    assert "47 of 47 cells are there already" in capsys.readouterr().err


@pytest.mark.matrix
def test_a_cell_is_run_and_found_again(tmp_path):
    cell = Cell("x/y", "p5/naive_bayes.yaml", ("sampler.latent=metropolis",), "releases", 2, (60,), ("p",))
    result = cell.run(QUICK, tmp_path)
    one, two = result["rows"]
    assert one["parameters"]["p"] != two["parameters"]["p"]
    found = one["parameters"]["p"]
    assert sum(found["mean"]) == pytest.approx(1.0)
    assert all(
        low < mean < high
        for low, mean, high in zip(*(found[k] for k in ("lower", "mean", "upper")), strict=True)
    )
    assert math.exp(-1) < one["acceptance"]["least"] <= one["acceptance"]["mean"] < 1
    assert result["release"]["simulated"] and not result["release"]["private"] and LEVEL == 0.9
    assert cell.finished(QUICK, tmp_path) is not None
    assert (
        Cell("x/y", "p5/naive_bayes.yaml", (), "releases", 2, (60,), ("p",)).finished(QUICK, tmp_path) is None
    )


def test_missing_incomes_are_skipped(tmp_path, capsys):
    arguments = [*TINY, "--only", "incomes", "--data", str(tmp_path), "--output", str(tmp_path / "o")]
    assert command.main(arguments) == 0
    said = capsys.readouterr()
    assert "incomes is skipped" in said.err and "--data" in said.err and "0 figures" in said.out


def test_incomes_are_logged(tmp_path):
    (tmp_path / p5real.INCOMES).write_text("income,age,sex,schooling\n1000,30,1,16\n100000,50,2,20\n")
    assert p5real.prepare(tmp_path / "o", tmp_path) is None
    values = np.loadtxt(tmp_path / "o" / "data" / "incomes.csv", delimiter=",", skiprows=1)
    assert values == pytest.approx(np.array([[16, 30, 3], [20, 50, 5]]))
    assert p5real.confidential("anes", tmp_path).sum(axis=1) == pytest.approx([1.0, 1.0])
    # least squares as published with the data: 147.475 and 0.4852
    assert p5real.confidential("engel", tmp_path) == pytest.approx([147.4754, 0.4852], abs=1e-3)


def test_the_document_names_every_spec_and_figure():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for path in (CONFIGS / "p5").glob("*.yaml"):
        assert f"configs/p5/{path.name}" in page
    assert all(f"`{figure}`" in page for figure in P5.figures)
