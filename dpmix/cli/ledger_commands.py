"""The commands of ``dpmix ledger``: what has been released of each data set, and what may be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dpmix.cli.options import Debug, NewLedger, emit
from dpmix.errors import SpecError

app = typer.Typer(help="Curator: what has been released of each data set, and what may be.")

File = Annotated[Path, typer.Argument(metavar="LEDGER", help="Ledger file (JSON).", show_default=False)]


@app.command("show")
def show_(
    ledger: File,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only this data set.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    debug: Debug = False,
) -> None:
    """Check the ledger; print every release, what all of a data set cost together, and what remains."""
    from dpmix.api.ledger_words import show, to_text

    found = show(ledger, dataset)
    emit(json.dumps(found, indent=1, allow_nan=False) if as_json else to_text(found))


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
    account = set_budget(ledger, dataset, limit, quiet, new_ledger=new_ledger)
    if as_json:
        emit(json.dumps(account, indent=1, allow_nan=False))
