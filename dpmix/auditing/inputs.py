"""What is audited: releases as rows of numbers, and neighbouring databases to tell apart.

Of mechanisms and generators the databases are made of public bounds and categories alone; no confidential
value is read. Of another program they are two tables that are given, or made likewise. Nothing is known of
its law, so that events are learnt from its releases alone, and no fault can be planted: what so many releases
could have shown at most is said instead.
"""

from __future__ import annotations

import atexit
import csv
import shutil
import subprocess
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import DataError, SpecError
from dpmix.mechanisms.curators.mechanism import Loss, Pair, Sanitizer
from dpmix.privacy.accounting import Guarantee
from dpmix.spec.audit_section import INPUT, OUTPUT, AuditSpec

if TYPE_CHECKING:
    from dpmix.spec.run_spec import RunSpec

Floats = NDArray[np.float64]

ENOUGH = 1000
"""Records that a database has at most where noise and guarantee do not depend on their number."""
_MOST = 100_000
"""Numbers of one release of a program, beyond which an audit would take too long."""

Row = tuple[str, ...]
Program = Callable[[Any], Any]
"""From a table, shape (n, d), to a release: numbers of any shape."""


@dataclass(frozen=True)
class AuditedSubject:
    """What is audited.

    Parameters
    ----------
    kind : str
        Of the mechanism or the generator.
    claim : Guarantee
        By its own account.
    pairs : tuple of Pair
        Neighbouring databases.
    draw : callable
        From a database and a number of runs to as many independent releases, shape (runs, q), all that they
        tell as numbers.
    batch : int
        Runs to ask for at once.
    loss : callable, optional
        From a pair to the privacy loss of releases under the claimed law, or None where that is not known.
    fault : str
        What is wrong with `faulty`.
    faulty : callable, optional
        Gives the same subject with a fault that an audit should find.
    strays : callable, optional
        Whether releases have values beyond the public bounds; None where they may.
    stated : int
        Number of records that the guarantee is stated for; the databases may have fewer.
    """

    kind: str
    claim: Guarantee
    pairs: tuple[Pair, ...]
    draw: Callable[[Floats, int], Floats]
    batch: int = 250
    loss: Callable[[Pair], Loss | None] = lambda pair: None
    fault: str = ""
    faulty: Callable[[], AuditedSubject] | None = None
    strays: Callable[[], bool | None] = lambda: None
    stated: int = 0


# What draws from records


def subject_of(
    subject: Sanitizer, columns: Sequence[str], n: int, check: Callable[[int, int], None] | None = None
) -> AuditedSubject:
    """Return a mechanism or a generator with the neighbouring databases of n records that it is audited by.

    One that noises each record by itself gets one record, and one whose noise does not depend on their number
    a thousand at most. `check` is called, before databases are made, with the number of records and of
    numbers that a release goes through.
    """
    claim, stated = subject.guarantee, n
    local = claim.trust == "local"
    if subject.of_any_number and not local and n > ENOUGH:
        subject, n = subject.audited_at(ENOUGH), ENOUGH
    if check is not None:
        check(stated, subject.numbers(len(columns), n))
    pairs = tuple(subject.neighbours(len(columns), 1 if local else n))
    fault, changed = subject.weakened() or ("", None)
    return AuditedSubject(
        kind=subject.kind,
        claim=claim,
        pairs=pairs,
        draw=lambda database, runs: subject.told_of(database, columns, runs),
        batch=4096 if local else 250,
        loss=lambda pair: subject.loss(pair.one, pair.other),
        fault=fault,
        faulty=None if changed is None else lambda: subject_of(changed, columns, n),
        strays=lambda: subject.strays(pairs[0]),
        stated=stated,
    )


# Other programs


