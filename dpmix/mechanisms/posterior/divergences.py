"""Compiled loops: hockey-stick divergences between neighbours, of integer weights."""

from __future__ import annotations

import numpy as np

from dpmix.numerics.jit import njit
from dpmix.posteriors.weight_loops import Floats, Integers, row_of_two

__all__ = ["divergences_of_pairs", "divergences_of_two"]


@njit
def divergences_of_two(
    table: Integers, unit: float, rates: Floats, top: float, rows: Integers, growth: float
) -> tuple[Floats, Floats]:
    """Return hockey-stick divergences between neighbours c, c + 1, and mean Hellinger errors.

    Parameters
    ----------
    table, unit, top
        As `weights_of_two`.
    rates : ndarray, shape (n + 1,)
        Of every database.
    rows : ndarray of int64, shape (k,)
        Databases c, increasing.
    growth : float
        e^eps.

    Returns
    -------
    deltas, errors : ndarray, shape (k,)
        The larger of the two directions, 0 for c = n; the error at c.
    """
    n = (table.size - 1) // 2
    deltas, errors = np.zeros(rows.size), np.zeros(rows.size)
    here, there = np.empty(n + 1), np.empty(n + 1)
    before = -2
    first = last = 0
    flat = total = error = 0.0
    for place in range(rows.size):
        c = rows[place]
        if c != before + 1:
            first, last, flat, total, error = row_of_two(table, unit, c, rates[c], top, here)
        errors[place] = error
        if c == n:
            break
        first_2, last_2, flat_2, total_2, error_2 = row_of_two(table, unit, c + 1, rates[c + 1], top, there)
        start, stop = min(first, first_2), max(last, last_2)
        here[start:first] = flat
        here[last + 1 : stop + 1] = flat
        there[start:first_2] = flat_2
        there[last_2 + 1 : stop + 1] = flat_2
        p, q = flat / total, flat_2 / total_2
        others = n - (stop - start)
        ahead, back = others * max(p - growth * q, 0.0), others * max(q - growth * p, 0.0)
        for r in range(start, stop + 1):
            p, q = here[r] / total, there[r] / total_2
            ahead += max(p - growth * q, 0.0)
            back += max(q - growth * p, 0.0)
        deltas[place] = max(ahead, back)
        here, there = there, here
        first, last, flat, total, error = first_2, last_2, flat_2, total_2, error_2
        before = c
    return deltas, errors


@njit
def divergences_of_pairs(weights: Floats, totals: Floats, pairs: Integers, growth: float) -> Floats:
    """Return the larger hockey-stick divergence of the two directions of each pair of databases.

    Parameters
    ----------
    weights : ndarray, shape (k, k)
        Of every posterior (column) under every database (row).
    totals : ndarray, shape (k,)
    pairs : ndarray of int64, shape (p, 2)
    growth : float
        e^eps.
    """
    found = np.empty(pairs.shape[0])
    for place in range(pairs.shape[0]):
        x, y = pairs[place, 0], pairs[place, 1]
        ahead = back = 0.0
        for r in range(weights.shape[1]):
            p, q = weights[x, r] / totals[x], weights[y, r] / totals[y]
            ahead += max(p - growth * q, 0.0)
            back += max(q - growth * p, 0.0)
        found[place] = max(ahead, back)
    return found
