"""The section synthesis, what is public of columns, and the discrete model: checked, and named when wrong."""

from __future__ import annotations

from typing import Any

import pytest

from dpmix.spec import load_spec
from tests.helpers.specs import message

PITMAN_YOR = {"kind": "pitman_yor"}
KINDS_OF_BASE = "one of uniform, beta, histogram"
GENERATORS = "one of pitman_yor, dirichlet_multinomial, perturbed_histogram, smoothed_histogram"


@pytest.mark.parametrize(
    ("synthesis", "said"),
    [
        ({"base": {"kind": "gamma"}}, f'base.kind: "gamma" is unknown; {KINDS_OF_BASE}'),
        ({"base": {"x": {"kind": "gamma"}}}, f'base.x.kind: "gamma" is unknown; {KINDS_OF_BASE}'),
        ({"base": {"x": {"a": 1}}}, f"base.x.kind: missing; {KINDS_OF_BASE}"),
        ({"base": {"kind": "beta", "a": 1}}, "base.b: missing"),
        ({"base": {"kind": "histogram", "edges": [0, 1, 1], "weights": [1, 1]}}, "base.edges: must increase"),
        (
            {"base": {"kind": "histogram", "edges": [0, 1], "weights": [1, 1]}},
            "base.weights: has 2 entries for 1 pieces",
        ),
        (
            {"base": {"kind": "histogram", "edges": [0, 1], "weights": [0]}},
            "base.weights: must not all be zero",
        ),
        ({"rivals": [{"kind": "gamma"}]}, f'rivals[0].kind: "gamma" is unknown; {GENERATORS}'),
        ({"rivals": [3]}, "rivals[0]: must be a mapping of keys, not 3"),
        (
            {"rivals": [{"kind": "pitman_yor", "runs": 3}]},
            "rivals.runs: is for the comparison as a whole; give it once, above",
        ),
        ({"snap": {"step": 0}}, "snap.step: 0 must be greater than 0"),
        (
            {"snap": {"x": {"step": 1, "domain": [3, 1]}}},
            "snap.x.domain: [3.0, 1.0] must have its lower bound",
        ),
        ({"concentration": -1}, "concentration: -1 must be greater than 0"),
        (
            {"discount": 0.5, "concentration": -0.5},
            "concentration: -0.5 must be greater than -synthesis.discount (-0.5)",
        ),
        ({"discount": 1}, "discount: 1 must be less than 1"),
        ({"bins": 3}, "bins: is for a negative discount; leave it out"),
        ({"discount": -1, "base": {"kind": "uniform"}}, "base: is for new values, which a negative discount"),
        ({"records": "all"}, 'records: must be auto or a whole number, not "all"'),
        ({"delta": 1}, "delta: 1 must be less than 1"),
    ],
)
def test_mistakes_in_a_synthesis_are_named(synthesis: dict[str, Any], said: str) -> None:
    assert message(source={"synthesis": {**PITMAN_YOR, **synthesis}}).startswith(f"synthesis.{said}")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"domain": {"z": [0, 1]}}, "data.domain.z: no such column; columns names x, y"),
        ({"categories": {"z": ["a", "b"]}}, "data.categories.z: no such column; columns names x, y"),
        ({"categories": ["a", "b"]}, "data.categories: is one list for 2 columns; give {column: [..], ..}"),
        (
            {"domain": {"x": [0, 1]}, "categories": {"x": ["a", "b"]}},
            "data.categories.x: give either domain or categories of a column, not both",
        ),
        ({"categories": {"x": [1, "1"]}}, "data.categories.x: names a category twice"),
        ({"domain": {"x": [1, 0]}}, "data.domain.x: [1.0, 0.0] must have its lower bound below"),
        ({"domain": [[0, 1]]}, "data.domain: has 1 pair of bounds for 2 columns"),
    ],
)
def test_mistakes_in_what_is_public_are_named(data: dict[str, Any], said: str) -> None:
    assert message(source={"data": {"path": "x.csv", "columns": ["x", "y"], **data}}).startswith(said)


def test_bounds_by_name_of_every_column_are_those_in_order() -> None:
    data = {"path": "x.csv", "columns": ["x", "y"], "domain": {"y": [2, 3], "x": [0, 1]}}
    spec = load_spec({"data": data, "mechanism": {"kind": "laplace", "epsilon": 1}})
    assert spec.data is not None
    assert spec.data.pairs == ((0.0, 1.0), (2.0, 3.0))
    assert spec.mechanism is not None
    assert spec.mechanism.domain == spec.data.pairs
    assert load_spec(spec.to_dict()) == spec


def test_a_whole_synthesis_survives_writing() -> None:
    spec = load_spec(
        {
            "data": {
                "path": "x.csv",
                "columns": ["x", "y", "z"],
                "domain": {"x": [0, 1]},
                "categories": {"y": [1, 2]},
            },
            "synthesis": {
                "kind": "pitman_yor",
                "base": {"x": {"kind": "beta", "a": 1, "b": 2}},
                "snap": {"step": 0.5},
                "delta": 0.1,
                "rivals": [{"kind": "perturbed_histogram", "bins": [3]}, {"kind": "smoothed_histogram"}],
            },
            "model": {"kind": "discrete", "tail": {"x": [0.5]}, "base": {"x": {"kind": "uniform"}}},
        }
    )
    assert load_spec(spec.to_dict()) == spec
    assert load_spec(spec, ["synthesis.runs=3"]).synthesis.runs == 3  # type: ignore[union-attr]  # it is there


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"base": {"kind": "nig"}}, f'base.kind: "nig" is unknown; {KINDS_OF_BASE}'),
        ({"base": [0.5]}, "base: [0.5] must have at least 2 entries"),
        ({"concentration": 0}, "concentration: 0 must be greater than 0"),
        ({"discount": 1}, "discount: 1 must be less than 1"),
        ({"tail": []}, "tail: [] must have at least 1 entries"),
    ],
)
def test_mistakes_in_a_discrete_model_are_named(model: dict[str, Any], said: str) -> None:
    assert message(source={"model": {"kind": "discrete", **model}}).startswith(f"model.{said}")
