"""Samplers of mixtures given a release: one file an algorithm, over (channel, kernel, mixing)."""

from dpmix.samplers.chain import Algorithm, Chain

__all__ = ["Algorithm", "Chain"]
