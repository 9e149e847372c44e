"""Ranges of synthetic records that are public: what values are possible at all, or given those of others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator

from dpmix.spec.days import plain
from dpmix.spec.fields import Listed, Section, Text, refusal, shown, wrong

__all__ = ["Admitted", "RangeSpec", "Ranges"]

_MOST = 1000


def _one(value: object) -> str | int | float:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise wrong("must be a number, a category, or [lo, hi] or a list of categories, not {got}", value)
    return value


def _admitted(value: object) -> object:
    if isinstance(value, (list, tuple)) or (hasattr(value, "tolist") and not isinstance(value, str | bytes)):
        items = value.tolist() if hasattr(value, "tolist") else value
        if not isinstance(items, list | tuple) or not 1 <= len(items) <= _MOST:
            raise wrong("must be [lo, hi] or a list of categories, not {got}", value)
        return tuple(_one(item) for item in items)
    return _one(value)


_SCALAR: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string"}]}
_SCHEMA: dict[str, Any] = {
    "anyOf": [*_SCALAR["anyOf"], {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": _MOST}]
}
Admitted = Annotated[
    Any,
    BeforeValidator(_admitted),
    PlainSerializer(lambda v: [plain(x) for x in v] if isinstance(v, tuple) else plain(v), when_used="json"),
    WithJsonSchema(_SCHEMA),
]
"""What is admitted of a column: [lo, hi] of numbers or dates, one value, or categories."""


class RangeSpec(Section):
    """What is possible of some columns, by name: always, or for records of which ``when`` holds."""

    model_config = ConfigDict(
        extra="allow", frozen=True, defer_build=True, json_schema_extra={"additionalProperties": _SCHEMA}
    )

    when: Annotated[dict[Text, Admitted], Field(min_length=1)] | None = Field(
        None, description="Of which records: a value or [lo, hi] by column; of all where left out."
    )

    @property
    def then(self) -> Mapping[str, Any]:
        """What is possible of these records, by name of column."""
        return self.__pydantic_extra__ or {}

    @model_validator(mode="after")
    def _check(self) -> RangeSpec:
        extra = self.__pydantic_extra__ or {}
        if not extra:
            raise refusal("", "names no column; give what is possible of one, as in {income: [0, 5e4]}")
        for name, value in extra.items():
            try:
                extra[name] = _admitted(value)
            except ValueError as error:
                got = shown(value)
                raise refusal(
                    name, f"must be [lo, hi], a value or a list of categories, not {got}"
                ) from error
            if name in (self.when or {}):
                raise refusal(name, "is under when, too; state what is possible of other columns")
        return self

    def stated(self) -> dict[str, Any]:
        """Return the rule for JSON."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_none=True)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}


Ranges = Annotated[tuple[RangeSpec, ...], Listed, Field(min_length=1, max_length=_MOST)]
"""Rules, all of which hold."""
