"""What a mechanism costs where an analyst's spec states it, with the file of what was released."""

from __future__ import annotations

from typing import Any

import pytest

import dpmix
from dpmix.errors import SpecError

STATISTIC = {"path": "released.csv", "columns": ["value"]}
GROUPED = STATISTIC | {"group": "sex", "categories": {"sex": ["f", "m"]}}
MECHANISMS: dict[str, dict[str, Any]] = {
    "noisy_counts": {"levels": [6], "classes": 2, "n": 5000, "noise": "discrete_gaussian", "rho": 0.5},
    "clamped_moments": {"bounds": [[0, 1], [0, 5], [0, 2]], "n": 500, "epsilon": 2.0},
    "log_moments": {"threshold": 0.01, "components": 3, "n": 500, "epsilon": 2.0},
    "perturbed_histogram": {"bins": 16, "n": 272, "domain": [0, 6], "epsilon": 1.0},
    "smoothed_histogram": {"bins": 16, "draws": 9, "n": 272, "domain": [0, 6], "epsilon": 1.0},
}
BY_DAY = ("clamped_moments", "perturbed_histogram")  # in groups


@pytest.mark.parametrize(
    ("release", "kind"),
    [
        *(pytest.param(STATISTIC, kind, id=f"whole-{kind}") for kind in MECHANISMS),
        *(
            pytest.param(
                GROUPED, kind, id=f"groups-{kind}", marks=() if kind in BY_DAY else pytest.mark.matrix
            )
            for kind in MECHANISMS
        ),
    ],
)
def test_a_column_of_released_numbers_is_none_of_records(kind: str, release: dict[str, Any]) -> None:
    mechanism = MECHANISMS[kind] | {"kind": kind}
    if release is GROUPED and kind == "noisy_counts":
        mechanism = {"kind": kind, "levels": [6], "classes": 2, "n": 5000, "epsilon": 1.0}
    spec = {"mechanism": mechanism, "release": release}
    found = dpmix.calibrate(spec, quiet=True)
    if release is STATISTIC:
        assert found == dpmix.calibrate({"mechanism": mechanism}, quiet=True)
    audited = dpmix.audit(spec, runs=200, quiet=True)
    assert (audited.claim.epsilon, audited.claim.rho) == (found.get("epsilon"), found["rho"])


def test_the_coefficients_of_a_wavelet_are_of_one_column() -> None:
    mechanism = {"kind": "wavelet", "levels": 2, "epsilon": 2.0, "domain": [0, 6]}
    spec = {"mechanism": mechanism, "release": {"path": "w.csv", "columns": [f"c{i}" for i in range(7)]}}
    assert dpmix.calibrate(spec) == dpmix.calibrate({"mechanism": mechanism})


@pytest.mark.parametrize(
    ("columns", "categories"),
    [
        (None, ["a", "b", "c"]),
        (["v"], ["a", "b", "c"]),
        (["v", "w"], {"v": ["a", "b", "c"], "w": ["a", "b"]}),
    ],
)
def test_categories_of_answers_are_those_of_the_release(columns: Any, categories: Any) -> None:
    mechanism = {"kind": "randomized_response", "epsilon": 1.0}
    public = {"path": "answers.csv", "columns": columns, "categories": categories}
    spec = {"mechanism": mechanism, "release": public}
    found = dpmix.calibrate(spec)
    assert found == (
        dpmix.calibrate({"mechanism": mechanism, "data": public | {"columns": columns or ["v"]}})
    )
    assert dpmix.audit(spec, runs=200, quiet=True).claim.epsilon == found["epsilon"]


def test_columns_that_are_released_on_their_own_are_those_of_records() -> None:
    mechanism = {"kind": "laplace", "epsilon": 2.0, "domain": [0, 6]}
    with pytest.raises(SpecError, match=r"mechanism\.domain: 1 pairs of bounds for 2 columns"):
        dpmix.calibrate({"mechanism": mechanism, "release": {"path": "z.csv", "columns": ["v", "w"]}})
    with pytest.raises(SpecError, match=r"data\.categories: missing; .* or in release\.categories"):
        dpmix.calibrate({"mechanism": {"kind": "randomized_response", "epsilon": 1.0}})