def subject_of_program(
    spec: RunSpec, program: Program | None, tables: Sequence[Any] | None
) -> AuditedSubject:
    """Return a program with neighbouring tables.

    A `program`, in place of the spec's command, goes from a table, as an array of shape (n, d) or as it was
    given, to a release. Two `tables`, in place of the spec's, are anything that it takes, rows of which are
    records.

    Raises
    ------
    SpecError
        When there is no program, or nothing to make tables of.
    DataError
        When tables cannot be read, are equal, or no neighbours.
    """
    asked = spec.audit
    assert asked is not None  # the caller looks
    pairs = _tables(spec, asked, tables, paths=program is None)
    if program is not None:
        name, told = str(getattr(program, "__name__", "program")), program
    elif asked.command is not None:
        name, told = Path(asked.command[0]).name, _program_of_command(asked.command, spec.source_dir)
    else:
        raise SpecError("audit.command: missing; say which program releases, or give one in Python")
    databases = [table for pair in pairs for table in (pair.one, pair.other)]
    width: list[int] = []

    def draw(database: Floats, runs: int) -> Floats:
        releases = [numbers_of(told(databases[int(database[0, 0])])) for _ in range(runs)]
        if not width:
            width.append(max(len(each) for each in releases))
        rows = np.zeros((runs, width[0] + 1))
        for row, each in zip(rows, releases, strict=True):
            row[: min(len(each), width[0])] = each[: width[0]]
            row[-1] = len(each)  # how many there are may tell, too
        return rows

    def place(number: int, records: int) -> Floats:
        return np.full((records, 1), float(number))  # the engine's databases are arrays

    return AuditedSubject(
        kind=name,
        claim=Guarantee(asked.epsilon, asked.delta, None, "global"),
        pairs=tuple(
            Pair(pair.words, place(2 * i, pair.records), place(2 * i + 1, pair.records))
            for i, pair in enumerate(pairs)
        ),
        draw=draw,
        batch=25,
        stated=pairs[0].records,
    )


def numbers_of(release: Any) -> Floats:
    """Return a release as one row of numbers: words count by a checksum.

    Raises
    ------
    DataError
        When there are too many.
    """
    cells = np.asarray(release).ravel()
    if cells.size > _MOST:
        raise DataError(f"the program's release has {cells.size:,} entries; at most {_MOST:,} can be audited")
    if cells.dtype.kind in "fiub":
        found = cells.astype(np.float64)
    else:
        found = np.array([_number(str(cell)) for cell in cells.tolist()], dtype=np.float64)
    return np.nan_to_num(found, nan=-1e300, posinf=1e300, neginf=-1e300)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(zlib.crc32(text.encode()))


def _program_of_command(command: Sequence[str], folder: Path) -> Callable[[Path], Floats]:
    """Return what runs a command on the file of a table, and reads what it writes.

    Raises
    ------
    SpecError
        From what is returned, when the command cannot be run.
    DataError
        From what is returned, when it fails, or writes nothing that can be read.
    """

    def run(table: Path) -> Floats:
        with tempfile.TemporaryDirectory(prefix="dpmix-audit-") as scratch:
            output = Path(scratch) / "release.csv"
            filled = [part.replace(INPUT, str(table)).replace(OUTPUT, str(output)) for part in command]
            try:
                done = subprocess.run(
                    filled, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, check=False
                )
            except OSError as error:
                reason = error.strerror or error
                raise SpecError(
                    f"audit.command: {filled[0]} cannot be run ({reason}); give a program that is here"
                ) from None
            if done.returncode != 0:
                last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                said = f": {last[0][:200]}" if last else ""
                raise DataError(f"audit.command: {filled[0]} ended with exit code {done.returncode}{said}")
            return _read(output, filled[0])

    return run


def _read(output: Path, program: str) -> Floats:
    try:
        with output.open(newline="", encoding="utf-8") as stream:
            cells = [cell for row in csv.reader(stream) for cell in row]
    except OSError:
        raise DataError(f"audit.command: {program} wrote no {OUTPUT}") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"audit.command: {program} wrote an {OUTPUT} that is no CSV file of text") from None
    if not cells:
        raise DataError(f"audit.command: {program} wrote an empty {OUTPUT}")
    return numbers_of(cells)


class _Tables(NamedTuple):
    """Two neighbouring tables as the program takes them, how they differ, and the larger one's records."""

    words: str
    records: int
    one: Any
    other: Any


