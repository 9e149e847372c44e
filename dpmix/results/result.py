"""What verbs return: one tree, and its renderings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpmix.results.as_hdf5 import write_result
from dpmix.results.as_json import to_json
from dpmix.results.as_text import to_text
from dpmix.results.nodes import Table, Tree
from dpmix.store.h5 import Attribute

__all__ = ["Result"]


class Result(ABC):
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

    def rows(self, key: str | None = None) -> Iterator[dict[str, Any]]:
        """Give the rows of a table, each a mapping of names to figures: of the first one without `key`.

        Raises
        ------
        KeyError
            Where it has no such table.
        """
        tables = self.tables()
        wanted = next(iter(tables), None) if key is None else key
        if wanted not in tables:
            raise KeyError(f"no table {key or ''!r}; there are {', '.join(tables) or 'none'}")
        yield from tables[wanted]

    def write(
        self, path: str | Path, attrs: Mapping[str, Attribute] | None = None, *, force: bool = False
    ) -> None:
        """Write its data as HDF5; see `dpmix.results.as_hdf5.write_result`."""
        write_result(path, self.tree, attrs, force=force)
