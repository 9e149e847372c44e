"""The loops of `instance`: sums over a beta-binomial, numbers of new values, and pairs of counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit

__all__ = ["beta_binomial_tail", "fill_new", "tally_pairs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@njit
def beta_binomial_tail(
    m: int, r: float, rest: float, start: int, half: float, bar: float
) -> tuple[float, float]:
    """Sum probabilities of a beta-binomial M over M >= start, plain and times 1 - bar/(half + M).

    M counts m draws from an urn with weight r >= 1 for one value and `rest` > 0 for all others, each draw
    adding one. Terms follow from one another by their ratios, from the mode outwards, and are divided by
    their sum, so that nothing cancels. They are left out where all that follow are below 1e-17 of the sums.

    Returns
    -------
    tail : float
        P(M >= start).
    weighted : float
        E((1 - bar/(half + M))_+; M >= start).
    """
    # p(i + 1) - p(i) has the sign of m r - m + 1 - rest + i (2 - r - rest), which is linear in i
    slope = r + rest - 2.0
    at_zero = m * (r - 1.0) + 1.0 - rest
    if slope <= 0.0:
        mode = m if at_zero >= 0.0 else 0
    else:
        mode = int(min(max(math.ceil(at_zero / slope), 0.0), float(m)))
    total, tail, weighted = 1.0, 0.0, 0.0
    if mode >= start:
        tail, weighted = 1.0, max(0.0, 1.0 - bar / (half + mode))
    term, i = 1.0, mode
    while i < m and term > 0.0:
        term *= (m - i) * (r + i) / ((i + 1.0) * (m - i - 1.0 + rest))
        i += 1
        total += term
        if i >= start:
            tail += term
            weighted += term * max(0.0, 1.0 - bar / (half + i))
            if weighted > 0.0 and term * (m - i) <= 1e-17 * weighted:
                break
    term, i = 1.0, mode
    while i > 0 and term * i > 1e-17 * total:
        term *= i * (m - i + rest) / ((m - i + 1.0) * (r + i - 1.0))
        i -= 1
        total += term
        if i >= start:
            tail += term
            weighted += term * max(0.0, 1.0 - bar / (half + i))
    return tail / total, weighted / total


@njit
def fill_new(
    rng: np.random.Generator, discount: float, concentration: float, sizes: Ints, found: Ints
) -> None:
    """Draw, for each size, the number of blocks of a Pitman-Yor partition of so many records.

    Where a new block is rare the next one is looked for at once: its probability only falls until then, so
    that a geometric gap under the present one is accepted with the ratio of the two.
    """
    for r in range(len(sizes)):
        size = sizes[r]
        blocks = 0
        i = 0
        while i < size:
            chance = (concentration + blocks * discount) / (concentration + i)
            if chance > 0.2:
                if rng.random() < chance:
                    blocks += 1
            else:
                gap = math.floor(math.log(1.0 - rng.random()) / math.log1p(-chance))
                if gap >= size - i:
                    break
                i += int(gap)
                there = (concentration + blocks * discount) / (concentration + i)
                if rng.random() * chance < there:
                    blocks += 1
            i += 1
        found[r] = blocks


@njit
def tally_pairs(raised: Floats, lowered: Floats, count: Floats, total: Floats) -> None:
    """Add to `count` and `total`, shape (A, B), draws where raised/lowered exceeds 1, and 1 - lowered/raised.

    Parameters
    ----------
    raised : ndarray, shape (R, A)
        Factor of the likelihood ratio that the replaced value brings.
    lowered : ndarray, shape (R, B)
        e^epsilon over the factor that the value in its place brings.
    """
    for r in range(raised.shape[0]):
        for a in range(raised.shape[1]):
            inverse = 1.0 / raised[r, a]
            for b in range(lowered.shape[1]):
                excess = 1.0 - lowered[r, b] * inverse
                more = excess > 1e-12  # equal, but for rounding, is not more
                count[a, b] += more
                total[a, b] += excess if more else 0.0
