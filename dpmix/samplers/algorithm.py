"""What the spec's section `sampler` says of an algorithm, and how each sampler is built of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dpmix.numerics.mixing import PitmanYor

__all__ = ["BUILDERS", "TABLED", "Algorithm", "Built", "builds", "by_fields"]


class Algorithm(NamedTuple):
    """What the spec's `sampler` section says of the algorithm: kind, auxiliary m, truncation H, latent."""

    kind: str
    auxiliary: int = 1
    truncation: int = 100
    latent: str = "exact"


class Built(NamedTuple):
    """A sampler, and what its chain has to have for it.

    Parameters
    ----------
    algorithm : NamedTuple
        For which `sweep` is registered.
    held : int
        Latent values that are held of each record.
    slots : int
        Components that there is room for at first; 0 for as many as are offered at once, twice.
    block : int
        Components whose densities are kept beside each other; 0 where none are.
    """

    algorithm: Any
    held: int = 0
    slots: int = 0
    block: int = 0


Builder = Callable[[Algorithm, Any, PitmanYor, int], Built]
"""Of the settings, the kernel, the prior of weights and the number of records."""
BUILDERS: dict[str, Builder] = {}
"""By the spec's `sampler.kind`; each sampler's file adds its own."""
TABLED: set[str] = set()
"""Samplers that ask for so many integrals of a component that a kernel makes them a table first."""


def builds(kind: str, *, tabled: bool = False) -> Callable[[Builder], Builder]:
    """Let a function build the sampler of a kind."""

    def decorate(builder: Builder) -> Builder:
        BUILDERS[kind] = builder
        if tabled:
            TABLED.add(kind)
        return builder

    return decorate


def by_fields(algorithm: Any) -> Builder:
    """Return what builds a sampler whose fields are among the settings."""
    return lambda settings, *_: Built(algorithm(*(getattr(settings, name) for name in algorithm._fields)))
