"""Predictions of the records of a table, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.results.nodes import Array, Each, Note, ResultSection, Table, TableColumn
from dpmix.results.tabulated import Tabulated
from dpmix.spec.days import day_text
from dpmix.store.frames import Frame
from dpmix.summary.families.family import Floats
from dpmix.summary.predicting import Input

__all__ = ["SHOWN", "Predictions", "labels_of", "row_of"]

SHOWN = 20
"""Records that texts and reports show."""


@dataclass(frozen=True, eq=False)
class Predictions(Tabulated):
    """Predictions of the last column of records from the others, one row a record, in the order of the table.

    Parameters
    ----------
    columns : tuple of str
        Names of what is predicted: `p[CLASS]`, `lower[CLASS]` and `upper[CLASS]` for each class, or `mean`,
        `lower` and `upper` of the response.
    values : float64 array (records, columns)
    level : float
        Posterior probability of the intervals.
    what : str
        What is predicted and what intervals are of, in words.
    labels : tuple of str
        What the first records are, such as "income = 500".
    """

    columns: tuple[str, ...]
    values: Floats = field(repr=False)
    level: float
    what: str
    labels: tuple[str, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """Return one column by name, shape (records,)."""
        return np.asarray(self.values[:, self.columns.index(name)])

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """How many there are, and of what."""
        return f"Predictions of {len(self):,} records", [f"{self.what[0].upper()}{self.what[1:]}."]

    def to_frame(self) -> Frame:
        """Return one row a record, in the order of the table that they are of."""
        return Frame(dict(zip(self.columns, self.values.T, strict=True)))

    def to_json(self) -> list[dict[str, Any]]:
        """Return one object a record, for strict JSON."""
        return [row_of(self.columns, row) for row in self.values.tolist()]

    def section(self) -> ResultSection:
        """Return what is reported of them: of all what is predicted, and a table of the first."""
        first = self.values[: len(self.labels)].T.tolist()
        columns = [TableColumn(name, values, name) for name, values in zip(self.columns, first, strict=True)]
        table = Table("record", self.labels, columns)
        held = {
            "quantity": Array(("quantity",), list(self.columns)),
            "values": Array(("record", "quantity"), self.values),
        }
        more = f" Shown are the first of {len(self):,} records." if self.more else ""
        return ResultSection(
            "at",
            Each(self.to_json(), held),
            "Predictions",
            text=[[f"Predictions: {self.what}", table, *filter(None, [self.more])]],
            page=[table, Note(f"{self.what[0].upper()}{self.what[1:]}.{more}")],
        )

    @property
    def more(self) -> str:
        """Say how many records are not shown; empty where all are."""
        rest = len(self) - len(self.labels)
        return f"and {rest:,} more record{'s' * (rest > 1)}" if rest > 0 else ""


def row_of(columns: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Return one record's predictions by name."""
    return dict(zip(columns, values, strict=True))


def labels_of(inputs: Sequence[Input], rows: Floats) -> list[str]:
    """Say what records are, such as "age = 30, sex = female"."""
    return [
        ", ".join(f"{part.name} = {_written(part, x)}" for part, x in zip(inputs, row, strict=True))
        for row in rows.tolist()
    ]


def _written(part: Input, x: float) -> str:
    if part.categories is not None:
        return part.categories.labels[int(x)]
    return day_text(x) if part.date else f"{x:.6g}"
