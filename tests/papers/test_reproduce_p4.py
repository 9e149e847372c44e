"""The paper on compositional data, made again: specs validate, a run draws, missing data are skipped."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import dirichlet, norm

from dpmix.spec import load_spec
from papers import __main__ as command
from papers.p4 import days as p4days
from papers.p4 import findings as p4findings
from papers.p4 import simulated as p4simulated
from papers.p4.cells import CONFIGS, FULL, GROUPS, METHODS, QUICK, Cell, draws_of
from papers.registry import PAPERS, cells_of
from tests.helpers.specs import ROOT

P4 = PAPERS["p4"]


@pytest.mark.parametrize("path", sorted((CONFIGS / "p4").glob("*.yaml")), ids=lambda path: path.stem)
def test_base_specs_validate(path):
    spec = load_spec(path)
    assert spec.mechanism.epsilon == 0.5 and len(spec.mechanism.thresholds) == 6
    assert spec.model.kind == "dirichlet"


@pytest.mark.parametrize("size", [QUICK, FULL], ids=["quick", "full"])
def test_cells_of_all_figures_validate(size, tmp_path):
    found = cells_of(list(P4.figures), size, P4.cells(tmp_path))
    # kinds of data, each with five groups that see releases of four eps and one that sees the data; Table 2
    kinds = 8
    assert len({cell.path(tmp_path).name for cell in found}) == len(found) == kinds * (5 * 4 + 1) + 2 * 12
    for cell in found[:: 7 if size is QUICK else 31]:
        load_spec(CONFIGS / cell.spec, cell.overrides)


def test_every_method_of_the_paper_is_there():
    assert len(METHODS) == 17 and sorted(m for g in GROUPS.values() for m in g) == sorted(METHODS)
    for sampler, prior in METHODS.values():
        if sampler and prior not in ("", "p1"):
            own = ["mechanism.split=0.25", f"sampler.kind={sampler}", f"model.prior={prior}"]
            load_spec(CONFIGS / "p4/compositions.yaml", own)


def fake(error, spread=1.0):
    """Return results of section 4.1 whose errors of DPBoots are twice those of the others."""
    results = {}
    for cell in p4simulated._cells(replace(QUICK, runs=3, large=5)):
        rows = [
            {
                m: {"error_alpha": (2 if m == "DPBoots" else 1) * error * k, "error_mean": k, "coverage": 0.9}
                for m in cell.methods
            }
            for k in (1.0 / spread, 1.0, spread)
        ]
        results[cell.name] = {"rows": rows, "cpu": 1.0}
    return results


def test_ratios_are_of_medians():
    results = fake(0.3, 50.0)
    assert p4simulated.ratio(results, "DPBoots", "error_alpha", 1000, 0.5) == pytest.approx(2.0)
    assert p4simulated.ratio(results, "DPABC p5", "error_alpha", 5000, 1e10) == pytest.approx(1.0)


def days(gaps, draws=400):
    """Return results of Table 2 with normal draws, whose differences have the given means and sd 0.005."""
    points = norm.ppf((np.arange(draws) + 0.5) / draws)
    rng = np.random.default_rng(1)
    results = {}
    for cell in p4days._cells("table2_days", QUICK, ROOT):
        women = "female" in cell.name
        rows = []
        for _ in range(cell.runs):
            shares = [0.4 + women * g + 0.005 / np.sqrt(2) * rng.permutation(points) for g in gaps]
            rows.append({cell.methods[0]: {"shares": np.stack(shares, axis=1).tolist()}})
        results[cell.name] = {"rows": rows, "cpu": 1.0}
    return results


def test_tests_of_table_2_are_those_of_the_law():
    gaps = (0.025, 0.0, -0.013)
    rows = {(row["method"], row["activity"]): row for row in p4days.table(days(gaps), "table2_days")}
    for gap, activity in zip(gaps, p4days.COLUMNS, strict=True):
        law = norm(gap, 0.005)
        chance = law.cdf(0.01) - law.cdf(-0.01)
        found = rows["DPMCMC p1", activity]
        assert found["probability"] == pytest.approx(chance, abs=2e-3)
        assert found["rejected"] == float(chance < 0.5)
        assert found["female"] - found["male"] == pytest.approx(gap, abs=1e-9)
        boots = rows["DPBoots", activity]
        assert boots["probability"] == "" and boots["rejected"] == float(abs(gap) - 1.96 * 0.005 > 0.01)
        assert rows["Boots", activity]["releases"] == 1 and boots["releases"] == QUICK.releases


def test_figures_tables_and_findings_are_drawn(tmp_path):
    results = fake(0.3) | days((0.018, 0.0, -0.02))
    for figure in ("fig2", "fig3", "table2_days"):
        P4.draw[figure](results, QUICK, tmp_path)
        assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "fig2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 2 * (2 + 15 * 4)
    assert {float(row["error_alpha"]) for row in rows} == {0.3, 0.6}
    words = p4findings.text(results, QUICK, ["fig2", "fig3", "table2_days"])
    assert "DPBoots over DPMCMC p1 | 2, 2, 2, 2 |" in words
    assert "| table2_days, DPBoots, personal_care: women, men | 0.4180, 0.4000; rejected 0.00 |" in words


@pytest.mark.matrix
def test_draws_given_the_data_are_those_of_posterior_and_bootstrap():
    """Against weights of the posterior over a grid, and the normal law of the estimate."""
    rng = np.random.default_rng(5)
    values = rng.dirichlet((3.0, 2.0), 150)
    draws = draws_of("MCMC p1", values, 3000, rng)
    axis = np.linspace(1.0, 6.0, 101)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    logs = np.array([dirichlet.logpdf(values.T, point).sum() for point in grid]) - 0.1 * grid.sum(axis=1)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ grid
    sd = np.sqrt(weights @ grid**2 - mean**2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.15 * sd.min())
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)
    refits = draws_of("Boots", values, 2000, rng)
    np.testing.assert_allclose(refits.mean(axis=0), mean, atol=0.4 * sd.min())
    np.testing.assert_allclose(refits.std(axis=0), sd, rtol=0.2)


@pytest.mark.parametrize("sex", ["female", "male"])
def test_the_days_that_ship_are_the_simulated_ones(sex):
    shipped = np.loadtxt(ROOT / "configs" / "data" / f"days_{sex}.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(shipped, p4days.simulated_days(sex), atol=1e-12)
    published = np.array(p4days.PUBLISHED_MEANS[sex])
    error = np.sqrt(published * (1 - published) / 31 / len(shipped))
    assert (np.abs(shipped.mean(axis=0) - published / published.sum()) < 3 * error).all()


def test_a_missing_survey_is_skipped(tmp_path, capsys):
    arguments = ["p4", "--quick", "--only", "table2", "--data", str(tmp_path), "--jobs", "1"]
    assert command.main([*arguments, "--output", str(tmp_path / "o")]) == 0
    said = capsys.readouterr()
    assert "table2 is skipped" in said.err and "atus2019_female.csv" in said.err and "0 figures" in said.out


@pytest.mark.matrix
def test_a_cell_is_run_and_found_again(tmp_path):
    own = ("data.alpha=[3.3, 4.4]", "summary.truth=[3.3, 4.4]", "data.n=200", "mechanism.epsilon=1.5")
    cell = Cell("x/y", "p4/compositions.yaml", own, ("DPBoots", "DPMCMC p1", "DPABC p2"), 2, (40, 200), 40)
    result = cell.run(QUICK, tmp_path)
    assert result["simulated"] and len(result["rows"]) == 2
    one, two = result["rows"]
    for method in cell.methods:
        assert one[method]["error_alpha"] != two[method]["error_alpha"]
        assert sum(one[method]["mean"]) == pytest.approx(1.0) and 0.5 < one[method]["coverage"] <= 1.0
    assert one["DPMCMC p1"]["sweeps"] == 200 and "settled" not in one["DPABC p2"]  # 40 sweeps do not settle
    # the same data and the same release, whatever other methods are there
    alone = replace(cell, name="x/z", methods=("DPABC p2",)).run(QUICK, tmp_path)["rows"][0]["DPABC p2"]
    assert alone["error_alpha"] == one["DPABC p2"]["error_alpha"]
    assert cell.finished(QUICK, tmp_path) is not None
    assert replace(cell, draws=41).finished(QUICK, tmp_path) is None


@pytest.mark.matrix
def test_a_run_makes_table_2_and_then_finds_it_done(tmp_path, capsys):
    rng = np.random.default_rng(3)
    for sex, mean in p4days.PUBLISHED_MEANS.items():
        rows = "".join(
            ",".join(f"{x:.9f}" for x in row) + "\n" for row in rng.dirichlet(20 * np.array(mean), 80)
        )
        (tmp_path / p4days.survey_file(sex)).write_text(",".join(p4days.COLUMNS) + "\n" + rows)
    arguments = ["p4", "--quick", "--runs", "2", "--sweeps", "60", "--jobs", "1", "--only", "table2"]
    arguments += ["--data", str(tmp_path), "--output", str(tmp_path / "o")]
    assert command.main(arguments) == 0
    assert (tmp_path / "o" / "table2.png").exists() and (tmp_path / "o" / "findings.md").exists()
    capsys.readouterr()
    assert command.main(arguments) == 0
    assert "12 of 12 cells are there already" in capsys.readouterr().err


def test_the_page_names_every_spec():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for path in (CONFIGS / "p4").glob("*.yaml"):
        assert f"configs/p4/{path.name}" in page


def test_intervals_are_of_chains_of_any_length():
    middle, half = p4days._intervals([np.linspace(0.0, 1.0, 101), np.linspace(-2.0, 2.0, 401)])
    assert middle == pytest.approx([0.5, 0.0]) and half == pytest.approx([0.475, 1.9])
