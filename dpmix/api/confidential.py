"""What every release of confidential records goes through, and what it states of the table that it is of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.cautions import guaranteed, heed, of_ledger, of_release
from dpmix.api.spending import counting, entry_steps
from dpmix.data.loading import dated
from dpmix.data.text_tables import parser_of
from dpmix.errors import DataError, UsageError, say
from dpmix.privacy.accounting import Adjacency
from dpmix.privacy.fingerprint import Marks, file_digest, rows_digest
from dpmix.spec.table_source import MARKS
from dpmix.store.atomic import claimed, reason
from dpmix.synthesis.records import Records

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dpmix.api.arguments import PathLike
    from dpmix.api.cautions import Caution
    from dpmix.api.spending import Entering, Spending
    from dpmix.data.loading import Data
    from dpmix.mechanisms.curators.mechanism import Sanitizer
    from dpmix.privacy.accounting import Guarantee
    from dpmix.release.sanitized import Release
    from dpmix.spec import RunSpec

_Table = dict[str, NDArray[np.float64] | Sequence[str]]
_PARSERS = (parser_of(",", dates=False), parser_of(".", dates=True))
"""Of cells that `rows_digest` takes for text, as columns of numbers or dates are read."""


# From records to a release that is entered, drawn and written


def check_apart(spec: RunSpec, output: PathLike, final: Path, use: str = "") -> None:
    """Refuse an output, by its resolved path, that is a confidential file of a spec."""
    if spec.data is not None and final in [path.resolve() for path in spec.data.files]:
        raise UsageError(f"{output} is the confidential file itself; give another name{use}")


def release_records(
    spec: RunSpec,
    subject: Sanitizer,
    records: Data | Records,
    words: str,
    *,
    also: Iterable[Caution] = (),
    spending: Spending | None,
    entering: Entering,
    output: Path | None,
    write: Callable[..., None],
    force: bool,
    drawing: AbstractContextManager[Any],
    seeded: str,
    quiet: bool,
) -> Release:
    """Return the release of records, which is entered in the ledger before it is drawn, and then written.

    Parameters
    ----------
    words : str
        What is done to the records, in one clause.
    also : sequence of Caution
        What is to be said before, beside what `of_release` says.
    spending, entering
        As `spending_of` takes and gives them.
    output : path or None
        Where `write` writes it, which takes `force`.
    drawing : context manager
        Shows how far the drawing is; what it gives is told, see `Sanitizer.release`.
    seeded : str
        What is seeded of simulated records, such as "noise".

    Raises PrivacyError, DataError and UsageError as `heed`, `Spending.reserve`, `Sanitizer.release` and
    `write`.
    """
    heed([*of_release(subject, records.n), *also, *of_ledger(spending)], spec, entering.yes, quiet=quiet)
    guarantee = of_part(spec, subject.guarantee)
    with claimed(output):  # before anything is spent
        if spending is not None:
            marks = marks_of(spec, records)
            spending.reserve(subject.describe(), records.names, guarantee, marks, output=output, force=force)
        bypassed = entering.said_of(spec)
        with counting(spending):
            with drawing as report:
                release, clamped = subject.release(records, report)
            unit = None if spec.data is None else spec.data.unit
            release = replace(
                release,
                adjacency=str(guarantee.adjacency),
                ledger="entered" if spending is not None else bypassed,
                unit=unit or release.unit,
                dates=release.dates or dated(spec.data),
            )
            release = release.with_types(None if spec.data is None else spec.data.types)
            if output is not None:
                write(output, release, force=force)
        entered = None if spending is None else spending.finish(output)  # before anything that may fail
    say(_with_guarantee(words, subject, guarantee), quiet)
    if release.mechanism.chosen:
        say(release.mechanism.chosen, quiet)
    for name, count in zip(records.names, clamped, strict=True):
        if count:
            say(f"warning: {count} of {release.n} values of {name} were outside the bounds, and clamped")
    if isinstance(records, Records):
        for column, count in zip(records.columns, records.rounded, strict=False):
            if count:
                kind = f"had more than {column.digits} digits" if column.digits else "were no whole numbers"
                say(f"warning: {count} of {release.n} values of {column.name} {kind}, and were rounded")
    if records.simulated:
        unspent = "" if spec.privacy is None else ", costs nothing and is entered in no ledger"
        say(
            f"the data are simulated and their {seeded} is seeded: this release is not private{unspent}",
            quiet,
        )
    if entered is not None:
        say(entered, quiet)
    return release


def steps_of(
    spec: RunSpec,
    subject: Sanitizer,
    n: int | None,
    words: str,
    *,
    also: Iterable[Caution] = (),
    spending: Spending | None,
    entering: Entering | None,
) -> list[str]:
    """Say what a release would do and enter, without drawing anything; what is said before it is said.

    Raises PrivacyError, DataError and UsageError as `heed` and `entry_steps`.
    """
    yes = entering is not None and entering.yes
    heed([*of_release(subject, n), *also, *of_ledger(spending)], spec, yes)
    guarantee = of_part(spec, subject.guarantee)
    step = _with_guarantee(words, subject, guarantee)
    return [step, *entry_steps(spec, spending, entering, guarantee)]


def _with_guarantee(words: str, subject: Sanitizer, guarantee: Guarantee) -> str:
    grouped = subject.guarantee.adjacency == Adjacency.PRIVATE_GROUPS
    return f"{words}; {guaranteed(guarantee, grouped=grouped)}"


# What a release states of the table that it is of


def of_part(spec: RunSpec, guarantee: Guarantee) -> Guarantee:
    """Return what a release of a spec's data guarantees: that of a public part, where they are one."""
    part = None if spec.data is None else spec.data.part
    return guarantee if part is None else guarantee.of_public_part()


def marks_of(spec: RunSpec, data: Data | Records) -> Marks:
    """Return the marks of a table that was read, of its rows and of its file where it is one.

    The rows are those of `data.table`, or where that is empty what was made of it.

    Raises
    ------
    DataError
        When the file cannot be read any more.
    """
    table = data.table or dict(zip(data.names, data.values.T, strict=True))
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
