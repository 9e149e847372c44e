"""What the interface has and this version cannot run: checked like the rest, and refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from dpmix.errors import SpecError
from dpmix.spec import available, load_spec
from dpmix.spec.available import KINDS, NOT_YET
from tests.specs import message

UNAVAILABLE: dict[str, dict[str, Any]] = {
    "log_moments": {"epsilon1": 1, "epsilon2": 1, "thresholds": [0.1, 0.01], "n": 100, "split": 0.5},
}


@pytest.mark.parametrize("kind", UNAVAILABLE)
def test_unavailable_mechanisms_are_checked_and_then_refused_by_name(kind: str) -> None:
    refused = f"mechanism.kind: {kind} is not available in this version of dpmix; "
    refused += (
        "available: laplace, gaussian, wavelet, binomial, smoothed_histogram, perturbed_histogram, "
        "noisy_counts, clamped_moments, posterior, none"
    )
    contents = {"mechanism": {"kind": kind, **UNAVAILABLE[kind]}}
    assert message(source=contents) == refused
    contents["mechanism"]["epsilons"] = 1
    with pytest.raises(SpecError) as caught:
        load_spec(contents)
    lines = str(caught.value).splitlines()
    assert lines[0] == refused
    assert lines[1].startswith("mechanism.epsilons: unknown key")


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "multinomial", "prior": [1, 1]},
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
        "custom",
    }
    assert available("model.kernel") == ("normal", "beta", "multivariate_normal")
    assert available("model.base.kind") == ("nig", "truncated_nig")
    assert set(available("sampler.kind")) >= {"neal8", "private_slice", "data_augmentation", "soma"}


def test_samplers_of_other_models_are_refused_by_name() -> None:
    assert message(source={"sampler": {"kind": "abc"}}).startswith(
        "sampler.kind: abc is not available in this version of dpmix; available: private_neal5, "
    )
