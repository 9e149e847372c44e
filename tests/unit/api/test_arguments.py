"""Verbs take what `fit` returned in the place of its file, and tables where commands take files of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import dpmix
from dpmix.api.fit import FitResult
from dpmix.errors import DataError, DpmixError
from dpmix.release.sanitized import Release
from tests.helpers.fits import release_file, small_release
from tests.unit.models.test_models_naive_bayes import released

pandas = pytest.importorskip("pandas")

COLUMNS: dict[str, Any] = {
    "columns": ["age", "town", "vote"],
    "categories": {"age": ["18", "30", "50+"], "town": ["yes", "no", "missing"], "vote": ["a", "b, or c"]},
}
NAIVE = {"model": {"kind": "naive_bayes"}}
SPEC = {
    "data": {"simulate": "three_gaussians", "n": 20, "seed": 1, "domain": [[-10, 10]]},
    "mechanism": {"kind": "laplace", "epsilon": 1},
    "model": {"kind": "mixture"},
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


@pytest.mark.parametrize("table", [3, [[1.0, 2.0]], np.zeros((2, 2)), b"at.csv"], ids=type)
def test_what_is_no_table_with_names_is_refused(table: Any, votes: FitResult) -> None:
    with pytest.raises(DpmixError, match="give a DataFrame"):
        dpmix.predict(votes, table, quiet=True)
