"""The command line: `main` is the command ``dpmix``."""

from dpmix.cli.commands import main

__all__ = ["main"]
