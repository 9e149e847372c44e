"""`dpmix.predict`: from chains files and a table of records to what the fit says of their last column."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmix.api.arguments import check_outputs, files_of
from dpmix.api.at_file import Piece, dialect_of, read_pieces, table_source
from dpmix.columns.cells import bounds_in_words
from dpmix.errors import DataError, UsageError, say
from dpmix.models.meaning_base import meaning_of
from dpmix.run.chains_reader import ChainSet, NamedChains, read_chains
from dpmix.spec.load import check_overrides, load_spec, overrides_of
from dpmix.store.atomic import check_output, fsync, reason, replacing
from dpmix.summary.chains_account import acceptance_of
from dpmix.summary.diagnostics import describe
from dpmix.summary.predicting import SHOWN, Predictions, labels_of, predictor_of
from dpmix.summary.quantities import Beyond
from dpmix.summary.remarks import convergence_remarks, line_doubt

if TYPE_CHECKING:
    from dpmix.models.predictor_base import Predictor
    from dpmix.spec.summary_section import SummarySpec
    from dpmix.spec.table_source import Dialect, TableFiles

PathLike = str | os.PathLike[str]
TakePiece = Callable[[Sequence[str], NDArray[np.float64]], None]

_WRITTEN = (".csv", ".csv.gz")

MOST_IN_SUMMARY = 10_000
"""Records that `summary.at` takes: summaries are read as a whole."""


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


def predictions_at(chains: ChainSet, options: SummarySpec, source: str) -> Predictions:
    """Predict the records of `summary.at`.

    Raises DataError as `predict`; for more than `MOST_IN_SUMMARY` records.
    """
    table = options.table
    assert table is not None  # the caller looks
    if not table.path.exists():
        raise DataError(
            f"summary.at: {table.path} does not exist; give --set summary.at=FILE, or --set summary.at=null "
            "to predict nothing"
        )
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
                ends = ", ".join(bounds_in_words({"domain": part.bounds, "date": part.date}))
                found.append(
                    f"{count:,} of {self._count:,} values of {part.name} lie outside [{ends}], to which the "
                    f"records behind the release were clamped: {self._predictor.outside}"
                )
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
