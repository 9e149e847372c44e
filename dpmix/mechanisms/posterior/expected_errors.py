"""Expected error of methods over all databases of n records, each table of counts counted once.

Exact where they can be listed (`dpmix.mechanisms.posterior.certificate`), and else of a sample that is drawn
with a fixed seed: what depends on it, a calibration or a choice between methods, is a function of public
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmix.posteriors.hellinger_law import ExponentialMechanism, Integers, Posteriors
from dpmix.posteriors.noisy_posterior import distances, settled_rows

__all__ = ["mean_errors", "noise_errors", "some_databases"]

Floats = NDArray[np.float64]

_DATABASES = 96
_CHAINS = 4  # of each database
_STEPS = 240  # of a chain, times the number of categories
_DRAWS = 20_000  # of noise in all


def some_databases(of: Posteriors) -> Integers:
    """Return counts drawn uniformly among all, shape (96, d)."""
    rng = np.random.default_rng(0)
    found = np.empty((_DATABASES, of.dimension), dtype=np.int64)
    places = of.n + of.dimension - 1
    for row in found:
        bars = np.sort(rng.choice(places, of.dimension - 1, replace=False))
        row[:] = np.diff(np.concatenate([[-1], bars, [places]])) - 1
    return found


def mean_errors(law: ExponentialMechanism, rows: Integers) -> float:
    """Return the expected Hellinger distance between released and true posterior, the mean over databases.

    By Metropolis chains on the released counts that start at the true ones and move 1, 2, 4, .. records from
    one category to another; the first third is left out. Where categories are many and a release says next
    to nothing, chains are too short to get as far as it does (by 6% for 7 categories and an error of 0.8);
    what is to be chosen by it errs less.

    Parameters
    ----------
    law : ExponentialMechanism
    rows : ndarray of int64, shape (k, d)
        True counts.
    """
    of = law.posteriors
    rng = np.random.default_rng(1)
    rates = np.repeat([law.rate(row) for row in rows], _CHAINS)
    truth = np.repeat(rows, _CHAINS, axis=0)
    chains, d = truth.shape
    own, categories = np.arange(chains), np.arange(d)
    places = np.repeat(categories[None], chains, axis=0)
    table, scales = of.table, of.n.bit_length()

    def terms(at: Integers, counts: Integers, true: Integers) -> Integers:
        found: Integers = table[at, 2 * true] + table[at, 2 * counts] - 2 * table[at, true + counts]
        return np.maximum(found, 0)

    now = truth.copy()
    apart = terms(places, now, truth).sum(axis=1)
    far = np.zeros(chains)
    total, kept = 0.0, 0
    steps = _STEPS * d
    for step in range(steps):
        i: Any = rng.integers(d, size=chains)
        j: Any = (i + 1 + rng.integers(d - 1, size=chains)) % d
        wanted: Integers = np.left_shift(1, rng.integers(scales, size=chains))
        old_i: Integers = now[own, i]
        old_j: Integers = now[own, j]
        true_i: Integers = truth[own, i]
        true_j: Integers = truth[own, j]
        fits = wanted <= old_i
        m = np.where(fits, wanted, 0)
        new_i, new_j = old_i - m, old_j + m
        there = apart + terms(i, new_i, true_i) + terms(j, new_j, true_j)
        there -= terms(i, old_i, true_i) + terms(j, old_j, true_j)
        farther = np.sqrt(-np.expm1(-of.unit * there))
        taken = fits & (np.log(rng.random(chains)) < rates * (far - farther))
        now[own[taken], i[taken]], now[own[taken], j[taken]] = new_i[taken], new_j[taken]
        apart, far = np.where(taken, there, apart), np.where(taken, farther, far)
        if 3 * step >= steps:
            total, kept = total + float(far.mean()), kept + 1
    return total / kept


def noise_errors(of: Posteriors, scale: float, rows: Integers) -> Floats:
    """Return the expected error of two-sided geometric noise on the counts, moved to the nearest posterior.

    Parameters
    ----------
    of : Posteriors
    scale : float
        Of the noise.
    rows : ndarray of int64, shape (k, d)
        True counts.

    Returns
    -------
    ndarray, shape (k,)
    """
    rng = np.random.default_rng(2)
    each = -(-_DRAWS // len(rows))
    counts = np.repeat(rows, each, axis=0)
    noisy = counts[:, :1] if of.dimension == 2 else counts
    both = rng.geometric(-np.expm1(-1 / scale), (2, *noisy.shape))
    released = settled_rows((noisy + both[0] - both[1]).astype(np.float64), of.n)
    prior = np.array(of.prior)
    found: Floats = distances(prior + counts, prior + released).reshape(len(rows), each).mean(axis=1)
    return found
