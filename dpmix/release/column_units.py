"""Units of columns, which are public and travel with a release: one for all columns, or by name of column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeAlias

__all__ = ["Unit", "labelled", "taken", "unit_from_text", "unit_of", "unit_text", "units_in_words"]

Unit: TypeAlias = str | Mapping[str, str] | None
"""What a spec says under ``unit``: of all columns that are numbers, or by column; None for nothing."""


def unit_of(unit: Unit, column: str) -> str:
    """Return the unit of a numeric column, empty where none is stated.

    Of the only column, whose name may be left out, it is the only one stated.
    """
    if unit is None or isinstance(unit, str):
        return unit or ""
    if not column and len(unit) == 1:
        return next(iter(unit.values()))
    return unit.get(column, "")


def labelled(name: str, unit: str) -> str:
    """Return what stands at an axis or above a figure: "income (dollars)"."""
    return f"{name} ({unit})" if unit else name


def units_in_words(unit: Unit) -> str:
    """Return "dollars", or "income in dollars, age in years"; empty where nothing is stated."""
    if unit is None or isinstance(unit, str):
        return unit or ""
    return ", ".join(f"{name} in {each}" for name, each in unit.items())


def unit_text(unit: Unit) -> str:
    """Return the unit as an attribute holds it: its text, or a JSON object; empty for none."""
    return (unit or "") if unit is None or isinstance(unit, str) else json.dumps(dict(unit))


def unit_from_text(text: str) -> Unit:
    """Return what `unit_text` wrote; what is no object of texts is itself the unit."""
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found and all(isinstance(each, str) for each in found.values()):
            return found
    return text or None


def taken(unit: Unit, columns: Iterable[str]) -> Unit:
    """Return the units of some of the columns."""
    if unit is None or isinstance(unit, str):
        return unit
    return {name: unit[name] for name in columns if name in unit} or None
