"""The exponential mechanism on the Hellinger distance: which posterior, with which integer weight."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.posteriors import weight_loops

__all__ = [
    "LARGEST_N",
    "LISTED",
    "ExponentialMechanism",
    "Posteriors",
    "checked_counts",
    "theorem_gamma",
    "weight_bits",
]

# Hellinger distances between Dirichlet posteriors of equally many records, from tables of log gamma


Integers = NDArray[np.int64]

LARGEST_N = 1_000_000
_LARGEST_PRIOR = 1e9
_FINEST = 2**16  # units between neighbours, at least: rounding to units loses less than 2^-15 of them
_ASYMPTOTIC = 32.0


@dataclass(frozen=True)
class Posteriors:
    """Every posterior Dir(prior + c) that counts c of n records can give (methods, section 6).

    Two of them have parameters a and b with the same sum, of which the gamma functions cancel:

        1 - H^2 = prod_i Gamma((a_i + b_i)/2) / sqrt(Gamma(a_i) Gamma(b_i)) = exp(-sum_i h_i(c_i, r_i)).

    With T_i(k) = log Gamma(prior_i + k/2), k = 0, .., 2 n, 2 h_i(c, r) is T_i(2c) + T_i(2r) - 2 T_i(c + r),
    a second difference: anything affine in k may be added to T_i. The tables hold T_i in fixed point, with
    T_i(0) = T_i(2n) = 0 but for rounding; differences are exact, and all that follows starts from integers.

    Parameters
    ----------
    prior : tuple of float
        Parameters of the Dirichlet prior, at least two.
    n : int
        Number of records.
    """

    prior: tuple[float, ...]
    n: int

    def __post_init__(self) -> None:
        """Check prior and number of records.

        Raises
        ------
        PrivacyError
            When an entry of the prior is not between 0 and 1e9, or there are too many records, or none.
        """
        if len(self.prior) < 2:
            raise PrivacyError("a posterior needs a prior of at least two entries")
        for entry in self.prior:
            if not 0 < entry <= _LARGEST_PRIOR:
                raise PrivacyError(f"the entries of the prior must be above 0 and at most 1e9, not {entry:g}")
        if not 1 <= self.n <= LARGEST_N:
            raise PrivacyError(f"a posterior is released of 1 to {LARGEST_N} records, not {self.n}")

    @property
    def dimension(self) -> int:
        """Number of categories d."""
        return len(self.prior)

    @property
    def size(self) -> int:
        """Number of posteriors, C(n + d - 1, d - 1)."""
        return math.comb(self.n + self.dimension - 1, self.dimension - 1)

    @property
    def exchangeable(self) -> bool:
        """Whether all entries of the prior are equal."""
        return len(set(self.prior)) == 1

    @functools.cached_property
    def _made(self) -> tuple[Integers, int]:
        steps = [_half_steps(entry, self.n) for entry in self.prior]
        depth = max(float(np.abs(np.cumsum(row)).max()) for row in steps)
        bits = 60 - math.ceil(math.log2(self.dimension * depth))  # all that is apart stays below 2^61
        table = np.zeros((self.dimension, 2 * self.n + 1), dtype=np.int64)
        for row, own in zip(table, steps, strict=True):
            np.cumsum(np.rint(np.ldexp(own, bits)).astype(np.int64), out=row[1:])
        least = np.sort((table[:, 0:-2:2] + table[:, 2::2] - 2 * table[:, 1::2]).min(axis=1))
        if least[:2].sum() < _FINEST:
            raise PrivacyError(
                f"posteriors of {self.n} records under this prior are too close to be told apart"
            )
        return table, bits

    @property
    def bits(self) -> int:
        """2^bits units of the tables are one."""
        return self._made[1]

    @property
    def inexact(self) -> float:
        """How far a step of the tables may be off before it is rounded to units; see `_half_steps`.

        Sums of at most 33 logarithms with relative errors below 2^-51 each. Those of x over the centre are
        below 42; those of the recurrence add up to log(1 + 1/(2 entry)) + log(33) at most.
        """
        return math.ldexp(64 * (8 + math.log1p(0.5 / min(self.prior))), -53)

    @property
    def table(self) -> Integers:
        """T_i(k) of `2^bits` units to one, shape (d, 2 n + 1)."""
        return self._made[0]

    @property
    def unit(self) -> float:
        """What one unit of `apart` is worth, a power of two: h = unit times the integer."""
        return math.ldexp(1.0, -self._made[1] - 1)

    @functools.cached_property
    def digest(self) -> str:
        """Digest of the tables: logarithms may differ in the last place from one machine to another."""
        found = hashlib.sha256(f"{self._made[1]}".encode())
        found.update(np.ascontiguousarray(self.table).astype("<i8").tobytes())
        return found.hexdigest()

    @functools.cached_property
    def steps(self) -> Integers:
        """2 h_i(v, v + 1), v = 0, .., n - 1, shape (d, n): what one record costs, decreasing in v."""
        found: Integers = self.table[:, 0:-2:2] + self.table[:, 2::2] - 2 * self.table[:, 1::2]
        return found

    def apart(self, counts: Sequence[int]) -> Integers:
        """Return 2 h_i(counts_i, r), r = 0, .., n, in units, shape (d, n + 1); none is negative.

        Parameters
        ----------
        counts : sequence of int
            Of the d categories, n in all.
        """
        found = np.empty((self.dimension, self.n + 1), dtype=np.int64)
        for i, (row, c) in enumerate(zip(self.table, counts, strict=True)):
            found[i] = row[2 * c] + row[::2] - 2 * row[c : c + self.n + 1]
        return np.maximum(found, 0)

    def hellinger(self, counts: Sequence[int], others: Sequence[int] | Integers) -> NDArray[np.float64]:
        """Return H between the posterior of counts and those of others, shape (d,) or (rows, d)."""
        rows = np.atleast_2d(np.asarray(others, dtype=np.int64))
        own = np.asarray(counts, dtype=np.int64)
        total = np.zeros(len(rows), dtype=np.int64)
        for row, c, r in zip(self.table, own, rows.T, strict=True):
            total += np.maximum(row[2 * c] + row[2 * r] - 2 * row[c + r], 0)
        found: NDArray[np.float64] = np.sqrt(-np.expm1(-self.unit * total))
        return found


def _half_steps(entry: float, n: int) -> NDArray[np.float64]:
    """Return log Gamma(x + 1/2) - log Gamma(x), x = entry + k/2 for k = 0, .., 2 n - 1, less their mean.

    By the asymptotic series of Gamma(x + 1/2)/Gamma(x); what is below 32 is moved up by the recurrence first.
    """
    centre = entry + n
    places = np.arange(2 * n) / 2
    x = entry + places
    logs = np.log1p((places - n) / centre) if n < entry else np.log(x / centre)
    moved = np.zeros(2 * n)
    for _ in range(int(_ASYMPTOTIC)):
        low = x < _ASYMPTOTIC
        if not low.any():
            break
        moved[low] -= np.log1p(0.5 / x[low])
        x[low] += 1.0
        logs[low] = np.log(x[low] / centre)
    y = 1 / (x * x)
    series = -(1 / 8 - y * (1 / 192 - y * (1 / 640 - y * 17 / 14336))) / x
    found: NDArray[np.float64] = 0.5 * logs + moved + series
    found -= found.mean()
    return found


def checked_counts(counts: Sequence[float] | NDArray[np.generic], dimension: int, n: int) -> tuple[int, ...]:
    """Return counts as integers.

    Parameters
    ----------
    counts : sequence
        Of the categories.
    dimension : int
        Number of categories.
    n : int
        Number of records.

    Raises
    ------
    PrivacyError
        When they are not as many as the categories, not whole, negative, or do not sum to n.
    """
    values = np.asarray(counts)
    if values.shape != (dimension,):
        raise PrivacyError(f"the counts must be one number for each of the {dimension} entries of the prior")
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or (values != np.floor(values)).any():
        raise PrivacyError("the counts must be whole numbers")
    if (values < 0).any():
        raise PrivacyError("the counts must not be negative")
    found = tuple(int(value) for value in values)
    if sum(found) != n:
        raise PrivacyError(f"the counts must sum to the number of records, {n}")
    return found


# The exponential mechanism on the Hellinger distance: which posterior, with which integer weight


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
