"""The exponential mechanism on the Hellinger distance: which posterior, with which integer weight."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.posteriors import weight_loops
from dpmix.posteriors.distance_tables import Integers, Posteriors

__all__ = ["LISTED", "ExponentialMechanism", "theorem_gamma", "weight_bits"]

Floats = NDArray[np.float64]

LISTED = 1 << 16
"""At most so many posteriors of three categories or more are listed."""
ROUNDING = 1 + 2.0**-14
"""Factor by which the smooth sensitivity is rounded up: more than what arithmetic loses of the distances."""
_LARGEST_EPSILON = 50.0
_SMALLEST_DELTA = 1e-30
_MOST_BITS = 960  # e^-700, where `exp_minus` ends, is below 2^-1009


def theorem_gamma(epsilon: float, delta: float, size: int) -> float:
    """Return log(1 - eps/(2 log(delta/(2 |R|)))), |R| = `size` posteriors (P3, Theorem 4.1).

    P3 writes n + 1, which is |R| for two categories only.
    """
    return math.log1p(-epsilon / (2 * (math.log(delta) - math.log(2) - math.log(size))))


def weight_bits(epsilon: float, delta: float, size: int) -> int:
    """Return the precision of weights, in bits below that of the true posterior.

    Rounding |R| of them down to whole numbers moves less than 2^-20 delta/(1 + e^eps) of the probability.

    Raises
    ------
    PrivacyError
        When epsilon is above 50, delta below 1e-30 or not below 1, or there are more posteriors than can be
        told apart by doubles.
    """
    if not 0 < epsilon <= _LARGEST_EPSILON:
        raise PrivacyError(f"mechanism.epsilon: method hellinger takes at most 50, not {epsilon:g}")
    if not _SMALLEST_DELTA <= delta < 1:
        raise PrivacyError(f"mechanism.delta: method hellinger takes at least 1e-30, not {delta:g}")
    bits = math.ceil(math.log2(size) - math.log2(delta) + epsilon / math.log(2) + 1) + 21
    if bits > _MOST_BITS:
        raise PrivacyError(
            f"method hellinger takes at most 2^{_MOST_BITS} posteriors over delta, which this is beyond; use "
            "method: geometric"
        )
    return bits


@dataclass(frozen=True)
class ExponentialMechanism:
    """Pr(r) proportional to floor(2^bits exp(-exponent H(x, r)/S(x))), exactly (methods, section 6).

    S is the smooth sensitivity, S(x) = max over databases x' of LS(x') exp(-gamma d(x, x')), d the number of
    records that differ; LS is the largest Hellinger distance between the posteriors of x' and a neighbour, by
    the triangle inequality. P3 has exponent = eps/2.

    Parameters
    ----------
    posteriors : Posteriors
        All that can be released.
    gamma : float
        Of the smooth sensitivity; positive.
    exponent : float
        Positive.
    bits : int
        Precision of the weights.
    """

    posteriors: Posteriors
    gamma: float
    exponent: float
    bits: int

    @property
    def top(self) -> float:
        """Weight of the true posterior, 2^bits."""
        return math.ldexp(1.0, self.bits)

    def smooth_sensitivity(self, counts: Sequence[int]) -> float:
        """Return S at the counts, before it is rounded up."""
        if self.posteriors.dimension == 2:
            return float(np.sqrt(self._all_squared[counts[0]]))
        own = np.array(counts, dtype=np.int64)
        steps, unit = self.posteriors.steps, self.posteriors.unit
        return math.sqrt(weight_loops.smooth_squared(steps, unit, own, self.gamma))

    def rate(self, counts: Sequence[int]) -> float:
        """Return the factor of the distance in the exponent at the counts."""
        return self.exponent / (self.smooth_sensitivity(counts) * ROUNDING)

    @property
    def rates(self) -> Floats:
        """The factor at all counts 0, .., n of the first of two categories."""
        found: Floats = self.exponent / (np.sqrt(self._all_squared) * ROUNDING)
        return found

    @functools.cached_property
    def _all_squared(self) -> Floats:
        found: Floats = weight_loops.smooth_of_two(self.posteriors.steps, self.posteriors.unit, self.gamma)
        return found

    def weights(self, counts: Sequence[int]) -> Floats:
        """Return the integer weights of all posteriors as doubles, in the order of `states`.

        Raises
        ------
        PrivacyError
            Where there are too many to be listed.
        """
        of, rate = self.posteriors, self.rate(counts)
        if of.dimension == 2:
            found: Floats = weight_loops.weights_of_two(folded(of), of.unit, counts[0], rate, self.top)
            return found
        listed = states(of.n, of.dimension)
        apart = np.empty((1, len(listed)))
        weight_loops.distances_of_states(of.apart(counts), listed, of.unit, apart[0])
        out: Floats = np.empty((1, len(listed)))
        weight_loops.weights_of_distances(apart, np.array([rate]), self.top, out)
        found = out[0]
        return found


def folded(posteriors: Posteriors) -> Integers:
    """Return U(k) = T_1(k) + T_2(2 n - k) of two categories, shape (2 n + 1,).

    Counts c and r of the first category are U(2c) + U(2r) - 2 U(c + r) units apart.
    """
    found: Integers = posteriors.table[0] + posteriors.table[1][::-1]
    return found


@functools.lru_cache(maxsize=4)
def states(n: int, dimension: int) -> Integers:
    """Return all counts of `dimension` categories and n records in lexical order, one per row.

    Raises
    ------
    PrivacyError
        Where there are too many.
    """
    size = math.comb(n + dimension - 1, dimension - 1)
    if dimension > 2 and size > LISTED:
        raise PrivacyError(f"{size} posteriors are too many to list")
    if dimension == 1:
        return np.array([[n]], dtype=np.int64)
    parts = []
    for first in range(n + 1):
        rest = states.__wrapped__(n - first, dimension - 1)
        parts.append(np.hstack([np.full((len(rest), 1), first, dtype=np.int64), rest]))
    return np.vstack(parts)
