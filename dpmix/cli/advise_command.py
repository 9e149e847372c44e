"""The command `dpmix advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmix.cli.options import (
    Debug,
    DryRun,
    Force,
    Quiet,
    Set,
    Spec,
    Threads,
    Version,
    check_files,
    checked_spec,
    emit,
    print_plan,
)
from dpmix.errors import UsageError, say

if TYPE_CHECKING:
    from dpmix.spec import RunSpec


def advise(
    spec: Spec,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="LIST", help="Epsilons: 0.5,1,2,4 where left out.", show_default=False
        ),
    ] = None,
    n: Annotated[
        str | None,
        typer.Option(
            "--n", metavar="LIST", help="Numbers of records: 1e3,1e4,1e5 where left out.", show_default=False
        ),
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="LIST",
            help="Kinds: where left out the spec's own and all of one column that epsilon calibrates.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as a JSON list.")] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Page (.html) or picture (.svg, .png) to write.", readable=False
        ),
    ] = None,
    jobs: Threads = None,
    set_: Set = None,
    force: Force = False,
    dry_run: DryRun = False,
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Both: say before any data are read how precise releases will be, and which mechanism to take."""
    epsilons, sizes = _numbers("--epsilon", epsilon), _numbers("--n", n)
    kinds = None if mechanism is None else [name.strip() for name in mechanism.split(",") if name.strip()]
    check_files([spec], [path for path in (report,) if path is not None], force)
    checked = checked_spec(spec, set_, unread=True)
    _check(checked, epsilons, sizes, kinds)
    from dpmix.api import advise as api

    if dry_run:
        api.plan(checked, epsilon=epsilons, n=sizes, mechanism=kinds, report=report, force=force)
        return print_plan(checked, ("data", "mechanism", "model"), "advise", f"write {report or 'nothing'}")
    found = api.advise(
        checked,
        epsilon=epsilons,
        n=sizes,
        mechanism=kinds,
        report=report,
        jobs=jobs,
        force=force,
        quiet=quiet,
    )
    emit(json.dumps(found.to_json()) if as_json else found.to_text())
    if as_json:  # the text has them
        for text in found.warnings:
            say(text)
    if report is not None:
        say(f"wrote {report}", quiet)


def _check(
    spec: RunSpec, epsilons: list[float] | None, sizes: list[float] | None, kinds: list[str] | None
) -> None:
    """Refuse what makes no sense before the heavy imports."""
    from dpmix.advising.population import (
        check_kind,
        check_kinds,
        check_target,
        epsilons_of,
        quantities_of,
        records_of,
        target_of,
    )

    epsilons_of(epsilons)
    records_of(sizes)
    check_kinds(kinds)
    model, mechanism = spec.model, spec.mechanism
    dense = mechanism is None or mechanism.released in ("records", "histogram")
    if dense and spec.generator is None and (model is None or model.kind == "mixture"):
        for kind in kinds or ():
            check_kind(kind, None if mechanism is None else mechanism.kind)
        if spec.advise is not None:
            check_target(target_of(spec.advise.target), quantities_of(spec))


def _numbers(name: str, words: str | None) -> list[float] | None:
    """Return the numbers of a list with commas, 1e4 among them."""
    if words is None:
        return None
    found = []
    for word in words.split(","):
        try:
            found.append(float(word))
        except ValueError:
            raise UsageError(
                f"{name}: {word.strip()[:40] or 'nothing'} is no number; give a list such as 1e3,1e4"
            ) from None
    return found
