"""The release file: round trips, nothing beyond the contract, plain words for files that are none."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray

from dpmix.errors import DataError, UsageError
from dpmix.laws.every import law_of
from dpmix.release.release_file import read_release, write_release
from dpmix.release.sanitized import Release

MECHANISM = {
    "kind": "laplace",
    "scale": [1.0, 0.25],
    "domain": [[1.0, 6.0], [0.0, 1.0]],
    "calibration": "exact",
}
NAMES = {
    "mechanism",
    "epsilon",
    "delta",
    "rho",
    "adjacency",
    "trust",
    "n",
    "private",
    "dpmix_version",
    "created_at",
}


def release(**changes: Any) -> Release:
    made = Release(
        values=np.array([[1.5, -0.0], [2.5e-300, 1e300], [math.pi, 7.0]]),
        columns=("éruptions", "w"),
        mechanism=MECHANISM,
        epsilon=9.0,
        delta=0.0,
        rho=None,
        n=3,
    )
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": None, "delta": None, "rho": 2.5, "simulated": True, "private": False},
        {"mechanism": {"kind": "none"}, "epsilon": math.inf, "private": False},
        {"trust": "global", "columns": ("a" * 300, "b")},
    ],
)
def test_what_is_written_is_read(tmp_path: Path, changes: dict[str, Any]) -> None:
    made = release(**changes)
    write_release(tmp_path / "release.h5", made)
    found = read_release(tmp_path / "release.h5")
    for field in dataclasses.fields(Release):
        if field.name == "values":
            assert found.values.tobytes() == made.values.tobytes()
        else:
            assert getattr(found, field.name) == getattr(made, field.name), field.name


def test_the_layout_is_the_contract_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    write_release(path, release())
    with h5py.File(path) as file:
        assert set(file) == {"release"}
        names = "string10"  # the length of the longest name of a column
        assert set(file["release"]) == {"values", "record", "column", names}
        for place in (file, file["release"]):
            assert set(place.attrs) == NAMES | {"simulated"}
        np.testing.assert_array_equal(file["release/record"], [0, 1, 2])


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_other_readers_open_it_without_a_warning(tmp_path: Path, engine: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ announces its own refactoring on import
        import arviz
    path = tmp_path / "release.h5"
    write_release(path, release())
    with xarray.open_datatree(path, engine=engine) as tree:
        values = tree["release"]["values"].sel(column="w")
        np.testing.assert_array_equal(values, [-0.0, 1e300, 7.0])
        assert tree.attrs["epsilon"] == tree["release"].attrs["epsilon"] == 9.0
        assert math.isnan(tree.attrs["rho"])
    with h5netcdf.File(path, "r") as file:
        assert file["release"]["values"].dimensions == ("record", "column")
    arviz.from_netcdf(path).close()


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "release.h5"
    write_release(path, release())
    with pytest.raises(UsageError, match="exists already"):
        write_release(path, release(epsilon=1.0))
    assert read_release(path).epsilon == 9.0
    write_release(path, release(epsilon=1.0), force=True)
    assert read_release(path).epsilon == 1.0
    assert os.listdir(tmp_path) == ["release.h5"]


def test_a_mechanism_that_json_cannot_hold_writes_nothing(tmp_path: Path) -> None:
    odd = law_of({"kind": "laplace", "scale": [1.0, 1.0], "note": math.nan})
    with pytest.raises(ValueError, match="JSON"):
        write_release(tmp_path / "release.h5", release(mechanism=odd))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("epsilon", None, "epsilon is missing"),
        ("epsilon", "five", "epsilon is missing or not a number"),
        ("epsilon", np.array([1.0, 2.0]), "epsilon is missing or not a number"),
        ("epsilon", -1.0, "out of range"),
        ("delta", 1.0, "out of range"),
        ("rho", -math.inf, "out of range"),
        ("n", 4, "n is not the number of records, 3"),
        ("n", None, "n is not the number of records"),
        ("private", 2, "neither 0 nor 1"),
        ("private", None, "neither 0 nor 1"),
        ("simulated", None, "neither 0 nor 1"),
        ("trust", "blind", "neither local nor global"),
        ("adjacency", "addition", "is none of replacement; replacement, public"),
        ("dpmix_version", None, "dpmix_version is missing"),
        ("created_at", 7, "not text"),
        ("mechanism", None, "mechanism is missing"),
        ("mechanism", "{", "not JSON"),
        ("mechanism", "[]", "does not name its kind"),
        ("mechanism", '{"kind": "laplace"}', "positive noise scale per column"),
        ("mechanism", '{"kind": "laplace", "scale": [1.0, -1.0]}', "positive noise scale per column"),
        ("mechanism", '{"kind": "laplace", "scale": [1.0, true]}', "positive noise scale per column"),
        ("mechanism", '{"kind": "laplace", "scale": [1.0, NaN]}', "positive noise scale per column"),
        ("mechanism", '{"kind": "laplace", "scale": [1.0]}', "1 scales for 2 columns"),
        ("mechanism", '{"kind": "none"}', "adds no noise"),
    ],
)
def test_attributes_are_checked(tmp_path: Path, name: str, value: Any, message: str) -> None:
    path = tmp_path / "release.h5"
    write_release(path, release())
    with h5py.File(path, "r+") as file:
        del file["release"].attrs[name]
        if value is not None:
            file["release"].attrs[name] = value
    with pytest.raises(DataError, match=message) as caught:
        read_release(path)
    assert "release.h5" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([[1.0, np.nan]] * 3), "not finite"),
        (np.array([[1.0, np.inf]] * 3), "not finite"),
        (np.array([1.0, 2.0, 3.0]), "not a table"),
        (np.array([[1, 2]] * 3), "not a table"),
        (np.zeros((0, 2)), "not a table"),
        (np.zeros((3, 3)), "name every column"),
        (np.zeros((4, 2)), "number of records"),
    ],
)
def test_values_are_checked(tmp_path: Path, values: np.ndarray, message: str) -> None:
    path = tmp_path / "release.h5"
    write_release(path, release())
    with h5py.File(path, "r+") as file:
        del file["release/values"]
        written = file["release"].create_dataset("values", data=values)
        for axis, size in enumerate(values.shape):
            scale = file["release"].create_dataset(f"axis{axis}", data=np.arange(size))
            scale.make_scale(f"axis{axis}")
            written.dims[axis].attach_scale(scale)
    with pytest.raises(DataError, match=message):
        read_release(path)


def test_other_files_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1.0
    (tmp_path / "text.h5").write_text("z\n1\n")
    for name in ("other.h5", "text.h5", "missing.h5"):
        with pytest.raises(DataError, match=name):
            read_release(tmp_path / name)
    with h5py.File(tmp_path / "chains.h5", "w") as file:
        file.create_group("posterior")
    with pytest.raises(DataError, match=r"holds chains, not a release; give what `dpmix privatize`, `synth"):
        read_release(tmp_path / "chains.h5")


DOMAIN = [[0.0, 4.0]]
KINDS: dict[str, dict[str, Any]] = {
    "wavelet": {
        "mechanism": {"kind": "wavelet", "levels": 1, "scale": [2.0], "domain": DOMAIN},
        "values": np.array([[1.5, -0.5, 2.0], [0.0, 1.0, -7.0]]),
        "columns": ("x_0_0", "x_1_0", "x_1_1"),
        "n": 2,
    },
    "binomial": {
        "mechanism": {"kind": "binomial", "trials": 6, "weight": 0.5, "scale": [], "domain": DOMAIN},
        "values": np.array([[0.0], [6.0], [3.0]]),
        "columns": ("x",),
        "n": 3,
    },
    "square_wave": {
        "mechanism": {
            "kind": "square_wave",
            "cells": 4,
            "reach": 1,
            "ratio": "5/2",
            "scale": [],
            "domain": DOMAIN * 2,
        },
        "values": np.array([[0.0, 5.0], [3.0, 2.0]]),
        "columns": ("x", "y"),
        "n": 2,
    },
    "smoothed_histogram": {
        "mechanism": {
            "kind": "smoothed_histogram",
            "bins": 4,
            "draws": 2,
            "weight": 0.5,
            "scale": [],
            "domain": DOMAIN,
        },
        "values": np.array([[0.0], [3.9]]),
        "columns": ("x",),
        "n": 100,
        "trust": "global",
    },
    "perturbed_histogram": {
        "mechanism": {
            "kind": "perturbed_histogram",
            "bins": 3,
            "noise": "geometric",
            "scale": [2.0],
            "domain": DOMAIN,
        },
        "values": np.array([[5.0], [-2.0], [9.0]]),
        "columns": ("x",),
        "n": 10,
        "trust": "global",
    },
}


def of_kind(kind: str, **mechanism: Any) -> Release:
    """A release of a kind, with some entries of its mechanism replaced, or taken out where None."""
    changes = KINDS[kind]
    described = {k: v for k, v in (changes["mechanism"] | mechanism).items() if v is not None}
    return release(**(changes | {"mechanism": described}))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_as_it_was_written(kind: str, tmp_path: Path, capsys: Any) -> None:
    made = of_kind(kind)
    write_release(tmp_path / "release.h5", made)
    found = read_release(tmp_path / "release.h5")
    np.testing.assert_array_equal(found.values, made.values)
    for field in dataclasses.fields(Release):
        if field.name != "values":
            assert getattr(found, field.name) == getattr(made, field.name), field.name
    assert capsys.readouterr().err == ""
    tree = xarray.open_datatree(tmp_path / "release.h5", engine="h5netcdf")
    row = {"smoothed_histogram": "draw", "perturbed_histogram": "bin"}.get(kind, "record")
    assert tree["release"]["values"].dims == (row, "column")


def test_a_noisy_count_above_n_is_a_warning(tmp_path: Path, capsys: Any) -> None:
    made = dataclasses.replace(of_kind("perturbed_histogram"), n=8)
    write_release(tmp_path / "release.h5", made)
    assert read_release(tmp_path / "release.h5").n == 8
    said = capsys.readouterr().err
    assert said.startswith("dpmix: warning: ")
    assert "1 of 3 noisy counts is above n = 8" in said


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("wavelet", {"levels": 2}, "values has 3 columns, but a wavelet release of levels 2 has 7"),
        ("wavelet", {"levels": None}, "mechanism does not state its levels, a whole number of at least 0"),
        ("wavelet", {"levels": 1.0}, "does not state its levels"),
        ("wavelet", {"levels": 400}, "more than 24 levels"),
        ("wavelet", {"scale": []}, "does not state one noise scale"),
        ("wavelet", {"domain": [[4.0, 0.0]]}, "does not state one pair of bounds"),
        ("wavelet", {"domain": None}, "does not state one pair of bounds"),
        ("binomial", {"trials": 5}, "is no whole number from 0 to the 5 trials: record 2"),
        ("binomial", {"trials": True}, "does not state its trials"),
        ("binomial", {"weight": 1.0}, "does not state its weight"),
        ("binomial", {"weight": None}, "does not state its weight"),
        ("square_wave", {"cells": 3}, "is no output from 0 to 4 of a square wave: record 1"),
        ("square_wave", {"ratio": "1/2"}, "does not state its ratio as p/q"),
        ("square_wave", {"reach": 2}, "states a reach of half its cells or more"),
        ("square_wave", {"domain": DOMAIN}, "has 1 pairs of bounds for 2 columns"),
        ("smoothed_histogram", {"draws": 3}, "values has 2 draws, but mechanism.draws is 3"),
        ("smoothed_histogram", {"domain": [[1.0, 3.0]]}, "outside [1, 3]: draw 1 (and 1 more)"),
        ("smoothed_histogram", {"bins": 0}, "does not state its bins"),
        ("perturbed_histogram", {"bins": 4}, "values has 3 noisy counts, but mechanism.bins is 4"),
        ("perturbed_histogram", {"noise": "cauchy"}, "does not state its noise, one of laplace, gaussian"),
        ("perturbed_histogram", {"scale": [1.0, 1.0]}, "does not state one noise scale"),
    ],
)
def test_releases_that_contradict_their_mechanism_are_refused(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    made = of_kind(kind)
    write_release(tmp_path / "release.h5", made)
    with h5py.File(tmp_path / "release.h5", "a") as file:
        file["release"].attrs["mechanism"] = json.dumps(made.mechanism.stated() | changes)
    with pytest.raises(DataError) as caught:
        read_release(tmp_path / "release.h5")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'release.h5'} is not a valid release file: ")


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("binomial", {"values": np.array([[0.5], [1.0], [2.0]])}, "no whole number from 0 to the 6"),
        ("binomial", {"values": np.array([[-1.0], [1.0], [2.0]])}, "no whole number from 0 to the 6"),
        (
            "perturbed_histogram",
            {"values": np.array([[0.5], [1.0], [2.0]])},
            "as geometric noise gives: bin 1",
        ),
        ("perturbed_histogram", {"values": np.full((3, 1), np.inf)}, "not finite"),
        ("smoothed_histogram", {"trust": "local", "n": 2}, "trust is local, but a smoothed_histogram is of"),
        ("binomial", {"trust": "global", "n": 4}, "n is not the number of records, 3"),
    ],
)
def test_values_that_contradict_the_mechanism_are_refused(
    kind: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    write_release(tmp_path / "release.h5", dataclasses.replace(of_kind(kind), **changes))
    with pytest.raises(DataError) as caught:
        read_release(tmp_path / "release.h5")
    assert message in str(caught.value)


def test_edges_are_those_of_cells_and_bins() -> None:
    np.testing.assert_array_equal(of_kind("wavelet").mechanism.edges(), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(of_kind("smoothed_histogram").mechanism.edges(), [0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="laplace release has no cells"):
        release().mechanism.edges()
