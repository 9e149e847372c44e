"""Files that are small on the disk and vast in memory are refused before they are read."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dpmix.errors import DataError
from dpmix.limits import MOST_RECORDS
from dpmix.release import Release
from dpmix.store import h5
from dpmix.store.chains_reader import read_chains
from dpmix.store.release import read_release, write_release
from dpmix.store.room import Room
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
        assert 4_000_000 * 8 > 700 * file["zeros"].id.get_storage_size()
    with h5.reading(tmp_path / "same.h5") as root:
        assert not root["zeros"][()].any()
