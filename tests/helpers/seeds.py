"""Seeds from a case's own name: a case put into a list leaves those of all others alone."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["rng_of", "seed_of", "turn_of"]


def seed_of(*name: Any) -> list[int]:
    """Return the seed of a case: a digest of what it is called, strings and numbers of Python's own."""
    return [int.from_bytes(hashlib.sha256(repr(name).encode()).digest()[:8])]


def rng_of(*name: Any) -> np.random.Generator:
    """Return a case's own stream."""
    return np.random.default_rng(seed_of(*name))


def turn_of(turns: int, *name: Any) -> int:
    """Return which of `turns` variants a case has."""
    return seed_of("turn", *name)[0] % turns
