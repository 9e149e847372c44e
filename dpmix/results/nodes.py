"""The nodes of results: labelled figures, tables and curves, and the words that go with them.

A `Tree` is a tuple of `ResultSection`, each with its key, its data and what is shown of it. Data are nested
mappings of numbers, words, `Array` and `Table`; `dpmix.results.result` and `dpmix.results.as_hdf5` write
them. `dpmix.results.as_text` and `dpmix.results.as_html` show words and tables. What a figure is called and
how it is written is so said once, in the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

from numpy.typing import ArrayLike

ABSENT: Any = object()
"""What a rendering leaves out."""


def figure(value: float | None, form: str = ".4g") -> str:
    """Write a number, or a dash where there is none."""
    return "-" if value is None else f"{value:{form}}"


def percent(share: float) -> str:
    """Write a share in percent, one that is next to nothing as such."""
    if 0.0 < share < 1e-4:
        return "<0.01%"
    return f"{100 * share:.0f}%" if share > 0.99 else f"{100 * share:.2g}%"


def place_in(keys: Sequence[str], key: str) -> int:
    """Return the place of a key in an order; others stand where "*" is, or last."""
    return keys.index(key if key in keys else "*") if key in keys or "*" in keys else len(keys)


def by_name(found: Mapping[str, Any]) -> Any:
    """Return the one there is under an empty name, or all by name."""
    return found[""] if list(found) == [""] else dict(found)


@dataclass(frozen=True)
class Array:
    """Numbers or names over named dimensions; None in place of values where there are none.

    A list in JSON. In HDF5 a variable, left out without values; one whose dimension has its own name is a
    coordinate.
    """

    dims: tuple[str, ...]
    values: ArrayLike | None


@dataclass(frozen=True)
class Attr:
    """A number or words that are an attribute in HDF5, NaN or left out where there are none."""

    value: float | str | None


@dataclass(frozen=True)
class Each:
    """What JSON and HDF5 hold each in its own form; `ABSENT` for what one of them leaves out."""

    json: Any = ABSENT
    hdf5: Any = ABSENT


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Parameters
    ----------
    key : str
        Its name in JSON and HDF5.
    values : sequence
        One a row: numbers or words, None for no value.
    label : str
        What stands above it; empty for a column that is not shown.
    form : str or callable
        How a value is written; `str` for words.
    page_form : str or callable, optional
        Likewise on pages, where that differs.
    where : str
        Which of "json hdf5 text page" have it.
    bad : sequence of bool
        Rows whose value is marked on pages.
    spare : bool
        Whether a terminal leaves it out where the table would be too wide.
    if_any : bool
        Whether a terminal leaves it out where no row has a value.
    left : bool
        Whether a terminal has it to the left, as words.
    optional : bool
        Whether JSON leaves it out of rows without a value, and HDF5 where no row has one.
    note : str
        What it is, in a sentence that stands below the table wherever the column is shown.
    """

    key: str
    values: Sequence[Any]
    label: str = ""
    form: str | Callable[[Any], str] = ".4g"
    page_form: str | Callable[[Any], str] | None = None
    where: str = "json hdf5 text page"
    bad: Sequence[bool] = ()
    spare: bool = False
    if_any: bool = False
    left: bool = False
    optional: bool = False
    note: str = ""

    @classmethod
    def of_words(
        cls, values: Sequence[Any], label: str, where: str = "text page", **more: Any
    ) -> TableColumn:
        """Return a column of words that are only shown."""
        return cls("", values, label, str, where=where, **more)

    def cells(self, *, page: bool = False) -> list[str]:
        """Return the values as text, a dash where there is none."""
        form = self.page_form if page and self.page_form is not None else self.form
        write = form if callable(form) else f"{{:{form}}}".format
        return ["-" if value is None else write(value) for value in self.values]


