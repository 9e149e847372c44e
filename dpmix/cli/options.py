"""What the commands share: options, how they read specs and check files, and examples of their use."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dpmix.errors import DataError, UsageError
from dpmix.numerics.in_words import printable


def _print_version(wanted: bool) -> None:
    if wanted:
        from dpmix._version import __version__

        emit(f"dpmix {__version__}")
        raise typer.Exit


def option(names: str, metavar: str, what: str, **more: Any) -> Any:
    """Return an option that takes a value; commands look themselves at what files are named."""
    kept = {"show_default": False, "readable": False} | more
    return typer.Option(*names.split(), metavar=metavar, help=what, **kept)


def argument(metavar: str, what: str) -> Any:
    """Return an argument, of which the same holds."""
    return typer.Argument(metavar=metavar, help=what, show_default=False, readable=False)


def flag(names: str, what: str) -> Any:
    """Return an option without a value."""
    return typer.Option(*names.split(), help=what)


def output_option(what: str) -> Any:
    """Return the option that names a command's output."""
    return option("--output -o", "FILE", what, readable=True)


Spec = Annotated[Path, argument("SPEC", "Spec file (YAML).")]
Set = Annotated[
    list[str] | None,
    option(
        "--set",
        "KEY=VALUE",
        "Override a key of the spec, such as sampler.chains=2; repeatable. Relative paths count from "
        "the folder of the spec.",
    ),
]
Chains = Annotated[list[Path], argument("CHAINS...", "Chains files of one spec.")]
AllowCode = Annotated[bool, flag("--allow-code", "Run the Python file of a custom model; read it first.")]
Threads = Annotated[int | None, option("--jobs -j", "N", "Number of threads.", min=1)]
Json = Annotated[bool, flag("--json", "Print one JSON object.")]
Quiet = Annotated[bool, flag("--quiet -q", "No messages but warnings and errors.")]
Force = Annotated[bool, flag("--force -f", "Overwrite outputs that exist.")]
DryRun = Annotated[bool, flag("--dry-run", "Check spec and files, say what would be done, do nothing.")]
Debug = Annotated[bool, flag("--debug", "Show the traceback of an error.")]
Ledger = Annotated[
    Path | None, option("--ledger", "FILE", "Enter the release in this file, and keep to the budget it has.")
]
Dataset = Annotated[
    str | None, option("--dataset", "NAME", "Name of the data in the ledger, for privacy.dataset.")
]
NewLedger = Annotated[bool, flag("--new-ledger", "Start the ledger; without this it has to be there.")]
NoLedger = Annotated[
    bool, flag("--no-ledger", "Enter nothing in the spec's ledger; the release records that.")
]
Yes = Annotated[
    bool, flag("--yes", "Go on in spite of warnings that ask for it, or with another table than before.")
]
Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
]


def checked_spec(
    path: Path,
    overrides: Sequence[str] | None,
    ledger: Path | None = None,
    dataset: str | None = None,
    *,
    unread: bool = False,
) -> Any:
    """Return the spec of a file with its overrides, and with ledger and data set that options name.

    Where no data will be read (`unread`), ``data.path`` may be missing.
    """
    from dpmix.spec.load import load_spec, naming_ledger

    return load_spec(path, (*(overrides or ()), *naming_ledger(ledger, dataset)), unread=unread)


def check_files(inputs: Sequence[Path | None], outputs: Sequence[Path], force: bool) -> None:
    """Check before any work that inputs are there, and that writing outputs destroys nothing unasked."""
    from dpmix.spec.table_source import is_stream
    from dpmix.store.atomic import check_output

    taken = set()
    for path in inputs:
        if path is not None and not is_stream(path):
            if not path.is_file():
                raise DataError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
            taken.add(path.resolve())
    for path in outputs:
        final = check_output(path, force=force)
        if final in taken:
            raise UsageError(f"{path} is named twice, as output and as another file")
        taken.add(final)


def check_suffix(path: Path, what: str, *, strict: bool = False) -> None:
    """Check before any work that the name of an HDF5 file promises no other format; see `store.atomic`."""
    from dpmix.store import atomic

    atomic.check_suffix(path, what, strict=strict)


def print_plan(spec: Any, sections: Sequence[str], *steps: str) -> None:
    """Print what a command would do."""
    from dpmix.spec.describe import describe

    for section, text in describe(spec).items():
        if section in sections:
            emit(f"{section + ':':<11}{printable(text, '')}")
    for step in steps:
        emit(f"would {step}")


def overview(group: Any) -> str:
    """Return every command of a group with what it does, for who types its name alone."""
    width = max(map(len, group.commands))
    lines = [group.help, ""]
    for name, command in group.commands.items():
        text = " ".join((command.help or "").split()).rstrip(".")
        lines += textwrap.wrap(
            text, 98, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4)
        )
    return "\n".join(
        [*lines, "", "dpmix COMMAND --help has options and examples, dpmix init specs to start from."]
    )


