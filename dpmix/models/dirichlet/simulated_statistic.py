"""The statistic of a simulated database: the mean of log max(x, a) over n compositions."""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from dpmix.models.dirichlet.latent_records import set_shapes, standard_cube
from dpmix.numerics.jit import njit
from dpmix.release.sanitized import Release

__all__ = ["release_generator", "simulate_means"]


# Generators for what is drawn before the chains: fixed by the release, so that all chains have the same.


def release_generator(release: Release, purpose: str) -> Generator:
    """Return a generator seeded by the released values and a purpose.

    Priors taken from the first part of a release, and tolerances, are then the same for all chains, in
    whichever process and with whichever seed they run, and when a run is resumed.
    """
    digest = hashlib.sha256(purpose.encode())
    digest.update(np.ascontiguousarray(release.values, dtype="<f8").tobytes())
    return Generator(PCG64(SeedSequence(int.from_bytes(digest.digest()[:16], "little"))))


_MOST = 64  # factors of a product, at the most
_RANGE = 600.0  # of the logarithms of doubles


@njit
def simulate_means(rng, shapes, size, floor, means):
    """Set `means` (d,) to those of max(log x_j, floor) over `size` compositions drawn given alpha.

    Shares censored below lie between exp(floor) and 1, so that many are multiplied before a logarithm is
    taken: simulating costs what the gamma variates cost.

    Parameters
    ----------
    rng : Generator
    shapes : Shapes
        Of which `alpha` is set; the rest is set here.
    size : int
    floor : float
        log a < 0.
    means : ndarray, shape (d,)
    """
    set_shapes(shapes)
    d = len(means)
    lowest = math.exp(floor)
    most = max(1, min(_MOST, int(-_RANGE / floor)))
    parts, products = np.empty(d), np.ones(d)
    means[:] = 0.0
    count = 0
    for _ in range(size):
        total = 0.0
        for j in range(d):
            parts[j] = shapes.mode[j] * standard_cube(rng, shapes.mode[j], shapes.spread[j])
        if shapes.boost[d] == 0.0:
            for j in range(d):
                total += parts[j]
        else:
            total = _shrink(rng, shapes, parts)
        over = 1.0 / total
        for j in range(d):
            products[j] *= max(parts[j] * over, lowest)
        count += 1
        if count == most:
            for j in range(d):
                means[j] += math.log(products[j])
                products[j] = 1.0
            count = 0
    for j in range(d):
        means[j] = (means[j] + math.log(products[j])) / size


@njit
def _shrink(rng, shapes, parts):
    """Turn gamma variates (d,) of shapes alpha + 1 into those of alpha < 1, up to a factor; return their sum.

    They are the former times U^(1 / alpha); the factor, common to all, keeps one of them from underflow.
    """
    d = len(parts)
    lead = math.inf
    drops = np.zeros(d)
    for j in range(d):
        if shapes.boost[j] > 0.0:
            drops[j] = shapes.boost[j] * rng.standard_exponential()
        lead = min(lead, drops[j])
    total = 0.0
    for j in range(d):
        parts[j] *= math.exp(lead - drops[j])
        total += parts[j]
    return total