def _tables(spec: RunSpec, asked: AuditSpec, tables: Sequence[Any] | None, *, paths: bool) -> list[_Tables]:
    if tables is not None:
        if len(tables) != 2:
            raise SpecError(f"tables: {len(tables)} given; an audit takes two neighbouring ones")
        words, records = _compared(*(list(map(_key, _rows_of(table))) for table in tables))
        return [_Tables(words, records, *tables)]
    if asked.tables is not None:
        (names, first), (others, second) = (_read_table(path) for path in asked.tables)
        if names != others:
            one, other = (path.name for path in asked.tables)
            raise DataError(
                f"audit.tables: {other} has other columns than {one}; give two neighbouring tables"
            )
        words, records = _compared(first, second)
        both: Any = asked.tables if paths else (_array(first), _array(second))
        return [_Tables(words, records, *both)]
    return _made(spec, asked.records, paths=paths)


def _rows_of(table: Any) -> list[Any]:
    return list(table.itertuples(index=False)) if hasattr(table, "itertuples") else list(table)


def _key(row: Any) -> Row:
    return tuple(map(str, np.atleast_1d(np.asarray(row, dtype=object)).tolist()))


def _compared(one: list[Row], other: list[Row]) -> tuple[str, int]:
    """Say how two tables differ, and return the larger one's number of records.

    Raises
    ------
    DataError
        When they are equal, or no neighbours.
    """
    gone, come = Counter(one) - Counter(other), Counter(other) - Counter(one)
    missing, added = gone.total(), come.total()
    if (missing, added) == (1, 1):
        return "the tables given, in which one record is replaced", len(one)
    if not missing and not added:
        raise DataError(
            "audit.tables: the two are equal, and no release tells equal tables apart; give two that differ "
            "in one record"
        )
    if sorted((missing, added)) == [0, 1]:
        return "the tables given, of which one has a record more", max(len(one), len(other))
    raise DataError(
        f"audit.tables: the two differ in {max(missing, added):,} records; neighbouring tables differ in one"
    )


def _read_table(path: Path) -> tuple[Row, list[Row]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = [tuple(row) for row in csv.reader(stream) if row]
    except OSError as error:
        raise DataError(f"audit.tables: {path} cannot be read ({error.strerror or error})") from None
    except (UnicodeDecodeError, csv.Error):
        raise DataError(f"audit.tables: {path} is no CSV file of text") from None
    if len(rows) < 2:
        raise DataError(f"audit.tables: {path} has no records")
    return rows[0], rows[1:]


def _array(rows: list[Row]) -> NDArray[Any]:
    try:
        return np.array(rows, dtype=np.float64)
    except ValueError:
        return np.array(rows, dtype=object)


def _made(spec: RunSpec, records: int, *, paths: bool) -> list[_Tables]:
    """Make tables of public bounds and categories: one record goes from the first of each to the last.

    The others stand all at the first, or all at the last.
    """
    data = spec.data
    if data is None or data.columns is None:
        raise SpecError(
            "audit.tables: missing; give two files, or data.columns with their bounds or categories"
        )
    ends: list[tuple[Any, Any]] = []
    for i, name in enumerate(data.columns):
        names = data.categories_of(i)
        if names is not None:
            ends.append((names[0], names[-1]))
        elif data.pairs is not None and i < len(data.pairs):
            ends.append(data.pairs[i])
        else:
            raise SpecError(
                f"data.domain: missing for {name}; tables are made of public bounds or categories"
            )
    first, last = (tuple(str(pair[side]) for pair in ends) for side in (0, 1))
    found = []
    for rest, where in ((first, "first"), (last, "last")):
        one, other = ([moved, *[rest] * (records - 1)] for moved in (first, last))
        words = f"a record goes from the first bounds and categories to the last, the others at the {where}"
        both = [_written(data.columns, rows) if paths else _array(rows) for rows in (one, other)]
        found.append(_Tables(words, records, *both))
    return found


def _written(columns: Sequence[str], rows: list[Row]) -> Path:
    """Write a table to a file that goes when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dpmix-audit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([tuple(columns), *rows])
    return path
