"""Tables as offices have them: delimiters, decimal commas, encodings, dates, typed files, DataFrames."""

from __future__ import annotations

import datetime
import decimal
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmix
from dpmix.api.confidential import marks_of
from dpmix.data.loading import load_data
from dpmix.data.tables import load_mixed, load_table, load_text
from dpmix.errors import DataError, PrivacyError, SpecError, UsageError
from dpmix.spec import load_spec
from dpmix.spec.days import day_of, day_text
from dpmix.spec.table_source import Dialect, InMemory, TableFiles

SECRET = "8675309"
AGES = [31, 45, 27, 62, 38, 51]
PAID = [1.5, -2.25, 3e4, 0.1, 12.0, 7.75]
TOWNS = ["Köln", "Åre", "Köln", "Ulm", "Ulm", "Åre"]
BORN = ["1990-02-01", "1976-11-30", "2000-02-29", "1959-01-01", "1983-07-04", "1970-01-01"]
SPEC: dict[str, Any] = {
    "data": {
        "columns": ["age", "paid", "born", "town"],
        "domain": {"age": [0, 100], "paid": [-10, 50_000], "born": ["1950-01-01", "2005-12-31"]},
        "categories": {"town": ["Köln", "Ulm", "Åre"]},
    },
    "synthesis": {"kind": "perturbed_histogram", "epsilon": 8, "records": 12, "bins": 3},
}


def rows_of(mark: str = ".") -> list[list[str]]:
    table = zip(AGES, PAID, BORN, TOWNS, strict=True)
    return [[str(age), repr(paid).replace(".", mark), born, town] for age, paid, born, town in table]


def text_of(delimiter: str = ",", mark: str = ".", quote: str = "", end: str = "\n") -> str:
    rows = [["age", "paid", "born", "town"], *rows_of(mark)]
    return "".join(delimiter.join(f"{quote}{cell}{quote}" for cell in row) + end for row in rows)


def columns() -> dict[str, list[Any]]:
    born = [datetime.date.fromisoformat(text) for text in BORN]
    return {"town": TOWNS, "age": AGES, "paid": PAID, "born": born}


def arrow_table() -> Any:
    return pytest.importorskip("pyarrow").table(columns())


def write(path: Path, order: slice = slice(None)) -> Path:
    """Write the table in the format of a name."""
    name = path.name
    if name.endswith(".parquet"):
        import pyarrow.parquet as parquet

        parquet.write_table(arrow_table(), path)
    elif name.endswith((".arrow", ".feather")):
        import pyarrow as arrow

        table = arrow_table()
        opened = arrow.ipc.new_stream if name.startswith("stream") else arrow.ipc.new_file
        with arrow.OSFile(str(path), "wb") as file, opened(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    else:
        lines = text_of("\t" if ".tsv" in name else ",").splitlines(keepends=True)
        content = (lines[0] + "".join(lines[1:][order])).encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def spec_of(path: Any = None, **data: Any) -> dict[str, Any]:
    named = {} if path is None else {"path": str(path) if isinstance(path, Path) else path}
    return {**SPEC, "data": {**SPEC["data"], **named, **data}}


def read(spec: dict[str, Any], data: Any = None) -> Any:
    from dpmix.synthesis.records import load_records

    checked = load_spec(spec, data=data)
    records = load_records(checked)
    return records, marks_of(checked, records)


DIALECTS: dict[str, tuple[bytes, dict[str, str]]] = {
    "comma": (text_of().encode(), {}),
    "bom and crlf": (b"\xef\xbb\xbf" + text_of(end="\r\n").encode(), {}),
    "quoted": (text_of(quote='"').encode(), {}),
    "quoted with a bom": (b"\xef\xbb\xbf" + text_of(quote='"').encode(), {}),
    "spaces before quotes": (text_of(", ", quote='"').encode(), {}),
    "semicolon and comma": (text_of(";", ",").encode(), {"decimal": ","}),
    "stated semicolon": (text_of(";").encode(), {"delimiter": ";"}),
    "bar": (text_of("|", ",").encode(), {"delimiter": "|", "decimal": ","}),
    "tab": (text_of("\t", ",").encode(), {"delimiter": "tab", "decimal": ","}),
    "quoted decimal commas": (text_of(",", ",", '"').encode(), {"delimiter": ",", "decimal": ","}),
    "latin-1": (text_of(";", ",", end="\r\n").encode("latin-1"), {"decimal": ",", "encoding": "latin-1"}),
    "utf-16": (text_of().encode("utf-16"), {"encoding": "utf-16"}),
}


@pytest.mark.parametrize("case", DIALECTS)
def test_one_table_however_it_is_written(case: str, tmp_path: Path) -> None:
    content, keys = DIALECTS[case]
    plain, marks = read(spec_of(write(tmp_path / "plain.csv")))
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    found, own = read(spec_of(path, **keys))
    np.testing.assert_array_equal(found.values, plain.values)
    np.testing.assert_array_equal(found.values[:, 2], [day_of(text) for text in BORN])
    assert own.rows == marks.rows and own.columns == marks.columns
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(content))
    again, packed_marks = read(spec_of(packed, **keys))
    np.testing.assert_array_equal(again.values, plain.values)
    assert packed_marks.file == own.file is not None


