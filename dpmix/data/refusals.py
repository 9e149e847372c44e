"""The errors of tables: they name file, column, record and line, and show nothing of confidential data."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from dpmix.errors import DataError
from dpmix.spec.limits import MOST_RECORDS, MOST_VALUES

__all__ = ["cannot_be", "empty_end", "no_column", "no_value", "too_many"]


def place(record: int, line: int | None) -> str:
    """Name a record of a table, and its line where it has one."""
    return f"record {record}" if line is None else f"record {record} (line {line})"


def no_value(part: object, name: str, record: int, line: int | None, text: str, public: bool) -> DataError:
    """Return the error of a cell that is a missing value."""
    problem = "is missing" if text else "is empty"
    more = "" if public else f"; {advice(name)}"
    return DataError(f"{part}: the cell of column {name!r} in {place(record, line)} {problem}{more}")


def cannot_be(part: object, name: str, record: int, line: int | None, why: str) -> DataError:
    """Return the error of a cell that does not hold what its column is of."""
    return DataError(f"{part}: the cell of column {name!r} in {place(record, line)} {why}")


def empty_end(part: object, line: int, public: bool) -> DataError:
    """Return the error of empty lines at the end of one column, which may be missing values or no records."""
    what = "remove it" if public else "write NA in it if it is a missing value, and remove it only"
    return DataError(f"{part} ends in an empty line (line {line}); {what} if it is no record")


def too_many(path: object, width: int) -> DataError:
    """Return the error of a table that has more records than are read."""
    most = min(MOST_RECORDS, MOST_VALUES // max(1, width))
    wide = f"{width} column{'s' * (width != 1)}"
    return DataError(f"{path} has more than {most:,} records of {wide}, the most that are read")


def no_column(
    path: object, name: str, known: Sequence[str], *, public: bool, sure: Sequence[str] = ()
) -> DataError:
    """Return the error of a missing column.

    Parameters
    ----------
    path : object
        The table.
    name : str
        What was asked for.
    known : sequence of str
        The first line of the table, or its names of columns.
    public : bool
        Whether these may be shown. The first line of a confidential table may be a record: of it only what
        differs by capitals and marks from what was asked for is shown.
    sure : sequence of str
        Those of `known` that are names for sure.
    """
    alike = [k for k in known if _bare(k) == _bare(name)]
    close = alike or difflib.get_close_matches(name, known if public else sure, n=1, cutoff=0.5)
    if close:
        return DataError(f"{path} has no column {name!r}; did you mean {close[0]!r}?")
    if not public:
        among = f"among its {len(known)} columns" if len(known) != 1 else "in its one column"
        return DataError(
            f"{path} has no column {name!r} {among}; give it as the first line does, which must be a header"
        )
    listed = ", ".join(repr(k) for k in known[:8]) + (", .." if len(known) > 8 else "")
    return DataError(f"{path} has no column {name!r}; it has {listed or 'none'}")


def _bare(name: str) -> str:
    """Return a name without capitals, spaces and marks."""
    return "".join(filter(str.isalnum, name.casefold()))


def advice(name: str) -> str:
    """Say what to do about a missing value of a column."""
    return (
        f"say in data.missing what stands for it, as in {{{name}: value}}; dropping records is not free: "
        "their number n is published, and would tell of one person's missing value"
    )
