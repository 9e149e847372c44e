"""Files that are small on the disk and vast in memory are refused before they are read."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpmix.data import tables, text_tables, typed_tables
from dpmix.data import text_tables as unpacking
from dpmix.data.tables import load_table, load_text
from dpmix.errors import DataError
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release
from dpmix.run.chains_reader import read_chains
from dpmix.spec.limits import MOST_RECORDS
from dpmix.store import h5
from dpmix.store.h5 import Room
from dpmix.store.tree import read

FEW = 1 << 20  # bytes of memory to refuse a file in; numbers below are many times more


def made(path: Path, **changes: Any) -> Path:
    """Write a small release, with datasets of it made anew."""
    mechanism = {"kind": "laplace", "scale": [1.0], "domain": [[0.0, 10.0]], "calibration": "exact"}
    values = np.array([[1.5], [2.0], [3.0]])
    write_release(path, Release(values, ("x",), mechanism, epsilon=10.0, delta=0.0, rho=None, n=3))
    with h5py.File(path, "r+") as file:
        for name, options in changes.items():
            del file["release"][name]
            file["release"].create_dataset(name, **options)
    return path


def never_written(n: int) -> dict[str, Any]:
    return {"shape": (n, 1), "dtype": "f8", "chunks": (1 << 16, 1), "fillvalue": 1.0}


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (MOST_RECORDS, "/release/values has 100,000,000 values, more than its 0 bytes in this file of"),
        (MOST_RECORDS + 1, "values has 100,000,001 records; at most 100,000,000 are read"),
        (10**12, "at most 100,000,000 are read"),
    ],
)
def test_values_that_were_never_written_are_refused(tmp_path: Path, n: int, message: str) -> None:
    path = made(tmp_path / "bomb.h5", values=never_written(n))
    tracemalloc.start()
    with pytest.raises(DataError, match=message) as caught:
        read_release(path)
    assert tracemalloc.get_traced_memory()[1] < FEW
    tracemalloc.stop()
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_coordinates_of_a_release_are_not_read(tmp_path: Path) -> None:
    path = made(tmp_path / "r.h5", record={"shape": (MOST_RECORDS,), "dtype": "i8", "chunks": (1 << 16,)})
    assert read_release(path).values.shape == (3, 1)


def test_whatever_file_is_read_has_room_for_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "chains.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"spec": "{}", "mechanism": '{"kind": "none"}', "dpmix_version": "0", "seed": 1})
        file.create_dataset("posterior/n_clusters", shape=(1, 10**9), dtype="i4", chunks=(1, 4096))
    with pytest.raises(DataError, match=r"/posterior/n_clusters has 1,000,000,000 values, more than"):
        read_chains([path])
    with h5.reading(path) as root, pytest.raises(DataError, match="more than its 0 bytes"):
        root.group("posterior")["n_clusters"][0, :10]


def test_small_datasets_together_are_no_way_around(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "many.h5", "w", libver="v108") as file:
        for number in range(40):
            file.create_dataset(f"d{number}", shape=(1 << 20,), dtype="f8", chunks=(1 << 20,)).make_scale()
    with pytest.raises(DataError, match="more than its 0 bytes in this file of"):
        read(tmp_path / "many.h5")


def test_chunks_that_share_a_place_do_not_count_twice() -> None:
    class Raw:
        name, shape, dtype = "/x", (10**8,), np.dtype("f8")

        class id:  # noqa: N801 - as h5py has it
            @staticmethod
            def get_storage_size() -> int:
                return 10**9

    Room("ok.h5", 10**7).check(Raw, True)
    with pytest.raises(DataError, match="10,000 bytes in this file of 10,000 can hold"):
        Room("bad.h5", 10**4).check(Raw, True)


def test_values_of_varying_length_are_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "r.h5", column={"data": ["x"], "dtype": h5py.string_dtype()})
    with pytest.raises(DataError, match="has values of varying length in /release/column"):
        read_release(path)


def test_what_compresses_best_is_read(tmp_path: Path) -> None:
    with h5.create(tmp_path / "same.h5") as root:
        root.coordinate("x", 4_000_000)
        root.dataset("zeros", np.zeros(4_000_000), ("x",), compression=9)
    with h5py.File(tmp_path / "same.h5") as file:
        assert 700 * file["zeros"].id.get_storage_size() < 4_000_000 * 8
    with h5.reading(tmp_path / "same.h5") as root:
        assert not root["zeros"][()].any()


def packed(path: Path, text: bytes, times: int) -> Path:
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b"z\n")
        for _ in range(times):
            file.write(text)
    return path


@pytest.mark.parametrize("columns", [["z"], None], ids=["named", "all"])
@pytest.mark.parametrize("text", [b"1\n", b"1", b","], ids=["records", "digits", "cells"])
def test_packed_tables_are_unpacked_as_far_as_is_plausible(
    tmp_path: Path, text: bytes, columns: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ROOM_OF_TEXT", 1 << 18)
    path = packed(tmp_path / "bomb.csv.gz", text * (1 << 16), 128)
    with pytest.raises(
        DataError, match=r"bomb.csv.gz unpacks to more than 100 times its size, .*; unpack it"
    ):
        load_table(path, columns)
    with pytest.raises(DataError, match="unpacks to more than 100 times its size"):
        load_text(path, ["z"])


def test_packed_tables_of_numbers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "ROOM_OF_TEXT", 0)
    values = np.random.default_rng(1).integers(0, 2, 50_000)
    text = "".join(f"{value}\n" for value in values).encode()
    assert np.array_equal(load_table(packed(tmp_path / "t.csv.gz", text, 1), ["z"])[0][:, 0], values)


def test_there_are_at_most_so_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tables, text_tables, typed_tables):
        monkeypatch.setattr(module, "MOST_RECORDS", 3)
        monkeypatch.setattr(module, "MOST_VALUES", 6)
    message = r"has more than (3|2) records of \d columns?, the most that are read"
    for name, rows, width in (("long", 4, 1), ("wide", 3, 3)):
        values = np.ones((rows, width))
        columns = [f"x{i}" for i in range(width)]
        np.save(tmp_path / f"{name}.npy", values)
        lines = [columns, *([["1"] * width] * rows)]
        (tmp_path / f"{name}.csv").write_text("".join(",".join(line) + "\n" for line in lines))
        with h5.create(tmp_path / f"{name}.h5") as root:
            root.coordinate("record", rows)
            for column in columns:
                root.dataset(column, np.ones(rows), ("record",))
        for suffix in ("npy", "csv", "h5"):
            with pytest.raises(DataError, match=f"{name}.{suffix} {message}"):
                load_table(tmp_path / f"{name}.{suffix}", columns)
        with pytest.raises(DataError, match=message):
            load_text(tmp_path / f"{name}.csv", columns)
    np.save(tmp_path / "fine.npy", np.ones((3, 2)))
    assert load_table(tmp_path / "fine.npy", None)[0].shape == (3, 2)


def test_a_header_that_states_more_than_the_file_has_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    with path.open("wb") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(file, head)
    with pytest.raises(DataError, match=r"t.npy has more than 100,000,000 records of 1 column, the most"):
        load_table(path, None)
