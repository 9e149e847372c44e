"""Reading records to predict from: a CSV table, in pieces, its columns matched by name."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import sys
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.data.tables import TableSource, scan_table
from dpmix.data.text_tables import complaint, is_text, parser_of
from dpmix.errors import DataError, UsageError
from dpmix.spec.data_section import LABEL
from dpmix.spec.summary_section import PREDICTED_FROM
from dpmix.spec.table_source import (
    MARKS,
    Dialect,
    InMemory,
    StandardInput,
    TableFiles,
    delimiter_of,
    delimiter_problem,
    is_encoding,
    is_stream,
)

if TYPE_CHECKING:
    from dpmix.models.predictor_base import Input

_OWN_KEYS = re.compile(r"\b(?:data|release)\.(delimiter|decimal|encoding)\b")

PIECE = 1 << 16
"""Records that are predicted at a time."""

Piece = NDArray[np.float64]


class _Stream(StandardInput):
    """Standard input that is read once, and not kept."""

    def open(self, encoding: str = "utf-8-sig") -> IO[str]:
        """Return its text.

        Raises
        ------
        DataError
            When there is no standard input.
        """
        if sys.stdin is None or sys.stdin.closed:
            raise DataError("--at: - is standard input, and there is none")
        binary = getattr(sys.stdin, "buffer", None)
        if binary is None:
            return io.StringIO(sys.stdin.read(), newline="")
        return io.TextIOWrapper(_Open(binary), encoding=encoding, newline="")


class _Open(io.BufferedReader):
    """Bytes of a stream that stays open when reading ends."""

    def close(self) -> None:
        """Leave the stream open."""
        self.detach()


def dialect_of(delimiter: str | None, decimal: str | None, encoding: str | None) -> Dialect:
    """Return how the text of a table is written, as options say it.

    Raises
    ------
    UsageError
        For what is no delimiter, decimal mark or encoding.
    """
    if delimiter is not None:
        problem = delimiter_problem(delimiter)
        if problem is not None:
            raise UsageError(f"--delimiter: {problem.format(got=repr(delimiter))}")
        delimiter = delimiter_of(delimiter)
    if decimal not in (None, ".", ","):
        raise UsageError(f"--decimal: must be . or a comma, not {decimal!r}")
    if encoding is not None and not is_encoding(encoding):
        raise UsageError(f"--encoding: {encoding} is no encoding that Python knows")
    return Dialect(delimiter, decimal or ".", encoding or "utf-8")


def table_source(at: str | os.PathLike[str] | Any, dialect: Dialect | None = None) -> TableFiles:
    """Return what the name of a table to predict from stands for, written as `dialect` says; or that table.

    Raises
    ------
    DataError
        When it is not there, or no table of named columns by its name.
    UsageError
        For a dialect of a file that is no text.
    """
    if not isinstance(at, str | os.PathLike):
        held = InMemory(at)
        if not held.named:
            raise DataError("at: columns are found by their names; give a DataFrame or a mapping of columns")
        if dialect not in (None, Dialect()):
            raise UsageError("delimiter, decimal, encoding: are for text, and at is none; leave them out")
        return TableFiles((held,))
    if is_stream(os.fspath(at)):
        return TableFiles((_Stream(),), dialect or Dialect())
    path = Path(at)
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if not path.name.lower().endswith(PREDICTED_FROM):
        raise DataError(f"{path} is no table to predict from; give one of {', '.join(PREDICTED_FROM)}")
    if dialect not in (None, Dialect()) and not is_text(path):
        raise UsageError(
            f"--delimiter, --decimal, --encoding: are for text, and {path.name} is none; leave them out"
        )
    return TableFiles((path,), dialect or Dialect())


def read_pieces(
    source: TableSource,
    inputs: Sequence[Input],
    take: Callable[[Piece, int], None],
    *,
    most: int | None = None,
    keys: str = "--",
    at_once: int = PIECE,
) -> int:
    """Read the columns that predictions need, hand them over in pieces, and return the number of records.

    Other columns of the table are passed over, and the order does not matter. `take` has a piece, float64
    array (records, inputs) of numbers and codes of categories, and the number of its first record, counted
    from 1; at `most` so many records are accepted. `keys` stands before delimiter, decimal and encoding in
    messages; a piece has `at_once` records.

    Raises
    ------
    DataError
        As `dpmix.data.tables.load_table`, naming column, record and line; for a text that is none of the
        categories, and for more records than are accepted.
    """
    held = array("d")
    count = 0
    written = source.dialect if isinstance(source, TableFiles) else Dialect()
    # cells of typed columns are numbers, written with a point
    typed = isinstance(source, TableFiles) and not all(map(is_text, source.parts))
    dialect = Dialect() if typed else written

    def hand_over() -> None:
        if held:
            rows = np.array(held, dtype=np.float64).reshape(-1, len(inputs))
            del held[:]
            take(rows, count - len(rows) + 1)

    def each(record: int, line: int, cells: dict[str, str]) -> None:
        nonlocal count
        if most is not None and record > most:
            raise DataError(
                f"{source} has more than {most:,} records, the most that summary.at takes; dpmix "
                "predict takes any number"
            )
        held.extend([_value(source, part, cells[part.name], record, line, dialect) for part in inputs])
        count = record
        if len(held) >= at_once * len(inputs):
            hand_over()

    try:
        scan_table(source, [part.name for part in inputs], each)
    except DataError as error:
        raise DataError(_OWN_KEYS.sub(rf"{keys}\1", str(error))) from None
    hand_over()
    if not count:
        raise DataError(f"{source} has no records; at least 1 is needed")
    return count


class _Seen(Exception):  # noqa: N818 - no error: the first record is there
    """A record that needs no further look."""


def check_first(source: TableSource, inputs: Sequence[Input]) -> None:
    """Look at a table as `read_pieces` does, no further than its first record.

    Raises DataError as `read_pieces`.
    """

    def take(_: Piece, first: int) -> None:
        raise _Seen

    with contextlib.suppress(_Seen):
        read_pieces(source, inputs, take, at_once=1)


def _value(source: TableSource, part: Input, cell: str, record: int, line: int, dialect: Dialect) -> float:
    """Return the number in a cell, or the code of its category."""
    text = cell.strip()
    where = f"{source}: the cell of column {part.name!r} in record {record} (line {line})"
    if part.categories is not None:
        code = part.categories.code(text)
        if code < 0 and text in MARKS:
            code = part.categories.code(LABEL)
            if code < 0:
                raise DataError(
                    f"{where} is missing, and the fit has no category {LABEL} of it; fill in what stood for "
                    "missing values in the release, or leave the record out"
                )
        if code < 0:
            raise DataError(f"{where} is none of the {len(part.categories)} categories {_some(part)}")
        return float(code)
    if text in MARKS:
        raise DataError(
            f"{where} is missing; fill in what stood for missing values in the release, or leave the record "
            "out"
        )
    mark = dialect.decimal
    value = parser_of(mark, dates=part.date)(text)
    if value is None:
        said = complaint(text, mark, dates=part.date)
        raise DataError(f"{where} {said}")
    if not math.isfinite(value):
        raise DataError(f"{where} is not a finite number")
    return float(value)


def _some(part: Input) -> str:
    """List the public categories, or the first of many."""
    assert part.categories is not None
    labels = part.categories.labels
    return f"({', '.join(labels[:8])}{', ..' if len(labels) > 8 else ''})"
