"""Overrides of verbs that work on chains: only the section ``summary`` is open when these are made."""

from __future__ import annotations

from collections.abc import Sequence

from dpmix.errors import UsageError
from dpmix.spec.load import load_spec

__all__ = ["TAKEN", "check_overrides"]

TAKEN = "predict takes summary.level and summary.interval"


def check_overrides(overrides: Sequence[str], taken: str) -> None:
    """Check overrides before chains are read.

    Parameters
    ----------
    overrides : sequence of str
        ``key=value`` each.
    taken : str
        The verb and what it takes, for the message.

    Raises
    ------
    UsageError
        For a key of another section than ``summary``.
    SpecError
        For what is no spec, whatever the rest of it is.
    """
    for override in overrides:
        if not override.lstrip().startswith("summary."):
            key = override.partition("=")[0].strip()
            raise UsageError(f"--set {key}: the chains are made; {taken}")
    load_spec({"summary": {}}, overrides)
