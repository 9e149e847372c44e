"""The figures of the paper on released posteriors: specs validate, expected errors are exact, a run draws."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

import dpmix
from dpmix.api.calibrate import mechanism_of
from dpmix.mechanisms.posterior import calibrations
from dpmix.mechanisms.posterior.certificate import neighbours
from dpmix.spec import load_spec
from papers import __main__ as command
from papers.p3 import cells as p3cells
from papers.p3 import exact as p3exact
from papers.p3 import figures as p3figures
from papers.p3.cells import CONFIGS, FULL, QUICK, Cell, Crossing, Size, counts_of, spec_of
from papers.registry import PAPERS, cells_of
from tests.helpers.specs import ROOT
from tests.oracles import posteriors as oracle

P3 = PAPERS["p3"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrations, "directory", lambda: tmp_path / "calibrations")


def made(method, prior, n):
    found = mechanism_of(load_spec(CONFIGS / "beta_binomial.yaml", [spec_of(method, prior, n)]))
    assert (found.n, found.prior) == (n, prior)
    return found


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_base_specs_validate(path):
    section = load_spec(path).mechanism
    assert (section.kind, section.epsilon, section.delta) == ("posterior", 0.8, 1e-8)


def test_the_spec_of_figure_3_is_released(tmp_path):
    release = dpmix.privatize(CONFIGS / "balanced_priors.yaml", tmp_path / "r.h5", quiet=True)
    assert release.n == 15 and release.values.sum() == 18.0
    assert release.mechanism["certificate"]["epsilon"] <= 0.8


def test_the_shipped_spec_of_votes_is_released(tmp_path):
    release = dpmix.privatize(ROOT / "configs" / "anes_vote.yaml", tmp_path / "r.h5", quiet=True)
    assert release.n == 944 and release.values.sum() == 946.0
    assert release.mechanism["categories"] == ["0", "1"]


@pytest.mark.parametrize("size", [QUICK, FULL], ids=["quick", "full"])
def test_cells_of_all_figures_validate(size, tmp_path):
    found = cells_of(list(P3.figures), size, P3.cells(tmp_path))
    assert len({cell.path(tmp_path).name for cell in found}) == len(found) > 200
    for cell in found[:: 2 if size is QUICK else 9]:
        if isinstance(cell, Crossing):
            assert all(sum(counts_of(cell.shares, n)) == n for n in cell.grid)
            continue
        section = load_spec(CONFIGS / cell.spec, list(cell.overrides)).mechanism
        assert section.n == sum(cell.counts) and len(section.prior) == len(cell.counts)
        assert (section.epsilon, section.delta or 1e-8) == (0.8, 1e-8)


@pytest.mark.parametrize(
    ("prior", "counts"), [((1.0, 1.0), (3, 17)), ((0.5, 2.0), (0, 9)), ((1.0, 2.0, 0.5), (2, 0, 5))]
)
@pytest.mark.parametrize("method", ["theorem", "certified"])
def test_expected_errors_of_the_exponential_mechanism_are_sums_over_all_posteriors(method, prior, counts):
    release = made(method, prior, sum(counts))
    every = oracle.databases(sum(counts), len(prior))
    weights = release.law.weights(counts)
    far = [oracle.hellinger(prior, counts, r) for r in every]
    expected = math.fsum(w * h for w, h in zip(weights, far, strict=True)) / math.fsum(weights)
    assert p3exact.expected(release, counts) == pytest.approx(expected, abs=1e-7)


def test_expected_errors_of_noise_are_integrals_over_it():
    prior, counts, n = (1.0, 1.0), (2, 18), 20
    geometric = made("geometric1", prior, n)
    fall = math.exp(-1 / geometric.s)
    total = 0.0
    for noise in range(-400, 401):
        r = min(max(2 + noise, 0), n)
        share = (1 - fall) / (1 + fall) * fall ** abs(noise)
        total += share * oracle.hellinger(prior, counts, (r, n - r))
    assert p3exact.expected(geometric, counts) == pytest.approx(total, abs=1e-7)
    laplace = made("laplace2", prior, n)

    def error(noise: float) -> float:
        r = min(max(2 + noise, 0.0), n)
        return (
            math.exp(-abs(noise) / laplace.s) / (2 * laplace.s) * oracle.hellinger(prior, counts, (r, n - r))
        )

    parts = [integrate.quad(error, *ends)[0] for ends in ((-200, -2), (-2, 0), (0, 18), (18, 220))]
    assert p3exact.expected(laplace, counts) == pytest.approx(sum(parts), abs=1e-6)
    assert p3exact.expected(made("laplace2", (1.0,) * 3, n), (2, 8, 10)) is None


def test_the_largest_scale_that_is_certified_is_the_largest():
    release = made("theorem", (1.0, 1.0), 40)
    law = p3exact.by_scale(release)
    family = neighbours(release.posteriors)
    assert law.gamma == release.gamma and law.exponent > 1.5 * release.law.exponent
    assert family.certified(law, 0.8)[0] <= 1e-8
    steeper = law.__class__(law.posteriors, law.gamma, law.exponent * 1.001, law.bits)
    assert family.certified(steeper, 0.8)[0] > 1e-8


def test_a_crossing_is_the_first_number_of_records(tmp_path, monkeypatch):
    cell = Crossing(
        "x", "beta_binomial.yaml", (), "theorem", (), 0, "laplace2", (100, 400, 900, 2000), (0.1, 0.9)
    )
    monkeypatch.setattr(Crossing, "_error", lambda self, method, n: 0.5 if method != "theorem" else 300 / n)
    assert cell.compute(QUICK, tmp_path)["first"] == 610  # 300/n < 1/2 beyond 600, in steps of ten
    monkeypatch.setattr(Crossing, "_error", lambda self, method, n: float(method == "theorem"))
    assert cell.compute(QUICK, tmp_path)["first"] is None


def test_noisy_counts_are_truncated_in_turn():
    assert p3cells.truncated([4.5, 20.0, 3.0], 15).tolist() == [4.5, 10.5, 0.0]
    assert p3cells.truncated([-2.0, 6.0, 99.0], 15).tolist() == [0.0, 6.0, 9.0]
    assert counts_of((0.2, 0.3, 0.5), 11) == (2, 3, 6)


def test_runs_have_the_expected_error(tmp_path):
    for method in ("certified", "scale", "geometric1"):
        cell = Cell(
            f"t/{method}", "beta_binomial.yaml", (spec_of(method, (1.0, 1.0), 40),), method, (4, 36), 4000
        )
        found = cell.run(QUICK, tmp_path)
        assert abs(found["mean"] - found["exact"]) < 5 * found["se"]
        assert found["five"][0] <= found["five"][2] <= found["five"][4] <= 1
        assert cell.finished(QUICK, tmp_path)["mean"] == pytest.approx(found["mean"], rel=1e-6)
        again = cell.compute(QUICK, tmp_path)  # the generator is seeded by the name
        assert again["mean"] == found["mean"]


def test_a_run_draws_figure_3_and_then_finds_everything_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(p3figures, "PRIORS", (1, 20))
    monkeypatch.setitem(PAPERS, "p3", P3.__class__(**{**vars(P3), "quick": Size(2, False, 1000)}))
    arguments = ["p3", "--quick", "--only", "3", "--runs", "60", "--jobs", "1", "--output", str(tmp_path)]
    assert command.main(arguments) == 0
    assert (tmp_path / "fig3.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "fig3.csv").open() as file:
        rows = {row["cell"]: row for row in csv.DictReader(file)}
    assert len(rows) == 2 * len(p3figures.OF_THREE)
    theorem, certified = rows["prior/a20/theorem"], rows["prior/a20/certified"]
    assert float(certified["exact"]) < float(theorem["exact"])
    assert float(theorem["certified_epsilon"]) < float(certified["certified_epsilon"]) <= 0.8
    assert rows["prior/a20/laplace2"]["exact"] == "" and float(rows["prior/a20/laplace2"]["scale"]) >= 2.5
    text = (tmp_path / "findings.md").read_text()
    assert "(5, 5, 5), exponential mechanism, theorem" in text and "60 runs" in text
    assert json.loads((tmp_path / "about.json").read_text())["size"]["runs"] == 60
    assert command.main(arguments) == 0
    assert "10 of 10 cells are there already" in capsys.readouterr().err


def test_the_document_names_every_spec_and_figure():
    page = (ROOT / "docs" / "reproduction.md").read_text()
    for path in CONFIGS.glob("*.yaml"):
        assert f"configs/p3/{path.name}" in page
    assert all(f"`{figure}`" in page for figure in P3.figures)


def test_counts_of_a_run_are_whole():
    for of, shares in p3figures.SHARES.items():
        assert sum(shares) == pytest.approx(1.0)
        counts = np.array(counts_of(shares, 300))
        assert counts.sum() == 300 and (counts == np.round(np.array(shares) * 300)).all(), of


@pytest.mark.parametrize("key", ["sweeps", "replicates"])
def test_bad_usage_is_refused(key, capsys):
    with pytest.raises(SystemExit) as stopped:
        command.main(["p3", f"--{key}", "5"])
    assert stopped.value.code == 2
    assert f"--{key}: is not for p3" in capsys.readouterr().err
