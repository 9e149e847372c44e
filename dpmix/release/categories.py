"""Codes of public categories: how the text of a cell is told to be one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["Categories"]


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