NAMES = ["t.tsv", "t.tsv.gz", "t.csv.gz", "t.parquet", "t.feather", "t.arrow", "stream.arrow"]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_the_same_table(name: str, tmp_path: Path) -> None:
    if name.endswith((".parquet", ".arrow", ".feather")):
        pytest.importorskip("pyarrow")
    plain, marks = read(spec_of(write(tmp_path / "plain.csv")))
    found, own = read(spec_of(write(tmp_path / name)))
    np.testing.assert_array_equal(found.values, plain.values)
    assert own.rows == marks.rows and own.columns == marks.columns
    other = write(tmp_path / "other.csv", slice(None, None, -1))
    assert read(spec_of(other))[1].rows == marks.rows  # in another order
    other.write_text(text_of().replace("45", "46"))
    assert read(spec_of(other))[1].rows != marks.rows


def frames() -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    plain = pandas.DataFrame(columns())
    odd = plain.astype({"age": "Int64", "paid": "Float64", "town": "category"})
    odd["born"] = pandas.to_datetime(odd["born"])
    found = {
        "pandas": plain,
        "shuffled": plain.sample(frac=1.0, random_state=3)[["born", "town", "paid", "age"]],
        "nullable": odd,
        "objects": plain.astype(object),
        "text": plain.astype(str),
        "categories of numbers": plain.astype({"age": "category", "born": "category"}),
        "small": plain.astype({"age": np.int8}),
        "decimals": plain.assign(paid=[decimal.Decimal(str(value)) for value in PAID]),
        "mapping": columns(),
        "arrays": {name: np.array(values) for name, values in columns().items()},
        "days": {**columns(), "born": np.array(BORN, dtype="datetime64[D]")},
    }
    with pytest.MonkeyPatch.context():
        try:
            found["arrow"] = arrow_table()
            found["batch"] = arrow_table().to_batches()[0]
            found["pandas of arrow"] = arrow_table().to_pandas(types_mapper=pandas.ArrowDtype)
        except pytest.skip.Exception:
            pass
    return found


def test_what_python_holds_is_the_same_table(tmp_path: Path) -> None:
    plain, marks = read(spec_of(write(tmp_path / "plain.csv")))
    for name, frame in frames().items():
        found, own = read(spec_of(), frame)
        assert (own.rows, own.columns, own.file) == (marks.rows, marks.columns, None), name
        if name != "shuffled":
            np.testing.assert_array_equal(found.values, plain.values, err_msg=name)


def test_single_precision_is_read_as_it_is_written(tmp_path: Path) -> None:
    values = np.array([0.1, 2.7, 1e30, -3.5], dtype=np.float32)
    spec = {"data": {"columns": ["x"], "domain": [0, 9]}, "mechanism": {"kind": "laplace", "epsilon": 1}}
    path = tmp_path / "x.csv"
    path.write_text("x\n0.1\n2.7\n1e+30\n-3.5\n")
    expected = load_data(load_spec({**spec, "data": {**spec["data"], "path": str(path)}})).values
    np.testing.assert_array_equal(load_data(load_spec(spec, data={"x": values})).values, expected)
    np.save(tmp_path / "x.npy", values)
    np.testing.assert_array_equal(load_table(tmp_path / "x.npy", ["x"])[0], expected)


