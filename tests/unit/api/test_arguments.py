"""Verbs take what `fit` returned in the place of its file, and tables where commands take files of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dpmix
from dpmix.advising.population import epsilons_of, records_of
from dpmix.api.arguments import real_of, whole_of
from dpmix.api.fit import FitResult
from dpmix.errors import DataError, DpmixError, SpecError, UsageError, truth_of
from dpmix.release.sanitized import Release
from tests.helpers.fits import release_file, small_release
from tests.unit.models.test_models_naive_bayes import released

pandas = pytest.importorskip("pandas")

COLUMNS: dict[str, Any] = {
    "columns": ["age", "town", "vote"],
    "categories": {"age": ["18", "30", "50+"], "town": ["yes", "no", "missing"], "vote": ["a", "b, or c"]},
}
NAIVE = {"model": {"kind": "naive_bayes"}}
SPEC: dict[str, Any] = {
    "data": {"simulate": "three_gaussians", "n": 20, "seed": 1, "domain": [[-10, 10]]},
    "mechanism": {"kind": "laplace", "epsilon": 1},
    "model": {"kind": "mixture"},
}
CURATOR = {
    "data": {"column": "x", "domain": [0, 10]},
    "mechanism": {"kind": "laplace", "epsilon": 2},
}
SHORT = {"iterations": 60, "burn_in": 20, "chains": 2, "seed": 1}


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> FitResult:
    release = released(np.arange(12.0) % 5 + 20, [3, 3], 2, 150, **COLUMNS)
    path = tmp_path_factory.mktemp("votes") / "chains.h5"
    return dpmix.fit(NAIVE | {"sampler": SHORT}, release, path, quiet=True, jobs=1)


def test_a_fit_stands_for_its_file(votes: FitResult, tmp_path: Path) -> None:
    assert dpmix.summarize(votes, quiet=True).to_json() == dpmix.summarize(votes.path, quiet=True).to_json()
    assert dpmix.summarize([votes], quiet=True).to_text() == dpmix.summarize(votes, quiet=True).to_text()
    assert dpmix.show(votes).to_text() == dpmix.show(votes.path).to_text()
    rows = dpmix.export(votes, tmp_path / "draws.csv", quiet=True)
    assert rows == dpmix.export(votes.path, tmp_path / "again.csv", quiet=True)
    assert (tmp_path / "draws.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    refused: dict[str, Callable[[Any], Any]] = {  # a release without groups, and draws that hold no records
        "contrast": lambda fit: dpmix.contrast(fit, quiet=True),
        "synthesize": lambda fit: dpmix.synthesize(NAIVE, chains=fit, records=5, quiet=True),
    }
    for verb in refused.values():
        said = []
        for given in (votes, votes.path):
            with pytest.raises(DataError) as error:
                verb(given)
            said.append(str(error.value))
        assert said[0] == said[1]


def test_predictions_are_of_tables_that_python_holds(votes: FitResult, tmp_path: Path) -> None:
    at = {"town": ["no", "yes", None], "other": [1, 2, 3], "age": ["50+", "18", "30"]}
    (tmp_path / "at.csv").write_text("town,other,age\nno,1,50+\nyes,2,18\n,3,30\n")
    exact = dpmix.predict(votes.path, tmp_path / "at.csv", quiet=True)
    for table in (pandas.DataFrame(at), at):
        found = dpmix.predict(votes, table, tmp_path / "p.csv", force=True, quiet=True)
        assert_array_equal(found.values, exact.values)
        assert found.to_json() == exact.to_json()
    with pytest.raises(DpmixError, match="the data given: the cell of column 'town' in record 1"):
        dpmix.predict(votes, pandas.DataFrame(at | {"town": ["perhaps", "yes", "no"]}), quiet=True)


def test_modules_with_public_names_are_there_at_once() -> None:
    code = "import dpmix; dpmix.spec.load_spec, dpmix.errors.DataError, dpmix.results"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)
    assert {"spec", "errors", "results", "fit"} <= set(dir(dpmix))


def test_what_is_no_table_is_an_argument_at_fault() -> None:
    with pytest.raises(UsageError, match="the data given: must be a DataFrame, .* or an array, not int"):
        dpmix.privatize(CURATOR, data=3, quiet=True)


def test_a_release_of_a_table_that_python_holds_can_be_priced() -> None:
    found = dpmix.calibrate(CURATOR, data={"x": [1.0, 2.0, 3.0]}, quiet=True)
    assert found["epsilon"] == pytest.approx(2.0) and found["scale"] == pytest.approx(5.0)


def test_one_part_of_a_tally_is_a_path(tmp_path: Path) -> None:
    path = release_file(tmp_path)
    found, listed = dpmix.tally(str(path), quiet=True), dpmix.tally([path], quiet=True)
    assert found.tally is not None and listed.tally is not None
    assert_array_equal(found.tally.counts, listed.tally.counts)


WRONG: dict[str, Callable[[Any], Any]] = {
    "summarize": lambda wrong: dpmix.summarize(wrong, quiet=True),
    "contrast": lambda wrong: dpmix.contrast(wrong, quiet=True),
    "predict": lambda wrong: dpmix.predict(wrong, "at.csv", quiet=True),
    "synthesize": lambda wrong: dpmix.synthesize(NAIVE, chains=wrong, quiet=True),
    "tally": lambda wrong: dpmix.tally(wrong, quiet=True),
    "export": lambda wrong: dpmix.export(wrong, "x.csv", quiet=True),
    "export, output": lambda wrong: dpmix.export("x.h5", wrong, quiet=True),
    "show": lambda wrong: dpmix.show(wrong),
    "card": lambda wrong: dpmix.card(wrong),
    "fit": lambda wrong: dpmix.fit({"model": {"kind": "mixture"}}, wrong, quiet=True),
    "fit, output": lambda wrong: dpmix.fit(SPEC, small_release(), wrong, quiet=True),
    "summarize, output": lambda wrong: dpmix.summarize("x.h5", wrong, quiet=True),
    "summarize, report": lambda wrong: dpmix.summarize("x.h5", report=wrong, quiet=True),
    "contrast, output": lambda wrong: dpmix.contrast("x.h5", wrong, quiet=True),
    "predict, output": lambda wrong: dpmix.predict("x.h5", "at.csv", wrong, quiet=True),
    "privatize, output": lambda wrong: dpmix.privatize(SPEC, wrong, quiet=True),
    "privatize, ledger": lambda wrong: dpmix.privatize(SPEC, ledger=wrong, quiet=True),
    "synthesize, output": lambda wrong: dpmix.synthesize(SPEC, wrong, quiet=True),
    "synthesize --chains, output": lambda wrong: dpmix.synthesize(NAIVE, wrong, chains="x.h5", quiet=True),
    "tally, output": lambda wrong: dpmix.tally("x.h5", output=wrong, quiet=True),
    "tally, counts": lambda wrong: dpmix.tally((), SPEC, counts=wrong, quiet=True),
    "card, output": lambda wrong: dpmix.card("x.h5", wrong),
    "advise, report": lambda wrong: dpmix.advise(SPEC, report=wrong, quiet=True),
    "sweep, folder": lambda wrong: dpmix.sweep(SPEC, wrong, quiet=True),
}


@pytest.mark.parametrize("verb", WRONG)
@pytest.mark.parametrize("kind", ["number", "bytes", "frame", "list", "release"])
def test_what_is_no_file_is_refused_by_its_type(verb: str, kind: str) -> None:
    values: dict[str, Any] = {
        "number": 3,
        "bytes": b"x.h5",
        "frame": pandas.DataFrame({"x": [1.0]}),
        "list": [1, 2],
        "release": small_release(),
    }
    wrong = values[kind]
    if verb == "fit" and isinstance(wrong, Release):
        return  # which it takes
    with pytest.raises(
        DpmixError, match=r"must be the path of a (file|folder), not (int|bytes|list|DataFrame|Release)$"
    ):
        WRONG[verb](wrong)


ADVISED = SPEC | {"data": {"path": "none.csv", "column": "x", "domain": [0, 10]}}
WHOLE: dict[str, Callable[[Any], Any]] = {
    "--jobs, fit": lambda wrong: dpmix.fit(SPEC, small_release(), jobs=wrong, quiet=True),
    "--chain-id, fit": lambda wrong: dpmix.fit(
        SPEC | {"sampler": SHORT}, small_release(), chain_id=wrong, quiet=True
    ),
    "--jobs, tally": lambda wrong: dpmix.tally("x.h5", jobs=wrong, quiet=True),
    "--jobs, sweep": lambda wrong: dpmix.sweep(SPEC, "folder", jobs=wrong, quiet=True),
    "--threads, sweep": lambda wrong: dpmix.sweep(SPEC, "folder", threads=wrong, quiet=True),
    "--jobs, advise": lambda wrong: dpmix.advise(ADVISED, jobs=wrong, quiet=True),
    "--runs, audit": lambda wrong: dpmix.audit(SPEC, runs=wrong, quiet=True),
}


@pytest.mark.parametrize("verb", WHOLE)
@pytest.mark.parametrize("wrong", ["a", 1.5, [1], True], ids=lambda wrong: type(wrong).__name__)
def test_what_is_no_whole_number_is_refused_by_its_type(verb: str, wrong: Any) -> None:
    name = verb.partition(",")[0]
    with pytest.raises(UsageError, match=rf"^{name}: must be a whole number, not {type(wrong).__name__}$"):
        WHOLE[verb](wrong)


def test_other_numbers_of_the_wrong_type(votes: FitResult) -> None:
    text: Any = "a"
    nothing: Any = None
    with pytest.raises(SpecError, match="^a spec is a mapping, a path or a RunSpec, not NoneType$"):
        dpmix.warmup(nothing, quiet=True)
    with pytest.raises(UsageError, match="^--margin: must be a number, not str$"):
        dpmix.contrast(votes, margin=text, quiet=True)
    with pytest.raises(UsageError, match="^--confidence: must be a number, not str$"):
        dpmix.audit(SPEC, confidence=text, quiet=True)
    for wrong, said in [(text, "a whole number, not str"), (10**12, "from 1 to 100,000,000"), (0, "from 1")]:
        with pytest.raises(UsageError, match=f"^records: .*{said}"):
            dpmix.synthesize(NAIVE, chains=votes, records=wrong, quiet=True)
    given: dict[str, Any] = {"epsilon": 1j, "n": 1j, "mechanism": 3}
    for name, number in given.items():
        with pytest.raises(UsageError, match=f"^--{name}: must be a n.* or a list of n.*, not "):
            dpmix.advise(ADVISED, quiet=True, **{name: number})
    for truth in (True, np.True_, [1.0, True], np.array([True])):
        for name, said in {"epsilon": "positive", "n": "whole"}.items():
            with pytest.raises(
                UsageError, match=f"^--{name}: .*must be a .*{said} number|^--{name}: must be"
            ):
                dpmix.advise(ADVISED, quiet=True, **{name: truth})
    for wrong_seed, kind in ((True, "bool"), (1.5, "float"), ("1", "str")):
        with pytest.raises(UsageError, match=f"^seed: must be a whole number, not {kind}$"):
            dpmix.privatize(SPEC, seed=wrong_seed, quiet=True)  # type: ignore[arg-type]
    for huge in (10**400, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="must be a positive number$"):
            dpmix.advise(ADVISED, epsilon=huge, quiet=True)
    with pytest.raises(UsageError, match="^--mechanism: names none"):
        dpmix.advise(ADVISED, mechanism=[], quiet=True)


@pytest.mark.parametrize("name", ["yes", "no_ledger", "new_ledger", "force"])
def test_text_is_no_truth_value(name: str, tmp_path: Path) -> None:
    """What the environment says of a flag is text, of which "False" is true to Python."""
    table = {"y": np.linspace(0.0, 1.0, 5)}
    spec = {"data": {"columns": ["y"], "domain": [0, 1]}, "mechanism": {"kind": "laplace", "epsilon": 1000}}
    kept = tmp_path / "kept.h5"
    kept.write_bytes(b"kept")
    given: dict[str, Any] = {"yes": True, name: "False"}
    with pytest.raises(UsageError, match=f"^{name}: must be True or False, not str$"):
        dpmix.privatize(spec, kept if name == "force" else None, data=table, quiet=True, **given)
    assert kept.read_bytes() == b"kept"


def test_code_runs_and_public_groups_are_taken_by_a_truth_value_alone(tmp_path: Path) -> None:
    code, values = tmp_path / "code.py", tmp_path / "z.csv"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    values.write_text("z\n1\n2\n")
    spec = {"release": {"path": str(values)}, "model": {"kind": "custom", "file": str(code), "n": 2}}
    with pytest.raises(UsageError, match="^allow_code: must be True or False, not str$"):
        dpmix.fit(spec, output=tmp_path / "c.h5", allow_code="no", quiet=True)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="^public_groups: must be True or False, not str$"):
        dpmix.contrast(["a.h5", "b.h5"], public_groups="False")  # type: ignore[arg-type]
    assert not (tmp_path / "ran").exists()
    for true in (True, np.True_, 1):
        assert truth_of(true, "yes") is True and truth_of(not true, "yes") is False


def test_numbers_of_numpy_are_numbers() -> None:
    given: list[Any] = [np.array([2, 1]), np.int64(2), np.float32(2), pandas.Series([1.0, 2.0])]
    for each in given:
        assert epsilons_of(each)[-1] == 2.0 and records_of(each)[-1] == 2
    assert whole_of(np.int32(3), "n") == 3 and real_of(np.float32(0.5), "x") == 0.5


def test_one_override_is_its_text_alone(votes: FitResult, tmp_path: Path) -> None:
    listed = dpmix.summarize(votes, overrides=["summary.level=0.5"], quiet=True)
    assert dpmix.summarize(votes, overrides="summary.level=0.5", quiet=True).to_json() == listed.to_json()
    own = {"model": SPEC["model"]}
    again = dpmix.fit(own, small_release(), tmp_path / "c.h5", overrides="sampler.iterations=4", quiet=True)
    assert again.draws == 2
    wrong: dict[str, Any] = {"NoneType": None, "int": 3, "dict": {"summary.level": 0.5}, "bytes": b"a=1"}
    for kind, given in wrong.items():
        for verb in (
            lambda given: dpmix.summarize(votes, overrides=given, quiet=True),
            lambda given: dpmix.fit(SPEC, small_release(), overrides=given, quiet=True),
            lambda given: dpmix.privatize(SPEC, overrides=given, quiet=True),
            lambda given: dpmix.sweep({"base": SPEC}, tmp_path / "s", overrides=given, quiet=True),
        ):
            with pytest.raises(SpecError, match=f"^overrides: must be a list of texts .* not {kind}$"):
                verb(given)


def test_names_that_promise_another_format_are_refused(votes: FitResult, tmp_path: Path) -> None:
    page, hdf5 = "a report is an HTML page; .* ends in .html or .htm$", "is an HDF5 file; give it a name"
    said: dict[str, Callable[[], Any]] = {
        f"s.csv: a summary {hdf5}": lambda: dpmix.summarize(votes, tmp_path / "s.csv", quiet=True),
        f"s.html: a comparison {hdf5}": lambda: dpmix.contrast(votes, tmp_path / "s.html", quiet=True),
        f"c.csv: a chains file {hdf5}": lambda: dpmix.fit(
            {"model": SPEC["model"]}, small_release(), tmp_path / "c.csv", quiet=True
        ),
        f"x.png: {page}": lambda: dpmix.summarize(votes, report=tmp_path / "x.png", quiet=True),
        f"x.json: {page}": lambda: dpmix.contrast(votes, report=tmp_path / "x.json", quiet=True),
        f"x.h5: {page}": lambda: dpmix.summarize(votes, report=tmp_path / "x.h5", quiet=True),
    }
    for text, verb in said.items():
        with pytest.raises(UsageError, match=text):
            verb()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("table", [3, [[1.0, 2.0]], np.zeros((2, 2)), b"at.csv"], ids=type)
def test_what_is_no_table_with_names_is_refused(table: Any, votes: FitResult) -> None:
    with pytest.raises(DpmixError, match="(give|must be) a DataFrame"):
        dpmix.predict(votes, table, quiet=True)
