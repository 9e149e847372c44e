"""What the interface has and a version cannot run: checked like the rest, and refused by name."""

from __future__ import annotations

import importlib

import pytest

from dpmix.errors import SpecError
from dpmix.spec import available, load_spec
from dpmix.spec.available import KINDS, NOT_YET
from tests.specs import message

TABLE = importlib.import_module("dpmix.spec.available")


def test_what_is_unavailable_is_checked_and_then_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TABLE, "NOT_YET", (("sampler.kind", "abc"),))
    refused = "sampler.kind: abc is not available in this version of dpmix; available: private_neal5, "
    contents = {"sampler": {"kind": "abc", "iterations": 100}}
    assert message(source=contents).startswith(refused)
    contents["sampler"]["sweeps"] = 1
    with pytest.raises(SpecError) as caught:
        load_spec(contents)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(refused)
    assert lines[1].startswith("sampler.sweeps: unknown key")


def test_every_row_of_the_table_of_what_is_missing_names_a_kind() -> None:
    assert len(set(NOT_YET)) == len(NOT_YET)
    for key, kind in NOT_YET:
        assert kind == "*" or kind in KINDS[key]
    for key in ("mechanism.kind", "model.kind", "model.kernel", "model.base.kind"):
        assert available(key) == KINDS[key]
    assert set(available("sampler.kind")) >= {"neal8", "private_slice", "data_augmentation", "soma", "abc"}
