"""Laws of mechanisms by kind."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dpmix.mechanisms.laws.law_base import EstimatedMoments, Law, LawError, Observation, expect
from dpmix.spec.kinds import MECHANISMS

__all__ = ["EstimatedMoments", "Law", "LawError", "Observation", "expect", "law_of", "law_type"]

_WITHOUT_FOLDER = ("synthetic", "elsewhere")
"""Kinds that are no mechanism of a spec."""


def law_type(kind: str) -> type[Law]:
    """Return the class of a kind of mechanism; `UnknownLaw` for those of other versions."""
    if kind in MECHANISMS:
        found: type[Law] = MECHANISMS.part(kind, "law")
    else:
        known = kind if kind in _WITHOUT_FOLDER else "unknown"
        found = import_module(f"dpmix.mechanisms.laws.{known}").LAW
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
