"""The command `dpmix card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpmix.cli.options import Debug, Force, Quiet, Version, check_files, say


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
    quiet: Quiet = False,
    debug: Debug = False,
    version: Version = False,
) -> None:
    """Curator: write the metadata to publish beside a release; what is policy is left blank, and marked."""
    check_files([release], [output], force)
    from dpmix.api.card import card as write
    from dpmix.release.card_metadata import blanks_of
    from dpmix.run.progress import show_phase

    with show_phase("reading the release", quiet):
        blanks = len(blanks_of(write(release, output, force=force)))
    say(f"wrote {output}, with {blanks} entries TO BE FILLED IN", quiet)
