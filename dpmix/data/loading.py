"""From the section ``data`` of a spec to checked arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.columns.column_units import Categories
from dpmix.data.missing import Missing
from dpmix.data.simulations import generators, simulate_groups, simulate_records
from dpmix.data.tables import count_records, load_mixed, load_table, load_text
from dpmix.errors import DataError, SpecError
from dpmix.spec.table_source import is_stream

if TYPE_CHECKING:
    from dpmix.spec import RunSpec
    from dpmix.spec.data_section import ColumnsSection, DataSpec


@dataclass(frozen=True, eq=False)
class Data:
    """Confidential records, or simulated ones.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d), or (n, d + 1)
        Finite, at least two records. The codes of groups, where there are groups, are the last column.
    columns : tuple of str
        Names of the d columns.
    rng : Generator or None
        For simulated records, the generator that their noise may come from; None for real ones, which take
        their noise from the operating system.
    group : str or None
        Name of the column of groups whose sizes are private.
    table : mapping of str to float64 array (n,), or tuple of n str
        What was read, by column, before anything was made of it; by it the ledger knows the table again.
    """

    values: NDArray[np.float64]
    columns: tuple[str, ...]
    rng: np.random.Generator | None = None
    table: Mapping[str, NDArray[np.float64] | Sequence[str]] = field(default_factory=dict)
    group: str | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as of `dpmix.synthesis.records.Records`."""
        return self.columns

    @property
    def simulated(self) -> bool:
        """Whether the records were simulated."""
        return self.rng is not None

    def __repr__(self) -> str:
        """Show the shape, and no values."""
        return f"Data(n={self.n}, columns={self.columns}, simulated={self.simulated})"


def load_data(spec: RunSpec) -> Data:
    """Read, or simulate, the records of the section ``data``.

    Simulated data and their noise are drawn from ``data.seed``; without one, from a fresh seed.

    Raises
    ------
    SpecError
        When there is no such section, or it is not of numbers.
    DataError
        For what `load_table` refuses, and fewer than two records.
    """
    section = spec.data
    if section is None:
        raise SpecError("data: missing; name the confidential file, its columns and their public domain")
    reads = "numbers" if spec.mechanism is None else spec.mechanism.reads
    if reads == "levels":
        return _load_codes(spec, spec.mechanism)
    if reads in ("category", "categories"):
        return _load_categories(spec, several=reads == "categories")
    if section.labelled:
        raise SpecError("data.categories: are not for numeric columns; give data.domain instead")
    if section.simulate is not None:
        return _simulated(section)
    missing = missing_of(section, whole=reads == "compositions")
    if section.group is not None:
        return _load_groups(section, section.group, missing)
    values, names = load_table(section.source, section.columns, least=2, missing=missing)
    missing.tell()
    return Data(values, names, table=missing.as_read(dict(zip(names, values.T, strict=True))))


def _load_groups(section: DataSpec, group: str, missing: Missing) -> Data:
    """Return numeric columns, and the codes of groups beside them."""
    if section.columns is None:
        raise SpecError("data.columns: missing; name the columns of values, without that of the groups")
    numbers, texts = load_mixed(section.source, section.columns, [group], least=2, missing=missing)
    missing.tell()
    codes = coded(texts[group], group, section.groups)
    table = missing.as_read({**numbers, **texts})
    return Data(np.column_stack([*numbers.values(), codes]), section.columns, table=table, group=group)


def missing_of(section: DataSpec, *, whole: bool = False) -> Missing:
    """Return what stands for missing values in the columns of ``data``.

    With `whole`, a record with any missing value is replaced as a whole.
    """
    return Missing(section.missing, section.listed, whole)


def _simulated(section: DataSpec) -> Data:
    """Return simulated records, and the generator of their noise."""
    assert section.simulate is not None and section.n is not None  # the spec requires it
    if section.n < 2:
        raise SpecError("data.n: at least 2 records are needed")
    columns = section.columns or ("value",)
    draws, noise = generators(section.seed)
    if section.group is None:
        assert not isinstance(section.alpha, dict)  # that is by group
        values = simulate_records(section.simulate, section.n, draws, section.alpha)
    else:
        values = simulate_groups(section.simulate, section.n, draws, section.groups, section.alpha)
    if len(columns) != values.shape[1] - (section.group is not None):
        raise SpecError(f"data.columns: {section.simulate} has one column")
    return Data(values, columns, noise, group=section.group)


