"""The JSON Schema: as its golden file says, and agreeing with what the spec accepts."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpmix.spec.schema import schema
from dpmix.spec.starters import starter, starters
from dpmix.spec.yamltext import parse_yaml
from tests.helpers.specs import ROOT, SHIPPED, full_spec

GOLDEN = ROOT / "tests" / "golden" / "schema.json"


@functools.cache
def validator() -> jsonschema.Draft202012Validator:
    """Return what checks specs, itself checked by `test_the_schema_is_a_schema` and not for each of them."""
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_is_the_golden_one() -> None:
    assert schema() == json.loads(GOLDEN.read_text("utf-8")), "run scripts/update-golden if this is meant"


def _properties(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, field in value.get("properties", {}).items():
            yield f"{path}/{name}", field
        for key, item in value.items():
            yield from _properties(item, f"{path}/{key}")


def test_every_key_is_described() -> None:
    found = dict(_properties(schema()))
    assert len(found) > 100
    assert [path for path, field in found.items() if not field.get("description")] == []


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert not any(key in text for key in ('"gt"', '"ge"', '"lt"', '"le"') for text in [json.dumps(schema())])


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_specs_fit_the_schema(path: Path) -> None:
    validator().validate(parse_yaml(path.read_text("utf-8")))


@pytest.mark.parametrize("kind", starters())
def test_starters_fit_the_schema(kind: str) -> None:
    validator().validate(parse_yaml(starter(kind)))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("sampler", "chains", 0),
        ("sampler", "chain", 1),
        ("sampler", "kind", "neal9"),
        ("mechanism", "epsilon", 0),
        ("mechanism", "domain", [1, 2, 3]),
        ("model", "discount", 1),
        ("model", "concentration", {"shape": 1}),
        ("summary", "level", 1),
    ],
)
def test_the_schema_refuses_what_the_spec_refuses(section: str, key: str, value: Any) -> None:
    source = full_spec()
    validator().validate(source)
    source[section][key] = value
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(source)
