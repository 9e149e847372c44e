"""The command ``dpmix tally``: counts of a release in public cells."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dpmix.cli.options import (
    Debug,
    DryRun,
    Force,
    Quiet,
    Set,
    Version,
    check_files,
    check_suffix,
    checked_spec,
    emit,
    output_option,
)
from dpmix.errors import UsageError, say


def tally(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SPEC] PART...",
            help="A spec (.yaml, .yml), needed for CSV, Parquet and --sql; then release files, tallies, CSV "
            "or Parquet files.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path | None, output_option("Tally to write (HDF5: .h5, .hdf5 or .nc).")] = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            metavar="W",
            help="Width of the cells, in the data's units, or auto; else sampler.width of SPEC.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Number of processes; by default 1."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            metavar="ADDRESS",
            help="Count on the Dask cluster of this scheduler, such as tcp://head:8786.",
            show_default=False,
        ),
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the query that counts in any SQL engine, and do nothing.")
    ] = False,
    counts: Annotated[
        Path | None,
        typer.Option(
            "--counts", metavar="FILE", help="Result of that query: csv with the header cell,count."
        ),
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
