"""What the columns of the data are called, by releases of dpmix and of other programs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dpmix.laws.every import law_of
from dpmix.mechanisms.curators.by_kind import from_spec, stated
from dpmix.spec import load_spec
from dpmix.summary.row_labels import data_columns
from dpmix.summary.subject import Subject


def section(**keys: Any) -> Any:
    return load_spec({"mechanism": keys}).mechanism


HISTOGRAM = {"kind": "perturbed_histogram", "bins": 16, "n": 272, "domain": [0, 6], "scale": 1.0}
ELSEWHERE = [
    HISTOGRAM,
    {"kind": "noisy_counts", "levels": [6], "classes": 2, "n": 5000, "scale": 9.35},
    {"kind": "clamped_moments", "bounds": [[0, 1], [0, 5]], "n": 500, "epsilon": 2.0},
]


@pytest.mark.parametrize("keys", ELSEWHERE, ids=lambda keys: keys["kind"])
def test_the_header_of_released_counts_is_no_name_of_the_data(keys: dict[str, Any]) -> None:
    law, _ = stated(section(**keys), 1, 272)
    assert data_columns(SimpleNamespace(mechanism=law, columns=("count",))) == ()


def test_columns_of_records_keep_their_names() -> None:
    local, _ = stated(section(kind="laplace", scale=1.0), 2)
    assert data_columns(SimpleNamespace(mechanism=local, columns=("age", "income"))) == ("age", "income")
    own = law_of(from_spec(section(**HISTOGRAM), 1, 272).describe())
    assert data_columns(SimpleNamespace(mechanism=own, columns=("eruptions",))) == ("eruptions",)


def test_what_has_no_name_is_called_value() -> None:
    assert Subject((), 272, {"count": "minutes"}).titled() == "value (minutes)"
    assert Subject((), 272).axis() == "value, in the data's units"
