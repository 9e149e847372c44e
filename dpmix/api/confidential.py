"""What a release states of the table that it is of: its part, and the marks by which the ledger knows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpmix.data.loading import Data, dated
from dpmix.data.text_tables import parser_of
from dpmix.errors import DataError
from dpmix.privacy.fingerprint import Marks, file_digest, rows_digest
from dpmix.spec.table_source import MARKS
from dpmix.store.atomic import reason
from dpmix.synthesis.records import Records

if TYPE_CHECKING:
    from dpmix.privacy.accounting import Guarantee
    from dpmix.release.sanitized import Release
    from dpmix.spec import RunSpec

_Table = dict[str, NDArray[np.float64] | Sequence[str]]
_PARSERS = (parser_of(",", dates=False), parser_of(".", dates=True))
"""Of cells that `rows_digest` takes for text, as columns of numbers or dates are read."""


def of_part(spec: RunSpec, guarantee: Guarantee) -> Guarantee:
    """Return what a release of a spec's data guarantees: that of a public part, where they are one."""
    part = None if spec.data is None else spec.data.part
    return guarantee if part is None else guarantee.of_public_part()


def stated_release(spec: RunSpec, release: Release, guarantee: Guarantee, ledger: str | None) -> Release:
    """Return a release with its neighbouring relation, what became of its entry, units and columns of dates.

    `guarantee` is as `of_part` gives it; `ledger` ``"entered"``, ``"bypassed"``, or None where no ledger is
    configured.
    """
    unit = None if spec.data is None else spec.data.unit
    return replace(
        release,
        adjacency=str(guarantee.adjacency),
        ledger=ledger,
        unit=unit or release.unit,
        dates=release.dates or dated(spec.data),
    )


def marks_of(spec: RunSpec, data: Data | Records) -> Marks:
    """Return the marks of a table that was read, of its rows and of its file where it is one.

    The rows are those of `data.table`, or where that is empty what was made of it.

    Raises
    ------
    DataError
        When the file cannot be read any more.
    """
    names = [column.name for column in data.columns] if isinstance(data, Records) else data.columns
    table = data.table or dict(zip(names, data.values.T, strict=True))
    # what reads as a missing value is one here, whether or not it is listed as a category
    read: _Table = {
        name: column if isinstance(column, np.ndarray) else ["" if cell in MARKS else cell for cell in column]
        for name, column in table.items()
    }
    rows: _Table = {
        name: column if isinstance(column, np.ndarray) else _as_numbers(column)
        for name, column in read.items()
    }
    files = () if spec.data is None else spec.data.files
    path = files[0] if len(files) == 1 else None  # several files are known by their rows
    try:
        file = None if path is None else file_digest(path)
    except (OSError, EOFError) as error:
        said = reason(error) if isinstance(error, OSError) else "the file is damaged"
        raise DataError(f"cannot read {path}: {said}") from None
    former = [] if rows == read else [read]
    if spec.mechanism is not None and spec.mechanism.reads == "compositions":
        former.append(_without_incomplete(read))
    return Marks(tuple(sorted(rows)), rows_digest(rows), file, tuple(map(rows_digest, former)))


def _as_numbers(column: Sequence[str]) -> Sequence[str]:
    """Write decimal commas and dates as the numbers that they are where a column is read as such."""
    written: dict[str, str] = {}
    for cell in set(column):
        numbers = (parse(cell) for parse in _PARSERS)
        number = next((x for x in numbers if x is not None and math.isfinite(x)), None)
        written[cell] = cell if number is None else float.__repr__(number)
    return [written[cell] for cell in column]


def _without_incomplete(table: _Table) -> _Table:
    """Take out the shares of incomplete compositions, as earlier versions did before they made marks."""
    numbers = [column for column in table.values() if isinstance(column, np.ndarray)]
    gone = np.isnan(numbers).any(axis=0)
    return {
        name: np.where(gone, np.nan, column) if isinstance(column, np.ndarray) else column
        for name, column in table.items()
    }
