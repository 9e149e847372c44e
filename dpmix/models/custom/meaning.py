"""What chains of a user's model mean, of which nothing is known but its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpmix.columns.dated import NONE
from dpmix.models.meaning_base import Meaning, Unavailable

if TYPE_CHECKING:
    from dpmix.columns.dated import Dated
    from dpmix.kernels.layout import Floats
    from dpmix.models.meaning_base import StatisticReplicator


class CustomMeaning(Meaning):
    """Of a user's model."""

    def log_prior(self) -> Floats:
        """Refuse."""
        raise Unavailable("a custom model does not give its prior's density")

    def replicator(self) -> StatisticReplicator:
        """Refuse."""
        if self.chains.mechanism.groups:
            return super().replicator()
        raise Unavailable("a custom model does not say how its release is made")

    def dated(self, columns: frozenset[str]) -> Dated:
        """Return none: parameters have whatever names."""
        return NONE


MEANING = CustomMeaning
