"""Commands on files that are there: `dpmix show`, `export` and `card`, and those of ``dpmix ledger``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpmix.cli.options import (
    Debug,
    DryRun,
    Force,
    Json,
    NewLedger,
    Quiet,
    Version,
    check_files,
    emit,
    output_option,
)
from dpmix.errors import SpecError, say


def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Release, tally, chains, summary, ledger, synthetic records, spec or card.",
            show_default=False,
        ),
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
        _, name, found = api.planned(file, output, table=table, force=force)
        return emit(
            f"would write {found.rows:,} rows of {name}: {', '.join(found.columns)}\nwould write {output}"
        )
    api.export(file, output, table=table, force=force, quiet=quiet)
    if str(output) != "-":
        say(f"wrote {output}", quiet)


# The command `dpmix card`


def card(
    release: Annotated[
        Path,
        typer.Argument(
            metavar="RELEASE", help="Release file, or synthetic records (csv).", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Card (.yaml), or Croissant (.json).", show_default=False
        ),
    ],
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


# The commands of ``dpmix ledger``: what has been released of each data set, and what may be


app = typer.Typer(help="Curator: what has been released of each data set, and what may be.")

File = Annotated[Path, typer.Argument(metavar="LEDGER", help="Ledger file (JSON).", show_default=False)]


@app.command("show")
def show_(
    ledger: File,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only this data set.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check the ledger; print every release, what all of a data set cost together, and what remains."""
    from dpmix.api.spending import ledger_text, show_ledger

    found = show_ledger(ledger, dataset)
    emit(json.dumps(found, indent=1, allow_nan=False) if as_json else ledger_text(found))


@app.command()
def budget(
    ledger: File,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", metavar="NAME", help="Data set; of a part, the whole's name."),
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Of all releases together.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Goes with epsilon; 0 if left out.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="In place of epsilon and delta.")] = None,
    new_ledger: NewLedger = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the data set's account.")] = False,
    dry_run: DryRun = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No messages but errors.")] = False,
    debug: Debug = False,
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
