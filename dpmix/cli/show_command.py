"""The commands `dpmix show` and `dpmix export`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpmix.cli.options import Debug, DryRun, Force, Quiet, Version, emit, output_option, say


def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Release, tally, chains, summary, ledger, synthetic records, spec or card.",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Say what a file is: its guarantee, how it was made, how much it holds, and the first of it."""
    from dpmix.api.show import show as read

    found = read(file)
    emit(json.dumps(found.to_json(), allow_nan=False) if as_json else found.to_text())


def export(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Release, tally, chains, summary, ledger or synthetic records.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, output_option("Table to write (.csv or .parquet); - for CSV on standard output.")
    ],
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Which of several tables; a wrong name lists them.",
            show_default=False,
        ),
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
        name, found = api.planned(file, output, table=table, force=force)
        return emit(
            f"would write {found.rows:,} rows of {name}: {', '.join(found.columns)}\nwould write {output}"
        )
    api.export(file, output, table=table, force=force, quiet=quiet)
    if str(output) != "-":
        say(f"wrote {output}", quiet)
