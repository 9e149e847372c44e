"""What the sections of a spec share: the strict base model, the number and path types, and tagged unions."""

from __future__ import annotations

import datetime
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Protocol, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError
from pydantic_core.core_schema import (
    definition_reference_schema,
    no_info_plain_validator_function,
    tagged_union_schema,
    with_info_plain_validator_function,
)

from dpmix.spec.days import Day, day_of, plain

REFUSED: Final = "refused"
PRIVACY_REFUSED: Final = "privacy_refused"
UNKNOWN_KIND: Final = "unknown_kind"
UNKNOWN_KEY: Final = "unknown_key"
WORDED: Final = "worded"

LARGEST_SEED: Final = 2**63 - 1

_WRITTEN: Final = (numbers.Number, datetime.date, bytes, os.PathLike)
"""What a spec can hold beside text and lists, and errors show."""


class Section(BaseModel):
    """Base of every section: unknown keys are errors, and a checked section does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, value: object) -> object:
        """Report unknown keys before anything else, together with the keys that are known."""
        if isinstance(value, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            unknown = [key for key in value if key not in known]
            if unknown and cls.model_config.get("extra") != "allow":
                raise PydanticCustomError(UNKNOWN_KEY, "unknown key", {"unknown": unknown, "known": known})
        return value

    def settle(self, **values: Any) -> None:
        """Replace fields of this frozen section by their resolved values; for use inside validators only."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


def refusal(key: str, message: str, *, privacy: bool = False) -> PydanticCustomError:
    """Build the error of a key that is well formed on its own but makes no sense beside the others.

    The key is relative to the section whose validator raises, empty for the section itself; the message says
    what is wrong and what would be right, without the key. `privacy`: whether this is a guarantee that cannot
    be met, rather than a mistake in the spec.
    """
    return PydanticCustomError(PRIVACY_REFUSED if privacy else REFUSED, "{why}", {"key": key, "why": message})


def shown(value: object, limit: int = 40) -> str:
    """Write a value of a spec for an error message, on one line and not too long."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, str):
        text = '"' + " ".join(value.split()) + '"'
    elif isinstance(value, (list, tuple)):
        text = (
            "[" + ", ".join(shown(item, 12) for item in value[:6]) + (", ..." if len(value) > 6 else "") + "]"
        )
    elif not isinstance(value, _WRITTEN):  # such as a table of confidential records in a section's place
        return f"an object of the type {type(value).__name__}"
    else:
        try:
            text = repr(value)
        except ValueError:  # an integer beyond Python's limit on decimal digits
            text = "a huge integer"
    return text if len(text) <= limit else text[: limit - 4] + "..." + text[-1]


def wrong(message: str, value: object) -> PydanticCustomError:
    """Build the error of a value that is wrong on its own; ``{got}`` in the message stands for the value."""
    return PydanticCustomError(WORDED, "{why}", {"why": message.replace("{got}", shown(value))})


def is_number(value: object) -> bool:
    """Whether a value, as YAML or JSON have it, is a finite number, of a size that floats have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong("must be a number, not {got}", value)
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise wrong("must be a finite number, not {got}", value)
    return result


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        whole = isinstance(value, float) and value.is_integer()
        raise wrong("must be a whole number, not {got}" + (f"; write {value:.0f}" if whole else ""), value)
    return int(value)


def _list(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return value
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes, Mapping)):
        return value.tolist()
    raise wrong("must be a list, not {got}", value)


def by_column(example: str) -> BeforeValidator:
    """Mark a mapping from names of columns, of which the error of another value shows an example."""

    def check(value: object) -> object:
        if not isinstance(value, Mapping):
            raise wrong(f"must be by name of column, as in {example}, not {{got}}", value)
        return value

    return BeforeValidator(check)


Number = Annotated[float, BeforeValidator(_number)]
"""A finite number; integers become floats, and text and booleans are refused."""

Positive = Annotated[Number, Field(gt=0)]
NonNegative = Annotated[Number, Field(ge=0)]
Integer = Annotated[int, BeforeValidator(_integer)]
"""A whole number; 3.0 and true are none."""

