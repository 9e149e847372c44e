"""Missing values: what stands for them, what is refused, and what the curator alone is told."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import yaml

import dpmix
from dpmix.api.calibrate import calibrate
from dpmix.cli import commands
from dpmix.data.loading import load_data
from dpmix.errors import DataError, SpecError
from dpmix.release.release_file import read_release
from dpmix.run import exit_codes
from dpmix.spec import load_spec
from dpmix.synthesis.records import load_records

LAPLACE: dict[str, Any] = {"kind": "laplace", "epsilon": 1.0}
INCOMES = [1200.0, np.nan, 300.0, np.nan, 5000.0]
SECRET = "1200"
ADVICE = "say in data.missing what stands for it, as in {income: value}; dropping records is not free"


def write(folder: Path, suffix: str, marks: tuple[str, str] = ("", "NA")) -> Path:
    """Write the incomes, two of which are missing."""
    path = folder / f"people{suffix}"
    own = iter(marks)
    rows = [next(own) if np.isnan(x) else f"{x:g}" for x in INCOMES]
    text = "id,income\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows))
    if suffix == ".csv":
        path.write_text(text)
    elif suffix == ".csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif suffix == ".npy":
        np.save(path, np.array(INCOMES))
    else:
        with h5py.File(path, "w") as file:
            file["income"] = np.array(INCOMES)
    return path


def people(path: Path, missing: Any = None, **more: Any) -> dict[str, Any]:
    """Return a spec of the incomes."""
    data: dict[str, Any] = {"path": str(path), "columns": ["income"], "domain": [[0, 4000]]}
    if missing is not None:
        data["missing"] = missing
    return {"data": data | more, "mechanism": LAPLACE}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".npy", ".h5"])
@pytest.mark.parametrize("marks", [("", "NA"), ("NaN", "nan"), (" null ", "  ")])
def test_a_public_number_stands_for_missing_ones(
    suffix: str, marks: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, suffix, marks)
    data = load_data(load_spec(people(path, {"income": 700})))
    assert data.values[:, 0].tolist() == [1200.0, 700.0, 300.0, 700.0, 5000.0]
    assert capsys.readouterr().err == "dpmix: note: 2 missing values of income taken as 700\n"
    with pytest.raises(DataError) as caught:
        load_data(load_spec(people(path)))
    said = str(caught.value)
    assert ADVICE in said and "Remove" not in said and "remove" not in said and SECRET not in said
    assert ("record 2 (line 3)" if "csv" in suffix else "in record 2 (and 1 more)") in said


def test_nothing_else_is_missing(tmp_path: Path) -> None:
    for mark in ("N/A", "None", "NULL", "NAN", "na", "?", "-", "+nan"):
        path = write(tmp_path, ".csv", ("700", mark))
        with pytest.raises(DataError, match=r"column 'income' in record 4 \(line 5\) is not a number"):
            load_data(load_spec(people(path, {"income": 700})))
    for row in ("inf", "-inf"):
        with pytest.raises(DataError, match=r"no finite number in record 4$"):
            load_data(load_spec(people(write(tmp_path, ".csv", ("700", row)), {"income": 700})))


SEXES = "sex,country\nF,NA\nM,fr\n,de\nNA,fr\nF,\n"


def labels(folder: Path, missing: Any = None, **categories: Any) -> dict[str, Any]:
    """Return a spec of a posterior of the column sex, or of synthesis."""
    path = folder / "labels.csv"
    path.write_text(SEXES)
    columns = list(categories)
    data = {"path": str(path), "columns": columns, "categories": categories}
    return {"data": data if missing is None else data | {"missing": missing}}


POSTERIOR = {"kind": "posterior", "epsilon": 1.0, "method": "geometric"}


def test_missing_labels_are_a_category_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = labels(tmp_path, {"sex": "category"}, sex=["F", "M"])
    spec = load_spec(given | {"mechanism": POSTERIOR | {"prior": [1, 1, 1]}})
    assert spec.data is not None and spec.data.categories_of(0) == ("F", "M", "missing")
    assert load_spec(spec.to_dict()) == spec  # once added, it is not added again
    assert load_data(spec).values[:, 0].tolist() == [0, 1, 2, 2, 0]
    assert capsys.readouterr().err == "dpmix: note: 2 missing values of sex taken as the category missing\n"
    with pytest.raises(SpecError, match=r"^mechanism.prior: has 2 entries, but data.categories lists 3"):
        load_spec(given | {"mechanism": POSTERIOR | {"prior": [1, 1]}})
    one = {"data": given["data"] | {"categories": ["F", "M"]}}
    short = load_spec(one | {"mechanism": POSTERIOR | {"prior": [1, 1, 1]}})
    assert short.data is not None and short.data.categories == ("F", "M", "missing")
    stated = load_spec(
        labels(tmp_path, {"sex": "M"}, sex=["F", "M"]) | {"mechanism": POSTERIOR | {"prior": [1, 1]}}
    )
    assert load_data(stated).values[:, 0].tolist() == [0, 1, 1, 1, 0]
    with pytest.raises(DataError, match=r"column 'sex' in record 3 \(line 4\) is empty; say in data.missing"):
        load_data(load_spec(labels(tmp_path, sex=["F", "M"]) | {"mechanism": POSTERIOR | {"prior": [1, 1]}}))


def test_levels_and_classes_count_the_category(tmp_path: Path) -> None:
    given = labels(tmp_path, {"sex": "category", "country": "category"}, sex=["F", "M"], country=["fr", "de"])
    counts = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [3], "classes": 3}
    found = load_data(load_spec(given | {"mechanism": counts}))
    assert found.values.tolist() == [[0, 2], [1, 0], [2, 1], [2, 0], [0, 2]]
    with pytest.raises(SpecError, match=r"^mechanism\.levels"):
        calibrate(given | {"mechanism": counts | {"levels": [2]}})
    (tmp_path / "codes.csv").write_text("u,y\n1,2\n,1\nNA,2\n")
    whole = {"path": str(tmp_path / "codes.csv"), "columns": ["u", "y"], "missing": {"u": 2}}
    codes = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2], "classes": 2}
    assert load_data(load_spec({"data": whole, "mechanism": codes})).values[:, 0].tolist() == [0, 1, 1]


def test_a_listed_category_is_that_category(tmp_path: Path) -> None:
    # Namibia is NA
    given = labels(tmp_path, country=["NA", "fr", "de"])
    path = tmp_path / "labels.csv"
    path.write_text("country\nNA\nfr\nde\nnull\n")
    prior = {"mechanism": POSTERIOR | {"prior": [1, 1, 1]}}
    with pytest.raises(
        DataError, match=r"record 4 \(line 5\) is missing; say in data.missing what stands for it"
    ):
        load_data(load_spec(given | prior))
    path.write_text("country\nNA\nfr\nde\nfr\n")
    assert load_data(load_spec(given | prior)).values[:, 0].tolist() == [0, 1, 2, 1]
    with pytest.raises(
        SpecError, match="^data.categories.country: NA reads as a missing value, which data.missing"
    ):
        load_spec(labels(tmp_path, {"country": "category"}, country=["NA", "fr"]))


def test_synthesis_takes_categories_numbers_and_free_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mixed.csv"
    path.write_text("age,sex,word\n30,F,a\n,NA,NA\n50,,b\n")
    data = {
        "path": str(path), "columns": ["age", "sex", "word"], "domain": {"age": [0, 100]},
        "categories": {"sex": ["F", "M"]}, "missing": {"age": 40, "sex": "category", "word": "category"},
    }  # fmt: skip
    spec = {"data": data, "synthesis": {"kind": "pitman_yor", "delta": 0.5, "records": 2}}
    records = load_records(load_spec(spec))
    assert records.values[:, :2].tolist() == [[30, 0], [40, 2], [50, 2]]
    names = records.labels[2]
    assert names is not None and [names[int(code)] for code in records.values[:, 2]] == ["a", "missing", "b"]
    assert "1 missing value of word taken as the category missing" in capsys.readouterr().err
    named = {**spec, "data": data | {"missing": {"age": 40, "sex": "F", "word": "NA"}}}
    assert load_records(load_spec(named)).labels[2] == ("NA", "a", "b")
    without = {**spec, "data": data | {"missing": {"age": 40, "sex": "F"}}}
    with pytest.raises(
        DataError, match=r"column 'word' in record 2 \(line 3\) is missing; say in data.missing"
    ):
        load_records(load_spec(without))
    release = dpmix.synthesize(spec, tmp_path / "out.csv", quiet=True)
    assert release.mechanism["columns"][1]["categories"] == ["F", "M", "missing"]


def test_a_composition_is_replaced_as_a_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "shares.csv"
    path.write_text("a,b,c\n0.2,0.3,0.5\n0.9,,\n0.1,0.1,0.8\n")
    moments = {"kind": "log_moments", "epsilon": 1.0, "threshold": 0.1}
    data = {"path": str(path), "columns": ["a", "b", "c"], "missing": {"a": 0.25, "b": 0.25, "c": 0.5}}
    found = load_data(load_spec({"data": data, "mechanism": moments}))
    assert found.values.tolist() == [[0.2, 0.3, 0.5], [0.25, 0.25, 0.5], [0.1, 0.1, 0.8]]
    assert capsys.readouterr().err == "dpmix: note: 1 incomplete record is taken as data.missing says\n"
    groups = {"group": "sex", "categories": {"sex": ["F", "M"]}, "missing": {"sex": "category"}}
    load_spec({"data": data | groups, "mechanism": moments})  # of the group alone
    for wrong in ({"a": 0.2}, {"a": 0.5, "b": 0.5, "c": 0.5}, {"a": 1.5, "b": -0.5, "c": 0.0}):
        with pytest.raises(SpecError, match="^data.missing: for log_moments must give a whole composition"):
            load_spec({"data": data | {"missing": wrong}, "mechanism": moments})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no such column": ({"missing": {"age": 3}}, "data.missing.age: no such column; the columns are income"),
    "outside": (
        {"missing": {"income": 4001}},
        r"data.missing.income: 4001 is outside the bounds \[0, 4000\]",
    ),
    "text": (
        {"missing": {"income": "much"}},
        "data.missing.income: must be a number within the bounds of income",
    ),
    "category": (
        {"missing": {"income": "category"}},
        "data.missing.income: must be a number within the bounds",
    ),
    "truth": (
        {"missing": {"income": True}},
        "data.missing.income: must be text or a number, not true; quote",
    ),
    "no mapping": (
        {"missing": 3},
        r"data.missing: must be by name of column, as in \{income: 0, sex: category\}, not 3",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_public_is_refused(what: str, tmp_path: Path) -> None:
    more, said = REFUSED[what]
    with pytest.raises(SpecError, match=f"^{said}"):
        load_spec(people(tmp_path / "people.csv", **more))


def test_more_that_is_refused(tmp_path: Path) -> None:
    free = people(tmp_path / "people.csv", {"income": 9}, domain=None)
    with pytest.raises(SpecError, match=r"^data.missing.income: 9 is outside the bounds \[0, 5\]"):
        load_spec(free | {"mechanism": LAPLACE | {"domain": [[0, 5]]}})
    with pytest.raises(SpecError, match=r"^data.missing.sex: \"X\" is none of data.categories"):
        load_spec(labels(tmp_path, {"sex": "X"}, sex=["F", "M"]))
    with pytest.raises(
        SpecError, match="^data.categories.sex: names missing, which data.missing adds as the last"
    ):
        load_spec(labels(tmp_path, {"sex": "category"}, sex=["missing", "F"]))
    with pytest.raises(SpecError, match="^data.missing: is for data.path only"):
        load_spec({"data": {"simulate": "three_betas", "n": 5, "missing": {"value": 1}}})
    with pytest.raises(SpecError, match=r"^data.missing.u: 3 is outside the bounds \[1, 2\] of u"):
        counts = {"kind": "noisy_counts", "epsilon": 1.0, "levels": [2], "classes": 2}
        load_spec(
            {"data": {"path": "c.csv", "columns": ["u", "y"], "missing": {"u": 3}}, "mechanism": counts}
        )


def test_a_missing_group_is_a_group(tmp_path: Path) -> None:
    data = {
        "path": "c.csv", "columns": ["y"], "group": "sex", "categories": {"sex": ["F", "M"]},
        "missing": {"sex": "category"},
    }  # fmt: skip
    spec = load_spec({"data": data})
    assert spec.data is not None and spec.data.groups == ("F", "M", "missing")
    assert load_spec(spec.to_dict()) == spec


def test_what_is_released_does_not_tell_of_missing_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, ".csv")
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(people(Path("people.csv"), {"income": 700})))
    assert (
        exit_codes.run(commands.app, ["privatize", str(tmp_path / "s.yaml"), "-o", str(tmp_path / "r.h5")])
        == 0
    )
    said = capsys.readouterr()
    assert "dpmix: note: 2 missing values of income taken as 700" in said.err and "missing" not in said.out
    assert read_release(tmp_path / "r.h5").n == 5
    assert b"missing" not in (tmp_path / "r.h5").read_bytes()
    given = [
        "privatize",
        str(tmp_path / "s.yaml"),
        "-o",
        str(tmp_path / "q.h5"),
        "--set",
        "data.missing=null",
    ]
    assert exit_codes.run(commands.app, given) == 3
    assert ADVICE in capsys.readouterr().err
    assert not (tmp_path / "q.h5").exists()


def test_one_missing_value_changes_one_record_and_never_their_number(tmp_path: Path) -> None:
    spec = load_spec(people(tmp_path / "people.csv", {"income": 700}))
    whole = ["5", "6", "7", "8"]
    (tmp_path / "people.csv").write_text("income\n" + "\n".join(whole) + "\n")
    before = load_data(spec).values
    for i in range(len(whole)):
        rows = [*whole[:i], "NA", *whole[i + 1 :]]
        (tmp_path / "people.csv").write_text("income\n" + "\n".join(rows) + "\n")
        after = load_data(spec).values
        assert after.shape == before.shape and np.flatnonzero(after != before).tolist() == [i]
