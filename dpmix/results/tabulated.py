"""What results and releases share: a small table in a notebook, one line for programmers, a DataFrame."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.store.frames import Frame

if TYPE_CHECKING:
    import pandas

    from dpmix.results.nodes import Table

__all__ = ["FIRST", "Tabulated", "TabulatedFigures", "frame_of_rows", "frame_of_table", "to_notebook"]

# Results in a notebook: a few lines and a small table, as HTML that no name or label can break out of


FIRST = 20
"""Rows that are shown."""
_COLUMNS = 12  # that are shown


def to_notebook(title: str, lines: Sequence[str], table: Frame | None = None, rows: int | None = None) -> str:
    """Return a heading, sentences, and the first rows of a table.

    Parameters
    ----------
    title : str
    lines : sequence of str
    table : Frame, optional
        Of which the first rows are shown.
    rows : int, optional
        How many rows there are, where `table` has only some of them.
    """
    parts = [f"<p><strong>{escape(title)}</strong></p>", *(f"<p>{escape(line)}</p>" for line in lines)]
    if table is not None and table.columns:
        parts.append(_table(table.first(FIRST)))
        total = len(table) if rows is None else rows
        more = [f"{total - FIRST:,} more rows"] if total > FIRST else []
        wide = len(table.columns) - _COLUMNS
        more += [f"{wide:,} more column{'s' * (wide > 1)}"] if wide > 0 else []
        parts += [f"<p><small>and {' and '.join(more)}</small></p>"] if more else []
    return f'<div class="dpmix">{"".join(parts)}</div>'


def _table(table: Frame) -> str:
    names = list(table.columns)[:_COLUMNS]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    cells = Frame({name: table.columns[name] for name in names}).cells()
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_brief(cell))}</td>' for cell in row)}</tr>"
        for row in zip(*cells, strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _brief(cell: str) -> str:
    """Return a number of many digits with six of them."""
    if len(cell) <= 9 or not any(mark in cell for mark in ".e"):
        return cell
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return cell


# What results and releases share: a small table in a notebook, one line for programmers, a DataFrame


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
