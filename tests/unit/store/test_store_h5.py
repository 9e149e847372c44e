"""The HDF5 layer: what it writes opens everywhere, appears whole or not at all, and fails in plain words."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import netCDF4
import numpy as np
import pytest
import xarray

from dpmix.errors import DataError, UsageError
from dpmix.store import h5
from dpmix.store.atomic import check_output, publish, write_bytes
from dpmix.store.tree import Node, Variable, read, write_tree

LONG = "é: [1, 2]\n" * 20_000


def _sample(path: Path) -> None:
    with h5.create(path) as root:
        root.set_attrs({"spec": LONG, "private": True, "epsilon": np.nan, "n": 3, "seconds": np.arange(3.0)})
        for i in range(20):
            root.set_attrs({f"extra_{i}": i})
        group = root.group("posterior")
        group.coordinate("chain", [0, 2])
        group.coordinate("draw", 5, attrs={"units": "sweeps"})
        group.coordinate("name", np.array(["médiane", "sd"]))
        clusters = group.dataset("n_clusters", dims=("chain", "draw"), dtype="i4", compression=4)
        means = group.dataset("mean", dims=("chain", "draw", "name"), dtype="f8")
        group.dataset("label", np.array([["a", ""], ["", "größer"]]), ("chain", "name"))
        group.dataset("word", np.array("naïve"))
        group.dataset("flag", np.array([True, False]), ("chain",))
        group.dataset("scalar", 2.5)
        clusters[0, :3] = [4, 5, 6]
        means[1, 1:3] = [[1.0, 2.0], [3.0, 4.0]]


def _everything(path: Path) -> list[h5py.HLObject]:
    found: list[h5py.HLObject] = []
    file = h5py.File(path)
    file.visititems(lambda _, item: found.append(item))
    return [file, *found]


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    _sample(path)
    node = read(path)
    assert node.attrs["spec"] == LONG
    assert (node.attrs["private"], node.attrs["n"]) == (1, 3)
    assert np.isnan(node.attrs["epsilon"])
    np.testing.assert_array_equal(node.attrs["seconds"], np.arange(3.0))
    posterior = node.groups["posterior"]
    assert posterior.variables["n_clusters"].dims == ("chain", "draw")
    np.testing.assert_array_equal(posterior["n_clusters"], [[4, 5, 6, -1, -1], [-1] * 5])
    np.testing.assert_array_equal(posterior["draw"], np.arange(5))
    np.testing.assert_array_equal(posterior["mean"][1, 1:3], [[1.0, 2.0], [3.0, 4.0]])
    assert np.isnan(posterior["mean"][0]).all()
    assert np.isnan(posterior["mean"][1, 3:]).all()
    assert posterior["name"].tolist() == ["médiane", "sd"]
    assert posterior["label"].tolist() == [["a", ""], ["", "größer"]]
    assert posterior["label"].shape == (2, 2)
    assert posterior.variables["label"].dims == ("chain", "name")
    assert posterior["word"] == "naïve"
    assert posterior.variables["word"].dims == ()
    assert set(posterior.variables) == {
        *("chain", "draw", "name"),
        *("n_clusters", "mean", "label", "word", "flag", "scalar"),
    }
    assert posterior["flag"].tolist() == [1, 0]
    assert posterior["scalar"] == 2.5
    assert posterior.variables["draw"].attrs == {"units": "sweeps"}


def test_no_variable_length_data_and_a_scale_on_every_dimension(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    _sample(path)
    for item in _everything(path):
        for name in item.attrs:
            if name not in ("DIMENSION_LIST", "REFERENCE_LIST"):  # HDF5's own, object references
                string = h5py.check_string_dtype(item.attrs.get_id(name).dtype)
                coding = "ascii" if name in ("CLASS", "NAME") else "utf-8"  # HDF5's own are ascii
                assert string is None or (string.encoding, string.length is None) == (coding, False)
                assert h5py.check_vlen_dtype(item.attrs.get_id(name).dtype) is None
        if isinstance(item, h5py.Dataset):
            assert h5py.check_vlen_dtype(item.dtype) is None
            stored = h5py.check_string_dtype(item.dtype)
            assert stored is None or (stored.encoding, stored.length is None) == ("utf-8", False)
            assert item.is_scale or all(len(dim) == 1 for dim in item.dims)


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf", None])
def test_xarray_netcdf_and_arviz_open_it_without_a_warning(tmp_path: Path, engine: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its own refactoring on import
        import arviz
    path = tmp_path / "a.h5"
    _sample(path)
    with xarray.open_datatree(path, engine=engine) as tree:
        assert tree.attrs["spec"] == LONG
        posterior = tree["posterior"]
        assert posterior["n_clusters"].dtype == np.int32
        assert posterior["name"].values.tolist() == ["médiane", "sd"]
        assert posterior["mean"].sel(name="médiane", chain=2, draw=1) == 1.0
        assert posterior["label"].values.tolist() == [["a", ""], ["", "größer"]]
        assert posterior["word"].values == "naïve"
        assert set(posterior.dataset.data_vars) == {"n_clusters", "mean", "flag", "scalar", "label", "word"}
        assert dict(posterior.sizes) == {"chain": 2, "draw": 5, "name": 2}
    with h5netcdf.File(path, "r") as file:
        assert file.attrs["spec"] == LONG
        assert file["posterior"]["mean"].dimensions == ("chain", "draw", "name")
    with netCDF4.Dataset(path) as file:
        assert file["posterior"]["name"][:].tolist() == ["médiane", "sd"]
        assert file["posterior"]["mean"].dimensions == ("chain", "draw", "name")
    data = arviz.from_netcdf(path)
    np.testing.assert_array_equal(data.posterior["chain"], [0, 2])
    assert data.posterior["name"].values.tolist() == ["médiane", "sd"]
    data.close()


def test_strings_of_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "old.h5"
    words = {"long": np.array(["médiane", "sd"]), "one": np.array(["a", "b"]), "single": np.array(["z"])}
    with h5py.File(path, "w") as file:
        for name, strings in words.items():
            data = np.char.encode(strings, "utf-8")
            stored = data.astype(np.dtype(data.dtype, metadata={"h5py_encoding": "utf-8"}))
            scale = file.create_dataset(name, data=stored)
            scale.make_scale(name)
            scale.attrs["_Encoding"] = np.bytes_("utf-8")
            kept = file.create_dataset(f"{name}_kept", data=stored)
            kept.dims[0].attach_scale(scale)
    node = read(path)
    for name, strings in words.items():
        for found in (node.variables[name], node.variables[f"{name}_kept"]):
            assert found.dims == (name,)
            assert found.data.tolist() == strings.tolist()


def test_a_dimension_serves_the_groups_below(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    inner = Node(variables={"x": Variable(("record",), np.arange(4.0))})
    write_tree(path, Node(variables={"record": Variable(("record",), np.arange(4))}, groups={"inner": inner}))
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert dict(tree["inner"]["x"].sizes) == {"record": 4}
    assert read(path).groups["inner"].variables["x"].dims == ("record",)


def test_a_dimension_without_coordinate_or_with_another_length_is_refused(tmp_path: Path) -> None:
    for data, dims, word in ((np.zeros(2), ("draw",), "no coordinate"), (np.zeros(3), ("chain",), "shape")):
        with pytest.raises(ValueError, match=word), h5.create(tmp_path / "a.h5") as root:
            root.coordinate("chain", 2)
            root.dataset("x", data, dims)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", ["", "a\0b", None, [1, "x"], {"a": 1}])
def test_attributes_without_a_place_in_the_file_are_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="bad"), h5.create(tmp_path / "a.h5") as root:
        root.set_attrs({"bad": value})  # type: ignore[dict-item]


def test_an_error_leaves_nothing_and_an_existing_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with pytest.raises(RuntimeError, match="half way"), h5.create(path) as root:
        root.coordinate("x", 10)
        raise RuntimeError("half way")
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"old")
    with pytest.raises(UsageError, match="exists already"), h5.create(path):
        pass
    with pytest.raises(RuntimeError, match="half way"), h5.create(path, force=True) as root:
        raise RuntimeError("half way")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.h5"]
    with h5.create(path, force=True) as root:
        root.coordinate("x", 10)
    assert read(path)["x"].shape == (10,)


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with pytest.raises(UsageError, match="exists already"), h5.create(path) as root:
        root.coordinate("x", 2)
        path.write_bytes(b"somebody else's")
    assert path.read_bytes() == b"somebody else's"
    assert os.listdir(tmp_path) == ["a.h5"]


def test_killed_half_way_nothing_has_the_name(tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    code = f"""
        import time
        from dpmix.store import h5
        with h5.create({str(path)!r}) as root:
            root.coordinate("x", 1000)
            root.flush()
            print("ready", flush=True)
            time.sleep(60)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    process.stdout.close()
    assert not path.exists()


