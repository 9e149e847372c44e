"""What results and releases share: a small table in a notebook, one line for programmers, a DataFrame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.results.nodes import Table
from dpmix.results.notebook import to_notebook
from dpmix.store.frames import Frame

if TYPE_CHECKING:
    import pandas

__all__ = ["TabulatedFigures", "Tabulated", "frame_of_rows", "frame_of_table"]


class Tabulated:
    """Something that has a table."""

    @abstractmethod
    def to_frame(self) -> Frame:
        """Return its table."""

    @property
    @abstractmethod
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, and what else is said of it in a notebook."""

    def to_dataframe(self) -> pandas.DataFrame:
        """Return its table as a pandas DataFrame.

        Raises
        ------
        UsageError
            Where pandas is not installed.
        """
        return self.to_frame().to_pandas()

    def _repr_html_(self) -> str:
        title, lines = self.headline
        return to_notebook(title, lines, self.to_frame())


class TabulatedFigures(dict[str, Any], Tabulated):
    """Figures by name, as JSON has them, that a notebook shows as a table."""

    title = "Figures"

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is called."""
        return self.title, ()

    def to_frame(self) -> Frame:
        """Return a row each figure: its name, and its value as text; those within others as `one.other`."""
        flat = _leaves(self)
        return Frame({"name": list(flat), "value": [None if v is None else _text(v) for v in flat.values()]})


def _leaves(found: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in found.items():
        leaves |= (
            _leaves(value, f"{within}{key}.") if isinstance(value, Mapping) else {f"{within}{key}": value}
        )
    return leaves


def frame_of_table(table: Table) -> Frame:
    """Return a table of a result, names of rows first; what a cell has by name becomes columns."""
    return frame_of_rows(
        [{("name" if key == table.dim else key): v for key, v in row.items()} for row in table]
    )


def frame_of_rows(rows: Sequence[Mapping[str, Any]]) -> Frame:
    """Return rows as a table; a mapping within becomes columns called `key[name]`.

    A column is of numbers where all that is there are numbers, else of text.
    """
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return Frame({name: _column([row.get(name) for row in flat]) for name in names})


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key}[{name}]": entry for name, entry in _flat(value).items()}
        else:
            found[key] = value
    return found


def _column(values: list[Any]) -> Any:
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, bool) for value in values):
        return np.asarray(values, dtype=np.int64)
    if there and all(isinstance(value, int | np.integer) and abs(int(value)) < 2**63 for value in values):
        return np.asarray(values, dtype=np.int64)
    if there and all(
        isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in there
    ):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    return [None if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
