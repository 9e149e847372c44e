"""Releases in several files, and tables to predict from in other dialects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmix.api.predict import dialect_of, read_pieces, table_source
from dpmix.api.release_of import find_release
from dpmix.columns.column_units import Categories
from dpmix.errors import DataError, SpecError, UsageError
from dpmix.models.predictor_base import Input
from dpmix.spec import load_spec
from tests.helpers.shown_files import called

MECHANISM = {"kind": "laplace", "scale": 1.0, "domain": [-3, 3]}


def spec_of(folder: Path, *names: str, **more: Any) -> dict[str, Any]:
    return {"release": {"path": [str(folder / name) for name in names], **more}, "mechanism": MECHANISM}


def test_several_files_are_one_release(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n")
    (tmp_path / "b.csv").write_text("x\n3\n")
    found = find_release(load_spec(spec_of(tmp_path, "a.csv", "b.csv")), None)[0]
    assert found.values[:, 0].tolist() == [1.0, 2.0, 3.0] and found.n == 3
    one = load_spec(spec_of(tmp_path, "a.csv"))
    assert one.release is not None and one.release.path == tmp_path / "a.csv"
    again = load_spec(load_spec(spec_of(tmp_path, "a.csv", "b.csv")).to_dict())
    assert again.release is not None and len(again.release.files) == 2


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    for text, words in (
        ("x,z\n1,2\n", r"b.csv has other columns \(has 'z', lacks 'y'\) than .*a.csv"),
        ("y,x\n1,2\n", "b.csv has its columns in another order"),
        ("x\n1\n", r"b.csv has other columns \(lacks 'y'\)"),
    ):
        (tmp_path / "b.csv").write_text(text)
        spec = spec_of(tmp_path, "a.csv", "b.csv")
        spec["mechanism"] = {"kind": "laplace", "epsilon": 4.0, "domain": [[-3, 3], [-3, 3]]}
        with pytest.raises(DataError, match=words):
            find_release(load_spec(spec), None)
    (tmp_path / "b.csv").write_text("z\n1\n")
    with pytest.raises(DataError, match="b.csv.*'x'"):
        find_release(load_spec(spec_of(tmp_path, "a.csv", "b.csv", columns=["x"])), None)
    with pytest.raises(SpecError, match="twice"):
        load_spec(spec_of(tmp_path, "a.csv", "a.csv"))


def test_the_command_looks_for_every_file(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "s.yaml").write_text(
        "release: {path: [a.csv, gone.csv]}\nmechanism: {kind: laplace, scale: 1.0, domain: [-3, 3]}\n"
        "model: {kind: mixture}\n"
    )
    code, _, err = called(capsys, "fit", tmp_path / "s.yaml", "-o", tmp_path / "c.h5", "--dry-run")
    assert code == 3 and "gone.csv: no such file" in err
    assert "a.csv" in called(capsys, "validate", tmp_path / "s.yaml")[1]


INPUTS = (
    Input("age"),
    Input("town", Categories(["a", "b"])),
    Input("day", None, None, True),
)


def pieces_of(path: Path, **dialect: Any) -> list[list[float]]:
    found: list[list[float]] = []
    source = table_source(
        path, dialect_of(*(dialect.get(key) for key in ("delimiter", "decimal", "encoding")))
    )
    read_pieces(source, INPUTS, lambda rows, first: found.extend(rows.tolist()))
    return found


WANTED = [[1.5, 1.0, 18628.0], [2.0, 0.0, 18628.5]]


def test_records_to_predict_in_every_dialect(tmp_path: Path) -> None:
    plain = "age,town,day\n1.5,b,2021-01-01\n2,a,2021-01-01 12:00\n"
    (tmp_path / "t.csv").write_text(plain)
    assert pieces_of(tmp_path / "t.csv") == WANTED
    (tmp_path / "t.tsv").write_text(plain.replace(",", "\t"))
    assert pieces_of(tmp_path / "t.tsv") == WANTED
    comma = plain.replace(",", ";").replace("1.5", "1,5")
    (tmp_path / "c.csv").write_text(comma)
    assert pieces_of(tmp_path / "c.csv", decimal=",") == WANTED
    (tmp_path / "bar.csv").write_text(comma.replace(";", "|"), encoding="utf-16")
    assert pieces_of(tmp_path / "bar.csv", decimal=",", delimiter="|", encoding="utf-16") == WANTED
    with pytest.raises(DataError, match="has a comma, and the decimal mark is '.'; say --decimal"):
        pieces_of(tmp_path / "c.csv", delimiter=";")
    with pytest.raises(DataError, match=r"'day' in record 1 \(line 2\) is not a date"):
        (tmp_path / "n.csv").write_text("age,town,day\n1,a,18628\n")
        pieces_of(tmp_path / "n.csv")


def test_records_to_predict_in_typed_files(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "age": [1.5, 2.0],
        "town": ["b", "a"],
        "day": arrow.array([18628 * 86_400_000, 18628 * 86_400_000 + 43_200_000], arrow.timestamp("ms")),
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    assert pieces_of(tmp_path / "t.parquet") == WANTED
    with pytest.raises(UsageError, match="t.parquet is none"):
        pieces_of(tmp_path / "t.parquet", decimal=",")


def test_dialects_that_are_none() -> None:
    for key, value in (("delimiter", "ab"), ("decimal", ";"), ("encoding", "klingon")):
        with pytest.raises(UsageError, match=f"--{key}"):
            dialect_of(**{"delimiter": None, "decimal": None, "encoding": None, key: value})
    assert np.isfinite(WANTED).all()


ANSWERS = {"kind": "randomized_response", "epsilon": 2.0}


def answers(path: Any, **more: Any) -> dict[str, Any]:
    return {"release": {"path": path, **more}, "mechanism": ANSWERS}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_released_categories_are_labels_or_codes(tmp_path: Path, form: str) -> None:
    labels, codes = {"u": list("acab"), "v": ["1", "1", "0", "1"]}, [[0, 1], [2, 1], [0, 0], [1, 1]]
    columns, categories = ["u", "v"], {"u": ["a", "b", "c"], "v": [0, 1]}
    table = str(tmp_path / f"z.{form}")
    if form == "csv":
        rows = zip(*labels.values(), strict=True)
        Path(table).write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in rows))
    else:
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").table(labels), table
        )
    spec = load_spec(answers(table, columns=columns, categories=categories))
    found = find_release(spec, None)[0]
    assert found.values.tolist() == codes and found.columns == ("u", "v")
    assert found.labels == (("a", "b", "c"), ("0", "1"))
    (tmp_path / "c.csv").write_text("u,v\n" + "".join(f"{a},{b}\n" for a, b in codes))
    same = find_release(
        load_spec(answers(str(tmp_path / "c.csv"), columns=columns, categories=categories)), None
    )[0]
    assert same.values.tolist() == codes and same.labels == found.labels


def test_numbers_that_are_no_codes_are_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", np.array([1990.0, 2000.0, 1990.0]))
    spec = load_spec(answers(str(tmp_path / "z.npy"), columns=["u"], categories={"u": [1990, 2000]}))
    assert find_release(spec, None)[0].values[:, 0].tolist() == [0.0, 1.0, 0.0]


def test_a_category_called_as_a_missing_value_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("u\nNA\na\n")
    spec = load_spec(answers(str(tmp_path / "z.csv"), columns=["u"], categories={"u": ["a", "NA"]}))
    assert find_release(spec, None)[0].values[:, 0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (
            "u\na\nq\n",
            {"columns": ["u"], "categories": {"u": ["a", "b"]}},
            r"'u' has a cell in record 2 .*a, b, or codes from 0",
        ),
        (
            "u\na\n2\n",
            {"columns": ["u"], "categories": {"u": ["a", "b"]}},
            "'u' has a cell in record 2 .*codes from 0 to 1",
        ),
        (
            "u\na\n1\n",
            {"columns": ["u"], "categories": {"u": [1, 2, "a"]}},
            r"numbers \(1, 2, a\).*give codes from 0 to 2",
        ),
        ("u\n1\n2\n", {"columns": ["u"], "categories": [1, 2]}, r"numbers \(1, 2\).*give codes from 0 to 1"),
        ("u\na\nb\n", {"categories": ["a", "b"]}, "labels are read of columns that release.columns names"),
        (
            "u\n1\n2\n",
            {"columns": ["u"], "categories": {"u": ["a", "b"]}},
            "'u' has a cell in record 2 .*a, b, or codes from 0 to 1",
        ),
    ],
)
def test_cells_that_are_no_category_are_named(tmp_path: Path, text: str, more: Any, words: str) -> None:
    (tmp_path / "z.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        find_release(load_spec(answers(str(tmp_path / "z.csv"), **more)), None)