def test_arrays_go_by_order_and_large_integers_are_told_apart_as_labels() -> None:
    spec = {"data": {"domain": [[0, 9], [0, 9]]}, "mechanism": {"kind": "laplace", "epsilon": 1}}
    table = np.array([[1, 2], [3, 4], [5, 6]])
    found = load_data(load_spec(spec, data=table))
    assert found.columns == ("column_1", "column_2")
    np.testing.assert_array_equal(found.values, table)
    records = np.array([(1, 2.5), (3, 4.5)], dtype=[("a", int), ("b", float)])
    (values, names) = load_table(TableFiles.of(InMemory(records)), ["b"])
    assert names == ("b",) and values[:, 0].tolist() == [2.5, 4.5]
    large = [2**53, 2**53 + 1, 2**63]
    held = TableFiles.of(InMemory({"id": large}))
    assert load_text(held, ["id"]) == (tuple(map(str, large)),)
    np.testing.assert_array_equal(load_table(held, ["id"])[0][:, 0], [float(str(n)) for n in large])
    pandas = pytest.importorskip("pandas")
    held = TableFiles.of(InMemory(pandas.DataFrame({"id": pandas.array([*large[:2], None], dtype="Int64")})))
    with pytest.raises(DataError, match="column 'id' in record 3 is empty"):
        load_text(held, ["id"])


def test_missing_values_are_the_same_in_every_format(tmp_path: Path) -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    missing = {"age": 50, "paid": 0, "born": "1970-06-01", "town": "category"}
    lines = text_of().splitlines()
    lines[2:4] = ["NA,,null,nan", "27,NaN,,"]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    plain, marks = read(spec_of(tmp_path / "t.csv", missing=missing))
    assert plain.values[1].tolist() == [50, 0, day_of("1970-06-01"), 3]
    held: dict[str, list[Any]] = {name: list(values) for name, values in columns().items()}
    for name, row in (
        ("age", 1),
        ("paid", 1),
        ("paid", 2),
        ("born", 1),
        ("born", 2),
        ("town", 1),
        ("town", 2),
    ):
        held[name][row] = None
    frame = pandas.DataFrame(held)
    parquet.write_table(arrow.table(held), tmp_path / "t.parquet")
    for data in (held, frame, frame.convert_dtypes(), arrow.table(held), tmp_path / "t.parquet"):
        path = data if isinstance(data, Path) else None
        found, own = read(spec_of(path, missing=missing), None if path else data)
        np.testing.assert_array_equal(found.values, plain.values)
        assert own.rows == marks.rows
        with pytest.raises(DataError, match="data.missing"):
            read(spec_of(path), None if path else data)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    whole, marks = read(spec_of(write(tmp_path / "whole.csv")))
    parts = [tmp_path / "a.csv", tmp_path / "b.tsv"]
    write(parts[0], slice(0, 2))
    write(parts[1], slice(2, None))
    spec = spec_of(["a.csv", "b.tsv"])
    (tmp_path / "s.json").write_text(json.dumps(spec))
    checked = load_spec(tmp_path / "s.json")
    assert checked.data is not None and checked.data.files == tuple(parts)
    assert load_spec(checked.to_dict()) == checked
    found, own = read(spec_of([str(part) for part in parts]))
    np.testing.assert_array_equal(found.values, whole.values)
    assert own.rows == marks.rows and own.file is None and marks.file is not None
    with pytest.raises(UsageError, match="confidential file itself"):
        dpmix.synthesize(spec_of([str(part) for part in parts]), parts[0], force=True)
    with pytest.raises(SpecError, match=r"data\.path: names a file twice"):
        load_spec(spec_of(["a.csv", "./a.csv"]))
    with pytest.raises(SpecError, match=r"data\.path\[1\]: .*known type"):
        load_spec(spec_of(["a.csv", "b.xlsx"]))
    with pytest.raises(DataError, match="c.csv does not exist"):
        read(spec_of([str(parts[0]), str(tmp_path / "c.csv")]))
    parts[1].write_text("age\tpaid\tborn\ttown\n1\t2\tyesterday\tUlm\n")
    with pytest.raises(
        DataError, match=r"b.tsv: the cell of column 'born' in record 1 \(line 2\) is not a date"
    ):
        read(spec_of([str(part) for part in parts]))


