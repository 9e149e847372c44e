"""What verbs return: one tree, and its renderings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.results.as_hdf5 import write_result
from dpmix.results.as_text import to_text
from dpmix.results.nodes import ABSENT, Array, Attr, Each, Table, Tree
from dpmix.store.frames import Tabulated, frame_of_rows

if TYPE_CHECKING:
    import pandas

    from dpmix.store.frames import Frame
    from dpmix.store.h5 import Attribute

# The data of a result as lists, dicts, numbers and words that strict JSON can hold


def to_json(tree: Tree) -> dict[str, Any]:
    """Return the data of a result by section; None for no value."""
    return dict(plain({section.key: section.data for section in tree if _held(section.data)}))


def plain(data: Any) -> Any:
    """Return a node as JSON has it, at any depth."""
    match data:
        case Each(json=value) | Attr(value=value):
            return plain(value)
        case Array(values=None):
            return None
        case Array(values=values):
            held = np.asarray(values)
            if held.dtype.kind == "f" and not np.isfinite(held).all():
                numbers = held.astype(object)
                numbers[~np.isfinite(held)] = None
                return numbers.tolist()
            return held.tolist()
        case Table():
            return _table(data)
        case Mapping():
            return {key: plain(value) for key, value in data.items() if _held(value)}
        case list() | tuple():
            return [plain(value) for value in data]
        case np.ndarray() | np.generic():
            return data.tolist()
        case float() if not math.isfinite(data):
            return None
        case float():
            return float(data)  # also of a kind that writes itself in another way
        case _:
            return data


def _held(data: Any) -> bool:
    return data is not ABSENT and not (isinstance(data, Each) and data.json is ABSENT)


def _table(table: Table) -> Any:
    rows = [{key: plain(value) for key, value in row.items()} for row in table]
    names = [row.pop(table.dim) for row in rows]
    if table.layout == "list":
        return [{"name": name} | row for name, row in zip(names, rows, strict=True)]
    if table.layout == "values":
        return {name: value for name, row in zip(names, rows, strict=True) for value in row.values()}
    return dict(zip(names, rows, strict=True))


# The result itself


class Result(Tabulated, ABC):
    """A result whose `tree` says all that is reported of it."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """Its sections, built once."""

    def to_json(self) -> dict[str, Any]:
        """Return its data as lists, dicts and numbers that strict JSON can hold (None for no value)."""
        return to_json(self.tree)

    to_dict = to_json

    def to_text(self) -> str:
        """Return its headline figures as text for a terminal, in at most 96 columns."""
        return to_text(self.tree)

    def tables(self) -> dict[str, Table]:
        """Return the tables among what is shown and held of it, by the key of their section."""
        found: dict[str, Table] = {}
        for section in self.tree:
            held = section.data.json if hasattr(section.data, "json") else section.data
            inner = list(held.values()) if isinstance(held, Mapping) else [held]
            shown = [block for group in section.text for block in group]
            tables = [part for part in (*inner, *shown) if isinstance(part, Table)]
            if tables:
                found.setdefault(section.key, tables[0])
        return found

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, and what is guaranteed."""
        return self.tree.heading, [self.tree.guarantee]

    def __repr__(self) -> str:
        """Say which tables there are, without what is in them."""
        tables = ", ".join(f"{key} ({len(table.rows)})" for key, table in self.tables().items())
        count = len(self.tree.warnings)
        warned = f"; {count} warning{'s' * (count > 1)}" if count else ""
        return f"<{type(self).__name__}: {tables or 'no tables'}{warned}>"

    def to_frame(self, table: str | None = None) -> Frame:
        """Return one of its tables, the first without `table`.

        Raises
        ------
        KeyError
            Where it has no such table.
        """
        found = self._named(table)
        return frame_of_rows(
            [{("name" if key == found.dim else key): cell for key, cell in row.items()} for row in found]
        )

    def to_dataframe(self, table: str | None = None) -> pandas.DataFrame:
        """Return one of its tables, the first without `table`, as a pandas DataFrame.

        Raises
        ------
        KeyError
            Where it has no such table.
        UsageError
            Where pandas is not installed.
        """
        return self.to_frame(table).to_pandas()

    def rows(self, key: str | None = None) -> Iterator[dict[str, Any]]:
        """Give the rows of a table, each a mapping of names to figures: of the first one without `key`.

        Raises
        ------
        KeyError
            Where it has no such table.
        """
        yield from self._named(key)

    def _named(self, key: str | None) -> Table:
        tables = self.tables()
        wanted = next(iter(tables), None) if key is None else key
        if wanted not in tables:
            raise KeyError(f"no table {key or ''!r}; there are {', '.join(tables) or 'none'}")
        return tables[wanted]

    def write(
        self, path: str | Path, attrs: Mapping[str, Attribute] | None = None, *, force: bool = False
    ) -> None:
        """Write its data as HDF5; see `dpmix.results.as_hdf5.write_result`."""
        write_result(path, self.tree, attrs, force=force)
