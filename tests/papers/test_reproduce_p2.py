"""The tables and figures of the paper on synthesis: specs validate, a run draws, missing data are skipped."""

from __future__ import annotations

import csv
import gzip
import json
import math

import numpy as np
import pytest
from scipy import stats

from dpmix.data import simulations
from dpmix.spec import load_spec
from papers import __main__ as command
from papers.p2 import (
    cells as p2cells,
)
from papers.p2 import (
    convergence as p2convergence,
)
from papers.p2 import (
    downstream as p2downstream,
)
from papers.p2 import (
    utility as p2utility,
)
from papers.p2.cells import CONFIGS, FULL, QUICK, Cell, Size
from papers.registry import PAPERS, cells_of
from tests.helpers.specs import ROOT

P2 = PAPERS["p2"]
TINY = ["p2", "--quick", "--runs", "2", "--jobs", "1"]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_base_specs_validate(path):
    spec = load_spec(path)
    assert spec.synthesis is not None and spec.data.domain is not None
    assert (spec.data.simulate is None) is (path.stem in ("incomes", "visits"))


@pytest.mark.parametrize("size", [QUICK, FULL], ids=["quick", "full"])
def test_cells_of_all_figures_validate(size, tmp_path):
    found = cells_of(list(P2.figures), size, P2.cells(tmp_path))
    assert len({cell.path(tmp_path).name for cell in found}) == len(found) > 60
    for cell in found if size is QUICK else found[::19]:
        load_spec(CONFIGS / cell.spec, cell.overrides)


