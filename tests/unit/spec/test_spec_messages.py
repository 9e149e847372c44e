"""A mistake in a spec is one sentence that names key and what would be right, unions of types included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmix.errors import DpmixError
from dpmix.spec.run_spec import check_spec

DATA: dict[str, Any] = {"path": "d.csv", "column": "x", "domain": [0, 1]}


def said(contents: dict[str, Any]) -> list[str]:
    with pytest.raises(DpmixError) as caught:
        check_spec(contents, Path())
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("contents", "line"),
    [
        ({"sampler": {"width": "wide"}}, 'sampler.width: must be a number or auto, not "wide"'),
        ({"sampler": {"width": -1}}, "sampler.width: -1 must be greater than 0"),
        (
            {"mechanism": {"kind": "square_wave", "epsilon": 1, "width": "broad"}},
            'mechanism.width: must be a number or auto, not "broad"',
        ),
        (
            {"mechanism": {"kind": "square_wave", "epsilon": 1, "width": -1}},
            "mechanism.width: -1 must be at least 0",
        ),
        ({"data": {**DATA, "domain": 5}}, "data.domain: must be a pair [lo, hi] or a list of pairs, not 5"),
        (
            {"data": {**DATA, "domain": [0, "b"]}},
            'data.domain[1]: must be a number or a date such as 2024-12-31, not "b"',
        ),
        ({"data": {**DATA, "domain": {"x": 3}}}, "data.domain.x: must be a list, not 3"),
        ({"data": {**DATA, "path": 5}}, "data.path: must be the path of a file, not 5"),
        ({"data": {**DATA, "categories": "yes"}}, 'data.categories: must be a list, not "yes"'),
        (
            {"data": {"path": "d.csv", "column": "x", "categories": [True, "b"]}},
            "data.categories[0]: must be text or a number, not true; quote it, as the data have it",
        ),
        (
            {"data": {**DATA, "types": "integer"}},
            'data.types: must be by name of column, as in {age: integer, income: {digits: 2}}, not "integer"',
        ),
        (
            {"data": {**DATA, "types": {"x": 2}}},
            "data.types.x: must be integer, category or digits such as {digits: 2}, not 2",
        ),
        (
            {"data": {**DATA, "types": {"x": "float"}}},
            'data.types.x: must be integer, category or digits such as {digits: 2}, not "float"',
        ),
        ({"mechanism": "laplace"}, 'mechanism: must be a mapping of keys, not "laplace"'),
        ({"model": {"kind": "mixture", "concentration": {"shape": 1}}}, "model.concentration.rate: missing"),
        ({"model": {"base": {"mu0": "x"}}}, 'model.base.mu0: must be a number, not "x"'),
        (
            {"model": {"base": {"empirical": "maybe"}}},
            'model.base.empirical: must be true, false or paper, not "maybe"',
        ),
        (
            {"model": {"kind": "dirichlet", "prior": "p9"}},
            'model.prior: "p9" is unknown; one of p2, p3, p4, p5',
        ),
        ({"summary": {"grid": [0, 1]}}, "summary.grid: must be [lo, hi, points], not [0, 1]"),
        (
            {"synthesis": {"kind": "pitman_yor", "delta": 0.01, "records": "lots"}},
            'synthesis.records: must be auto or a whole number, not "lots"',
        ),
    ],
)
def test_a_mistake_is_one_sentence(contents: dict[str, Any], line: str) -> None:
    assert said(contents) == [line]


def test_two_mistakes_are_two() -> None:
    found = said({"sampler": {"width": "wide", "chains": 0}})
    assert len(found) == 2 and "sampler.chains: 0 must be at least 1" in found


@pytest.mark.parametrize("table", [pd.DataFrame({"x": [8675309.0]}), np.array([[8675309.0]])])
@pytest.mark.parametrize("key", ["path", "columns", "domain", "missing", "part", "group", "unit", ""])
def test_a_table_in_the_place_of_a_key_is_not_shown(table: Any, key: str) -> None:
    """Confidential records that are handed over in a wrong place are named by their type."""
    lines = said({"data": {**DATA, key: table} if key else table})
    assert len(lines) == 1 and "8675309" not in lines[0]
    assert f"not an object of the type {type(table).__name__}" in lines[0] or key == "unit"


def test_entries_that_are_wrong_are_not_said_to_be_missing() -> None:
    lines = said({"data": {**DATA, "path": [5, 6]}})
    assert lines == [f"data.path[{i}]: must be the path of a file, not {5 + i}" for i in range(2)]