def emit(text: str) -> None:
    """Print what is for people, or JSON."""
    print(printable(text), flush=True)


# What stands at the end of each command's ``--help``: examples of its use


_EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "init": ("dpmix init", "dpmix init laplace > spec.yaml", "dpmix init custom -o folder"),
    "validate": ("dpmix validate spec.yaml", "dpmix validate spec.yaml --set mechanism.epsilon=1"),
    "schema": ("dpmix schema > dpmix.schema.json",),
    "calibrate": ("dpmix calibrate spec.yaml", "dpmix calibrate spec.yaml --set mechanism.epsilon=0.5"),
    "advise": ("dpmix advise spec.yaml", "dpmix advise spec.yaml --epsilon 0.5,1,2 --n 1e3,1e4"),
    "privatize": (
        "dpmix privatize spec.yaml -o release.h5",
        "dpmix privatize spec.yaml -o release.h5 --dry-run",
        "dpmix privatize spec.yaml -o release.h5 --ledger ledger.json --new-ledger --dataset people",
        "dpmix privatize spec.yaml -o release.h5 --set data.path=- < people.csv",
    ),
    "fit": (
        "dpmix fit spec.yaml --release release.h5 -o chains.h5",
        "dpmix fit spec.yaml --release release.h5 -o chains.h5 --resume",
        "dpmix fit spec.yaml --release release.h5 -o chain-2.h5 --chain-id 2",
        "dpmix fit custom.yaml --allow-code -o chains.h5",
    ),
    "summarize": (
        "dpmix summarize chains.h5",
        "dpmix summarize chains.h5 -o summary.h5 --report report.html",
        "dpmix summarize chain-0.h5 chain-1.h5 --json > summary.json",
        "dpmix summarize chains.h5 --set summary.tails=[20,50] --require-convergence",
        "dpmix summarize chains.h5 --contrast --groups female,male",
    ),
    "predict": (
        "dpmix predict chains.h5 --at people.csv",
        "dpmix predict chains.h5 --at people.csv -o predicted.csv --interval record",
    ),
    "tally": (
        "dpmix tally part1.h5 part2.h5 -o tally.h5",
        "dpmix tally spec.yaml day-1.parquet day-2.parquet -o tally.h5 --jobs 8",
        "dpmix tally spec.yaml big.parquet -o tally.h5 --scheduler tcp://head:8786",
        "dpmix tally spec.yaml --sql > query.sql",
        "dpmix tally spec.yaml --counts result.csv -o tally.h5",
    ),
    "card": ("dpmix card release.h5 -o card.yaml", "dpmix card release.h5 -o croissant.json"),
    "show": ("dpmix show release.h5", "dpmix show chains.h5 --json", "dpmix show ledger.json"),
    "export": (
        "dpmix export chains.h5 -o draws.csv",
        "dpmix export release.h5 -o release.parquet",
        "dpmix export chains.h5 --table components -o components.csv",
        "dpmix export summary.h5 -o -",
    ),
    "synthesize": (
        "dpmix synthesize spec.yaml -o synthetic.csv",
        "dpmix synthesize spec.yaml --compare --report kinds.html",
        "dpmix synthesize spec.yaml -o records.csv --chains chains.h5",
    ),
    "audit": (
        "dpmix audit spec.yaml",
        "dpmix audit spec.yaml --runs 100000 --strict",
        "dpmix audit command.yaml --allow-code",
    ),
    "warmup": ("dpmix warmup spec.yaml",),
    "sweep": (
        "dpmix sweep sweep.yaml -o folder --dry-run",
        "dpmix sweep sweep.yaml -o folder --jobs 4",
        "dpmix sweep sweep.yaml -o folder --emit sbatch",
        "dpmix sweep sweep.yaml -o folder --gather",
    ),
    "ledger show": ("dpmix ledger show ledger.json", "dpmix ledger show ledger.json --dataset people --json"),
    "ledger budget": ("dpmix ledger budget ledger.json --dataset people --epsilon 3",),
}


def add_examples(app: Any, above: str = "") -> None:
    """Put examples below the help of every command of an application that has none of its own.

    `above` is the name of the group that it is within, with a space after it.
    """
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.rstrip("_")
        if command.epilog is None and above + name in _EXAMPLES:
            command.epilog = "\n".join(
                ["\b", "Examples:", *(f"  {line}" for line in _EXAMPLES[above + name])]
            )
    for group in app.registered_groups:
        add_examples(group.typer_instance, f"{above}{group.name} ")
