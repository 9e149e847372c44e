"""Commands on files that are there: show, export, card, predict, tally, and those of ``dpmix ledger``."""

from __future__ import annotations

import contextlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from dpmix.cli.options import (
    Chains,
    Debug,
    DryRun,
    Force,
    Json,
    NewLedger,
    Quiet,
    Set,
    Version,
    argument,
    check_files,
    check_suffix,
    checked_spec,
    emit,
    flag,
    option,
    output_option,
)
from dpmix.errors import SpecError, UsageError, say

if TYPE_CHECKING:
    from numpy.typing import NDArray


def show(
    file: Annotated[
        Path, argument("FILE", "Release, tally, chains, summary, ledger, synthetic records, spec or card.")
    ],
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Say what a file is: its guarantee, how it was made, how much it holds, and the first of it."""
    from dpmix.api.show import show as read

    found = read(file)
    emit(json.dumps(found.to_json(), allow_nan=False) if as_json else found.to_text())


def export(
    file: Annotated[Path, argument("FILE", "Release, tally, chains, summary, ledger or synthetic records.")],
    output: Annotated[
        Path, output_option("Table to write (.csv or .parquet); - for CSV on standard output.")
    ],
    table: Annotated[
        str | None, option("--table", "NAME", "Which of several tables; a wrong name lists them.")
    ] = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Write what a file holds as a table: values, draws, parameters or entries."""
    from dpmix.api import export as api

    if dry_run:
        _, name, found = api.planned(file, output, table=table, force=force)
        return emit(
            f"would write {found.rows:,} rows of {name}: {', '.join(found.columns)}\nwould write {output}"
        )
    api.export(file, output, table=table, force=force, quiet=quiet)
    if str(output) != "-":
        say(f"wrote {output}", quiet)


def card(
    release: Annotated[Path, argument("RELEASE", "Release file, or synthetic records (csv).")],
    output: Annotated[Path, option("--output -o", "FILE", "Card (.yaml), or Croissant (.json).")],
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Curator: write the metadata to publish beside a release; what is policy is left blank, and marked."""
    check_files([release], [output], force)
    from dpmix.api import card as api
    from dpmix.release.card_metadata import blanks_of
    from dpmix.run.progress import show_phase

    with show_phase("reading the release", quiet):
        make = api.planned if dry_run else api.card
        blanks = len(blanks_of(make(release, output, force=force)))
    written = f"{output}, with {blanks} entries TO BE FILLED IN"
    if dry_run:
        return emit(f"would write {written}")
    say(f"wrote {written}", quiet)


# Predictions by a fit


_IN_MEMORY = 1 << 24  # bytes of what goes to standard output when all of it is there


def predict(
    chains: Chains,
    at: Annotated[
        Path,
        option(
            "--at",
            "FILE",
            "Records to predict (csv, tsv, also .gz; parquet, feather, arrow), columns by name; "
            "- for CSV on standard input.",
        ),
    ],
    output: Annotated[
        Path | None, output_option("Table to write (csv or csv.gz); else it is printed.")
    ] = None,
    as_json: Annotated[bool, flag("--json", "Print a JSON list, one object a record.")] = False,
    interval: Annotated[
        str | None,
        option(
            "--interval",
            "mean|record",
            "Of a regression: intervals of the mean response (mean, the default) or of a new record.",
        ),
    ] = None,
    delimiter: Annotated[
        str | None, option("--delimiter", "MARK", "Character between cells of --at, or tab.")
    ] = None,
    decimal: Annotated[str | None, option("--decimal", "MARK", "Decimal mark of --at: . or ,")] = None,
    encoding: Annotated[str | None, option("--encoding", "NAME", "Encoding of --at, as latin-1.")] = None,
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
    from dpmix.api.predict import check_first, dialect_of
    from dpmix.spec.table_source import is_stream

    dialect = dialect_of(delimiter, decimal, encoding)
    check_files([*chains, at], [] if output is None else [output], force)
    from dpmix.api import predict as api
    from dpmix.run.progress import show_phase

    if output is not None:
        api.check_table_output(output, [*chains, at], force=force)
    if dry_run:
        _, source, predictor = api.planned(
            chains, at, overrides=tuple(set_ or ()), interval=interval, dialect=dialect
        )
        if not is_stream(str(at)):  # which is read once
            check_first(source, predictor.inputs)
        names = ", ".join(str(path) for path in (*chains, at))
        return emit(f"would read {names}\nwould write {output or 'to standard output'}")
    with contextlib.ExitStack() as stack:
        takers: list[Callable[[Sequence[str], NDArray[Any]], None]] = []
        if output is not None:
            takers.append(api.csv_writer(stack.enter_context(api.writing(output, force=force))))
        printed: IO[str] | None = None
        if as_json or output is None:
            printed = stack.enter_context(  # so that an error prints no part of it
                tempfile.SpooledTemporaryFile(_IN_MEMORY, mode="w+", encoding="utf-8", newline="")
            )
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


def _json_writer(stream: IO[str]) -> Callable[[Sequence[str], NDArray[Any]], None]:
    """Return what writes pieces as the rows of one JSON list, without its end."""
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


# Tallies: counts of a release in public cells


def tally(
    files: Annotated[
        list[Path] | None,
        argument(
            "[SPEC] PART...",
            "A spec (.yaml, .yml), needed for CSV, Parquet and --sql; then release files, tallies, CSV "
            "or Parquet files.",
        ),
    ] = None,
    output: Annotated[Path | None, output_option("Tally to write (HDF5: .h5, .hdf5 or .nc).")] = None,
    width: Annotated[
        str | None,
        option(
            "--width", "W", "Width of the cells, in the data's units, or auto; else sampler.width of SPEC."
        ),
    ] = None,
    jobs: Annotated[int | None, option("--jobs -j", "N", "Number of processes; by default 1.", min=1)] = None,
    scheduler: Annotated[
        str | None,
        option(
            "--scheduler", "ADDRESS", "Count on the Dask cluster of this scheduler, such as tcp://head:8786."
        ),
    ] = None,
    sql: Annotated[
        bool, flag("--sql", "Print the query that counts in any SQL engine, and do nothing.")
    ] = False,
    counts: Annotated[
        Path | None, option("--counts", "FILE", "Result of that query: csv with the header cell,count.")
    ] = None,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Count a release of any size in public cells, and add tallies up; fit takes the tally."""
    given = list(files or ())
    spec = given.pop(0) if given and given[0].name.lower().endswith((".yaml", ".yml")) else None
    for path in given:
        if path.name.lower().endswith((".yaml", ".yml")):
            raise UsageError(f"{path}: a spec stands first, and there is one at most")
    if set_ and spec is None:
        raise UsageError("--set: overrides a key of SPEC, and there is none")
    checked = None if spec is None else checked_spec(spec, set_)
    asked = _width(width)
    if sql:
        _print_query(checked, given, asked, output, counts, jobs, scheduler)
        return
    if output is None:
        raise UsageError("--output FILE: missing; name the tally to write")
    check_files([spec, *given, counts], [output], force)
    check_suffix(output, "a tally", strict=True)
    from dpmix.api import tally as api
    from dpmix.numerics.in_words import permits_verbatim

    options: dict[str, Any] = {"counts": counts, "width": asked, "jobs": jobs or 1, "scheduler": scheduler}
    if dry_run:
        return emit(f"would {api.plan(given, checked, **options)}\nwould write {output}")
    found = api.tally(given, checked, output, force=force, quiet=quiet, **options)
    assert found.tally is not None  # what a tally is
    weak = permits_verbatim(found.delta, found.n)
    if weak:
        say(f"warning: {weak}")
    say(f"counted {found.n:,} records in {len(found.tally.counts):,} cells", quiet)
    say(f"wrote {output}", quiet)


def _width(text: str | None) -> float | Literal["auto"] | None:
    if text is None or text == "auto":
        return None if text is None else "auto"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise UsageError(f"--width: {text} is neither a positive number nor auto")
    return number


def _print_query(
    spec: Any,
    parts: list[Path],
    width: float | Literal["auto"] | None,
    output: Path | None,
    counts: Path | None,
    jobs: int | None,
    scheduler: str | None,
) -> None:
    if spec is None:
        raise UsageError("SPEC: missing; --sql makes its query from the mechanism and column of a spec")
    for name, value in (
        ("PART", parts or None),
        ("--output", output),
        ("--counts", counts),
        ("--jobs", jobs),
        ("--scheduler", scheduler),
    ):
        if value is not None:
            raise UsageError(f"{name}: --sql prints a query, and reads and writes nothing; leave it out")
    from dpmix.api.tally import tally_sql

    print(tally_sql(spec, width=width), flush=True)  # as it is: names are what the database looks for


# Ledgers: what has been released of each data set, and what may be


app = typer.Typer(help="Curator: what has been released of each data set, and what may be.")

File = Annotated[Path, argument("LEDGER", "Ledger file (JSON).")]


@app.command("show")
def show_(
    ledger: File,
    dataset: Annotated[str | None, option("--dataset", "NAME", "Only this data set.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Check the ledger; print every release, what all of a data set cost together, and what remains."""
    from dpmix.api.spending import ledger_text, show_ledger

    found = show_ledger(ledger, dataset)
    emit(json.dumps(found, indent=1, allow_nan=False) if as_json else ledger_text(found))


@app.command()
def budget(
    ledger: File,
    dataset: Annotated[
        str | None, option("--dataset", "NAME", "Data set; of a part, the whole's name.")
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Of all releases together.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Goes with epsilon; 0 if left out.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="In place of epsilon and delta.")] = None,
    new_ledger: NewLedger = False,
    as_json: Annotated[bool, flag("--json", "Print the data set's account.")] = False,
    dry_run: DryRun = False,
    quiet: Annotated[bool, flag("--quiet -q", "No messages but errors.")] = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Set or change what all releases of a data set may cost together; the change is entered, too."""
    from pydantic import ValidationError

    from dpmix.spec.run_spec import check_spec

    given = {k: v for k, v in (("epsilon", epsilon), ("delta", delta), ("rho", rho)) if v is not None}
    try:
        named = {} if dataset is None else {"dataset": dataset}
        section = check_spec({"privacy": {**named, "budget": given}}, Path()).privacy
    except (SpecError, ValidationError) as error:
        raise SpecError(str(error).replace("privacy.budget.", "--").replace("privacy.", "--")) from None
    assert section is not None and section.budget is not None  # as given
    from dpmix.api.spending import set_budget
    from dpmix.privacy.budget import Budget

    stated = section.budget
    limit = Budget(stated.epsilon, stated.delta, stated.rho)
    account = set_budget(ledger, dataset, limit, quiet, new_ledger=new_ledger, dry_run=dry_run)
    if as_json:
        emit(json.dumps(account, indent=1, allow_nan=False))
    elif dry_run:
        emit(f"would write {ledger}")
