"""Sweeps: which runs a spec stands for, what is refused before any of them begins, and what truth is."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import dpmix
from dpmix.api import sweep as verbs
from dpmix.cli import commands
from dpmix.data.simulations import SIMULATIONS
from dpmix.errors import DpmixError, PrivacyError
from dpmix.privacy.ledger import Book
from dpmix.run import exit_codes
from dpmix.spec.schema import sweep_schema
from dpmix.spec.starters import starter, sweep_starters
from dpmix.spec.sweep_spec import load_sweep
from dpmix.spec.yamltext import parse_yaml
from dpmix.store.tree import read
from dpmix.sweeping.figures import across, draw_figures, left_out
from dpmix.sweeping.plan import make_plan
from dpmix.sweeping.scores import density, truth_of
from dpmix.sweeping.table import columns_of, means, write_csv, write_hdf5
from tests.helpers.specs import ROOT

BASE: dict[str, Any] = {
    "data": {"simulate": "three_gaussians", "n": 20, "seed": 1, "domain": [-10, 10]},
    "mechanism": {"kind": "laplace", "epsilon": 5.0},
    "model": {"base": {"mu0": 0.0, "lambda": 0.1, "a": 3.0, "b": 3.0}},
    "sampler": {"kind": "neal8", "iterations": 60, "burn_in": 20, "chains": 1, "seed": 1, "store": []},
}


def sweep_of(**changes: Any) -> dict[str, Any]:
    return {"base": copy.deepcopy(BASE), "grid": {"mechanism.epsilon": [1, 5]}, **changes}


def names(**changes: Any) -> list[str]:
    return [run.name for run in make_plan(load_sweep(sweep_of(**changes))).runs]


def refused(tmp_path: Path, contents: Any, *overrides: str, kind: type[DpmixError] = DpmixError) -> str:
    """Return the one line by which a sweep is refused, with nothing done."""
    with pytest.raises(kind) as caught:
        verbs.sweep(contents, tmp_path / "out", overrides=overrides, new_ledger=True)
    assert not (tmp_path / "out").exists()
    (line,) = str(caught.value).splitlines()
    return line


def test_runs_are_entries_by_grid_by_replicates() -> None:
    assert names() == ["epsilon=1", "epsilon=5"]
    assert names(grid={"mechanism.epsilon": [1, 5], "data.n": [20, 30]}, replicates=[7, 9])[:3] == [
        "epsilon=1_n=20_seed=7",
        "epsilon=1_n=20_seed=9",
        "epsilon=1_n=30_seed=7",
    ]
    entries = [{"name": "few", "data.n": 20}, {"sampler": {"kind": "private_slice", "seed": 3}}]
    assert names(list=entries) == [
        "few_epsilon=1",
        "few_epsilon=5",
        "sampler=private_slice_epsilon=1",
        "sampler=private_slice_epsilon=5",
    ]
    assert names(grid={"sampler.kind": ["neal8", "private_slice"]}) == [
        "sampler=neal8",
        "sampler=private_slice",
    ]
    assert names(grid={}) == ["run"]
    assert names(grid={"data.columns": [["a/b"], ["a b"]]}) == ["columns=a-b-1", "columns=a-b-2"]


@pytest.mark.parametrize("taken", ["grid=null", "grid.mechanism.epsilon=null"])
def test_null_takes_out_what_varies(taken: str) -> None:
    sweep = load_sweep(sweep_of(), [taken, "replicates=2", "set.sampler.thin=null"])
    assert [run.name for run in make_plan(sweep).runs] == ["seed=1", "seed=2"]
    assert sweep.fixed == {"sampler.thin": None}


def test_sections_are_set_before_what_is_in_them() -> None:
    grid = {"mechanism.epsilon": [2], "mechanism": [{"kind": "gaussian", "delta": 1e-3}]}
    (run,) = make_plan(load_sweep(sweep_of(grid=grid))).runs
    assert run.contents["mechanism"] == {"kind": "gaussian", "delta": 1e-3, "epsilon": 2}


def test_replicates_seed_data_and_chains_alike() -> None:
    for run in make_plan(load_sweep(sweep_of(replicates=[4, 6]))).runs:
        spec = run.spec()
        assert spec.data is not None
        assert spec.data.seed == spec.sampler.seed == run.seed
        assert run.values(("data.n", "sampler.kind", "mechanism")) == {
            "data.n": 20,
            "sampler.kind": "neal8",
            "mechanism": "laplace",
        }


def test_paths_count_from_the_base_spec(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    base = copy.deepcopy(BASE) | {"data": {"path": "d.csv", "column": "x", "domain": [0, 1]}}
    base["privacy"] = {"ledger": "l.json"}
    (tmp_path / "specs" / "base.yaml").write_text(json.dumps(base))
    (tmp_path / "sweep.yaml").write_text("base: specs/base.yaml\ngrid: {mechanism.epsilon: [1, 2]}\n")
    run = make_plan(load_sweep(tmp_path / "sweep.yaml", ["set.data.path=e.csv"])).runs[0]
    spec = run.spec()
    assert spec.data is not None and spec.privacy is not None
    assert (spec.data.path, spec.privacy.ledger) == (
        tmp_path / "specs" / "e.csv",
        tmp_path / "specs" / "l.json",
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"grid": {"mechanism.epsilon": [1, -1]}}, "run epsilon=-1: mechanism.epsilon: -1 must be greater"),
        (
            {"grid": {"mechanism.epsilonn": [1]}},
            'run run: mechanism.epsilonn: unknown key; did you mean "eps',
        ),
        ({"grid": {"mechanism.epsilon": 1}}, "grid.mechanism.epsilon: must be a list, not 1"),
        ({"grid": {"mechanism.epsilon": []}}, "grid.mechanism.epsilon: [] must have at least 1"),
        ({"grid": {"mechanism.epsilon": [1, 1.0]}}, "grid.mechanism.epsilon: lists 1.0 twice"),
        ({"grid": {"mechanims.epsilon": [1]}}, 'grid.mechanims.epsilon: "mechanims" is no section'),
        ({"grid": {"mechanism..epsilon": [1]}}, "must be a key of the spec such as mechanism.epsilon"),
        ({"grid": {"privacy.ledger": ["a"]}}, '"privacy.ledger" is the same for all runs'),
        ({"grid": {"sampler.seed": [1, 2]}, "replicates": 2}, "grid.sampler.seed: is set by replicates"),
        ({"set": {"sampler.seed": 3}, "replicates": 2}, "set.sampler.seed: is set by replicates; give one"),
        ({"set": {"data.seed": 3}, "replicates": [1]}, "set.data.seed: is set by replicates"),
        ({"list": [{"data": {"seed": 3}}], "replicates": 2}, "list[0].data.seed: is set by replicates"),
        ({"grid": {"data.n.m": [1]}}, "data.n.m: data.n is 20, not a section"),
        ({"grid": {"data.n": [20, 10**9]}}, "run n=1000000000: data.n: 1000000000 must be at most"),
        ({"set": {"mechanism.epsilon": 1}}, "set.mechanism.epsilon: is replaced by grid.mechanism.epsilon"),
        (
            {"list": [{"mechanism.epsilon": 1}]},
            "list[0].mechanism.epsilon: is replaced by grid.mechanism.eps",
        ),
        ({"grid": {"data": [{}]}, "list": [{"data.n": 20}]}, "list[0].data.n: is replaced by grid.data"),
        ({"list": []}, "list: [] must have at least 1"),
        ({"list": [3]}, "list[0]: must be a mapping of keys such as mechanism.epsilon to values, not 3"),
        ({"list": [{"name": "x"}]}, "list[0]: sets no key of the spec"),
        ({"list": [{"name": "", "data.n": 20}]}, "list[0]: name must be printable text"),
        ({"list": [{"name": "x", "data.n": k} for k in (20, 30)]}, 'list: names two entries "x"'),
        ({"list": [{"data.n": 20}, {"data.n": 20}]}, "list: gives the run n=20_epsilon=1 twice"),
        ({"replicates": 0}, "replicates: 0 must be at least 1"),
        ({"replicates": [1, 1]}, "replicates: lists a seed twice"),
        ({"replicates": [-1]}, "replicates[0]: -1 must be at least 0"),
        ({"replicates": 9000}, "the spec: the sweep has 18,000 runs; at most 10,000"),
        ({"replicates": "many"}, 'replicates: must be a whole number, not "many"'),
        ({"keep_chains": "no"}, 'keep_chains: must be true or false, not "no"'),
        ({"girds": {}}, 'girds: unknown key; did you mean "grid"?'),
        ({"base": 3}, "base: must be"),
        ({"base": "nowhere.yaml"}, "nowhere.yaml: no such spec file"),
        ({"set": {"model": None}}, "run epsilon=1: model: missing; every run of a sweep fits a model"),
        ({"set": {"data": None}}, "run epsilon=1: data: missing"),
        ({"set": {"data.seed": None}}, "run epsilon=1: data.seed: missing"),
        ({"set": {"sampler.seed": None}}, "run epsilon=1: sampler.seed: missing"),
        ({"set": {"mechanism": None}, "grid": {"data.n": [20]}}, "run run: mechanism: missing"),
        ({"set": {"model": {"kernel": "cubic"}}}, 'run epsilon=1: model.kernel: "cubic" is unknown'),
        ({"set": {"sampler.kind": "neal2"}}, "run epsilon=1: "),
    ],
    ids=str,
)
def test_nonsense_is_refused_before_anything_runs(
    changes: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert expected in refused(tmp_path, sweep_of(**changes))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "configs" / "sweeps").glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_sweeps_have_a_plan(path: Path, tmp_path: Path) -> None:
    *_, last = verbs.plan(path, tmp_path / "out").splitlines()
    assert last.startswith("would do 12 of 12 runs")


@pytest.mark.parametrize("kind", sweep_starters())
def test_starters_of_sweeps_are_valid_and_fit_the_schema(kind: str, tmp_path: Path, capsys: Any) -> None:
    jsonschema.validate(parse_yaml(starter(kind)), sweep_schema())
    path = tmp_path / "sweep.yaml"
    path.write_text(starter(kind), "utf-8")
    assert exit_codes.run(commands.app, ["validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: ok, a sweep of 12 runs\n"
    assert exit_codes.run(commands.app, ["validate", str(path), "--set", "grid.mechanism.epsilon=[-1]"]) == 2
    said = "dpmix: error: run Laplace_seed=1: mechanism.epsilon: -1 must be greater than 0\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("key", ["grid", "list", "replicates"])
def test_the_schema_of_sweeps_bounds_lists(key: str) -> None:
    value = {"mechanism.epsilon": []} if key == "grid" else []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"base": "spec.yaml", key: value}, sweep_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"base": "spec.yaml", "gird": {}}, sweep_schema())


def test_a_guarantee_that_cannot_be_met_is_refused_before_anything_runs(tmp_path: Path) -> None:
    grid = {"mechanism": [{"kind": "gaussian", "epsilon": 5, "delta": 0.01, "calibration": "classical"}]}
    said = refused(tmp_path, sweep_of(grid=grid), kind=PrivacyError)
    assert said.startswith("run run: mechanism")


def confidential(tmp_path: Path, epsilon: float | None) -> dict[str, Any]:
    """Return a sweep of two epsilons and two samplers over confidential records, under a budget."""
    values = np.random.default_rng(1).uniform(0.0, 1.0, 30)
    (tmp_path / "d.csv").write_text("x\n" + "\n".join(f"{value:.3f}" for value in values) + "\n")
    base = copy.deepcopy(BASE)
    base["data"] = {"path": str(tmp_path / "d.csv"), "column": "x", "domain": [0, 1]}
    base["privacy"] = {"ledger": str(tmp_path / "l.json")}
    if epsilon is not None:
        base["privacy"]["budget"] = {"epsilon": epsilon}
    return {"base": base, "grid": {"mechanism.epsilon": [1, 2], "sampler.kind": ["neal8", "private_slice"]}}


def test_confidential_data_need_a_ledger_and_a_budget_for_all_releases(tmp_path: Path) -> None:
    contents = confidential(tmp_path, None)
    assert "privacy.budget: missing" in refused(tmp_path, contents, kind=PrivacyError)
    contents = confidential(tmp_path, 2.5)  # enough for either release, and not for both
    said = refused(tmp_path, contents, kind=PrivacyError)
    assert "has a budget of epsilon = 2.5" in said
    assert not (tmp_path / "l.json").exists()
    del contents["base"]["privacy"]
    assert "privacy.ledger: missing" in refused(tmp_path, contents)
    contents["base"]["mechanism"] = {"kind": "none"}
    assert "mechanism.kind: none" in refused(tmp_path, contents | {"grid": {"sampler.chains": [1, 2]}})
    contents = confidential(tmp_path, 4.0)
    (tmp_path / "d.csv").unlink()
    assert f"data.path: {tmp_path / 'd.csv'}: no such file" in refused(tmp_path, contents)


def test_confidential_data_are_released_once_for_all_runs(tmp_path: Path) -> None:
    """Jobs of a cluster get releases alone, and asking again spends nothing."""
    spec = tmp_path / "sweep.yaml"
    spec.write_text(json.dumps(confidential(tmp_path, 3.1)))
    with pytest.raises(PrivacyError, match="there is no such ledger; correct the path"):
        verbs.emit(spec, tmp_path / "out", "sbatch", quiet=True)
    planned = verbs.plan(spec, tmp_path / "out", new_ledger=True)
    assert planned.count("would release Laplace noise") == 2
    assert "of the budget of epsilon = 3.1" in planned.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    for force in (False, True):
        verbs.emit(spec, tmp_path / "out", "sbatch", force=force, quiet=True, new_ledger=not force)
        book = Book.parse((tmp_path / "l.json").read_text())
        account = book.account("data")
        assert [round(spent.epsilon or 0.0, 3) for spent in account.spent.whole] == [1.0, 2.0]
    assert len(list((tmp_path / "out" / "releases").glob("*.h5"))) == 2
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"d.csv" not in path.read_bytes()


def test_a_release_that_would_be_refused_stops_those_before_it(tmp_path: Path, capsys: Any) -> None:
    """Two tables under one name, the same under another, damaged data and a budget that ends, in turn."""
    spec, out, ledger = tmp_path / "sweep.yaml", tmp_path / "out", tmp_path / "l.json"
    contents = confidential(tmp_path, 9.0) | {"grid": {}}
    (tmp_path / "e.csv").write_text((tmp_path / "d.csv").read_text() + "0.5\n")
    (tmp_path / "bad.csv").write_text("x\n0.25\nmany\n")
    three = [{"name": f"of {epsilon}", "mechanism.epsilon": epsilon} for epsilon in (1, 2, 3)]

    def sweep(*more: str, of: tuple[Path, ...] = (), dataset: str = "one") -> tuple[int, str, int]:
        others = [{"name": path.stem, "data.path": str(path), "mechanism.epsilon": 1} for path in of]
        spec.write_text(json.dumps(contents | {"list": [*three, *others]}))
        command = ["sweep", str(spec), "-o", str(out), "--dataset", dataset]
        code = exit_codes.run(commands.app, [*command, *(more or ("--emit", "sbatch"))])
        entered = Book.parse(ledger.read_text()).entries if ledger.exists() else []
        return code, capsys.readouterr().err, sum(entry["type"] == "spend" for entry in entered)

    another = "privacy.dataset: is one, but that table is not the one released under this name"
    budget = "of which epsilon = 1.5 remains; a release under (epsilon = 2, delta = 0)-DP"
    for of, code, words, more in (
        ((tmp_path / "e.csv",), 4, another, ()),
        ((tmp_path / "bad.csv",), 3, "column 'x' in record 2 (line 3) is not a number", ()),
        ((), 4, budget, ("--set", "privacy.budget.epsilon=2.5")),
    ):
        for how in (("--emit", "sbatch"), ("--dry-run",)):
            found, said, entered = sweep(*how, "--new-ledger", *more, of=of)
            assert (found, said.count("\n"), entered) == (code, 1, 0), said
            assert words in said and not list(out.rglob("*.h5"))
    before = {"data": contents["base"]["data"] | {"path": str(tmp_path / "e.csv")}}
    before |= {"mechanism": {"kind": "laplace", "epsilon": 0.5}}
    dpmix.privatize(before, tmp_path / "r.h5", ledger=ledger, dataset="one", new_ledger=True, quiet=True)
    found, said, entered = sweep()
    assert (found, entered) == (4, 1) and another in said
    found, said, entered = sweep(of=(tmp_path / "e.csv",), dataset="two")  # its last one is known as one
    assert (found, entered) == (4, 1) and "the ledger knows the same data as one" in said
    assert sweep(dataset="two")[::2] == (0, 4)
    (tmp_path / "f.csv").write_text("x\n0.25\n0.75\n")
    anew = ("--emit", "sbatch", "--force")
    assert sweep(*anew, of=(tmp_path / "f.csv",), dataset="two")[::2] == (4, 4)
    assert sweep(*anew, "--yes", of=(tmp_path / "f.csv",), dataset="two")[::2] == (0, 5)  # an edition


def secret_sweep(tmp_path: Path, *entries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a sweep over two confidential files of one folder."""
    contents = confidential(tmp_path, 9.0) | {"grid": {}, **({"list": list(entries)} if entries else {})}
    folder = tmp_path / "secret_clinic"
    folder.mkdir(exist_ok=True)
    for name in ("hiv_a.csv", "hiv_b.csv"):
        (folder / name).write_text((tmp_path / "d.csv").read_text())
    contents["base"]["sampler"] |= {"iterations": 12, "burn_in": 2}
    contents["base"]["summary"] = {"grid": [0.0, 1.0, 20]}
    return contents | changes


