"""Tables from files: what is read, and what is refused, in one sentence that shows no value."""

from __future__ import annotations

import gzip
import re
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

from dpmix.data.missing import Missing
from dpmix.data.tables import count_records, load_mixed, load_table
from dpmix.errors import DataError
from dpmix.spec.table_source import TableFiles
from dpmix.store import h5

SECRET = "8675309"


def table(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1.5,2\n-3,4e1\n",
        "a,b\r\n1.5,2\r\n-3,4e1\r\n",
        "\ufeffa,b\n1.5,2\n-3,40\n\n\n",
        '"a","b"\n"1.5",2\n-3,"40"',
        " a , b \n 1.5 , 2\n -3, 40\n",
    ],
    ids=["plain", "crlf", "bom and blank end", "quoted", "spaces"],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_csv_of_many_hands(tmp_path: Path, content: str, zipped: bool) -> None:
    data = content.encode()
    path = table(tmp_path / f"t.csv{'.gz' * zipped}", gzip.compress(data) if zipped else data)
    values, names = load_table(path, ["b", "a"])
    assert names == ("b", "a")
    np.testing.assert_array_equal(values, [[2.0, 1.5], [40.0, -3.0]])
    assert values.dtype == np.float64


def test_columns_that_are_not_asked_for_may_hold_anything(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 'name,2019\n"Doe, Jane",1\n"Roe ""R"" R",2\n')
    np.testing.assert_array_equal(load_table(path, ["2019"])[0], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("a,b\n", "no records"),
        (f"a,b\n{SECRET},1\n", "1 record; at least 2"),
        (f"a,b\n1,1\n{SECRET}x,2\n", r"column 'a' in record 2 \(line 3\) is not a number"),
        (f"a,b\n1,1\n,{SECRET}\n", r"column 'a' in record 2 \(line 3\) is empty"),
        (f"a,b\n1,1\nnan,{SECRET}\n", r"column 'a' in record 2 \(line 3\) is missing; say in data.missing"),
        (f"a,b\n1,1\n-inf,{SECRET}\n", "column 'a' has no finite number in record 2"),
        (f"a,b\n1,1\nNA,{SECRET}\n", "is missing"),
        ("a,b\n1,1\n8_675_309,2\n", "not a number"),
        (f"a,b\n,1\n,{SECRET}\n", "is empty"),
        (f"a,b\n1,1\n{SECRET}\n", r"record 2 \(line 3\) has 1 cells, but the header has 2"),
        (f"a,b\n1,1\n2,{SECRET},3\n", "has 3 cells"),
        (f"a,b\n1,1\n\n2,{SECRET}\n", r"record 2 \(line 3\) has 1 cells"),
        (f"a,b,a\n1,1,{SECRET}\n2,2,2\n", "2 columns called 'a'"),
        (f"A ,b\n1,{SECRET}\n2,2\n", "no column 'a'; did you mean 'A'"),
        (f"{SECRET}a,person\n1,2\n", "no column 'a' among its 2 columns; .* must be a header"),
        (f"{SECRET}x\n2\n", "no column 'a' in its one column"),
        (f"a;b\n1;{SECRET}\n2;2\n", "not separated by commas"),
        (f"{SECRET},1\n2,2\n", "first line holds numbers, not names"),
        (f'a,b\n1,"{SECRET}\n', "not a well-formed CSV file: line 2: "),
        (f'"a";"b"\n1;{SECRET}\n', "line 1: .* if another mark separates its columns, say it in delimiter"),
        (b"a,b\n1,\xff\xfe\n2,3\n", "UTF-8"),
        (b"a,b\n\x00,1\n2,3\n", "not a number|well-formed"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = table(tmp_path / "t.csv", content)
    with pytest.raises(DataError, match=message) as caught:
        load_table(path, ["a"], least=2)
    said = str(caught.value)
    assert str(path) in said
    assert SECRET not in said.replace(str(path), "")
    assert "\n" not in said
    assert caught.value.__cause__ is None  # a traceback would show the value


def test_of_public_tables_errors_tell_the_columns(tmp_path: Path) -> None:
    for header, message in (("A ,b", "did you mean 'A'"), ("c,b", "no column 'a'; it has 'c', 'b'")):
        path = table(tmp_path / "t.csv", f"{header}\n1,2\n3,4\n")
        with pytest.raises(DataError, match=message):
            load_table(path, ["a"], public=True)
        with pytest.raises(DataError, match=message):
            load_mixed(path, [], ["a"], public=True)


def test_one_column_with_a_blank_line_in_the_middle_is_missing_a_value(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"record 2 \(line 3\) is empty"):
        load_table(table(tmp_path / "t.csv", "a\n1\n\n3\n"), ["a"])


@pytest.mark.parametrize("end", ["\n", "\n\n", "\r\n\r\n"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv"])
def test_one_column_that_ends_in_empty_lines_is_refused_for_its_number_of_records(
    tmp_path: Path, suffix: str, end: str
) -> None:
    """A last record without a value is no other number of records: n is published."""
    for last, line in (("3\n", 4), ("", 3)):
        content = f"a\n1\n{last}{end}".encode()
        path = table(tmp_path / f"t{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
        told = (
            rf"ends in an empty line \(line {line}\); write NA in it if it is a missing value, and remove it"
        )
        for missing in (Missing(), Missing({"a": 2.0})):
            with pytest.raises(DataError, match=told):
                load_table(path, ["a"], missing=missing)
            for columns in ((["a"], []), ([], ["a"])):
                with pytest.raises(DataError, match=told):
                    load_mixed(path, *columns, missing=missing)
        with pytest.raises(DataError, match="; remove it if it is no record$"):
            load_table(path, ["a"], public=True)
    for cell in ("NA", '""', " "):
        path = table(tmp_path / "t.csv", f"a\n1\n3\n{cell}\n")
        assert load_table(path, ["a"], missing=Missing({"a": 2.0}))[0].tolist() == [[1.0], [3.0], [2.0]]


def test_damaged_gzip(tmp_path: Path) -> None:
    good = gzip.compress(b"a\n" + b"1.25\n2.5\n" * 500)
    for content in (b"a\n1\n2\n", good[: len(good) // 2], good[:-20] + bytes(20)):
        with pytest.raises(DataError, match=r"t\.csv\.gz"):
            load_table(table(tmp_path / "t.csv.gz", content), ["a"])


def test_npy(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, np.array([1, 2, 3]))
    values, names = load_table(path, ["y"])
    assert (names, values.dtype, values.shape) == (("y",), np.float64, (3, 1))
    np.save(path, np.arange(6.0).reshape(3, 2))
    assert load_table(path, None)[1] == ("column_1", "column_2")
    with pytest.raises(DataError, match="2 columns, but 1 are named"):
        load_table(path, ["y"])


@pytest.mark.parametrize(
    ("asked", "more"), [("H\u00f6he", ", whose letters are encoded otherwise"), ("H\u00f6hen", "")]
)
def test_names_of_columns_that_read_alike(tmp_path: Path, asked: str, more: str) -> None:
    path = table(tmp_path / "t.csv", "Ho\u0308he\n1\n2\n")
    with pytest.raises(DataError, match=re.escape(f"no column {asked!r}; did you mean 'Ho\u0308he'{more}?")):
        load_table(path, [asked])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.zeros((2, 0)), "has no columns"),
        (np.float64(1.0), "0 dimensions"),
        (np.array(["a", "b"]), "numbers are needed"),
        (np.array([1j, 2j]), "numbers are needed"),
        (np.array([True, False]), "numbers are needed"),
        (np.array([1.0, np.nan]), "no finite number in record 2"),
        (np.array([1.0, np.inf]), "no finite number in record 2"),
        (np.array([]), "no records"),
        (np.array([{"a": 1}, None], dtype=object), "not an npy file of numbers"),
    ],
)
def test_bad_npy(tmp_path: Path, array: np.ndarray, message: str) -> None:
    path = tmp_path / "t.npy"
    np.save(path, array, allow_pickle=True)
    with pytest.raises(DataError, match=message):
        load_table(path, ["y"], least=1)


def test_npy_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, np.arange(100.0))
    for content in (b"", b"1.0,2.0\n", path.read_bytes()[:200], path.read_bytes()[:9]):
        with pytest.raises(DataError, match=r"t\.npy"), warnings.catch_warnings():
            warnings.simplefilter("error")
            load_table(table(path, content), ["y"])


def test_h5(tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    with h5.create(path) as root:
        root.coordinate("record", 3)
        root.dataset("y", np.array([1, 2, 3]), ("record",))
        root.dataset("z", np.array([1.5, 2.5, 3.5]), ("record",))
    np.testing.assert_array_equal(load_table(path, ["z", "y"])[0], [[1.5, 1.0], [2.5, 2.0], [3.5, 3.0]])
    with pytest.raises(DataError, match="no column 'q'"):
        load_table(path, ["q"])
    with h5py.File(path, "w") as file:  # somebody else's file, without dimension scales
        file["y"], file["short"], file["text"] = np.arange(3.0), np.arange(2.0), "abc"
        file["table"] = np.zeros((3, 2))
    assert load_table(path, ["y"])[0].shape == (3, 1)
    for columns in (["y", "short"], ["text"], ["table"]):
        with pytest.raises(DataError, match=re.escape(str(path))):
            load_table(path, columns)
    with pytest.raises(DataError, match=r"t\.h5"):
        load_table(table(path, b"not HDF5"), ["y"])


@pytest.mark.parametrize(
    ("attributes", "dates", "said"),
    [
        ({"scale_factor": np.array([0.1])}, (), "holds packed numbers (scale_factor, add_offset)"),
        ({"add_offset": 5.0}, (), "holds packed numbers"),
        ({"_FillValue": np.int16(-9)}, (), "marks missing values by a number (_FillValue); write NaN"),
        ({"missing_value": np.array([-1, -9])}, (), "marks missing values by a number (missing_value)"),
        (
            {"units": "days since 2000-01-01"},
            ("y",),
            "counts days since 2000-01-01; write",
        ),
        ({"units": "hours since 1970-01-01"}, ("y",), "counts hours since 1970-01-01"),
        ({"units": "hours since 1970-01-01"}, (), None),
        ({"units": "days since 1970-01-01 00:00:00", "_FillValue": np.int16(-7)}, ("y",), None),
        ({"scale_factor": 1.0, "add_offset": 0, "_FillValue": "?", "units": "m"}, ("y",), None),
    ],
)
def test_h5_numbers_that_stand_for_others(
    tmp_path: Path, attributes: dict[str, object], dates: tuple[str, ...], said: str | None
) -> None:
    """What xarray and netCDF pack, mark or count from another day is refused, and not taken as it stands."""
    path = tmp_path / "t.h5"
    with h5py.File(path, "w") as file:
        file["y"] = np.array([10, 20, -9], dtype=np.int16)
        file["y"].attrs.update(attributes)
    source = TableFiles((path,), dates=frozenset(dates))
    if said is None:
        np.testing.assert_array_equal(load_table(source, ["y"])[0], [[10.0], [20.0], [-9.0]])
        return
    with pytest.raises(DataError, match=re.escape(f"{path}: the dataset 'y' {said}")):
        load_table(source, ["y"])
    assert count_records(source, ["y"]) == 3  # whose message would tell that a value is missing


def test_h5_in_single_precision_is_as_it_is_written(tmp_path: Path) -> None:
    """As a Parquet or npy file of the same numbers, which the ledger knows for the same table."""
    with h5py.File(tmp_path / "t.h5", "w") as file:
        file["y"] = np.array([0.1, 0.2], dtype=np.float32)
    np.save(tmp_path / "t.npy", np.array([0.1, 0.2], dtype=np.float32))
    for name in ("t.h5", "t.npy"):
        assert load_table(tmp_path / name, ["y"])[0].tolist() == [[0.1], [0.2]]


def test_a_copy_of_a_file_is_no_part_of_its_table(tmp_path: Path) -> None:
    """Whatever it is called; files of one size that differ at their ends, and empty ones, are none."""
    content = b"y\n" + b"1.5\n" * 40_000
    first, second = table(tmp_path / "a.csv", content), table(tmp_path / "b.csv", content[:-2] + b"6\n")
    assert load_table(TableFiles((first, second)), ["y"])[0].shape == (80_000, 1)
    table(tmp_path / "c.csv", content)
    (tmp_path / "d.csv").symlink_to(second)
    for name, of in (("c.csv", "a.csv"), ("d.csv", "b.csv")):
        words = f"{tmp_path / name} is a copy of {tmp_path / of}, and its records would count twice"
        with pytest.raises(DataError, match=re.escape(words)):
            load_table(TableFiles((first, second, tmp_path / name)), ["y"])
    none = [table(tmp_path / name, b"") for name in ("e.csv", "f.csv")]
    with pytest.raises(DataError, match=r"e\.csv is empty"):
        load_table(TableFiles(tuple(none)), ["y"])


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        load_table(tmp_path / "t.csv", ["a"])
    with pytest.raises(DataError, match="directory"):
        load_table(tmp_path, ["a"])
    with pytest.raises(DataError, match="none of .csv, "):
        load_table(table(tmp_path / "t.xlsx", b"x"), ["a"])
