"""The JSON Schema of a spec, for editors."""

from __future__ import annotations

from typing import Any, Final

from dpmix.spec.run import RunSpec

_KEYWORDS: Final = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "min_length": "minItems",
    "max_length": "maxItems",
}
"""What pydantic leaves in its own words where a validator stands before a bound."""


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the spec, with a description of every key."""
    contents: dict[str, Any] = _tidied(RunSpec.model_json_schema(by_alias=True))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpmix spec",
        **contents,
    }


def _tidied(value: Any, names: bool = False) -> Any:
    """Use JSON Schema's keywords, and drop titles that only repeat names; ``names`` marks a dict of names."""
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key if names else _KEYWORDS.get(key, key): _tidied(item, not names and key in ("properties", "$defs"))
        for key, item in value.items()
        if names or key != "title"
    }