def test_work_survives_a_kill_and_can_be_published(tmp_path: Path) -> None:
    work = tmp_path / "work.h5"
    code = f"""
        import os
        from dpmix.store import h5
        with h5.work({str(work)!r}) as root:
            root.coordinate("draw", 2)
            x = root.dataset("x", dims=("draw",), dtype="f8")
            x[:] = [1.0, 2.0]
            root.flush()
            os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    publish(work, tmp_path / "final.h5")
    assert read(tmp_path / "final.h5")["x"].tolist() == [1.0, 2.0]
    assert os.listdir(tmp_path) == ["final.h5"]


def test_damaged_files_are_named(tmp_path: Path) -> None:
    good = tmp_path / "good.h5"
    _sample(good)
    data = good.read_bytes()
    cases = {
        "text.h5": b"a,b\n1,2\n",
        "empty.h5": b"",
        "short.h5": data[: len(data) // 2],
        "tiny.h5": data[:60],
    }
    for name, content in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=name):
            read(tmp_path / name)
    for name in ("missing.h5", "."):
        with pytest.raises(DataError):
            read(tmp_path / name)
    with h5.reading(good) as root:
        with pytest.raises(DataError, match="good.h5 has no group 'release'"):
            root.group("release")
        with pytest.raises(DataError, match="good.h5 has no dataset '/values'"):
            root["values"]


def test_flipped_bytes_never_escape_as_another_error(tmp_path: Path) -> None:
    good = tmp_path / "good.h5"
    _sample(good)
    data = bytearray(good.read_bytes())
    rng = np.random.default_rng(1)
    for _ in range(60):
        broken = bytearray(data)
        for position in rng.integers(8, min(len(data), 6000), 40):
            broken[position] ^= 0xFF
        (tmp_path / "broken.h5").write_bytes(broken)
        with contextlib.suppress(DataError):
            read(tmp_path / "broken.h5")


def test_outputs_are_checked_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        check_output(tmp_path / "nowhere" / "a.h5")
    with pytest.raises(DataError, match="is a directory"):
        check_output(tmp_path)
    (tmp_path / "link.h5").symlink_to(tmp_path / "target.h5")
    write_bytes(tmp_path / "link.h5", b"x")
    assert (tmp_path / "link.h5").is_symlink()
    assert (tmp_path / "target.h5").read_bytes() == b"x"
    assert sorted(os.listdir(tmp_path)) == ["link.h5", "target.h5"]


def test_text_in_the_place_of_numbers_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["text"], file["one"], file["row"] = np.array([b"a"]), 1.5, np.arange(3)
    with h5.reading(path) as root:
        np.testing.assert_array_equal(root["row"].numbers(slice(1, 3)), [1.0, 2.0])
        with pytest.raises(DataError, match="a.h5 is damaged: its /text does not hold numbers"):
            root["text"].numbers()
        with pytest.raises(DataError, match="a.h5 is damaged or truncated: "):
            root["one"].numbers((0, slice(2)))
