"""What the interface has and this version cannot run: checked like the rest, and refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from dpmix.errors import SpecError
from dpmix.spec import available, load_spec
from dpmix.spec.available import KINDS, NOT_YET
from tests.specs import message


def test_what_is_unavailable_is_checked_and_then_refused_by_name() -> None:
    refused = "sampler.kind: abc is not available in this version of dpmix; available: "
    contents = {"sampler": {"kind": "abc", "iterations": 100}}
    assert message(source=contents).startswith(refused)
    contents["sampler"]["sweeps"] = 1
    with pytest.raises(SpecError) as caught:
        load_spec(contents)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(refused)
    assert lines[1].startswith("sampler.sweeps: unknown key")


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "dirichlet", "prior": {"shape": 1, "rate": 0.1}},
        {"kind": "dirichlet", "prior": "p3"},
    ],
    ids=lambda model: "-".join(str(value) for value in list(model.values())[:1]),
)
def test_unavailable_models_are_refused_by_name(model: dict[str, Any]) -> None:
    assert " is not available in this version of dpmix" in message(source={"model": model})


def test_every_row_of_the_table_of_what_is_missing_names_a_kind() -> None:
    assert len(set(NOT_YET)) == len(NOT_YET)
    for key, kind in NOT_YET:
        assert kind == "*" or kind in KINDS[key]
    assert set(available("model.kind")) >= {
        "mixture",
        "discrete",
        "naive_bayes",
        "linear_regression",
        "multinomial",
        "custom",
    }
    assert available("model.kernel") == ("normal", "beta", "multivariate_normal")
    assert available("model.base.kind") == ("nig", "truncated_nig")
    assert set(available("sampler.kind")) >= {"neal8", "private_slice", "data_augmentation", "soma"}