def test_the_ledger_knows_a_table_again_in_every_form(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    ledger = tmp_path / "ledger.json"
    path = write(tmp_path / "t.csv")
    frame = pandas.DataFrame(columns())
    dpmix.synthesize(spec_of(path), ledger=ledger, dataset="d", new_ledger=True, yes=True, quiet=True)
    again: dict[str, Any] = {"ledger": ledger, "dataset": "d", "quiet": True}
    few = {"overrides": ["synthesis={kind: dirichlet_multinomial, epsilon: 8, records: 3, bins: 2}"], **again}
    write(tmp_path / "a.csv", slice(0, 3))
    write(tmp_path / "b.csv", slice(3, None))
    several = spec_of([str(tmp_path / "b.csv"), str(tmp_path / "a.csv")])
    dpmix.synthesize(spec_of(), data=frame.iloc[::-1], **few)
    dpmix.synthesize(several, **few)
    before = ledger.read_bytes()
    changed = frame.assign(age=[*AGES[:-1], 52])
    with pytest.raises(PrivacyError, match="another table|other table|not the table|--yes"):
        dpmix.synthesize(spec_of(), data=changed, **few)
    assert ledger.read_bytes() == before


def test_a_dataframe_asks_for_yes_as_a_file_does() -> None:
    spec = {
        "data": {"columns": ["age"], "domain": [0, 100]},
        "mechanism": {"kind": "laplace", "epsilon": 200},
    }
    with pytest.raises(PrivacyError, match="yes"):
        dpmix.privatize(spec, data={"age": AGES})
    release = dpmix.privatize(spec, data={"age": AGES}, yes=True, quiet=True)
    assert release.n == 6 and release.private and not release.simulated
    with pytest.raises(PrivacyError, match="no seed"):
        dpmix.privatize(spec, data={"age": AGES}, seed=1)
    with pytest.raises(SpecError, match=r"data\.simulate: stands beside the data given"):
        dpmix.privatize({**spec, "data": {"simulate": "three_gaussians", "n": 9}}, data={"age": AGES})
    with pytest.raises(SpecError, match=r"data\.columns: missing; name the columns of the data given"):
        dpmix.privatize({"mechanism": {**spec["mechanism"], "domain": [0, 1]}}, data={"age": AGES})
    with pytest.raises(SpecError, match=r"data\.path: missing"):
        dpmix.privatize(spec)


def test_a_table_in_python_takes_the_place_of_the_file(tmp_path: Path) -> None:
    spec = spec_of(tmp_path / "not there.csv", delimiter=";", decimal=",")
    found, _ = read(spec, columns())
    assert found.n == 6
    for text in (str(load_spec(spec, data=columns())), load_spec(spec, data=columns()).to_yaml()):
        assert "30000" not in text and "not there" not in text


def test_synthetic_dates_are_dates_and_are_read_back(tmp_path: Path) -> None:
    output = tmp_path / "s.csv"
    release = dpmix.synthesize(spec_of(), output, data=columns(), yes=True, quiet=True)
    lines = [line.split(",") for line in output.read_text().splitlines()[1:]]
    for row, days in zip(lines, release.values[:, 2], strict=True):
        assert "1950-01-01" <= row[2] <= "2005-12-31"
        assert abs(float(day_of(row[2]) or 0.0) - days) <= 0.5
    from dpmix.synthesis.synthetic_table import load_synthetic

    again = load_synthetic(output)
    assert again is not None
    np.testing.assert_array_equal(again.values[:, 2], np.rint(release.values[:, 2]))
    assert again.mechanism.stated()["columns"][2]["date"] is True


def test_dates_of_a_resolved_spec_are_text_to_any_reader_of_yaml() -> None:
    import yaml

    spec = load_spec({**spec_of("t.csv", missing={"born": datetime.date(1970, 1, 1)})})
    assert spec.data is not None and spec.data.dates == {"born"}
    loose = yaml.safe_load(spec.to_yaml())
    assert loose["data"]["domain"]["born"] == ["1950-01-01", "2005-12-31"]
    assert loose["data"]["missing"] == {"born": "1970-01-01"}
    assert json.loads(json.dumps(loose)) == spec.to_dict() and load_spec(loose) == spec
    assert spec.from_yaml(spec.to_yaml()) == spec


def test_days_against_the_calendar() -> None:
    first = datetime.date(1890, 1, 1)
    for gone in range(0, 60_000, 7):
        date = first + datetime.timedelta(days=gone)
        days = day_of(date.isoformat())
        assert days == date.toordinal() - datetime.date(1970, 1, 1).toordinal()
        assert day_text(days) == date.isoformat() == f"{days}" == f"{days:g}"
    assert day_of("1970-01-02 12:00") == 1.5 == day_of("1970-01-02T12:00:00.000000001")
    for text in (
        "2023-02-29",
        "20230228",
        "2023-2-8",
        "1.1.2023",
        "2023-01-01Z",
        "2023-01-01 00:00+02:00",
        "1",
    ):
        assert day_of(text) is None
    assert type(day_of("2020-01-01") + 1) is float  # type: ignore[operator]


CELLS = [
    ({}, "1,234.5", "thousands separator"),
    ({}, "1,234", "has a comma"),
    ({}, "1,5", "has a comma"),
    ({}, "1 234", "thousands separator"),
    ({}, "1'234.50", "thousands separator"),
    ({}, "1.234.567", "thousands separator"),
    ({"decimal": ","}, "1.234,5", "thousands separator"),
    ({"decimal": ","}, "1.234", "has a point"),
    ({"decimal": ","}, "1.5", "has a point"),
    ({"decimal": ","}, "1 234,5", "thousands separator"),
    ({"decimal": ","}, "1,2,3", "is not a number"),
    ({}, "$5", "is not a number$"),
    ({}, "2024-02-29", "is not a number but written as a date; columns of dates have public bounds"),
    ({}, "5 %", "is not a number$"),
    ({}, "--", "is not a number$"),
]


@pytest.mark.parametrize(("keys", "cell", "why"), CELLS)
def test_cells_that_are_no_numbers_are_refused_by_what_they_are(
    keys: dict[str, str], cell: str, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'x|y\n1|2\n"{cell}"|3\n', encoding="utf-8")
    source = TableFiles.of(path, Dialect("|", **keys))
    with pytest.raises(DataError, match=why) as caught:
        load_table(source, ["x"])
    assert "record 2 (line 3)" in str(caught.value) and f"{cell} " not in str(caught.value)


def test_dates_that_are_none_are_refused(tmp_path: Path) -> None:
    spec = {"columns": ["d"], "domain": ["2020-01-01", "2024-12-31"]}
    mechanism = {"kind": "laplace", "epsilon": 1}
    path = tmp_path / "t.csv"
    for cell, why in (
        ("20200101", "is not a date"),
        ("18262", "is not a date"),
        ("01.02.2020", "is not a date"),
        ("2020-02-30", "is not a date"),
        ("2020-01-01T00:00:00+02:00", "has a time zone"),
        ("2020-01-01 00:00:00Z", "has a time zone"),
        ("", "is empty; say in data.missing"),
    ):
        path.write_text(f"d,e\n2020-01-01,1\n{cell},1\n")
        with pytest.raises(DataError, match=why):
            load_data(load_spec({"data": {**spec, "path": str(path)}, "mechanism": mechanism}))
    np.save(tmp_path / "d.npy", np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"))
    found = load_data(load_spec({"data": {**spec, "path": str(tmp_path / "d.npy")}, "mechanism": mechanism}))
    assert found.values[:, 0].tolist() == [18262, 18628]
    np.save(tmp_path / "d.npy", np.array([18262.0, 18628.0]))
    with pytest.raises(DataError, match="holds numbers, and the public bounds of d are dates"):
        load_data(load_spec({"data": {**spec, "path": str(tmp_path / "d.npy")}, "mechanism": mechanism}))
    with pytest.raises(DataError, match="holds numbers, and its public bounds are dates"):
        load_data(load_spec({"data": spec, "mechanism": mechanism}, data={"d": np.array([1, 2])}))
    pandas = pytest.importorskip("pandas")
    zoned = pandas.DataFrame(
        {"d": pandas.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Berlin")}
    )
    for data in (zoned, zoned.astype(object)):
        with pytest.raises(DataError, match="time zone"):
            load_data(load_spec({"data": spec, "mechanism": mechanism}, data=data))
    dates = {"d": [datetime.date(2020, 1, 1)] * 2}
    numeric = {"columns": ["d"], "domain": [0, 1]}
    for data, why in (
        (dates, "is not a number"),
        (pandas.DataFrame(dates).astype("datetime64[s]"), "as dates"),
    ):
        with pytest.raises(DataError, match=why):
            load_data(load_spec({"data": numeric, "mechanism": mechanism}, data=data))


def test_objects_that_are_no_tables() -> None:
    pandas = pytest.importorskip("pandas")
    twice = pandas.DataFrame([[1, 2, 3]] * 2, columns=["a", "b", "a"])
    cases: list[tuple[Any, str]] = [
        (twice, "2 columns called 'a'"),
        ({"a": [1, 2], "b": [1]}, "different lengths"),
        ({"a": [True, False]}, "truth value"),
        ({"a": np.array([True, False])}, "truth values"),
        ({"a": [[1], [2]]}, "lists or mappings"),
        ({"a": [object(), 1]}, "values of the type object"),
        ({"a": [1j, 2j]}, "values of the type complex"),
        ({"a": "12"}, "is no list or array"),
        ({"a": {0: 1.5, 1: 2.5}}, "is no list or array"),  # as to_dict of pandas gives, by rows' names
        ({"a": {1.5, 2.5}}, "is no list or array"),  # without order, and each value once
        (np.ma.array([[1.0], [2.0]], mask=[[0], [1]]), "record 2 is empty"),
        ({"a": np.zeros((2, 2))}, "2 dimensions"),
        ({"A": [1, 2]}, "did you mean 'A'"),
        ({"ab": [int(SECRET), 2]}, "no column 'a'; did you mean 'ab'"),
        ({"a": [f"{SECRET}x", "1"]}, "column 'a' in record 1 is not a number"),
        ({"a": [1, None]}, "record 2 is empty"),
        ({"a": [1.0, float("inf")]}, "no finite number in record 2"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.zeros((2, 0)), "has no columns"),
        ([[1.0], [2.0, 3.0]], "rows of different lengths"),
        (7, "the data given: must be a DataFrame, .* not int"),
        ("t.csv", "must be a DataFrame, .* not str"),
    ]
    for table, why in cases:
        kind = UsageError if "must be" in why else DataError
        with pytest.raises(kind, match=why) as caught:
            load_table(TableFiles.of(InMemory(table)), ["a", "b"] if "different" in why else ["a"])
        assert SECRET not in str(caught.value)


def test_a_reader_of_batches_is_read_as_often_as_a_table() -> None:
    """Numbers and groups are read apart."""
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"y": [1.0, 2.0, 3.0], "sex": ["F", "M", "F"]})
    reader = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    data = {"columns": ["y"], "domain": [0, 5], "categories": {"sex": ["F", "M"]}, "group": "sex"}
    spec = {"data": data, "mechanism": {"kind": "perturbed_histogram", "bins": 2, "epsilon": 1}}
    found = load_data(load_spec(spec, data=reader)).values
    assert found.tolist() == [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]


def test_objects_in_single_precision_are_as_they_are_written() -> None:
    values = np.array([0.1, 2.5], dtype=np.float32)
    for column in (values, list(values)):
        assert load_table(TableFiles.of(InMemory({"a": column})), ["a"])[0].tolist() == [[0.1], [2.5]]


def test_a_wrong_column_is_guessed_where_the_header_is_one(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"Income,town\n{SECRET},Ulm\n5,Köln\n")
    with pytest.raises(DataError, match=r"no column 'incme'; did you mean 'Income'\?"):
        load_table(path, ["incme"])
    with pytest.raises(DataError, match=r"no column 'Town'; did you mean 'town'\?"):
        load_text(path, ["Town"])
    with pytest.raises(DataError, match="no column 'twon' among its 2 columns"):
        load_text(path, ["twon"])  # for all that is known the first line is a record


SPECS = [
    ({"delimiter": ";;"}, r"data\.delimiter: must be one character"),
    ({"delimiter": "a"}, r"data\.delimiter: must be one character"),
    ({"delimiter": '"'}, r"data\.delimiter: must be one character"),
    ({"decimal": ";"}, r"data\.decimal: "),
    ({"encoding": "latin-99"}, r'data\.encoding: "latin-99" is no encoding'),
    ({"encoding": "base64"}, r"data\.encoding: .* no encoding"),
    ({"path": "t.parquet", "delimiter": ";"}, r"data\.delimiter: is for text .*t.parquet is not"),
    ({"path": ["t.csv", "t.npy"], "decimal": ","}, r"data\.decimal: is for text .*t.npy is not"),
    ({"path": []}, r"data\.path: "),
    ({"domain": {"born": ["2020-01-01", 5]}}, "has a date and a number"),
    ({"domain": {"born": ["2021-01-01", "2020-01-01"]}}, "must have its lower bound below"),
    ({"domain": {"born": ["2021-13-01", "2022-01-01"]}}, "must be a number or a date"),
    ({"missing": {"born": 3}}, r"data\.missing\.born: must be a date"),
    (
        {"missing": {"born": "1949-12-31"}},
        r"data\.missing\.born: 1949-12-31 is outside the bounds \[1950-01-01,",
    ),
]


@pytest.mark.parametrize(("keys", "why"), SPECS)
def test_specs_that_are_refused(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(SpecError, match=why):
        load_spec(spec_of(**{"path": "t.csv", **keys}))


def test_text_is_for_real_data_and_for_releases(tmp_path: Path) -> None:
    simulated = {"simulate": "three_gaussians", "n": 9, "decimal": ","}
    with pytest.raises(SpecError, match=r"data\.decimal: is for a table in a file of text"):
        load_spec({"data": simulated, "mechanism": {"kind": "none"}})
    (tmp_path / "n.csv").write_bytes("Größe;x\n1,5;\xe9\n-2,25;b\n".encode("latin-1"))
    keys = {"column": "Größe", "decimal": ",", "encoding": "latin-1"}
    stated = {"release": {"path": str(tmp_path / "n.csv"), **keys}}
    with pytest.raises(SpecError, match=r"release\.decimal: is for a table in a file of text"):
        load_spec({"release": {"columns": ["x"], "decimal": ","}})
    from dpmix.api.release_of import load_stated_release

    mechanism = {"kind": "laplace", "epsilon": 1, "domain": [0, 2]}
    assert load_stated_release(load_spec({**stated, "mechanism": mechanism})).values.tolist() == [
        [1.5],
        [-2.25],
    ]
    stated["release"].pop("encoding")
    with pytest.raises(DataError, match="is not a text file in UTF-8; say its encoding"):
        load_stated_release(load_spec({**stated, "mechanism": mechanism}))


def test_damaged_typed_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    for suffix, size in itertools.product(("parquet", "arrow", "feather"), (0, 5, 100, 700)):
        path = write(tmp_path / f"t.{suffix}")
        path.write_bytes(path.read_bytes()[:size])
        with pytest.raises(DataError, match=f"t.{suffix} is damaged, or no {suffix} file"):
            load_table(path, ["age"])
    path = write(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"has no column 'aeg'; did you mean 'age'\?"):
        load_table(path, ["aeg"])
    numbers, texts = load_mixed(path, ["paid", "age"], ["town"])
    assert list(numbers) == ["paid", "age"] and texts["town"] == tuple(TOWNS)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"read by the package pyarrow \(pip install 'dpmix\[tables\]'\)"):
        load_table(path, ["age"])


def test_a_small_file_does_not_unpack_to_a_large_table(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(arrow.table({"x": np.zeros(4_000_000)}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="unpacks to more than"):
        load_table(tmp_path / "t.parquet", ["x"])