def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "secret_clinic" / name) for name in ("hiv_a.csv", "hiv_b.csv")]


def test_names_of_runs_do_not_tell_where_confidential_data_are(tmp_path: Path) -> None:
    first, second = paths(tmp_path)
    whole = {"path": first, "column": "x", "domain": [0, 1]}
    for entries, changes, key in (
        (
            [{"data.path": first}, {"data.path": second}],
            {},
            "list: entries that set data.path have a name each",
        ),
        ([{"name": "a", "data.path": first}, {"data.path": second}], {}, "list: entries that set data.path"),
        (
            [{"data": whole}, {"data": whole | {"path": second}}],
            {},
            "list: entries that set data have a name",
        ),
        ([], {"grid": {"data.path": [first, second]}}, "grid.data.path: set it under list, where entries"),
        (
            [{"name": "a", "sampler.chains": 1}],
            {"grid": {"data": [whole, whole | {"path": second}]}},
            "grid.data",
        ),
    ):
        said = refused(tmp_path, secret_sweep(tmp_path, *entries, **changes))
        assert key in said and "hiv" not in said and "clinic" not in said
    plan = make_plan(
        load_sweep(
            secret_sweep(
                tmp_path,
                {"name": "a", "data.path": first, "mechanism.epsilon": 1},
                {"name": "b", "data": whole},
                {"name": "c", "data": {"simulate": "three_betas", "n": 20, "seed": 1, "domain": [0, 1]}},
            )
        )
    )
    assert [run.name for run in plan.runs] == ["a", "b", "c"]
    assert [run.confidential for run in plan.runs] == [True, True, False]
    assert plan.varied == ("mechanism.epsilon",)
    assert names(grid={}, list=[{"data.n": 20}, {"data": BASE["data"] | {"n": 30}}])[0] == "n=20"  # simulated