@dataclass(frozen=True)
class Table:
    """A labelled table, one row a name.

    Parameters
    ----------
    dim : str
        What rows are: the dimension in HDF5, and the head of the names on pages unless `title` is given.
    rows : sequence of str
        Their names.
    columns : sequence of Column
    layout : {"objects", "list", "values"}
        JSON: an object of objects by name, a list of objects with their `name`, or an object of the values of
        the one column.
    title : str
    coordinate : sequence of str, optional
        Names of the rows in HDF5, where these differ.
    shown : sequence of str, optional
        Names of the rows in text and on pages, where these differ.
    """

    dim: str
    rows: Sequence[str]
    columns: Sequence[TableColumn]
    layout: str = "objects"
    title: str = ""
    coordinate: Sequence[str] | None = None
    shown: Sequence[str] | None = None

    @property
    def names(self) -> Sequence[str]:
        """What stands before the rows of text and pages."""
        return self.rows if self.shown is None else self.shown

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Give each row as JSON has it, its name first."""
        held = [column for column in self.columns if "json" in column.where]
        for place, name in enumerate(self.rows):
            figures = {column.key: column.values[place] for column in held}
            rare = {column.key for column in held if column.optional}
            yield {self.dim: name} | {k: v for k, v in figures.items() if k not in rare or v is not None}

    def take(self, places: Sequence[int]) -> Table:
        """Return the table of some rows, in this order."""

        def chosen(values: Sequence[Any]) -> list[Any]:
            return [values[place] for place in places] if len(values) else []

        columns = [replace(c, values=chosen(c.values), bad=chosen(c.bad)) for c in self.columns]
        shown = None if self.shown is None else chosen(self.shown)
        return replace(self, rows=chosen(self.rows), columns=columns, coordinate=None, shown=shown)


def notes_of(shown: Sequence[TableColumn]) -> str:
    """Return what is said below a table of the columns that it shows; empty for nothing."""
    return " ".join(column.note for column in shown if column.note)


class Words(NamedTuple):
    """A paragraph, with the indent of its further lines on a terminal."""

    text: str
    indent: str = "  "


class Note(NamedTuple):
    """A paragraph in small; **so** it emphasizes on pages."""

    text: str


class Items(NamedTuple):
    """A list; each may emphasize, as a note."""

    texts: Sequence[str]
    small: bool = False


class Facts(NamedTuple):
    """Names and what they are."""

    facts: Mapping[str, str]


class Code(NamedTuple):
    """Text as it is, under a title."""

    title: str
    text: str


class Tile(NamedTuple):
    """A figure at the head of a page."""

    name: str
    value: str
    note: str


Block: TypeAlias = str | Words | Note | Items | Facts | Code | Table
"""What is shown below each other; a plain string is a paragraph."""


@dataclass(frozen=True)
class ResultSection:
    """One quantity of a result.

    Parameters
    ----------
    key : str
        Its name in JSON, and its group in HDF5.
    data
        What both hold; None for nothing (null, and no group), `ABSENT` where it is only shown.
    title : str
        Heading on pages; without one nothing but tiles is shown there.
    brief : sequence of str or Words
        Sentences at the head of the text.
    text : sequence of sequence of Block
        What follows there, one inner sequence without an empty line.
    page : sequence of Block, optional
        What pages show, below its pictures; `text` where left out.
    tiles : sequence of Tile
    parts : sequence of Section
        Sections within that section, of which only pages show anything.
    """

    key: str
    data: Any = ABSENT
    title: str = ""
    brief: Sequence[str | Words] = ()
    text: Sequence[Sequence[Block]] = ()
    page: Sequence[Block] | None = None
    tiles: Sequence[Tile] = ()
    parts: Sequence[ResultSection] = ()

    @property
    def on_page(self) -> Sequence[Block]:
        """What pages show of it."""
        return [block for group in self.text for block in group] if self.page is None else self.page


@dataclass(frozen=True)
class Remark:
    """A warning in words; `convergence` says whether it is about the chains rather than about the release.

    `grave` says what it is to the verdict: nothing (None), a reason to take results with care (False), or one
    not to use them (True).
    """

    text: str
    convergence: bool
    grave: bool | None = None


class Figure(NamedTuple):
    """A figure with its interval, written as it is shown, and its unit."""

    name: str
    value: str
    low: str
    high: str
    unit: str = ""


@dataclass(frozen=True)
class Answer:
    """What a reader looks for first; text and pages begin with it.

    Parameters
    ----------
    of : str
        The columns with their units, "income (dollars)".
    records : int
    guarantee : str
        In one sentence.
    verdict : str
        "usable", "with care" or "not yet".
    reasons : sequence of str
        Why.
    figures : sequence of Figure
        Medians and means with their intervals, or what the model has in their place.
    badge : str
        Convergence in a few words.
    """

    of: str
    records: int
    guarantee: str
    verdict: str
    reasons: Sequence[str]
    figures: Sequence[Figure]
    badge: str

    @property
    def in_words(self) -> str:
        """How many records there are."""
        return f"{self.records:,} record{'' if self.records == 1 else 's'}"


@dataclass(frozen=True)
class Tree:
    """A result as sections.

    Parameters
    ----------
    name : str
        Title of its page.
    heading : str
        First line of its page.
    guarantee : str
        What its release guarantees, in words.
    sections : tuple of Section
        In the order of JSON.
    warnings : sequence of str
    calm, lead : str
        What stands on pages in place of warnings, and above them.
    text_order, page_order : sequence of str
        Keys in the order in which text and pages show them; others stand where "*" is, or last.
    answer : Answer or None
        What stands first.
    level : float
        Of its intervals.
    folded : sequence of str
        Keys of sections that pages show folded, as diagnostics.
    """

    name: str
    heading: str
    guarantee: str
    sections: tuple[ResultSection, ...]
    warnings: Sequence[str] = ()
    calm: str = ""
    lead: str = ""
    text_order: Sequence[str] = field(default=(), repr=False)
    page_order: Sequence[str] = field(default=(), repr=False)
    answer: Answer | None = None
    level: float = 0.95
    folded: Sequence[str] = field(default=(), repr=False)

    def __iter__(self) -> Iterator[ResultSection]:
        return iter(self.sections)

    def __contains__(self, key: str) -> bool:
        return any(section.key == key for section in self.sections)

    def __getitem__(self, key: str) -> ResultSection:
        """Return the section called `key`.

        Raises
        ------
        KeyError
            Where there is none.
        """
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)

    def ordered(self, keys: Sequence[str]) -> list[ResultSection]:
        """Return the sections by these keys, others where "*" is among them, or else last."""
        return sorted(self.sections, key=lambda section: place_in(keys, section.key))


def warnings_section(texts: Sequence[str]) -> ResultSection:
    """Return warnings as data: a list in JSON, a variable `text` in HDF5; a tree shows its own."""
    texts = list(texts)
    return ResultSection("warnings", Each(texts, {"text": Array(("warning",), texts)} if texts else ABSENT))


class Quantity(Protocol):
    """A quantity of a result, which knows its section."""

    def section(self) -> ResultSection:
        """Return its data and words."""
        ...
