"""The JSON Schema of a spec, for editors."""

from __future__ import annotations

from typing import Any, Final

from dpmix.spec.run_spec import RunSpec

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
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
    return {"$schema": _DIALECT, "title": "dpmix spec", **contents}


def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema of the spec of a sweep; a base that is no file is as `schema` says."""
    from dpmix.spec.sweep_spec import SweepSpec

    contents: dict[str, Any] = _tidied(SweepSpec.model_json_schema(by_alias=True))
    return {"$schema": _DIALECT, "title": "dpmix sweep", **contents}


def _tidied(value: Any, names: bool = False) -> Any:
    """Use JSON Schema's keywords, and drop titles that only repeat names; ``names`` marks a dict of names."""
    if isinstance(value, list):
        return [_tidied(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {
        key if names else _KEYWORDS.get(key, key): _tidied(item, not names and key in ("properties", "$defs"))
        for key, item in value.items()
        if names or key != "title"
    }
    if not names and found.get("type") == "array" and "minLength" in found:  # pydantic's word for lists, too
        found["minItems"] = found.pop("minLength")
    return found
