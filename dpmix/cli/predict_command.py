"""The command `dpmix predict`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from dpmix.cli.options import (
    Chains,
    Debug,
    DryRun,
    Force,
    Quiet,
    Set,
    Version,
    check_files,
    emit,
    output_option,
)
from dpmix.errors import UsageError, say

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IN_MEMORY = 1 << 24  # bytes of what goes to standard output when all of it is there


def predict(
    chains: Chains,
    at: Annotated[
        Path,
        typer.Option(
            "--at",
            metavar="FILE",
            help="Records to predict (csv, tsv, also .gz; parquet, feather, arrow), columns by name; "
            "- for CSV on standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None, output_option("Table to write (csv or csv.gz); else it is printed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object a record.")] = False,
    interval: Annotated[
        str | None,
        typer.Option(
            "--interval",
            metavar="mean|record",
            help="Of a regression: intervals of the mean response (mean, the default) or of a new record.",
            show_default=False,
        ),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter", metavar="MARK", help="Character between cells of --at, or tab.", show_default=False
        ),
    ] = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar="MARK", help="Decimal mark of --at: . or ,", show_default=False),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", metavar="NAME", help="Encoding of --at, as latin-1.", show_default=False),
    ] = None,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Predict the class or the response of records by a fit of naive_bayes or linear_regression."""
    if interval not in (None, "mean", "record"):
        raise UsageError(f"--interval: {interval} is neither mean nor record")
    from dpmix.spec.load import check_overrides

    check_overrides(set_ or ())  # before anything heavy is imported
    from dpmix.api.at_file import dialect_of

    dialect = dialect_of(delimiter, decimal, encoding)
    check_files([*chains, at], [] if output is None else [output], force)
    from dpmix.api import predict as api
    from dpmix.run.progress import show_phase

    if output is not None:
        api.check_table_output(output, [*chains, at], force=force)
    if dry_run:
        names = ", ".join(str(path) for path in (*chains, at))
        return emit(f"would read {names}\nwould write {output or 'to standard output'}")
    with contextlib.ExitStack() as stack:
        takers: list[Callable[[Sequence[str], NDArray[Any]], None]] = []
        if output is not None:
            takers.append(api.csv_writer(stack.enter_context(api.writing(output, force=force))))
        printed: IO[str] | None = None
        if as_json or output is None:
            printed = stack.enter_context(_spooled())
            takers.append(_json_writer(printed) if as_json else api.csv_writer(printed))

        def take(columns: Sequence[str], values: NDArray[Any]) -> None:
            for write in takers:
                write(columns, values)

        overrides = tuple(set_ or ())
        with show_phase("predicting", quiet):
            api.predict_pieces(
                chains, at, take, overrides=overrides, interval=interval, dialect=dialect, quiet=quiet
            )
        if printed is not None:
            if as_json:
                printed.write("]\n")
            _print(printed)
    if output is not None:
        say(f"wrote {output}", quiet)


def _spooled() -> IO[str]:
    """Return a file for what is printed when all of it is there: an error prints no part of it."""
    import tempfile

    return tempfile.SpooledTemporaryFile(_IN_MEMORY, mode="w+", encoding="utf-8", newline="")


def _json_writer(stream: IO[str]) -> Callable[[Sequence[str], NDArray[Any]], None]:
    """Return what writes pieces as the rows of one JSON list, without its end."""
    import json

    started = False

    def write(columns: Sequence[str], values: NDArray[Any]) -> None:
        nonlocal started
        for row in values.tolist():
            stream.write(", " if started else "[")
            stream.write(json.dumps(dict(zip(columns, row, strict=True))))
            started = True

    return write


def _print(stream: IO[str]) -> None:
    from dpmix.store.frames import data_output

    stream.seek(0)
    output = data_output()
    while text := stream.read(1 << 20):
        output.write(text)
    output.flush()
