"""Compiled loops: weights of the exponential mechanism and smooth sensitivity.

The weights are what a guarantee is about, so that they must come out the same wherever they are computed:
given tables and rate, only sums, products and square roots, which IEEE 754 fixes to the last bit, take part
in them, and never a library's exp.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.numerics.jit import njit

__all__ = [
    "distance",
    "distances_of_states",
    "exp_minus",
    "one_minus_exp_minus",
    "reach",
    "row_of_two",
    "smooth_of_two",
    "smooth_squared",
    "weight",
    "weights_of_distances",
    "weights_of_two",
]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

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
