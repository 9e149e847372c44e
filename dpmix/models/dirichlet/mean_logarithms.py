"""Means of logarithms: of simulated compositions, and the distributions that are most likely given them.

With s_j the mean of log x_j, the Dirichlet likelihood is concave in alpha and stationary where alpha_j =
psi^-1(s_j + psi(A)), A the sum of all alpha (Minka 2000, whose fixed point iterates this). That leaves one
equation in A, here solved by Newton's method within bounds that close in on the root, which is its only one:
it is there if and only if s is within the range {s < 0, sum_j exp(s_j) < 1} that the means of the logarithms
of compositions, not all equal, fill.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from dpmix.models.dirichlet.latent_records import set_shapes, standard_cube
from dpmix.numerics.jit import njit
from dpmix.numerics.special import digamma, trigamma

if TYPE_CHECKING:
    from dpmix.release.sanitized import Release

# Generators for what is drawn before the chains: fixed by the release, so that all chains have the same.


def release_generator(release: Release, purpose: str) -> Generator:
    """Return a generator seeded by the released values and a purpose.

    Priors taken from the first part of a release, and tolerances, are then the same for all chains, in
    whichever process and with whichever seed they run, and when a run is resumed.
    """
    digest = hashlib.sha256(purpose.encode())
    digest.update(np.ascontiguousarray(release.values, dtype="<f8").tobytes())
    return Generator(PCG64(SeedSequence(int.from_bytes(digest.digest()[:16], "little"))))


_MOST_AT_ONCE = 64  # factors of a product, at the most
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
    most = max(1, min(_MOST_AT_ONCE, int(-_RANGE / floor)))
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


# Maximum likelihood of a Dirichlet and of a gamma distribution, from means of logarithms

Floats = NDArray[np.float64]

_EULER = 0.57721566490153286
_MOST = 32.0  # log of the largest sum of alpha looked for: beyond it rounding of s decides
_STEP = 3.0  # and by how much it may change at once


@njit
def in_range(means):
    """Return whether means of logarithms (d,) are those of some compositions that are not all equal."""
    total = 0.0
    for j in range(len(means)):
        if not means[j] < 0.0:
            return False
        total += math.exp(means[j])
    return total < 1.0


@njit
def _inverse_digamma(y):
    """Return the x > 0 where the digamma function is `y`, by Newton's method from Minka's start (2000)."""
    x = math.exp(y) + 0.5 if y >= -2.22 else -1.0 / (y + _EULER)
    for _ in range(20):
        step = (digamma(x) - y) / trigamma(x)
        x = max(x - step, 0.5 * x)
        if abs(step) <= 1e-15 * x:
            break
    return x


@njit
def _excess(means, log_total, alpha):
    """Set alpha (d,) to what a sum of exp(`log_total`) makes of it; return log(sum alpha / exp(log_total)).

    Second, its derivative in `log_total`.
    """
    total = math.exp(log_total)
    shift = digamma(total)
    found, slope = 0.0, 0.0
    for j in range(len(means)):
        alpha[j] = _inverse_digamma(means[j] + shift)
        found += alpha[j]
        slope += 1.0 / trigamma(alpha[j])
    return math.log(found / total), total * trigamma(total) * slope / found - 1.0


@njit
def dirichlet_mle(means, alpha):
    """Set alpha (d,) to the maximum likelihood estimate; return whether there is one.

    Parameters
    ----------
    means : ndarray, shape (d,)
        Means of log x_j.
    alpha : ndarray, shape (d,)
        Room for the estimate; left as it is where there is none.
    """
    if not in_range(means):
        return False
    spread = 1.0
    for j in range(len(means)):
        spread -= math.exp(means[j])
    # near a point mass sum_j exp(s_j) is 1 - (d - 1) / (2 A)
    at = min(math.log(0.5 * (len(means) - 1) / spread), _MOST)
    low, high = -math.inf, math.inf
    for _ in range(200):
        value, slope = _excess(means, at, alpha)
        if value > 0.0:
            low = at
        else:
            high = at
        step = -value / slope if slope < 0.0 else math.nan
        following = at + min(max(step, -_STEP), _STEP)
        if not low < following < high:
            if high == math.inf:
                following = low + _STEP
            elif low == -math.inf:
                following = high - _STEP
            else:
                following = 0.5 * (low + high)
        following = min(following, _MOST)
        change = abs(following - at)
        at = following
        if change <= 1e-14 * max(1.0, abs(at)):
            break
    _excess(means, at, alpha)
    return True


def gamma_mle(values: Floats) -> tuple[float, float]:
    """Return shape and rate of the gamma distribution most likely to give `values` (m,), all positive.

    With M = log(mean) - mean(log) > 0 the shape solves log k - psi(k) = M, by Newton's method in 1/k (Minka
    2002). Values that are all equal have no estimate: their spread is taken to be at least 1e-12.
    """
    mean = float(values.mean())
    gap = max(math.log(mean) - float(np.log(values).mean()), 1e-12)
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(50):
        error = math.log(shape) - float(digamma(shape)) - gap
        step = error / (shape * shape * (1.0 / shape - float(trigamma(shape))))
        following = 1.0 / (1.0 / shape + step)
        if not following > 0.0:
            following = 0.5 * shape
        if abs(following - shape) <= 1e-13 * shape:
            shape = following
            break
        shape = following
    return shape, shape / mean
