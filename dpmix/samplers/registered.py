"""Samplers, channels and kernels that are registered beside those that ship."""

from __future__ import annotations

from typing import Any

from dpmix.samplers import conditional, offers, parameters

__all__ = ["ALGORITHMS", "complete"]

ALGORITHMS: dict[str, Any] = {}
"""NamedTuples of samplers, by kind; their fields are among those of `dpmix.samplers.chain.Algorithm`."""


def complete() -> None:
    """Register what follows from what channels and kernels have registered by now."""
    for module in (offers, parameters, conditional):
        module.complete()
