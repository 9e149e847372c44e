"""Laws of mechanisms by kind, and of the kinds that are no mechanism of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dpmix.laws.law_base import EstimatedMoments, Law, LawError, Observation, Scales, expect
from dpmix.spec.capabilities import Elsewhere, counted
from dpmix.spec.kinds import MECHANISMS

__all__ = ["EstimatedMoments", "Law", "LawError", "Observation", "expect", "law_of", "law_type"]


class UnknownLaw(Law):
    """A kind of another version: its noise is all that is read of it."""

    scale: Scales


class ElsewhereLaw(Law):
    """Values that were made elsewhere, which the analyst's model alone describes."""

    capabilities = Elsewhere

    def done(self, n: int) -> str:
        """Say that nothing is known."""
        return (
            f"The released values were made of {counted(n, 'record')} elsewhere, by a mechanism that the "
            "model describes; nothing is known here of what they guarantee."
        )


def law_type(kind: str) -> type[Law]:
    """Return the class of a kind of mechanism; `UnknownLaw` for those of other versions."""
    if kind in MECHANISMS:
        found: type[Law] = MECHANISMS.part(kind, "law")
    elif kind == "synthetic":
        found = import_module(f"{__package__}.{kind}").LAW  # by name, as those of mechanisms
    else:
        found = ElsewhereLaw if kind == "elsewhere" else UnknownLaw
    return found


def law_of(stated: Mapping[str, Any] | Law) -> Law:
    """Parse what a release states of its mechanism.

    Raises
    ------
    LawError
        Where it does not name its kind, or lacks something that a mechanism of its kind has.
    """
    if isinstance(stated, Law):
        return stated
    kind = stated.get("kind")
    if not isinstance(kind, str):
        raise LawError("does not name its kind")
    return law_type(kind).of(stated)
