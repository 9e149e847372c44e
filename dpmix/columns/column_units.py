"""Units of columns, and codes of their categories: public, they travel with a release."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

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


def stated_unit(unit: Unit) -> dict[str, Any]:
    """Return the unit for JSON, under its key; nothing where none is stated."""
    return {"unit": unit if isinstance(unit, str) else dict(unit)} if unit else {}


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


# Codes of public categories: how the text of a cell is told to be one of them


class Categories:
    """Public categories of a column, which are told apart as text, then as numbers.

    Parameters
    ----------
    labels : iterable of str
        In order; the first has code 0.
    """

    def __init__(self, labels: Iterable[str]) -> None:
        self.labels = tuple(labels)
        self._places: dict[str | float, int] = {label: code for code, label in enumerate(self.labels)}
        for code, label in enumerate(self.labels):
            number = _number(label)
            if number is not None:
                self._places.setdefault(number, code)

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, text: str) -> int:
        """Return the number of the category that a text stands for, -1 where it is none."""
        code = self._places.get(text)
        if code is None:
            number = _number(text)
            code = -1 if number is None else self._places.get(number, -1)
        return code


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number