def test_nothing_in_the_folder_tells_where_confidential_data_are(tmp_path: Path, capsys: Any) -> None:
    """Jobs do their runs when the data are gone, and what they leave is for anybody."""
    first, second = paths(tmp_path)
    spec, out, ledger = tmp_path / "sweep.yaml", tmp_path / "out", tmp_path / "other.json"
    entries = [{"name": "a", "data.path": first}, {"name": "b", "data.path": second}]
    contents = secret_sweep(tmp_path, *entries)
    del contents["base"]["privacy"]
    spec.write_text(json.dumps(contents))
    budget = ["--set", "privacy.budget.epsilon=10"]
    again = f"list=[{{name: a, data.path: {first}}}]"
    emitted = ["sweep", str(spec), "-o", str(out), "--emit", "sbatch", *budget]
    assert exit_codes.run(commands.app, emitted) == 2
    assert "run a: privacy.ledger: missing; " in capsys.readouterr().err and not out.exists()
    assert (
        exit_codes.run(commands.app, [*emitted, "--ledger", str(ledger), "--new-ledger", "--set", again]) == 2
    )
    assert "--set list: stands in the jobs" in capsys.readouterr().err
    assert exit_codes.run(commands.app, [*emitted, "--ledger", str(ledger)]) == 4
    assert not out.exists()
    assert exit_codes.run(commands.app, [*emitted, "--ledger", str(ledger), "--new-ledger"]) == 0
    assert Book.parse(ledger.read_text()).account("data").spent.releases == 2
    (tmp_path / "secret_clinic").rename(tmp_path / "away")
    ledger.rename(tmp_path / "away.json")
    capsys.readouterr()
    for arguments, code in ((["--run", "a"], 0), (["--gather"], 5)):  # the other is missing
        assert exit_codes.run(commands.app, ["sweep", str(spec), "-o", str(out), *budget, *arguments]) == code
    told = "".join(capsys.readouterr())
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {"table.csv", "table.h5", "chains.h5", "summary.h5", "sweep.sbatch"} <= {
        path.name for path in files
    }
    for where in (told, *map(str, files), *(path.read_bytes().decode("latin-1") for path in files)):
        assert "hiv_" not in where.replace(str(tmp_path), "") and "secret_clinic" not in where
        assert "other.json" not in where
    assert [line.split(",")[:2] for line in (out / "table.csv").read_text().splitlines()[1:]] == [
        ["a"] * 2,
        ["b"] * 2,
    ]


