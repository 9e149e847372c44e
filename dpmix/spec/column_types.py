"""What values a column has in synthetic records: whole numbers, categories, numbers of some digits.

Types say how records are drawn and written. Releases of noisy values are never rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from dpmix.spec.fields import Integer, Section, Text

__all__ = ["MOST_DIGITS", "ColumnType", "ColumnTypes", "DigitsType", "digits_of"]

MOST_DIGITS = 12
"""Digits after the decimal point at most."""


class DigitsType(Section):
    """Numbers of so many digits after the decimal point, such as money with two."""

    digits: Annotated[Integer, Field(ge=0, le=MOST_DIGITS)] = Field(
        description="Digits after the decimal point."
    )


ColumnType = Annotated[
    Annotated[Literal["integer", "category"], Tag("name")] | Annotated[DigitsType, Tag("digits")],
    Discriminator(lambda value: "digits" if isinstance(value, (Mapping, DigitsType)) else "name"),
]
"""integer, category, or {digits: k}."""

ColumnTypes = dict[Text, ColumnType]
"""Types by name of column."""


def digits_of(kind: str | DigitsType | None) -> int | None:
    """Return the digits after the decimal point that a type has, None where it is of no such numbers."""
    if isinstance(kind, DigitsType):
        return kind.digits
    return 0 if kind == "integer" else None