def _load_codes(spec: RunSpec, mechanism: Any) -> Data:
    """Return the levels of features and the class, as codes from 0 on.

    Columns with public categories are coded by them; others hold whole numbers from 1 on.
    """
    section = spec.data
    assert section is not None  # the caller has looked
    if section.domain is not None:
        raise SpecError("data.domain: is not for levels and classes; list data.categories, or leave it out")
    simulated = None
    if section.simulate is not None:
        if section.simulate != "naive_bayes":
            raise SpecError(f"data.simulate: {section.simulate} has no levels and classes; take naive_bayes")
        if section.labelled:
            raise SpecError("data.categories: naive_bayes has whole numbers from 1 on; leave them out")
        simulated = _simulated(section)
    columns = section.columns if simulated is None else simulated.columns
    if columns is None:
        raise SpecError("data.columns: noisy_counts needs columns of levels, the class the last of them")
    sizes = (*mechanism.levels, mechanism.classes)
    if len(sizes) != len(columns):
        raise SpecError(
            f"mechanism.levels: has {len(mechanism.levels)} entries, but data.columns names {len(columns)} "
            "columns; give one for each feature, the class being the last column"
        )
    listed = [section.categories_of(i) for i in range(len(columns))]
    listed_group = [] if section.group is None or simulated is not None else [section.group]
    numeric = [name for name, names in zip(columns, listed, strict=True) if names is None]
    textual = [name for name, names in zip(columns, listed, strict=True) if names is not None]
    texts: dict[str, tuple[str, ...]] = {}
    missing = missing_of(section)
    if simulated is not None:
        numbers = dict(zip(columns, simulated.values.T, strict=False))  # groups may stand last
    else:
        numbers, texts = load_mixed(
            section.source, numeric, [*textual, *listed_group], least=2, missing=missing
        )
        missing.tell()
    parts = []
    for name, names, size in zip(columns, listed, sizes, strict=True):
        if names is not None:
            parts.append(coded(texts[name], name, tuple(str(category) for category in names)))
            continue
        column = numbers[name]
        bad = (column != np.floor(column)) | (column < 1) | (column > size)
        if bad.any():
            raise DataError(
                f"column {name!r} has a value in record {int(np.argmax(bad)) + 1} that is none of its {size} "
                f"levels: whole numbers from 1 to {size}, or list data.categories"
            )
        parts.append(column - 1)
    if section.group is not None:
        own = None if simulated is None else simulated.values[:, -1]
        parts.append(coded(texts[section.group], section.group, section.groups) if own is None else own)
    rng = None if simulated is None else simulated.rng
    return Data(
        np.column_stack(parts), tuple(columns), rng, missing.as_read({**numbers, **texts}), section.group
    )


def _load_categories(spec: RunSpec, *, several: bool = False) -> Data:
    """Return the codes of columns of public categories: of one, or of `several`."""
    section, kind = spec.data, "" if spec.mechanism is None else spec.mechanism.kind
    assert section is not None  # the caller has looked
    if section.simulate is not None or section.columns is None or (len(section.columns) != 1 and not several):
        key = "simulate" if section.simulate is not None else "columns"
        number = "named columns" if several else "one named column"
        raise SpecError(f"data.{key}: {kind} needs {number} of categories")
    listed = [section.categories_of(i) for i in range(len(section.columns))]
    if any(names is None for names in listed):
        of = "every column" if several else "the column"
        raise SpecError(f"data.categories: missing; list the public categories of {of}")
    missing = missing_of(section)
    found = load_text(section.source, section.columns, least=2, missing=missing)
    texts = dict(zip(section.columns, found, strict=True))
    missing.tell()
    codes = [
        coded(texts[column], column, tuple(str(name) for name in names or ()))
        for column, names in zip(section.columns, listed, strict=True)
    ]
    return Data(np.column_stack(codes), section.columns, table=missing.as_read(texts))


def coded(texts: Sequence[str], name: str, categories: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the number of each text among public categories, which are told apart as text, then as numbers.

    Raises
    ------
    DataError
        Naming the record, not its value, when a text is none of them.
    """
    known = Categories(categories)
    found = np.empty(len(texts))
    for i, text in enumerate(texts):
        code = known.code(text)
        if code < 0:
            raise DataError(
                f"column {name!r} has a value in record {i + 1} that is none of data.categories; list every "
                "category that may occur"
            )
        found[i] = code
    return found


def dated(*sections: ColumnsSection | None) -> tuple[str, ...]:
    """Return the names of the columns that are dates, by whichever section says so."""
    return tuple(sorted({name for section in sections if section is not None for name in section.dates}))


def number_of_records(spec: RunSpec) -> int:
    """Return the number of records, which is public, without a look at what any of them holds.

    Raises
    ------
    SpecError
        When the spec names no data.
    DataError
        As `count_records`.
    """
    if spec.data is None:
        raise SpecError("data: missing; name the confidential file, its columns and their public domain")
    return spec.data.n or count_records(spec.data.source, spec.data.columns)


def check_countable(spec: RunSpec, key: str) -> None:
    """Refuse to count the records of standard input, which the release itself reads, once.

    Raises
    ------
    SpecError
        Naming `key`, by which their number can be said.
    """
    if spec.data is not None and is_stream(spec.data.path):
        raise SpecError(
            f"{key}: missing; standard input is read by the release alone, so say how many records"
        )


def listed_of(spec: RunSpec, names: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Return the public categories of released columns, of ``release``, else of ``data``."""
    found: list[tuple[str, ...] | None] = []
    for number, name in enumerate(names):
        known: tuple[str | int | float, ...] | None = None
        for section in (spec.release, spec.data):
            columns = None if section is None else section.columns
            if section is not None and known is None and (columns is None or name in columns):
                known = section.categories_of(number if columns is None else columns.index(name))
        found.append(None if known is None else tuple(str(category) for category in known))
    return found
