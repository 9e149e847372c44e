"""The law of values that were made elsewhere, which the analyst's model alone describes."""

from __future__ import annotations

from dpmix.mechanisms.laws.law_base import Law
from dpmix.spec.capabilities import Elsewhere, counted

__all__ = ["LAW", "ElsewhereLaw"]


class ElsewhereLaw(Law):
    """Nothing is known of it here."""

    capabilities = Elsewhere

    def done(self, n: int) -> str:
        """Say that nothing is known."""
        return (
            f"The released values were made of {counted(n, 'record')} elsewhere, by a mechanism that the "
            "model describes; nothing is known here of what they guarantee."
        )


LAW = ElsewhereLaw
