"""Sweeps: what figures are drawn against, what the table holds, and what is told of odd settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmix.errors import SpecError
from dpmix.spec.load import load_spec
from dpmix.spec.sweep_spec import load_sweep
from dpmix.store.tree import read
from dpmix.sweeping.figures import _settings, across, left_out
from dpmix.sweeping.plan import make_plan
from dpmix.sweeping.table import write_hdf5
from tests.unit.sweeping.test_sweep_plan import BASE


def test_epsilon_as_released_is_an_axis_where_it_is_more_than_rounding() -> None:
    rounded = [
        {"name": name, "mechanism.kind": name, "epsilon": epsilon, "data.n": n, "hellinger": 0.1}
        for name, epsilon in (("laplace", 4.999999999999774), ("gaussian", 4.999999999999994))
        for n in (30, 60)
    ]
    assert across(rounded, ["mechanism.kind", "data.n"]) == "data.n"
    scaled: list[dict[str, Any]] = [
        {"mechanism.scale": scale, "epsilon": 20.0 / scale, "data.n": n, "hellinger": 0.1}
        for scale in (1.0, 2.0)
        for n in (30, 60)
    ]
    varied = ["mechanism.scale", "data.n"]
    assert across(scaled, varied) == "epsilon"
    assert list(_settings(scaled, varied, "epsilon")) == ["n 30", "n 60"]
    apart = [row | {"epsilon": row["epsilon"] * (1.0 if row["data.n"] > 30 else 2.0)} for row in scaled]
    assert list(_settings(apart, varied, "epsilon")) == ["n 30", "n 60"]
    assert len(_settings([row | {"epsilon": row["data.n"]} for row in scaled], varied, "epsilon")) == 4


def test_runs_without_a_number_on_the_axis_are_told_of() -> None:
    rows = [{"model.concentration": value, "data.n": 20, "hellinger": 0.1} for value in (0.5, 1, "shape.2")]
    assert across(rows, ["model.concentration"]) == "model.concentration"
    (said,) = left_out(rows, ["model.concentration"])
    assert said.startswith("figures are against model.concentration; 1 of 3 runs have no number there, and")
    both = [row | {"data.n": 20 + place} for place, row in enumerate(rows)]
    assert across(both, ["model.concentration", "data.n"]) == "data.n"


def test_whole_numbers_keep_their_digits(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"seed": 2**53 + 1, "n": 3, "x": 1.5},
        {"seed": 2**62 + 1, "n": None, "x": 2},
    ]
    write_hdf5(tmp_path / "t.h5", rows, {})
    found = read(tmp_path / "t.h5")
    assert found["seed"].tolist() == [2**53 + 1, 2**62 + 1]
    assert np.isnan(found["n"][1]) and found["x"].dtype == np.float64


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ({"base": BASE, "grid": {"sampler.thin": [1, True]}}, "sampler.thin: must be a whole number"),
        (BASE, "base: missing; this is the spec of one run, which that of a sweep names as its base"),
    ],
)
def test_what_is_no_sweep_is_refused_for_what_it_is(contents: Any, expected: str) -> None:
    with pytest.raises(SpecError, match=re.escape(expected)):
        for run in make_plan(load_sweep(contents)).runs:
            run.spec()


def test_null_is_the_default_and_the_spec_of_a_sweep_no_run() -> None:
    plan = make_plan(load_sweep({"base": BASE, "grid": {"sampler.thin": [None, 2]}, "replicates": 1}))
    assert [run.name for run in plan.runs] == ["thin=default_seed=1", "thin=2_seed=1"]
    assert [run.spec().sampler.thin for run in plan.runs] == [1, 2]
    with pytest.raises(SpecError, match="base: this is the spec of a sweep, for `dpmix sweep`"):
        load_spec({"base": BASE})
