"""`dpmix.show`: what a file is, and what it says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmix.api.export import tables_of
from dpmix.api.file_kinds import KINDS, kind_of
from dpmix.api.ledger_words import show as show_ledger
from dpmix.api.ledger_words import to_text as ledger_text
from dpmix.api.release_of import read_any
from dpmix.api.shown import sections_of_chains, sections_of_release, sections_of_summary, sections_of_work
from dpmix.errors import DataError, SpecError
from dpmix.release.release_file import read_release
from dpmix.results.nodes import ResultSection, Tree, Words
from dpmix.results.result import Result
from dpmix.results.tabulated import FIRST, to_notebook
from dpmix.run.draws_tables import to_inferencedata
from dpmix.spec.describe import describe
from dpmix.spec.load import load_spec, read_contents
from dpmix.spec.sweep_spec import load_sweep
from dpmix.store.frames import Frame
from dpmix.store.tree import read

__all__ = ["Shown", "show"]


@dataclass(frozen=True, repr=False, eq=False)
class Shown(Result):
    """A file, and what it says.

    Parameters
    ----------
    path : Path
    kind : str
        A key of `dpmix.api.file_kinds.KINDS`.
    sections : tuple of Section
    """

    path: Path
    kind: str
    sections: tuple[ResultSection, ...] = field(repr=False)

    @property
    def tree(self) -> Tree:
        """What it says; the guarantee stands among the sections."""
        own = ResultSection("file", str(self.path)), ResultSection("kind", self.kind)
        return Tree(KINDS[self.kind], f"{self.path}: {KINDS[self.kind]}", "", (*own, *self.sections))

    @property
    def headline(self) -> tuple[str, Sequence[str]]:
        """What it is, and the sentences about it."""
        words = [getattr(piece, "text", piece) for section in self.sections for piece in section.brief]
        return self.tree.heading, [" ".join(str(text).split()) for text in words]

    def __repr__(self) -> str:
        return f"<Shown: {self.tree.heading}>"

    def to_text(self) -> str:
        """Return it as text for a terminal, in which no name can do anything."""
        return "".join(c if c.isprintable() or c == "\n" else "?" for c in super().to_text())

    def to_frame(self, table: str | None = None) -> Frame:
        """Return what the file holds, as `dpmix.export` writes it.

        Raises
        ------
        DataError
            Of a kind that has no table.
        KeyError
            Where it has no such table.
        """
        found = tables_of(self.path)[1]
        if table is not None and table not in found:
            raise KeyError(f"no table {table!r}; there are {', '.join(found)}")
        return (next(iter(found.values())) if table is None else found[table]).frame()

    def to_inferencedata(self) -> Any:
        """Return chains as the installed ArviZ takes them; see `dpmix.run.draws_tables.to_inferencedata`.

        Raises
        ------
        DataError
            Of files that hold no chains.
        """
        return to_inferencedata(self.path)

    def _repr_html_(self) -> str:
        title, lines = self.headline
        tables = self.tables()
        frame = super().to_frame() if tables else None
        return to_notebook(title, lines, None if frame is None else frame.first(FIRST))


def show(file: str | os.PathLike[str]) -> Shown:
    """Read a file of dpmix, and say what it is.

    Parameters
    ----------
    file : path
        A release, tally, fit (also one that is not finished: the name of its output, or of its folder of
        work), summary, comparison of fits, ledger, synthetic records (.csv with the account beside it, .h5),
        spec or card.

    Returns
    -------
    Shown
        With `to_text()`, `to_json()`, and of those that hold a table `to_dataframe()`.

    Raises
    ------
    DataError
        When the file is not there, damaged, or none of these.
    """
    path = Path(file)
    kind = kind_of(path)
    return Shown(path, kind, tuple(_sections(path, kind)))


def _sections(path: Path, kind: str) -> list[ResultSection]:
    if kind in ("release", "tally", "synthetic"):
        found = read_any(path) if kind == "synthetic" else read_release(path, tallies=True)
        return sections_of_release(path, found)
    if kind == "chains":
        return sections_of_chains(path)
    if kind == "interrupted":
        return sections_of_work(path)
    if kind in ("summary", "contrast"):
        return sections_of_summary(path, read(path))
    if kind == "ledger":
        shown = show_ledger(path)
        lines = [Words(line, "        ") for line in ledger_text(shown).split("\n") if line]
        said = {key: value for key, value in shown.items() if key != "ledger"}
        return [
            ResultSection("ledger", text=[lines]),
            *(ResultSection(key, value) for key, value in said.items()),
        ]
    if kind == "card":
        what = "Croissant metadata (JSON-LD)" if path.name.lower().endswith(".json") else "metadata"
        return [ResultSection("about", what, brief=[f"{path}: a card, {what} to publish beside a release"])]
    return _sections_of_spec(path, kind)


def _sections_of_spec(path: Path, kind: str) -> list[ResultSection]:
    try:
        if kind == "sweep":
            load_sweep(path)
            varied = ", ".join(map(str, (read_contents(path).get("grid") or {}))) or "nothing but replicates"
            return [ResultSection("varied", varied, brief=[f"{path}: the spec of a sweep over {varied}"])]
        said = describe(load_spec(path))
    except SpecError as error:
        raise DataError(f"{path} is no spec that can be run: {error}") from None
    lines = [Words(f"{name + ':':<12}{text}", " " * 12) for name, text in said.items()]
    return [ResultSection("sections", dict(said), brief=[f"{path}: a spec", *lines])]
