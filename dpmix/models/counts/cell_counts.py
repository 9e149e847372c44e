"""Numbers of records in cells that follow a measure as it moves, and the ladder that chains start through.

What becomes of the counts, and of the likelihood of a release of them
(`dpmix.mechanisms.channels.count_likelihoods`): see `dpmix.models.histogram_mixture.mixture_sweep`.
"""

from __future__ import annotations

import math

from dpmix.mechanisms.channels.count_likelihoods import log_count
from dpmix.numerics.jit import njit

RUNGS = 24  # powers of the counts that a chain starts through
SMALL = 1000.0  # records that the first of them stands for
LADDER = 0.5  # of the burn-in


@njit
def ladder_power(done, skip, total):
    """Return the power of the counts after so many sweeps: in half of the burn-in from 1000 / n up to 1."""
    ladder = int(LADDER * skip)
    if done >= ladder or total <= SMALL:
        return 1.0
    rung = math.floor(done / ladder * RUNGS) / RUNGS
    return (SMALL / total) ** (1.0 - rung)


@njit
def share_out(rng, number, shares, total, out):
    """Add a multinomial draw of `number` to `out`; `shares` (m,) sum to `total`."""
    last = 0
    for j in range(len(shares)):
        if number == 0:
            return
        if shares[j] > 0.0:
            last = j
            share = shares[j] / total if total > 0.0 else 1.0
            taken = number if share >= 1.0 else rng.binomial(number, share)
            out[j] += taken
            number -= taken
            total -= shares[j]
    out[last] += number


@njit
def couple(rng, before, after, counts, proposed, excess):
    """Draw counts of records that follow masses from `before` to `after`; False where they cannot."""
    moved, total = 0, 0.0
    for j in range(len(counts)):
        proposed[j] = counts[j]
        gap = before[j] - after[j]
        excess[j] = max(-gap, 0.0)
        total += excess[j]
        if gap > 0.0 and counts[j] > 0:
            left = rng.binomial(counts[j], min(gap / before[j], 1.0))
            proposed[j] -= left
            moved += left
    if moved == 0:
        return True
    if not total > 0.0:  # they differ by rounding alone
        return False
    share_out(rng, moved, excess, total, proposed)
    return True


@njit
def log_release(likelihood, noisy, first, counts, proposed):
    """Return the log likelihood ratio of proposed counts (m,) to those there are, from bin `first` on."""
    total = 0.0
    for j in range(len(counts)):
        if counts[j] != proposed[j]:
            total += log_count(likelihood, noisy, first + j, float(proposed[j]))
            total -= log_count(likelihood, noisy, first + j, float(counts[j]))
    return total
