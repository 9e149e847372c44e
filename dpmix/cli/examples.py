"""What stands at the end of each command's ``--help``: examples of its use."""

from __future__ import annotations

from typing import Any, Final

_EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "init": (
        "dpmix init",
        "dpmix init laplace > spec.yaml",
        "dpmix init custom -o folder",
    ),
    "validate": (
        "dpmix validate spec.yaml",
        "dpmix validate spec.yaml --set mechanism.epsilon=1",
    ),
    "schema": ("dpmix schema > dpmix.schema.json",),
    "calibrate": (
        "dpmix calibrate spec.yaml",
        "dpmix calibrate spec.yaml --set mechanism.epsilon=0.5",
    ),
    "advise": (
        "dpmix advise spec.yaml",
        "dpmix advise spec.yaml --epsilon 0.5,1,2 --n 1e3,1e4",
    ),
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
    "card": (
        "dpmix card release.h5 -o card.yaml",
        "dpmix card release.h5 -o croissant.json",
    ),
    "show": (
        "dpmix show release.h5",
        "dpmix show chains.h5 --json",
        "dpmix show ledger.json",
    ),
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
    "ledger show": (
        "dpmix ledger show ledger.json",
        "dpmix ledger show ledger.json --dataset people --json",
    ),
    "ledger budget": ("dpmix ledger budget ledger.json --dataset people --epsilon 3",),
}


def add_examples(app: Any, above: str = "") -> None:
    """Put examples below the help of every command of an application that has none of its own.

    Parameters
    ----------
    app : typer.Typer
        With all its commands registered.
    above : str
        The name of the group that it is within, with a space after it.
    """
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.rstrip("_")
        if command.epilog is None and above + name in _EXAMPLES:
            command.epilog = "\n".join(
                ["\b", "Examples:", *(f"  {line}" for line in _EXAMPLES[above + name])]
            )
    for group in app.registered_groups:
        add_examples(group.typer_instance, f"{above}{group.name} ")