Text = Annotated[str, StringConstraints(strict=True, min_length=1)]
Listed = BeforeValidator(_list)
"""Marks a tuple field that a YAML list, a tuple or an array fills."""


def _domain(value: object) -> object:
    """Take one pair for a list of one pair."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
        raise wrong("must be a pair [lo, hi] or a list of pairs, not {got}", value)
    items = _list(value)
    assert isinstance(items, Sequence)
    if len(items) == 2 and not any(isinstance(item, (list, tuple)) for item in items):
        return [items]
    for pair in items:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise wrong("must be a pair [lo, hi] or a list of pairs, not {got}", value)
    return items


_NARROWEST, _WIDEST = 1e-150, 1e150
"""Of bounds: default priors have the square of the width."""


def _bounds(pairs: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    for lo, hi in pairs:
        if isinstance(lo, Day) != isinstance(hi, Day):
            raise wrong("{got} has a date and a number; give two of a kind", [plain(lo), plain(hi)])
        if not lo < hi:
            raise wrong("{got} must have its lower bound below its upper one", [plain(lo), plain(hi)])
        if not hi - lo < _WIDEST:
            raise wrong("{got} is too wide", [lo, hi])
        if hi - lo < _NARROWEST:
            raise wrong("{got} is too narrow", [lo, hi])
    return pairs


def _bound(value: object) -> float:
    """Take a number, or a date."""
    day = day_of(value)
    if day is not None:
        return day
    if isinstance(value, str):
        raise wrong("must be a number or a date such as 2024-12-31, not {got}", value)
    return value if isinstance(value, Day) else _number(value)


_BOUND_SCHEMA: Final = {"anyOf": [{"type": "number"}, {"type": "string", "format": "date"}]}
Bound = Annotated[
    float,
    PlainValidator(_bound),
    PlainSerializer(plain, when_used="json"),
    WithJsonSchema(_BOUND_SCHEMA),
]
"""A public bound: a finite number, or a date, which is its number of days since 1970-01-01."""

_PAIR_SCHEMA: Final = {"type": "array", "items": _BOUND_SCHEMA, "minItems": 2, "maxItems": 2}


def _domain_schema(schema: dict[str, Any]) -> None:
    description = schema.get("description")
    schema.clear()
    schema["anyOf"] = [_PAIR_SCHEMA, {"type": "array", "items": _PAIR_SCHEMA, "minItems": 1}]
    if description:
        schema["description"] = description


Domain = Annotated[
    tuple[Annotated[tuple[Bound, Bound], Listed], ...],
    BeforeValidator(_domain),
    AfterValidator(_bounds),
    Field(min_length=1, json_schema_extra=_domain_schema),
]
"""Public bounds, one (lo, hi) per column; a lone pair is taken for one column."""


def _pair(value: tuple[float, float]) -> tuple[float, float]:
    return _bounds((value,))[0]


Pair = Annotated[tuple[Bound, Bound], Listed, AfterValidator(_pair)]
"""Public bounds (lo, hi) of one column."""


def kinds(union: Any) -> tuple[str, ...]:
    """List the tags of a tagged union, which are the values that its key can have."""
    return tuple(tag for member in get_args(get_args(union)[0]) for tag in _tags(member))


def _tags(member: Any) -> list[str]:
    return [note.tag for note in get_args(member)[1:] if isinstance(note, Tag)]


class ChosenBy:
    """Choose the member of a union by the value of one key, with a default where the key is left out.

    Only the member that is chosen is made ready to check values. The error of an unknown or missing value is
    told apart by its type, names the key, and is put in words by :mod:`dpmix.spec.messages`, which knows
    where in the spec it is.
    """

    def __init__(self, key: str, default: str | None = None) -> None:
        self._key, self._default = key, default
        self._members: dict[str, Any] = {}
        self._made: dict[str, tuple[Any, TypeAdapter[Any]]] = {}
        self._describing = False

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def _member(self, tag: str) -> Any:
        return self._members[tag]

    def _tag(self, value: object) -> str | None:
        if isinstance(value, Mapping):
            found = value.get(self._key, self._default)
        else:
            found = getattr(value, self._key, None)
        return found if isinstance(found, str) else None

    def _ready(self, tag: str) -> TypeAdapter[Any]:
        member = self._member(tag)
        known, adapter = self._made.get(tag, (None, None))
        if adapter is None or known is not member:
            adapter = TypeAdapter(member)
            self._made[tag] = (member, adapter)
        return adapter

    def _check(self, value: object, info: ValidationInfo) -> object:
        tag = self._tag(value)
        if tag is None or tag not in self._names:
            raise PydanticCustomError(UNKNOWN_KIND, "{key}", {"key": self._key})
        return self._ready(tag).validate_python(value, context=info.context)

    def __get_pydantic_core_schema__(self, union: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        self._members = {tag: member for member in get_args(union) for tag in _tags(member)}
        return with_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        members = {tag: self._ready(tag).core_schema for tag in self._names}
        if self._describing:  # a union that one of its members holds
            return handler(tagged_union_schema({tag: _reference(members[tag]) for tag in members}, self._tag))
        self._describing = True
        try:
            return handler(tagged_union_schema(members, self._tag))
        finally:
            self._describing = False


class HasSections(Protocol):
    """Sections by kind; `dpmix.spec.kinds.Kinds` is one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every kind."""

    def section(self, kind: str) -> Any:
        """Return the section of a kind."""


class Gathered(ChosenBy):
    """Choose among the sections of all kinds, also those that are registered later."""

    def __init__(self, sections: HasSections, key: str, default: str | None = None) -> None:
        super().__init__(key, default)
        self._sections = sections

    @property
    def _names(self) -> tuple[str, ...]:
        return self._sections.names

    def _member(self, tag: str) -> Any:
        return self._sections.section(tag)


class NameOf:
    """The name of a kind, as a text that is one of those there are when it is checked."""

    def __init__(self, sections: HasSections) -> None:
        self._sections = sections

    def _check(self, value: object) -> object:
        if not isinstance(value, str) or value not in self._sections.names:
            expected = ", ".join(repr(name) for name in self._sections.names)
            raise PydanticKnownError("literal_error", {"expected": expected})
        return value

    def __get_pydantic_core_schema__(self, text: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"enum": list(self._sections.names), "type": "string"}


def _reference(schema: Any) -> CoreSchema:
    """Return a reference to the schema of a section."""
    if schema["type"] == "definitions":
        schema = schema["schema"]
    return definition_reference_schema(schema["schema_ref" if schema["type"] == "definition-ref" else "ref"])


def number_or_mapping(number: str, mapping: str) -> Discriminator:
    """Choose between a plain value and a section by whether a mapping is given."""

    def choose(value: object) -> str:
        return mapping if isinstance(value, (Mapping, BaseModel)) else number

    return Discriminator(choose)


ONE_OR_SEVERAL: Final = Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one")
"""Choose between one and a list of such."""


def number_or_list(number: str, several: str) -> Discriminator:
    """Choose between a plain value and a list by whether it has a length, and is no text."""

    def choose(value: object) -> str:
        return several if hasattr(value, "__len__") and not isinstance(value, (str, Mapping)) else number

    return Discriminator(choose)


def absent_is_empty(value: object) -> object:
    """Take a section that is named and left empty for one with nothing but defaults."""
    return {} if value is None else value


class HistogramBase(Section):
    """A public histogram: pieces with a uniform distribution each."""

    kind: Literal["histogram"] = Field(description="Distribution of new values.")
    edges: Annotated[tuple[Number, ...], Listed, Field(min_length=2)] = Field(
        description="Edges of the pieces, increasing, within the bounds."
    )
    weights: Annotated[tuple[NonNegative, ...], Listed, Field(min_length=1)] = Field(
        description="Weight of each piece; they need not sum to 1."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if any(not a < b for a, b in pairwise(self.edges)):
            raise refusal("edges", "must increase")
        if len(self.weights) != len(self.edges) - 1:
            raise refusal("weights", f"has {len(self.weights)} entries for {len(self.edges) - 1} pieces")
        if not sum(self.weights) > 0:
            raise refusal("weights", "must not all be zero")
        return self
