"""The law of a mechanism that this version does not know: its noise is all that is read of it."""

from __future__ import annotations

from dpmix.mechanisms.laws.law_base import Law, Scales

__all__ = ["LAW", "UnknownLaw"]


class UnknownLaw(Law):
    """A kind of another version."""

    scale: Scales


LAW = UnknownLaw
