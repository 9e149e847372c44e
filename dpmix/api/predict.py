"""`dpmix.predict`: from chains files and a table of records to what the fit says of their last column."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import math
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import PathLike, check_outputs, files_of
from dpmix.data.tables import TableSource, scan_table
from dpmix.data.text_tables import complaint, is_text, parser_of
from dpmix.errors import DataError, UsageError, say
from dpmix.models.meaning_base import meaning_of
from dpmix.run.chains_reader import ChainSet, NamedChains, read_chains
from dpmix.spec.data_section import LABEL
from dpmix.spec.load import check_overrides, load_spec, overrides_of
from dpmix.spec.model_section import outside_in_words
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
from dpmix.store.atomic import check_output, fsync, reason, replacing
from dpmix.summary.chains_account import acceptance_of
from dpmix.summary.diagnostics import describe
from dpmix.summary.predicting import SHOWN, Predictions, labels_of, predictor_of
from dpmix.summary.quantities import Beyond
from dpmix.summary.remarks import convergence_remarks, line_doubt

if TYPE_CHECKING:
    from dpmix.models.predictor_base import Input, Predictor
    from dpmix.spec.summary_section import PredictedTable, SummarySpec


# Reading records to predict from: a CSV table, in pieces, its columns matched by name

_OWN_KEYS = re.compile(r"\b(?:data|release)\.(delimiter|decimal|encoding)\b(: )?")

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


def table_source(at: PathLike | Any, dialect: Dialect | None = None) -> TableFiles:
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
        mark = " " if keys == "--" else ": "  # an option stands before its value without a colon
        said = _OWN_KEYS.sub(lambda key: f"{keys}{key[1]}{mark if key[2] else ''}", str(error))
        raise DataError(said) from None
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


TakePiece = Callable[[Sequence[str], NDArray[np.float64]], None]

_WRITTEN = (".csv", ".csv.gz")

MOST_IN_SUMMARY = 10_000
"""Records that `summary.at` takes: summaries are read as a whole."""


# Predicting


def predict(
    chains: PathLike | Sequence[PathLike],
    at: PathLike | Any,
    output: PathLike | None = None,
    *,
    overrides: Sequence[str] = (),
    interval: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Predictions:
    """Predict the class (naive_bayes) or response (linear_regression) of records from their other columns.

    They are computed from chains, and these from a release: predictions cost nothing beyond it.

    Parameters
    ----------
    chains : path, what `fit` returned, or sequence of them
        Files of `dpmix fit`, of one spec.
    at : path, DataFrame, table of Arrow or mapping of columns
        Table (csv, tsv, also .gz; parquet, feather or arrow) with the columns that the fit predicts from, in
        any order, and maybe others; - for CSV on standard input. A fit of groups needs the column of groups,
        too.
    output : path, optional
        CSV file to write (csv or csv.gz).
    overrides : sequence of str
        `summary.level=..` and `summary.interval=..` in place of what the spec inside the chains says.
    interval : {"mean", "record"}, optional
        For `summary.interval`: whether intervals of a regression are of the mean response, or of the response
        of a new record, its error included.
    delimiter, decimal, encoding : str, optional
        How the text of `at` is written, as ``data.delimiter``, ``data.decimal`` and ``data.encoding`` say it.
    force : bool
        Whether an existing output may be replaced.
    quiet : bool
        Say nothing but warnings on standard error.

    Returns
    -------
    Predictions
        One row a record, in the order of the table.

    Raises
    ------
    UsageError
        With overrides of other sections than `summary`, or when the output exists, has another suffix or
        is an input.
    SpecError
        When an override is malformed, or the model has no such intervals.
    DataError
        When chains are of a model that predicts nothing or no finished chains, and for a table that lacks a
        column or holds what the fit does not know, naming column, record and line.
    """
    check_outputs(output=output)
    parts: list[NDArray[np.float64]] = []
    with contextlib.ExitStack() as stack:
        write: TakePiece | None = None
        if output is not None:
            tables = [at] if isinstance(at, str | os.PathLike) else []
            check_table_output(output, [*files_of(chains, "chains"), *tables], force=force)
            write = csv_writer(stack.enter_context(writing(output, force=force)))

        def take(columns: Sequence[str], values: NDArray[np.float64]) -> None:
            parts.append(values)
            if write is not None:
                write(columns, values)

        predictor, labels = predict_pieces(
            chains,
            at,
            take,
            overrides=overrides,
            interval=interval,
            dialect=dialect_of(delimiter, decimal, encoding),
            quiet=quiet,
        )
    return Predictions(
        predictor.columns, np.concatenate(parts), predictor.level, predictor.what, tuple(labels)
    )


def predict_pieces(
    chains: PathLike | Sequence[PathLike],
    at: PathLike | Any,
    take: TakePiece,
    *,
    overrides: Sequence[str] = (),
    interval: str | None = None,
    dialect: Dialect | None = None,
    quiet: bool = False,
) -> tuple[Predictor, list[str]]:
    """Predict as `predict` does, and hand the rows over piece by piece, none of which is kept.

    Returns
    -------
    Predictor
    list of str
        What the first records are.
    """
    found, source, predictor = planned(chains, at, overrides=overrides, interval=interval, dialect=dialect)
    for text in _doubts(found, predictor):
        say(f"warning: {text}")
    run = _Run(predictor, take, str(source))
    count = read_pieces(source, predictor.inputs, run.piece)
    say(f"{count:,} record{'s' * (count > 1)} of {source}: {predictor.what}", quiet)
    for text in run.beyond():
        say(f"note: {text}")
    return predictor, run.labels


def planned(
    chains: PathLike | Sequence[PathLike],
    at: PathLike | Any,
    *,
    overrides: Sequence[str] = (),
    interval: str | None = None,
    dialect: Dialect | None = None,
) -> tuple[ChainSet, TableFiles, Predictor]:
    """Return the chains, the table, of which nothing is read yet, and what predicts.

    Raises UsageError, SpecError and DataError as `predict`.
    """
    overrides = [*overrides_of(overrides), *([] if interval is None else [f"summary.interval={interval}"])]
    check_overrides(overrides)
    paths = files_of(chains, "chains")
    source = table_source(at, dialect)
    found = read_chains(paths)
    options = load_spec(found.run_spec, overrides).summary
    return found, source, predictor_of(found, options, paths[0])


def check_at(options: SummarySpec) -> PredictedTable:
    """Return the table of `summary.at`, which has to be there.

    Raises
    ------
    DataError
        Where it is not.
    """
    table = options.table
    assert table is not None  # the caller looks
    if not table.path.exists():
        raise DataError(
            f"summary.at: {table.path} does not exist; give --set summary.at=FILE, or --set summary.at=null "
            "to predict nothing"
        )
    return table


def predictions_at(chains: ChainSet, options: SummarySpec, source: str) -> Predictions:
    """Predict the records of `summary.at`.

    Raises DataError as `predict`; for more than `MOST_IN_SUMMARY` records.
    """
    table = check_at(options)
    predictor = predictor_of(chains, options, source)
    parts: list[NDArray[np.float64]] = []
    run = _Run(predictor, lambda columns, values: parts.append(values), str(table.path))
    found = table_source(table.path, table.dialect)
    read_pieces(found, predictor.inputs, run.piece, most=MOST_IN_SUMMARY, keys="summary.at.")
    what = "; ".join([predictor.what, *run.beyond()])
    return Predictions(predictor.columns, np.concatenate(parts), predictor.level, what, tuple(run.labels))


class _Run:
    """Pieces on their way from a table to what takes predictions."""

    def __init__(self, predictor: Predictor, take: TakePiece, source: str) -> None:
        self._predictor, self._take, self._source = predictor, take, source
        self._outside = np.zeros(len(predictor.inputs), dtype=np.int64)
        self._count = 0
        self.labels: list[str] = []

    def piece(self, rows: Piece, first: int) -> None:
        """Predict a piece, whose first record has this number."""
        found = self._predictor.predict(rows)
        bad = ~np.isfinite(found).all(axis=1)
        if bad.any():
            raise DataError(
                f"{self._source}: record {first + int(np.argmax(bad))} is so far out that its prediction is "
                "no finite number"
            )
        self._count += len(rows)
        self.labels += labels_of(self._predictor.inputs, rows[: SHOWN - len(self.labels)])
        for j, part in enumerate(self._predictor.inputs):
            if part.bounds is not None:
                self._outside[j] += int(((rows[:, j] < part.bounds[0]) | (rows[:, j] > part.bounds[1])).sum())
        self._take(self._predictor.columns, found)

    def beyond(self) -> list[str]:
        """Say which columns have values beyond the public bounds, and what became of them."""
        found = []
        for part, count in zip(self._predictor.inputs, self._outside.tolist(), strict=True):
            if count and part.bounds is not None:
                meant = self._predictor.outside
                found.append(outside_in_words(count, self._count, part.name, part.bounds, meant))
        return found


def _doubts(chains: ChainSet, predictor: Predictor) -> list[str]:
    """Say why not to trust predictions: chains, by the parameters in use, and what else they are of."""
    assert isinstance(chains, NamedChains)  # or there were no predictor
    scalars = {}
    for parameter in predictor.used:
        values = chains.read(parameter)
        flat = values.reshape(*values.shape[:2], -1)
        for entry, name in enumerate(parameter.labels()):
            scalars[name] = describe(flat[:, :, entry], predictor.level)
    said = [remark.text for remark in convergence_remarks(scalars, acceptance_of(chains), chains)]
    account = meaning_of(chains).account(chains.run_spec.summary)
    return said + line_doubt(Beyond.of(account)) + account.of_predictions


def check_table_output(output: PathLike, inputs: Sequence[PathLike], *, force: bool) -> None:
    """Refuse before any work an output that is no CSV file, exists, or would replace an input.

    Raises UsageError and DataError as `dpmix.store.atomic.check_output`.
    """
    if any(os.path.realpath(output) == os.path.realpath(path) for path in inputs):
        raise UsageError(f"{output} is one of the inputs; give the output another name")
    if str(output) != "-" and not str(output).lower().endswith(_WRITTEN):
        raise UsageError(f"{output}: predictions are written as {' or '.join(_WRITTEN)}; choose one")
    check_output(Path(output), force=force)


@contextlib.contextmanager
def writing(output: PathLike, *, force: bool) -> Iterator[IO[str]]:
    """Give a text file that becomes `output` at the end of the block, and is gone where that raises."""
    path = Path(output)
    with replacing(path, force=force) as temporary:
        try:
            with temporary.open("wb") as raw:
                packed: Any = raw
                if path.name.lower().endswith(".gz"):
                    packed = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
                with io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream:
                    yield stream
            fsync(temporary)
        except OSError as error:
            raise DataError(f"cannot write {path}: {reason(error)}") from error


def csv_writer(stream: IO[str]) -> TakePiece:
    """Return what writes pieces to a CSV file: ten digits, far more than draws tell."""
    writer = csv.writer(stream, lineterminator="\n")
    started = False

    def write(columns: Sequence[str], values: NDArray[np.float64]) -> None:
        nonlocal started
        if not started:
            writer.writerow(columns)
            started = True
        form = ",".join(["%.10g"] * len(columns)) + "\n"
        stream.writelines([form % tuple(row) for row in values.tolist()])

    return write
