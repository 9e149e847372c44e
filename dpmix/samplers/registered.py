"""What follows from the channels and kernels that there are, which others may have registered."""

from __future__ import annotations

from dpmix.samplers import conditional, offers, parameters

__all__ = ["complete"]


def complete() -> None:
    """Register what follows from what channels and kernels have registered by now."""
    for module in (offers, parameters, conditional):
        module.complete()
