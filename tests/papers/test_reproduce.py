"""The figures of the paper: specs validate, a run draws, finished cells are skipped, commands exist."""

from __future__ import annotations

import csv
import json
import re
import shlex

import numpy as np
import pytest
from scipy import stats

from dpmix.data import simulations
from dpmix.spec import load_spec
from papers import __main__ as command
from papers import pool, truth
from papers.p1 import gaussian, waiting
from papers.p1.cells import CONFIGS, FULL, QUICK, Size
from tests.helpers.specs import ROOT

NOTHING = {"elapsed": 0.0, "cpu": 0.0}
TINY = ["p1", "--quick", "--sweeps", "40", "--replicates", "1", "--jobs", "1", "--only", "fig14"]


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_base_specs_validate(path):
    spec = load_spec(path)
    assert spec.data.simulate is not None and spec.data.seed is not None
    assert spec.model.base is not None and (spec.sampler.iterations, spec.sampler.burn_in) == (
        100_000,
        50_000,
    )


def test_cells_of_all_figures_validate():
    for size in (QUICK, FULL):
        chosen = [c for c in command.cells_of(list(command.FIGURES), size) if c.replicate == 0]
        assert set(command.CELLS) == {f"fig{i}" for i in range(1, 15)}
        for cell in chosen[:: 3 if size is QUICK else 17]:
            for sweeps in cell.lengths(size):
                spec = load_spec(CONFIGS / cell.spec, cell.settings(size, sweeps))
                assert spec.sampler.iterations == sweeps and spec.sampler.chains == (4 if cell.settle else 2)
    names = [cell.path(CONFIGS).name for cell in command.cells_of(list(command.FIGURES), FULL)]
    assert len(set(names)) == len(names)


def test_the_noise_of_the_papers_code_does_not_reach_its_delta():
    assert gaussian.classical_scale(5.0, 0.01) == pytest.approx(4.0 * np.sqrt(2.0 * np.log(125.0)))
    noisy = {"sweeps": 2, "chains": 1, "clusters_ess": 1.0, "seconds": 1.0, "clusters_mean": 1.0}
    grid = np.linspace(-10, 10, 50)
    noisy |= {"replicate": 0, "clusters_rhat": 1.0, "acceptance": {"mean": None}, "hellinger": 0.1}
    noisy |= {"density": {"grid": grid, "mean": truth.density("three_gaussians", grid)}}
    noisy |= {"mechanism": {"scale": [gaussian.classical_scale(10.0, 0.1)]}}
    (row,) = gaussian.table({gaussian.name("classical", 10.0, 0.1, "neal3"): noisy})
    assert not row["reaches_delta"]
    assert row["actual_delta"] == pytest.approx(0.41, abs=0.01)
    assert row["hellinger_to_truth"] == pytest.approx(0.0, abs=0.02)


def test_a_run_draws_and_then_finds_everything_done(tmp_path, monkeypatch, capsys):
    for noise in ("gaussian", "laplace-paper"):  # two mechanisms are enough
        monkeypatch.delitem(waiting.NOISES, noise)
    assert command.main([*TINY, "--output", str(tmp_path)]) == 0
    assert (tmp_path / "fig14.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "fig14.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 100  # mechanisms by records
    plain = np.array([float(r["released"]) for r in rows if r["mechanism"] == "none"])
    assert plain.min() >= 4.49 and plain.max() <= 7.6
    results = {p.name: json.loads(p.read_text()) for p in (tmp_path / "cells").glob("*.json")}
    assert len(results) == 2
    assert all(r["simulated"] and not r["private"] and r["sweeps"] == 40 for r in results.values())
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["figures"] == ["fig14"] and not about["failed"]
    assert not list(tmp_path.glob(".work-*"))

    gone = tmp_path / "cells" / "waiting-none-posterior-r0.json"
    gone.write_text(
        gone.read_text()[:50]
    )  # as a crash might leave it elsewhere: it is not taken for finished
    ran = []
    real = pool.run_cell
    monkeypatch.setattr(pool, "run_cell", lambda cell, *a: ran.append(cell.name) or real(cell, *a))
    assert command.main([*TINY, "--output", str(tmp_path)]) == 0
    assert ran == ["waiting/none/posterior/r0"]
    assert "1 of 2 cells are there already" in capsys.readouterr().err
    longer = Size(sweeps=60, chains=2, rounds=(60,), replicates=1, draws=100)
    (cell, *_) = command.cells_of(["fig14"], QUICK)
    assert cell.finished(longer, tmp_path) is None  # other settings are run anew


def test_an_interrupted_run_keeps_what_is_finished(tmp_path, monkeypatch, capsys):
    done = []

    def stopped(cell, size, folder):
        if done:
            raise KeyboardInterrupt
        done.append(cell.name)
        return NOTHING

    monkeypatch.setattr(pool, "run_cell", stopped)
    assert command.main([*TINY, "--output", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_a_cell_that_fails_is_named_and_its_figure_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pool, "_safely", lambda cell, *a: "no luck" if "none" in cell.name else NOTHING)
    assert command.main([*TINY, "--output", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "waiting/none/posterior/r0 failed: no luck" in said
    assert "fig14 is not drawn" in said
    assert not (tmp_path / "fig14.png").exists()


@pytest.mark.parametrize("name", ["three_gaussians", "three_betas", "waiting_times"])
def test_true_densities_are_those_of_the_simulations(name):
    lo, hi = {"three_gaussians": (-10, 10), "three_betas": (0, 1), "waiting_times": (4.49, 7.6)}[name]
    x = np.linspace(lo, hi, 20_001)
    y = truth.density(name, x)
    assert np.trapezoid(y, x) == pytest.approx(1.0, abs=1e-4)
    assert truth.density(name, np.array([lo - 0.1, hi + 0.1])) == pytest.approx([0.0, 0.0])
    drawn = simulations.SIMULATIONS[name](20_000, np.random.default_rng(1))
    assert drawn.shape == (20_000, 1) and drawn.min() >= lo and drawn.max() <= hi
    cdf = np.concatenate([[0.0], np.cumsum(0.5 * (y[1:] + y[:-1])) * (x[1] - x[0])])
    assert stats.kstest(drawn[:, 0], lambda v: np.interp(v, x, cdf)).pvalue > 1e-6


@pytest.mark.parametrize("name", ["three_betas", "waiting_times"])
def test_labels_go_with_the_records(name):
    labels = simulations.true_labels(name, 3000, 5)
    records = simulations.SIMULATIONS[name](3000, simulations.generators(5)[0])[:, 0]
    means = [records[labels == h].mean() for h in np.unique(labels)]
    assert means == sorted(means)
    centres = {"three_betas": [5 / 55, 0.5, 50 / 55], "waiting_times": [4.87, 5.92]}[name]
    assert means == pytest.approx(centres, abs=0.04)


def test_commands_of_the_document_are_understood():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    lines = re.findall(r"^(scripts/reproduce .*?)(?:\s+#.*)?$", page, re.MULTILINE)
    assert lines
    for line in lines:
        command._parser().parse_args(shlex.split(line)[1:])
    for spec in re.findall(r"configs/p1/\w+\.yaml", page):
        assert (ROOT / spec).exists(), spec
    assert {path.name for path in CONFIGS.glob("*.yaml")} <= {
        s.split("/")[-1] for s in re.findall(r"p1/\w+\.yaml", page)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["p9"], "invalid choice"),
        (["p1", "--only", "fig15"], "fig15 is none"),
        (["p1", "--jobs", "0"], "at least 1"),
    ],
)
def test_bad_usage_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
