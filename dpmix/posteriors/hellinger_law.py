"""The law by which one of all posteriors is released: the exponential mechanism on the Hellinger distance.

`Posteriors` are all that counts of n records can give, with their distances from tables of log gamma;
`ExponentialMechanism` is which of them is released with which integer weight (methods, section 6). Compiled
loops work out weights and smooth sensitivity.

The weights are what a guarantee is about, so that they must come out the same wherever they are computed:
given tables and rate, only sums, products and square roots, which IEEE 754 fixes to the last bit, take part
in them, and never a library's exp.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.numerics.jit import njit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LISTED = 1 << 16
"""At most so many posteriors of three categories or more are listed."""
ROUNDING = 1 + 2.0**-14
"""Factor by which the smooth sensitivity is rounded up: more than what arithmetic loses of the distances."""
_LARGEST_N = 1_000_000
_LARGEST_PRIOR = 1e9
_FINEST = 2**16  # units between neighbours, at least: rounding to units loses less than 2^-15 of them
_ASYMPTOTIC = 32.0
_LARGEST_EPSILON = 50.0
_SMALLEST_DELTA = 1e-30
_MOST_BITS = 960  # e^-700, where `exp_minus` ends, is below 2^-1009

_LOG2E = 1.4426950408889634
_LN2_HIGH = 0.693147180369123816490  # 32 bits and trailing zeros: times an integer below 2^21 it is exact
_LN2_LOW = 1.90821492927058770002e-10
_FAR = 700.0
_FLAT = 40.0  # beyond it 1 - exp(-h) rounds to 1
_SURELY = 1 - 2.0**-30  # whatever rounding does to the order
_MOST = 2.0**61  # units; the tables leave distances below 2^60
_POWERS = np.ldexp(1.0, -np.arange(1100))
_EXP = np.array([(-1.0) ** k / math.factorial(k) for k in range(15)])
_MINUS = np.array([(-1.0) ** k / math.factorial(k + 1) for k in range(17)])

# Posteriors, and Hellinger distances between them


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
        if not 1 <= self.n <= _LARGEST_N:
            raise PrivacyError(f"a posterior is released of 1 to {_LARGEST_N} records, not {self.n}")

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


# The exponential mechanism


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
        return math.sqrt(smooth_squared(steps, unit, own, self.gamma))

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
        found: Floats = smooth_of_two(self.posteriors.steps, self.posteriors.unit, self.gamma)
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
            found: Floats = weights_of_two(folded(of), of.unit, counts[0], rate, self.top)
            return found
        listed = states(of.n, of.dimension)
        apart = np.empty((1, len(listed)))
        distances_of_states(of.apart(counts), listed, of.unit, apart[0])
        out: Floats = np.empty((1, len(listed)))
        weights_of_distances(apart, np.array([rate]), self.top, out)
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


# Compiled loops: weights and smooth sensitivity


@njit
def exp_minus(x: float) -> float:
    """Return e^-x of 0 <= x, 0 beyond 700; relative error below 2^-48."""
    if x > _FAR:
        return 0.0
    q = np.floor(x * _LOG2E + 0.5)
    r = (x - q * _LN2_HIGH) - q * _LN2_LOW
    total: float = _EXP[14]
    for k in range(13, -1, -1):
        total = total * r + _EXP[k]
    found: float = total * _POWERS[int(q)]
    return found


@njit
def one_minus_exp_minus(y: float) -> float:
    """Return 1 - e^-y of y >= 0, relative error below 2^-48; 1 from 40 on."""
    if y >= 0.5:
        return 1.0 - exp_minus(y)
    total: float = _MINUS[16]
    for k in range(15, -1, -1):
        total = total * y + _MINUS[k]
    return total * y


@njit
def distance(apart: int, unit: float) -> float:
    """Return the Hellinger distance sqrt(1 - exp(-unit * apart)); apart is an integer."""
    return math.sqrt(one_minus_exp_minus(unit * max(apart, 0)))


@njit
def weight(apart: int, unit: float, rate: float, top: float) -> float:
    """Return the integer floor(top * exp(-rate * distance)) as a double; top is a power of two."""
    found: float = np.floor(exp_minus(rate * distance(apart, unit)) * top)
    return found


@njit
def smooth_of_two(steps: Integers, unit: float, gamma: float) -> Floats:
    """Return the squared smooth sensitivity of two categories at every count 0, .., n of the first.

    S(c)^2 = max over c' of LS(c')^2 exp(-2 gamma |c - c'|), by a sweep to the right and one to the left.

    Parameters
    ----------
    steps : ndarray of int64, shape (2, n)
        2 h_i(v, v + 1), in units.
    unit, gamma : float
    """
    n = steps.shape[1]
    found = np.zeros(n + 1)
    for c in range(n + 1):
        largest = 0
        if c > 0:  # a record leaves the first category
            largest = max(largest, steps[0, c - 1] + steps[1, n - c])
        if c < n:
            largest = max(largest, steps[0, c] + steps[1, n - c - 1])
        found[c] = one_minus_exp_minus(unit * largest)
    fall = exp_minus(2 * gamma)
    for c in range(1, n + 1):
        found[c] = max(found[c], found[c - 1] * fall)
    for c in range(n - 1, -1, -1):
        found[c] = max(found[c], found[c + 1] * fall)
    return found


@njit
def smooth_squared(steps: Integers, unit: float, counts: Integers, gamma: float) -> float:
    """Return the squared smooth sensitivity at the counts of three categories or more.

    A neighbour's distance at u records in bin i, one of which goes to bin j with v, depends on u and v
    alone: 1 - exp(-g_i(u - 1) - g_j(v)), g = unit * steps; log G of the methods is -g/2. To take m records
    out of the two bins costs m, as the others have room. g is convex: it is a second difference of log Gamma
    with step 1/2, an average of trigamma, whose second derivative is positive. So for given m the largest
    g_i + g_j is at an end: one of the bins is emptied first (bin i down to one record). An empty bin i takes
    its record from bin j, or from another one where j is empty too. That is O(c_i + c_j) for a pair of bins,
    less where exp(-2 gamma m), which bounds what m records away can add, falls below the largest found.

    Parameters
    ----------
    steps : ndarray of int64, shape (d, n)
        2 h_i(v, v + 1), in units.
    unit, gamma : float
    counts : ndarray of int64, shape (d,)
    """
    best = 0.0
    for i in range(counts.size):
        for j in range(counts.size):
            if i == j:
                continue
            least = 0 if counts[i] >= 1 else 1
            room = max(counts[i] - 1, 0)
            most = max(room + counts[j], least)
            for m in range(least, most + 1):
                fall = exp_minus(2 * gamma * m)
                if fall < best * _SURELY:
                    break
                of_i = min(m, room)
                of_j = min(m, counts[j])
                i_first = steps[i, max(counts[i] - of_i, 1) - 1] + steps[j, max(counts[j] - (m - of_i), 0)]
                u = max(counts[i] - (m - of_j), 1)
                j_first = steps[i, u - 1] + steps[j, counts[j] - of_j]
                at = one_minus_exp_minus(unit * max(i_first, j_first)) * fall
                best = max(best, at)
    return best


@njit
def reach(table: Integers, c: int, limit: int) -> tuple[int, int]:
    """Return the first and the last r from 0 to n that is at most `limit` units from c; see `row_of_two`."""
    n = (table.size - 1) // 2
    low, high = 0, c
    while low < high:
        middle = (low + high) // 2
        if table[2 * c] + table[2 * middle] - 2 * table[c + middle] <= limit:
            high = middle
        else:
            low = middle + 1
    first = low
    low, high = c, n
    while low < high:
        middle = (low + high + 1) // 2
        if table[2 * c] + table[2 * middle] - 2 * table[c + middle] <= limit:
            low = middle
        else:
            high = middle - 1
    return first, low


@njit
def _limit(unit: float, rate: float, top: float) -> int:
    """Return how far weights vary, in units: beyond it they are 0 or, with H = 1 in doubles, all the same."""
    zero = (math.log(top) + 2.0) / rate  # e^2 below the resolution
    limit = _FLAT
    if zero < 1.0:
        limit = min(limit, -math.log1p(-zero * zero) * (1 + 1e-9))
    return int(min(limit / unit, _MOST)) + 1


@njit
def row_of_two(
    table: Integers, unit: float, c: int, rate: float, top: float, out: Floats
) -> tuple[int, int, float, float, float]:
    """Fill weights of a database with c successes from the first to the last that varies.

    Returns first and last, the weight of all others, the sum of all, and the mean Hellinger distance. What is
    apart grows with |r - c|, as log gamma is convex, so that the reach is found by bisection; rounding of the
    tables could change it by some 1e-10, and `_limit` leaves more room than that.
    """
    n = (table.size - 1) // 2
    first, last = reach(table, c, _limit(unit, rate, top))
    flat = np.floor(exp_minus(rate) * top)
    others = n + 1 - (last - first + 1)
    total = flat * others
    lost = 0.0  # by rounding, of the running sum
    error = flat * others
    own = table[2 * c]
    for r in range(first, last + 1):
        h = distance(own + table[2 * r] - 2 * table[c + r], unit)
        w = np.floor(exp_minus(rate * h) * top)
        out[r] = w
        error += w * h
        grown = total + w
        lost += (total - grown) + w if total >= w else (w - grown) + total
        total = grown
    return first, last, flat, total + lost, error / total


@njit
def weights_of_two(table: Integers, unit: float, c: int, rate: float, top: float) -> Floats:
    """Return the integer weights of all posteriors of two categories as doubles, shape (n + 1,).

    Parameters
    ----------
    table : ndarray of int64, shape (2 n + 1,)
        T_1(k) + T_2(2 n - k).
    unit : float
        What one unit is worth.
    c : int
        Count of the first category.
    rate : float
        Of the exponent.
    top : float
        A power of two, the weight at distance 0.
    """
    found = np.empty((table.size - 1) // 2 + 1)
    first, last, flat, _, _ = row_of_two(table, unit, c, rate, top, found)
    found[:first] = flat
    found[last + 1 :] = flat
    return found


@njit
def distances_of_states(apart: Integers, states: Integers, unit: float, out: Floats) -> None:
    """Fill the Hellinger distances of listed posteriors from one.

    Parameters
    ----------
    apart : ndarray of int64, shape (d, n + 1)
        2 h_i(c_i, r), in units.
    states : ndarray of int64, shape (k, d)
        Counts of the posteriors.
    unit : float
        What one unit is worth.
    out : ndarray, shape (k,)
    """
    for s in range(states.shape[0]):
        far = 0
        for i in range(states.shape[1]):
            far += apart[i, states[s, i]]
        out[s] = distance(far, unit)


@njit
def weights_of_distances(distances: Floats, rates: Floats, top: float, out: Floats) -> tuple[Floats, Floats]:
    """Fill the integer weights at given distances; return their sums and the mean distances.

    Parameters
    ----------
    distances : ndarray, shape (k, m)
        Of m posteriors (column) from k databases (row).
    rates : ndarray, shape (k,)
        Of the exponent, of every database.
    top : float
        A power of two, the weight at distance 0.
    out : ndarray, shape (k, m)
    """
    totals, errors = np.empty(rates.size), np.empty(rates.size)
    for x in range(rates.size):
        total = lost = error = 0.0
        for r in range(distances.shape[1]):
            h = distances[x, r]
            w = np.floor(exp_minus(rates[x] * h) * top)
            out[x, r] = w
            error += w * h
            grown = total + w
            lost += (total - grown) + w if total >= w else (w - grown) + total
            total = grown
        totals[x] = total + lost
        errors[x] = error / totals[x]
    return totals, errors
