"""The command ``dpmix sweep``: many runs from one spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmix.cli.options import AllowCode, Dataset, Debug, Ledger, NewLedger, Quiet, Yes
from dpmix.cli.options import emit as put_out
from dpmix.errors import UsageError, say


def sweep(
    spec: Annotated[
        Path,
        typer.Argument(metavar="SWEEP", help="Spec of the sweep (YAML).", show_default=False, readable=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder of the sweep; what is finished there is not run again.",
            show_default=False,
            readable=False,
        ),
    ],
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Runs at once; by default as there are cores."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, metavar="N", help="Threads of each run; by default 1.")
    ] = None,
    emit: Annotated[
        str | None,
        typer.Option(
            "--emit",
            metavar="KIND",
            help="Run nothing; write a Snakemake workflow (snakemake) or a Slurm array job (sbatch).",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="NAME", help="Do this run alone; what emitted jobs call.")
    ] = None,
    gather: Annotated[
        bool, typer.Option("--gather", help="Run nothing; write table and figures of what is finished.")
    ] = False,
    require_convergence: Annotated[
        bool,
        typer.Option(
            "--require-convergence",
            help="Exit with 5 if chains of any run have not converged; the table is written all the same.",
        ),
    ] = False,
    allow_code: AllowCode = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as one JSON object.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Override a key of the sweep (replicates=2), or of the base spec; repeatable.",
            show_default=False,
        ),
    ] = None,
    ledger: Ledger = None,
    dataset: Dataset = None,
    new_ledger: NewLedger = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", "-f", help="Make all runs anew; with --emit, replace the file.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check every run's spec, list the runs, do nothing.")
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Do many runs from one spec: privatize, fit and summarize each, and gather one table."""
    given = [
        name
        for name, is_given in (("--emit", emit), ("--run", run), ("--gather", gather), ("--dry-run", dry_run))
        if is_given
    ]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]}: give one of them")
    for name, is_given, elsewhere in (  # where an option would be ignored
        ("--jobs", jobs is not None, ("--emit", "--run", "--gather", "--dry-run")),
        ("--threads", threads is not None, ("--gather", "--dry-run")),
        ("--require-convergence", require_convergence, ("--emit", "--run", "--dry-run")),
        ("--allow-code", allow_code, ("--gather",)),
        ("--json", as_json, ("--emit", "--run", "--dry-run")),
        ("--force", force, ("--run", "--gather")),
    ):
        if is_given and given and given[0] in elsewhere:
            raise UsageError(f"{name}: does not go with {given[0]}")
    entering: dict[str, Any] = {"ledger": ledger, "dataset": dataset, "new_ledger": new_ledger, "yes": yes}
    for name, value in entering.items():
        if value and (run or gather):
            option = name.replace("_", "-")
            raise UsageError(f"--{option}: {given[0]} spends nothing, so leave it out")
    from dpmix.api import sweep as verbs

    options: dict[str, Any] = {"overrides": tuple(set_ or ())}
    if dry_run:
        put_out(verbs.plan(spec, output, force=force, allow_code=allow_code, **entering, **options))
        return
    if gather:
        found = verbs.gather(spec, output, **options)
    else:
        options |= {"threads": threads or 1, "allow_code": allow_code}
        if run is not None:
            verbs.do_one(spec, output, run, **options)
            return
        options |= {"force": force, "quiet": quiet, **entering}
        if emit is not None:
            say(f"wrote {verbs.emit(spec, output, emit, **options)}", quiet)
            return
        found = verbs.sweep(spec, output, jobs=jobs, **options)
    if as_json:
        put_out(json.dumps(found.to_json(), allow_nan=False))
    elif not quiet:
        put_out(found.to_text())
    for path in found.written:
        say(f"wrote {path}", quiet)
    found.check(convergence=require_convergence)
