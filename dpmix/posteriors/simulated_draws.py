"""Released posteriors drawn anew in floating point, for inference and simulations only.

By the exponential mechanism, compiled; a release itself is drawn in integers
(`dpmix.mechanisms.posterior.curator`), whose envelope by boxes is the same. And by noise on the counts:
the nearest counts that a posterior can have, and how far that posterior is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from dpmix.numerics.jit import njit
from dpmix.posteriors.hellinger_law import (
    ROUNDING,
    ExponentialMechanism,
    Floats,
    Integers,
    distance,
    reach,
    smooth_squared,
    weight,
)

_STEP = 0.5
_MOST = 2.0**61  # units; the tables leave distances below 2^60
_ABOVE = 1 + 2.0**-30  # whatever rounding does to the order

# By the exponential mechanism


class DrawTables(NamedTuple):
    """What compiled code needs of an `ExponentialMechanism` of three categories or more.

    table (d, 2 n + 1) and steps (d, n) of its `Posteriors`; size: their number.
    """

    table: Integers
    steps: Integers
    unit: float
    gamma: float
    exponent: float
    top: float
    size: float


def tables_of(law: ExponentialMechanism) -> DrawTables:
    """Return the tables of a law."""
    of = law.posteriors
    return DrawTables(of.table, of.steps, of.unit, law.gamma, law.exponent, law.top, float(of.size))


@njit
def rate_at(law, counts):
    """Return the factor of the distance in the exponent at counts (d,); see `ExponentialMechanism.rate`."""
    squared = smooth_squared(law.steps, law.unit, counts, law.gamma)
    return law.exponent / (math.sqrt(squared) * ROUNDING)


@njit
def apart(law, counts, others):
    """Return how far two posteriors are apart, in units of the tables."""
    total = 0
    for i in range(counts.size):
        row, c, r = law.table[i], counts[i], others[i]
        total += max(row[2 * c] + row[2 * r] - 2 * row[c + r], 0)
    return total


@njit
def _limits(law, rate):
    """Return distances at which weights have fallen by halves in the exponent, until they hardly fall."""
    bits = math.log(law.top) + 1.0
    found = np.empty(int(bits / _STEP) + 2, dtype=np.int64)
    count = 0
    while count < found.size and count * _STEP <= bits:
        fall = (count + 1) * _STEP / rate
        if fall >= 1.0:
            break
        found[count] = int(min(-math.log1p(-fall * fall) / law.unit, _MOST))
        count += 1
    return found[:count]


@njit
def _any_counts(rng, n, out):
    """Draw counts uniformly among all: d - 1 different places of n + d - 1 are bars, the others records."""
    d = out.size
    bars = np.empty(d - 1, dtype=np.int64)
    while True:
        for i in range(d - 1):
            bars[i] = int(rng.random() * (n + d - 1))
        bars.sort()
        different = True
        before = -1
        for i in range(d - 1):
            different = different and bars[i] != before
            out[i] = bars[i] - before - 1
            before = bars[i]
        if different:
            out[d - 1] = n + d - 1 - before - 1
            return


@njit
def draw_released(law, counts, rate, rng, out):
    """Draw the counts of a released posterior into `out` (d,) given the true ones; return their weight.

    By rejection from nested boxes around the truth, as `dpmix.mechanisms.posterior.curator.Shells`.
    """
    d = counts.size
    n = law.steps.shape[1]
    last = 0
    for i in range(d):
        if counts[i] > counts[last]:
            last = i
    limits = _limits(law, rate)
    boxes = limits.size
    lows, highs = np.empty((boxes, d), dtype=np.int64), np.empty((boxes, d), dtype=np.int64)
    tops, ends = np.empty(boxes + 1), np.empty(boxes + 1)
    tops[0] = law.top
    total = 0.0
    for j in range(boxes):
        above = np.floor(weight(limits[j], law.unit, rate, law.top) * _ABOVE) + 1.0
        tops[j + 1] = min(tops[j], above)
        volume = 1.0
        for i in range(d):
            if i != last:
                lows[j, i], highs[j, i] = reach(law.table[i], counts[i], limits[j])
                volume *= highs[j, i] - lows[j, i] + 1.0
        total += volume * (tops[j] - tops[j + 1])
        ends[j] = total
    total += law.size * tops[boxes]
    ends[boxes] = total
    while True:
        layer = min(np.searchsorted(ends, rng.random() * total, side="right"), boxes)
        if layer == boxes:
            _any_counts(rng, n, out)
        else:
            rest = n
            for i in range(d):
                if i != last:
                    low, high = lows[layer, i], highs[layer, i]
                    out[i] = low + int(rng.random() * (high - low + 1))
                    rest -= out[i]
            if rest < 0:
                continue
            out[last] = rest
        shell = 0
        for i in range(d):
            while i != last and shell < boxes and not lows[shell, i] <= out[i] <= highs[shell, i]:
                shell += 1
        own = weight(apart(law, counts, out), law.unit, rate, law.top)
        if rng.random() * tops[shell] < own:
            return own


@njit
def errors_of(law: DrawTables, rows: Integers, rng: Generator) -> Floats:
    """Return the Hellinger distance between released and true posterior of one draw for each row.

    Parameters
    ----------
    law : DrawTables
    rows : ndarray of int64, shape (k, d)
        True counts.
    rng : Generator

    Returns
    -------
    ndarray, shape (k,)
    """
    found = np.empty(rows.shape[0])
    out = np.empty(rows.shape[1], dtype=np.int64)
    for k in range(rows.shape[0]):
        draw_released(law, rows[k], rate_at(law, rows[k]), rng, out)
        found[k] = distance(apart(law, rows[k], out), law.unit)
    return found


# By noise on the counts


def settled(noisy: Floats, n: int) -> Floats:
    """Return counts of at least 0 that sum to n, shape (.., d), from what carries noise.

    Parameters
    ----------
    noisy : ndarray, shape (.., 1) or (.., d)
        The first of two counts, clipped to [0, n]; or all of three or more, see `nearest_counts`.
    n : int
        Number of records.
    """
    if noisy.shape[-1] > 1:
        return nearest_counts(noisy, n)
    first = np.clip(noisy, 0.0, float(n))
    return np.concatenate([first, n - first], axis=-1)


def nearest_counts(noisy: Floats, n: int) -> Floats:
    """Return the nearest point with entries of at least 0 that sum to n: all less a number, cut at 0.

    Parameters
    ----------
    noisy : ndarray, shape (..., d)
    n : int
    """
    falling = np.sort(noisy, axis=-1)[..., ::-1]
    shifts = (np.cumsum(falling, axis=-1) - n) / np.arange(1, noisy.shape[-1] + 1)
    last = noisy.shape[-1] - 1 - np.argmax((falling > shifts)[..., ::-1], axis=-1, keepdims=True)
    found: Floats = np.maximum(noisy - np.take_along_axis(shifts, last, axis=-1), 0.0)
    return found


def distances(a: Floats, b: Floats) -> Floats:
    """Return the Hellinger distances of Dirichlet laws, row by row, (k, d) each."""
    from scipy.special import gammaln  # late: a release by noise starts without

    def log_beta(x: Floats) -> Floats:
        found: Floats = gammaln(x).sum(axis=1) - gammaln(x.sum(axis=1))
        return found

    log_affinity = log_beta(0.5 * (a + b)) - 0.5 * (log_beta(a) + log_beta(b))
    found: Floats = np.sqrt(-np.expm1(np.minimum(log_affinity, 0.0)))
    return found
