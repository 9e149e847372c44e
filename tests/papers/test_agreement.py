"""Whether chains agree is told as it is: settled, to be lengthened, or left with a reason; pieces add up."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from papers import __main__ as command
from papers import kept, page, pool
from papers.agreement import ENOUGH, RHAT, agreed, in_words, scalars
from papers.p1 import agreement, normal, waiting
from papers.p1.cells import FULL, Cell
from tests.helpers.specs import ROOT

PAGE = ROOT / "docs" / "reproduction.md"


def told(**more):
    return {"rhat": 1.002, "ess": 900.0, "settled": True, "sweeps": 2000} | more


def test_chains_of_one_law_settle_and_chains_apart_do_not():
    draws = np.random.default_rng(1).normal(size=(4, 500, 2))
    found = agreed(scalars("x", draws))
    assert found["settled"] and found["rhat"] < RHAT and 1000 < found["ess"] < 4000
    shifted = draws.copy()
    shifted[2, :, 1] += 0.5  # one entry of one chain
    found = agreed(scalars("x", shifted))
    assert not found["settled"] and found["slowest"] == "x[1]" and found["rhat"] > 1.02
    stuck = draws.copy()
    stuck[:, :, 0] = np.arange(4)[:, None]  # R-hat is infinite, which JSON does not have
    found = agreed(scalars("x", stuck))
    assert not found["settled"] and (found["slowest"], found["rhat"]) == ("x[0]", 99.0)
    still = draws.copy()
    still[:, :, 0] = 3.0  # says nothing, for or against
    assert agreed(scalars("x", still)) == agreed({"x[1]": scalars("x", draws)["x[1]"]})
    known = scalars("x", draws)["x[0]"]
    for rhat, ess, settled in ((1.0099, 200.0, True), (1.0001, 199.0, False), (1.01, 4000.0, False)):
        assert agreed({"x": replace(known, rhat=rhat, ess_bulk=ess)})["settled"] is settled


def test_longer_chains_are_tried_where_they_may_settle():
    cell = Cell("x/r0", "laplace_normal.yaml", (), settle=24_000)
    assert cell.lengths(FULL) == (2_000, 4_000, 8_000, 16_000, 24_000)
    assert cell.next_length(FULL, told()) is None
    assert cell.next_length(FULL, told(settled=False, ess=150.0)) == 4_000
    assert cell.next_length(FULL, told(settled=False, ess=30.0)) == 16_000  # 8,000 would give 120 of 200
    assert cell.next_length(FULL, told(settled=False, ess=10.0)) == 24_000  # and may do better than that
    assert cell.next_length(FULL, told(settled=False, ess=6.0)) is None  # 67,000 are needed
    assert cell.next_length(FULL, told(settled=False, sweeps=24_000)) is None
    assert Cell("x/r0", "laplace_normal.yaml", ()).lengths(FULL) == (FULL.sweeps,)
    assert ENOUGH == 200.0


def test_every_cell_of_the_first_paper_has_five_data_sets_and_is_settled():
    cells = command.cells_of(list(command.FIGURES), FULL)
    kinds = {cell.name.rsplit("/", 1)[0]: cell for cell in cells}
    for name, cell in kinds.items():
        count = sum(other.name.startswith(f"{name}/r") for other in cells)
        once = "exact" in name and name.startswith("beta") or name.startswith("histogram") and not cell.settle
        assert count == (1 if once else 5), name
    posteriors = {name for name, cell in kinds.items() if cell.settle}
    assert {normal.name(n, e, "posterior")[:-3] for n in normal.SIZES for e in normal.EPSILONS} <= posteriors
    assert {waiting.name(noise, "posterior")[:-3] for noise in waiting.NOISES} <= posteriors


def test_words_count_what_settled():
    words = in_words([told(), told(sweeps=8000, rhat=1.0099), told(settled=False, rhat=1.2, ess=17.0)])
    assert words == (
        "2 of 3 posteriors settled; two chains each, sweeps: 2 of 2,000, 1 of 8,000; of these R-hat up "
        "to 1.0099; of the others 1.200 to 1.200, ESS from 17"
    )


def test_what_did_not_settle_is_listed_with_its_reason():
    def result(name, replicate, **more):
        own = {"name": f"{name}/r{replicate}", "replicate": replicate, "sampler": "counts", "chains": 4}
        return own | {"slowest": "sd", "cpu": 6.0} | told(**more)

    made = [result("normal/n50/eps1/posterior", k) for k in range(2)]
    made.append(result("beta/laplace/eps250/rate", 1, settled=False, rhat=1.5, ess=7.4))
    made.append(result("normal/n50/eps1/neal5", 0, chains=2, settled=False, rhat=1.3))
    cells = [Cell(r["name"], "", (), 2000 * (r["chains"] > 2), r["replicate"]) for r in made]
    cells.append(Cell("normal/n50/eps1/posterior/r2", "", (), 2000, 2))
    found = agreement.rows({one["name"]: one for one in made}, cells)
    assert [row["settled"] for row in found] == ["no", "", "yes", "yes", "no"]
    assert [row["sampler"] for row in found] == ["counts"] * 4 + [agreement.NOT_RUN]
    text = agreement.text(found)
    assert "| 4.1 | 2 of 3 | 2 | 2 | 1.00200, 900 | 2,000 | 0 |" in text and "4 of 5 runs are done" in text
    assert "| beta/laplace/eps250/rate (2) | 1.5000 | sd | 7 | 2,000 | a prior against narrow kernels" in text
    assert "Every posterior" in agreement.text([row for row in found if row["settled"] != "no"])


def test_a_page_is_filled_between_its_marks(tmp_path):
    document, folder = tmp_path / "page.md", tmp_path / "results"
    document.write_text("a\n<!-- p1: numbers -->\nold\n<!-- p1: end -->\nb\n")
    folder.mkdir()
    (tmp_path / "page").mkdir()
    (folder / "p1_cells.csv").write_text("cell\n")
    page.fill(document, "p1", "new\n", ("fig2",), folder)
    assert document.read_text() == "a\n<!-- p1: numbers -->\n\nnew\n\n<!-- p1: end -->\nb\n"
    assert (tmp_path / "page" / "p1_cells.csv").exists()
    with pytest.raises(ValueError, match="p2: numbers"):
        page.fill(document, "p2", "", (), folder)


def test_the_page_says_what_its_table_of_cells_says():
    with (ROOT / "docs" / "reproduction" / "p1_cells.csv").open() as file:
        found = [
            row
            | {key: int(row[key]) for key in ("data_set", "chains", "sweeps", "ess")}
            | {key: float(row[key]) for key in ("rhat", "processor_seconds")}
            for row in csv.DictReader(file)
        ]
    assert agreement.text(found).strip() in PAGE.read_text()
    for row in found:
        if row["settled"] and row["sampler"] != agreement.NOT_RUN:
            assert (row["settled"] == "yes") is (row["rhat"] < RHAT and row["ess"] >= ENOUGH), row["cell"]


def test_pieces_go_on_where_the_last_one_stopped(tmp_path, monkeypatch, capsys):
    arguments = ["p1", "--only", "fig14", "--jobs", "1", "--output", str(tmp_path)]
    ran = []

    def run(cell, size, folder):
        ran.append(cell.name)
        result = {"key": cell.key(size), "name": cell.name, "elapsed": 2.0, "cpu": 1.0}
        cell.path(folder).parent.mkdir(exist_ok=True)
        cell.path(folder).write_text(json.dumps(result))
        return result

    monkeypatch.setattr(pool, "run_cell", run)
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr(pool.time, "perf_counter", lambda: float(next(clock)))
    assert command.main([*arguments, "--minutes", "1.5"]) == 75
    first = list(ran)
    assert 0 < len(first) < 4 and "the same command goes on" in capsys.readouterr().err
    about = json.loads((tmp_path / "about.json").read_text())
    assert about["left"] == 4 - len(first) and about["processor_seconds_of_cells"] == len(first)
    assert about["figures"] == [] and not (tmp_path / "fig14.png").exists()
    monkeypatch.setitem(command.PAPERS["p1"].draw, "fig14", lambda *a: None)
    monkeypatch.setattr(command.registry.agreement, "rows", lambda *a: [{"cell": "x"}])
    monkeypatch.setattr(command.registry.agreement, "text", lambda *a: "")
    monkeypatch.setattr(command.registry.findings, "text", lambda *a: "")
    assert command.main(arguments) == 0
    assert sorted(ran) == sorted(set(ran)) and len(ran) == 4  # none twice
    assert json.loads((tmp_path / "about.json").read_text())["processor_seconds_of_cells"] == 4


def test_the_first_data_set_of_all_cells_comes_first():
    cells = [normal.cell(50, e, "posterior", r) for r in (0, 1) for e in (1.0, 2.0)]
    cells.append(normal.cell(50, 1.0, "neal5", 1))
    assert [c.replicate for c in pool._ordered(cells[::-1])] == [
        1,
        1,
        0,
        0,
        1,
    ]  # one of each program, then these


def test_work_of_another_command_in_the_folder_is_left_alone(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for process in (os.getpid(), os.getppid(), ended.pid):
        (tmp_path / f".work-{process}-x").mkdir()
    kept.clear_work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f".work-{os.getppid()}-x"]
