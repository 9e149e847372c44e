"""The JSON Schema of a spec, for editors."""

from __future__ import annotations

from typing import Any

from dpmix.spec.run import RunSpec


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the spec, with a description of every key."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpmix spec",
        **{key: value for key, value in RunSpec.model_json_schema(by_alias=True).items() if key != "title"},
    }