def test_a_run_draws_figure_1_and_then_finds_everything_done(tmp_path, monkeypatch, capsys):
    small = Size(sizes=(500, 1000), distances=2, runs=2, replicates=2, rounds=(100,))
    monkeypatch.setitem(PAPERS, "p2", P2.__class__(**{**vars(P2), "quick": small}))
    assert command.main([*TINY, "--only", "1", "--output", str(tmp_path)]) == 0
    assert (tmp_path / "fig1.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "fig1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * len(p2convergence.SCENARIOS)
    by_name = {(row["scenario"], int(row["n"])): row for row in rows}
    row = by_name["delta0.05", 1000]
    assert int(row["records"]) == 53 and float(row["delta"]) <= 0.05  # floor(0.05 * 1009 / 0.95)
    assert int(by_name["theorem0.05", 1000]["records"]) == 43
    assert int(by_name["asymptotic", 1000]["records"]) == math.floor(1000 / math.log(1000))
    text = (tmp_path / "findings.md").read_text()
    assert "Theorem 2 2, dpmix 53" in text and "slope" in text and "incomes" not in text
    results = [json.loads(p.read_text()) for p in (tmp_path / "cells").glob("*.json")]
    assert all(r["release"]["simulated"] and not r["release"]["private"] for r in results)
    assert command.main([*TINY, "--only", "1", "--output", str(tmp_path)]) == 0
    assert "14 of 14 cells are there already" in capsys.readouterr().err


def test_distances_are_those_of_releases_to_their_own_records(tmp_path):
    cell = Cell(
        "x/y",
        "convergence.yaml",
        ("data.n=300", "synthesis.records=20", "synthesis.delta=null", "synthesis.epsilon=null"),
        "distances",
        3,
    )
    found = cell.run(QUICK, tmp_path)
    assert len(set(found["w1"])) == 3 and found["release"]["released"] == 20
    # 20 of 300 records: about as far as 20 draws from their law
    law = simulations.dyadic_geometric(100_000, np.random.default_rng(1))[:, 0]
    rng = np.random.default_rng(2)
    apart = [stats.wasserstein_distance(rng.choice(law, 20), law) for _ in range(200)]
    assert 0.3 < np.mean(found["w1"]) / np.mean(apart) < 3
    assert cell.finished(QUICK, tmp_path)["w1"] == pytest.approx(found["w1"], rel=1e-6)
    assert Cell("x/y", "convergence.yaml", (), "distances", 3).finished(QUICK, tmp_path) is None


def test_slopes_are_least_squares(tmp_path):
    size = Size(sizes=(100, 400, 1600), distances=2, runs=2, replicates=2, rounds=(100,))
    results = {p2convergence.name(n, "delta0.1"): {"w1": [0.9 * n**-0.5, 1.1 * n**-0.5]} for n in size.sizes}
    slope, error = p2convergence.slope(results, size, "delta0.1")
    assert slope == pytest.approx(-0.5)
    assert error == pytest.approx(0.1 / (math.log(4) * math.sqrt(2)), rel=1e-6)


def test_incomes_are_logged_and_missing_ones_skipped(tmp_path, monkeypatch, capsys):
    assert (
        command.main([*TINY, "--only", "table1", "--data", str(tmp_path), "--output", str(tmp_path / "o")])
        == 0
    )
    said = capsys.readouterr()
    assert "table1 is skipped" in said.err and "--data" in said.err and "0 figures" in said.out
    assert json.loads((tmp_path / "o" / "about.json").read_text())["skipped"].keys() == {"table1"}
    rng = np.random.default_rng(4)
    dollars = np.exp(rng.normal(6.4, 0.8, 400)).clip(0.5, 2884.61)
    with gzip.open(tmp_path / p2utility.EARNINGS, "wt") as file:
        file.write("weekly_earnings\n" + "\n".join(f"{d:.2f}" for d in dollars) + "\n")
    monkeypatch.setitem(p2utility.N, "incomes", 400)
    monkeypatch.setattr(p2utility, "DELTA", 0.1)
    arguments = [*TINY, "--only", "table1", "--data", str(tmp_path), "--output", str(tmp_path / "o")]
    assert command.main(arguments) == 0
    with (tmp_path / "o" / "table1.csv").open() as file:
        rows = {row["kind"]: row for row in csv.DictReader(file)}
    logged = np.log(dollars.round(2)) / math.log(2885)
    assert float(rows["confidential"]["mean"]) == pytest.approx(logged.clip(0, 1).mean(), abs=1e-6)
    assert {int(rows[k]["records"]) for k in ("exact", "perturbed", "smoothed")} == {
        p2utility.recorded("incomes")["exact"]
    }
    assert float(rows["perturbed-small"]["delta"]) <= 1e-6
    assert float(rows["exact"]["repeats"]) > 0.9 > float(rows["perturbed"]["repeats"])
    assert (tmp_path / "o" / "table1.png").read_bytes().startswith(b"\x89PNG")


def test_visits_are_those_that_ship(tmp_path):
    output = ["--output", str(tmp_path)]
    assert command.main([*TINY, "--only", "table1_visits", *output]) == 0
    with (tmp_path / "table1_visits.csv").open() as file:
        rows = {row["kind"]: row for row in csv.DictReader(file)}
    assert int(rows["confidential"]["records"]) == 20_190
    assert (tmp_path / "table1_visits.png").read_bytes().startswith(b"\x89PNG")


def test_the_document_names_every_spec_and_figure():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for path in CONFIGS.glob("*.yaml"):
        assert f"configs/p2/{path.name}" in page
    assert all(f"`{figure}`" in page for figure in P2.figures)


def test_functionals_of_the_law_are_those_of_many_draws():
    truths = p2downstream.truths()
    drawn = simulations.beta_grid(400_000, np.random.default_rng(3))[:, 0]
    assert truths["mean"] == pytest.approx(drawn.mean(), abs=0.003)
    assert truths["tail[0.5]"] == pytest.approx((drawn > 0.5).mean(), abs=0.004)
    for q in (0.25, 0.5, 0.75):
        assert truths[f"quantile[{q:g}]"] == pytest.approx(np.quantile(drawn, q), abs=0.0101)


def test_the_table_of_posteriors_is_bias_error_and_coverage():
    truths = p2downstream.truths()

    def run(shift, half):
        return {
            "seconds": 0.5,
            "parameters": {
                name: {"mean": t + shift, "lower": t + shift - half, "upper": t + shift + half, "ess": 100.0}
                for name, t in truths.items()
            },
        }

    release = {"released": 3, "delta": 0.0}
    rows = [run(0.1, 0.05), run(-0.02, 0.05), run(0.04, 0.05)]
    results = {p2downstream.name(kind): {"rows": rows, "release": release} for kind in p2downstream.KINDS}
    for row in p2downstream.table(results):
        assert row["bias"] == pytest.approx(0.04)
        assert row["rmse"] == pytest.approx(math.sqrt((0.01 + 0.0004 + 0.0016) / 3))
        assert row["coverage"] == pytest.approx(2 / 3)
        assert row["length"] == pytest.approx(0.1) and row["ess_per_second"] == pytest.approx(200.0)


@pytest.mark.slow
def test_a_posterior_is_measured_on_a_small_scale(tmp_path):
    _, overrides = p2downstream.KINDS["dp"]
    cell = Cell("t/dp", "downstream.yaml", overrides, "downstream", 2, rounds=(20, 300))
    found = cell.run(QUICK, tmp_path)
    assert found["release"]["released"] == 53 and len(found["rows"]) == 2
    for row in found["rows"]:
        assert set(p2downstream.FUNCTIONALS) <= set(row["parameters"])
        interval = row["parameters"]["mean"]
        assert 0.0 < interval["lower"] < interval["mean"] < interval["upper"] < 1.0
        assert row["draws"] == 300 and row["rhat"] < 1.1  # 20 are too few for 200 effective ones
    means = [row["parameters"]["mean"]["mean"] for row in found["rows"]]
    assert means[0] != means[1]  # a data set each


def test_measures_are_plain_statistics():
    found = p2cells.measures(np.array([1.0, 2.0, 3.0, 6.0]))
    assert found == {
        "mean": 3.0,
        "sd": pytest.approx(np.sqrt(14 / 3)),
        "q25": 1.75,
        "median": 2.5,
        "q75": 3.75,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p2", "--only", "fig2"], "fig2 is none of fig1, table1"),
        (["p2", "--sweeps", "10"], "--sweeps: is not for p2"),
        (["p1", "--runs", "10"], "--runs: is not for p1"),
        (["p1", "--data", "x"], "--data: is not for p1"),
    ],
)
def test_bad_usage_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
