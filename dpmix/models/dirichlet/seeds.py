"""Generators for what is drawn before the chains: fixed by the release, so that all chains have the same."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from dpmix.release import Release

__all__ = ["release_generator"]


def release_generator(release: Release, purpose: str) -> Generator:
    """Return a generator seeded by the released values and a purpose.

    Priors taken from the first part of a release, and tolerances, are then the same for all chains, in
    whichever process and with whichever seed they run, and when a run is resumed.
    """
    digest = hashlib.sha256(purpose.encode())
    digest.update(np.ascontiguousarray(release.values, dtype="<f8").tobytes())
    return Generator(PCG64(SeedSequence(int.from_bytes(digest.digest()[:16], "little"))))