def test_ledgers_are_for_what_spends(tmp_path: Path, capsys: Any) -> None:
    spec, ledger = tmp_path / "sweep.yaml", tmp_path / "l2.json"
    spec.write_text(json.dumps(confidential(tmp_path, 3.1)))
    command = ["sweep", str(spec), "-o", str(tmp_path / "out")]
    for option in (["--run", "x"], ["--gather"]):
        assert exit_codes.run(commands.app, [*command, *option, "--ledger", str(ledger)]) == 2
        assert f"--ledger: {option[0]} spends nothing, so leave it out" in capsys.readouterr().err
    new = "--new-ledger"
    assert (
        exit_codes.run(commands.app, [*command, "--dry-run", new, "--set", "privacy.budget.epsilon=2.9"]) == 4
    )
    assert (
        exit_codes.run(commands.app, [*command, "--dry-run", new, "--set", f"privacy.ledger={ledger}"]) == 0
    )
    named = [*command, "--emit", "sbatch", "--ledger", str(ledger), "--dataset", "named"]
    assert exit_codes.run(commands.app, [*named, new]) == 0
    assert Book.parse(ledger.read_text()).account("named").spent.releases == 2
    assert not (tmp_path / "l.json").exists()
    spec.write_text(json.dumps(sweep_of(grid={"privacy.ledger": ["a", "b"]})))
    assert exit_codes.run(commands.app, [*command, "--dry-run"]) == 2
    assert '"privacy.ledger" is the same for all runs' in capsys.readouterr().err
    spec.write_text(json.dumps(sweep_of()))
    assert (
        exit_codes.run(
            commands.app, [*command[:3], str(tmp_path / "o"), "--dry-run", "--ledger", str(ledger)]
        )
        == 0
    )
    assert "no run has confidential data: nothing is entered in the ledger" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["three_gaussians", "three_betas", "waiting_times", "beta_grid", "dyadic_geometric"]
)
def test_laws_are_those_that_records_come_from(name: str) -> None:
    law = truth_of(name)
    assert law is not None
    x = np.sort(SIMULATIONS[name](200_000, np.random.default_rng(5))[:, 0])
    assert law.mean == pytest.approx(x.mean(), abs=5 * law.sd / 200_000**0.5)
    assert law.sd == pytest.approx(x.std(), rel=0.01)
    at = np.quantile(x, [0.01, 0.2, 0.5, 0.9])
    assert law.cdf(at) == pytest.approx(np.searchsorted(x, at, side="right") / x.size, abs=0.005)
    assert law.scalar("tail[0.5]") == pytest.approx((x > 0.5).mean(), abs=0.005)
    assert law.scalar("quantile[0.5]") == pytest.approx(np.quantile(x, 0.5), abs=0.03 * law.sd)
    assert law.scalar("n_clusters") is None
    if law.continuous:
        grid = np.linspace(law.at[0] - 1.0, law.at[-1] + 1.0, 4001)
        assert np.trapezoid(density(name, grid), grid) == pytest.approx(1.0, abs=1e-3)


