"""The law of no mechanism: values as they are."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from dpmix.laws.additive import Additive
from dpmix.laws.law_base import Floats, Pictured
from dpmix.mechanisms.none.section import NoMechanism


class NoLaw(Additive):
    """z = y."""

    capabilities = NoMechanism
    noise = "none"
    pictured = Pictured("data", "the data", "data")

    def channel(self, scale: float) -> Any:
        """Return the channel that records go through as they are."""
        from dpmix.mechanisms.none.channel import NoNoise

        return NoNoise()

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the channel of rows that are the records."""
        from dpmix.mechanisms.channels.rows import Rows

        return Rows(values)

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Return the records."""
        return latent

    def done(self, n: int) -> str:
        """Say that nothing was done."""
        return f"No noise was added: this is a fit to the {n} values themselves, and it is not private."


LAW = NoLaw
