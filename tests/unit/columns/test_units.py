"""Units of columns: stated in a spec, carried by the release and the chains, never mixed up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dpmix
from dpmix.api.release_of import with_unit
from dpmix.columns.column_units import taken, unit_from_text, unit_of, unit_text, units_in_words
from dpmix.errors import DataError, SpecError
from dpmix.release.card_metadata import card_of, croissant_of
from dpmix.release.release_file import read_release
from dpmix.release.tallies import one_column
from dpmix.spec import load_spec
from dpmix.synthesis.synthetic_table import load_synthetic

LAPLACE = {"kind": "laplace", "epsilon": 2.0}


def spec(unit: Any, **data: Any) -> dict[str, Any]:
    own = {"simulate": "three_gaussians", "n": 20, "seed": 1, "domain": [-10, 10], **data}
    return {"data": own | ({} if unit is None else {"unit": unit}), "mechanism": dict(LAPLACE)}


@pytest.mark.parametrize("unit", ["dollars", {"income": "dollars", "age": "years"}, None, "{odd", "m/s^2"])
def test_attributes_hold_units_and_give_them_back(unit: Any) -> None:
    assert unit_from_text(unit_text(unit)) == unit


def test_units_by_column() -> None:
    both = {"income": "dollars", "age": "years"}
    assert unit_of("dollars", "anything") == "dollars"
    assert (unit_of(both, "age"), unit_of(both, "sex"), unit_of(None, "age")) == ("years", "", "")
    assert unit_of({"income": "dollars"}, "") == "dollars"
    assert taken(both, ["age"]) == {"age": "years"}
    assert taken(both, ["sex"]) is None
    assert units_in_words(both) == "income in dollars, age in years"


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("", r"data\.unit"),
        ("two\nlines", r"data\.unit: must be a short name"),
        ("x" * 41, r"data\.unit: must be a short name"),
        ({"weight": "kg"}, r"data\.unit\.weight: no such column"),
        ({"sex": "m"}, r"data\.unit\.sex: is of numbers"),
    ],
)
def test_units_that_make_no_sense_are_refused(unit: Any, message: str) -> None:
    data = {
        "path": "x.csv",
        "columns": ["income", "sex"],
        "domain": {"income": [0, 1]},
        "categories": {"sex": ["a", "b"]},
        "unit": unit,
    }
    with pytest.raises(SpecError, match=message):
        load_spec({"data": data, "synthesis": {"kind": "perturbed_histogram", "epsilon": 1.0}})


def test_a_release_and_its_file_state_the_unit(tmp_path: Path) -> None:
    release = dpmix.privatize(spec("dollars", column="income"), tmp_path / "r.h5")
    assert release.unit == "dollars"
    assert read_release(tmp_path / "r.h5").unit == "dollars"
    assert dpmix.privatize(spec(None)).unit is None
    assert card_of(release, "r.h5")["release"]["unit"] == "dollars"
    assert croissant_of(release, "r.h5", "0" * 64, 1)["variableMeasured"][0]["unitText"] == "dollars"


def test_units_of_several_columns_go_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    own = {"path": str(tmp_path / "t.csv"), "columns": ["a", "b"], "domain": [[0, 9], [0, 9]]}
    stated = {"data": own | {"unit": {"a": "m", "b": "kg"}}, "mechanism": LAPLACE}
    several = dpmix.privatize(stated, tmp_path / "s.h5")
    assert read_release(tmp_path / "s.h5").unit == {"a": "m", "b": "kg"}
    assert one_column(several, ["a"])[0].unit == {"a": "m"}


def test_the_release_states_its_unit_and_a_spec_does_not_contradict_it() -> None:
    release, bare = dpmix.privatize(spec("dollars")), dpmix.privatize(spec(None))
    mine = load_spec({"release": {"unit": "euros"}, "mechanism": LAPLACE | {"domain": [-10, 10]}})
    with pytest.raises(SpecError, match=r"release\.unit: euros, but the release states dollars"):
        with_unit(release, mine)
    assert with_unit(bare, mine).unit == "euros"
    assert with_unit(bare, load_spec(spec("francs"))).unit == "francs"
    assert with_unit(release, load_spec(spec("francs"))).unit == "dollars"


def test_tallies_of_other_units_are_not_added(tmp_path: Path) -> None:
    for name, unit in (("a", "dollars"), ("b", "euros")):
        dpmix.privatize(spec(unit), tmp_path / f"{name}.h5")
        dpmix.tally([tmp_path / f"{name}.h5"], output=tmp_path / f"{name}t.h5")
    assert read_release(tmp_path / "at.h5", tallies=True).unit == "dollars"
    with pytest.raises(DataError, match="unit"):
        dpmix.tally([tmp_path / "at.h5", tmp_path / "bt.h5"])


def test_synthetic_records_state_the_unit_beside_them(tmp_path: Path) -> None:
    made = spec("dollars", column="income")
    made["synthesis"] = {"kind": "perturbed_histogram", "epsilon": 1.0, "records": 20, "bins": 5}
    del made["mechanism"]
    dpmix.synthesize(made, tmp_path / "s.csv")
    assert json.loads((tmp_path / "s.csv.json").read_text())["unit"] == "dollars"
    found = load_synthetic(tmp_path / "s.csv")
    assert found is not None
    assert found.unit == "dollars"