ROWS: list[dict[str, Any]] = [
    {
        "run": f"e={e} s={s}",
        "mechanism.epsilon": e,
        "sampler.kind": "neal8",
        "status": "finished" if e < 9 or s == 1 else "failed",
        "private": False,
        "hellinger": 1.0 / (e + s),
        "acceptance": 0.5,
        "acceptance_bound": float(np.exp(-e)),
        "ess_bulk_min": None if s == 2 else 10.0 * e,
        "seconds": 1.0,
        "message": 'said "a, b"',
    }
    for e in (1.0, 3.0, 9.0)
    for s in (1, 2)
]


def test_tables_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    import csv

    rows = [*ROWS, {"run": "late", "status": "missing", "extra": 3}]
    assert columns_of(rows)[-2:] == ["message", "seconds"]
    write_csv(tmp_path / "t.csv", rows)
    with (tmp_path / "t.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["message"] for row in found] == ['said "a, b"'] * 6 + [""]
    assert [row["hellinger"] for row in found] == [repr(row["hellinger"]) for row in ROWS] + [""]
    assert (found[0]["private"], found[6]["extra"]) == ("false", "3")
    write_hdf5(tmp_path / "t.h5", rows, {"dpmix_version": "x"})
    node = read(tmp_path / "t.h5")
    assert node["run"].tolist() == [row["run"] for row in rows]
    assert node["hellinger"][:6].tolist() == [row["hellinger"] for row in ROWS]
    assert np.isnan(node["hellinger"][6])
    assert node.variables["hellinger"].dims == ("run",)


def test_means_are_over_replicates_of_finished_runs() -> None:
    lines = [line.split() for line in means(ROWS, ["mechanism.epsilon"]).splitlines()]
    assert lines[0] == ["mechanism.epsilon", "runs", "hellinger", "acceptance", "ess_bulk_min"]
    assert lines[1] == ["1", "2", f"{(1 / 2 + 1 / 3) / 2:.4g}", "0.5", "10"]
    assert lines[3] == ["9", "1", "of", "2", "0.1", "0.5", "90"]


def test_figures_are_drawn_against_what_varies(tmp_path: Path) -> None:
    assert across(ROWS, ["mechanism.epsilon"]) == "mechanism.epsilon"
    assert across([{"data.n": 1}, {"data.n": 2}], ["data.n"]) == "data.n"
    assert across(ROWS[:1], ["mechanism.epsilon"]) is None
    assert draw_figures(ROWS[:1], ["mechanism.epsilon"], tmp_path) == []
    found = draw_figures(ROWS, ["mechanism.epsilon"], tmp_path)
    assert [path.name for path in found] == [
        f"{stem}.{kind}" for stem in ("error", "acceptance", "ess") for kind in ("svg", "png")
    ]
    drawn = (tmp_path / "acceptance.svg").read_text()
    assert "acceptance rate" in drawn
    assert "bound exp(-epsilon)" in drawn


def test_figures_say_how_many_settings_they_leave_out(tmp_path: Path) -> None:
    rows = [row | {"data.n": n} for row in ROWS for n in range(15)]
    varied = ["mechanism.epsilon", "data.n"]
    assert (left_out(rows, varied), left_out(ROWS, varied)) == (
        ["figures show the first settings; 3 more in the table alone"],
        [],
    )
    draw_figures(rows, varied, tmp_path)
    assert "and 3 more settings in the table" in (tmp_path / "error.svg").read_text()
