"""Records are counted without a look at what they hold: by audits, calibrations and dry runs."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmix
from dpmix.api.synthesize import planned
from dpmix.data.tables import count_records
from dpmix.errors import DataError
from dpmix.spec import load_spec
from tests.unit.cli.test_cli import outcome

SMOOTHED = {"kind": "smoothed_histogram", "epsilon": 1.0, "bins": 4, "draws": 4}
CELLS = ["5", "", "many", "1e9", "inf", "NA", '"two\nlines"', "7,8"]


def people(folder: Path) -> dict[str, Any]:
    """Write eight records that no release would take, and return the spec of their column."""
    (folder / "people.csv").write_text("id,income\n" + "\n".join(f"{i},{c}" for i, c in enumerate(CELLS)))
    return {"path": str(folder / "people.csv"), "columns": ["income"], "domain": [[0, 10]]}


@pytest.mark.parametrize("missing", [None, {"income": 5}])
def test_audits_calibrations_and_dry_runs_take_the_number_alone(
    missing: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = people(tmp_path) | {"missing": missing}
    spec = {"data": data, "mechanism": SMOOTHED}
    stated = {"data": data, "mechanism": SMOOTHED | {"n": 8}}
    assert dpmix.calibrate(spec, quiet=True) == dpmix.calibrate(stated, quiet=True)
    assert dpmix.audit(spec, runs=200, quiet=True).stated == 8
    synthesis = {key: value for key, value in SMOOTHED.items() if key != "draws"} | {"records": 4}
    assert planned(load_spec({"data": data, "synthesis": synthesis})).n == 8
    assert capsys.readouterr().err == ""  # nor how many are missing
    with pytest.raises(DataError, match="column 'income' in record"):
        dpmix.privatize(spec, quiet=True)


def test_a_label_that_is_no_category_is_not_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("sex\nF\nM\nX\n")
    (tmp_path / "spec.yaml").write_text(
        "data: {path: people.csv, columns: [sex], categories: {sex: [F, M]}}\n"
        "mechanism: {kind: posterior, prior: [1, 1], epsilon: 1}\n"
    )
    code, out, err = outcome(capsys, "audit", tmp_path / "spec.yaml", "--runs", "200", "--quiet")
    assert code == 0, err
    assert "record 3" not in out + err
    assert outcome(capsys, "calibrate", tmp_path / "spec.yaml")[0] == 0
    code, _, err = outcome(capsys, "privatize", tmp_path / "spec.yaml", "-o", tmp_path / "r.h5", "--yes")
    assert code == 3 and "in record 3" in err


def test_every_table_is_counted_as_it_is_read(tmp_path: Path) -> None:
    data = people(tmp_path)
    text = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "blank.csv").write_text("income\n1\n\n3\n")  # an empty line is a record
    frame = pd.DataFrame({"income": CELLS})
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_feather(tmp_path / "people.feather")
    np.save(tmp_path / "people.npy", np.array([np.nan] * 8))
    for name, count in (("csv", 8), ("csv.gz", 8), ("parquet", 8), ("feather", 8), ("npy", 8)):
        assert count_records(tmp_path / f"people.{name}", ["income"]) == count
    assert count_records(tmp_path / "blank.csv", ["income"]) == 3
    several = load_spec(
        {"data": data | {"path": [data["path"], data["path"] + ".gz"]}, "mechanism": SMOOTHED}
    )
    assert several.data is not None and count_records(several.data.source, None) == 16
    held = load_spec(
        {"data": {key: data[key] for key in ("columns", "domain")}, "mechanism": SMOOTHED}, data=frame
    )
    assert held.data is not None and count_records(held.data.source, ["income"]) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("x\n", "has 0 records"),
        ("x\n1\n", "has 1 record"),
        ("x\n1\n2\n\n", "ends in an empty line"),
    ],
)
def test_what_cannot_be_counted_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        count_records(tmp_path / "people.csv", None)
    with pytest.raises(DataError, match="does not exist"):
        count_records(tmp_path / "others.csv", None)
