"""Moves of the counts of naive Bayes that need no latent records: their cost does not grow with n.

Given the class, features are independent, and so are their levels given the probabilities: with p and the
p_i^k integrated out, the counts n_c of all cells c = (k, i, j) have the prior

    prod_i Gamma(a + n_i) / n_i! * prod_k prod_i n_i! / Gamma(J_k a + n_i) * prod_j Gamma(a + n_kij) / n_kij!

up to a constant, where n_i = sum_j n_kij for every k, and the release a likelihood
exp(-sum_c |m_c - n_c| / s). Three moves keep the sums right. Records go from a level to another of the same
class and feature, or from a class to another with one level of either picked in every feature, as many as
slice sampling gives (Neal 2003), so that no step size is needed. And records drawn at random leave a class
for another, where their levels are drawn by its predictive. Given the counts, p and the p_i^k are Dirichlet.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.naive_bayes.latent_records import ClassCounts, class_totals, cost
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_on_slice, log_height

__all__ = ["MoveTables", "make_tables", "start_counts", "sweep_class_counts"]

_MOST = 1 << 20
TRANSFERS, LINES, MOST_TRANSFERRED = 8, 1, 4096.0


class MoveTables(NamedTuple):
    """What the moves look up.

    cell (size,): log Gamma(a + x) - log x! for x = 0, 1, ..; classes (size,) of what depends on n_i = x.
    Beyond the tables' size they are computed.
    """

    cell: Any
    classes: Any


def make_tables(model: ClassCounts, n: int) -> MoveTables:
    """Return the tables for n records."""
    size = min(n, _MOST) + 1
    return MoveTables(*_tables(model, size))


@njit
def _tables(model, size):
    cell, classes = np.empty(size), np.empty(size)
    for x in range(size):
        cell[x] = _compute_cell(model, float(x))
        classes[x] = _compute_class(model, float(x))
    return cell, classes


@njit
def _compute_cell(model, x):
    return math.lgamma(model.prior + x) - math.lgamma(x + 1.0)


@njit
def _compute_class(model, x):
    log_factorial = math.lgamma(x + 1.0)
    value = math.lgamma(model.prior + x) - log_factorial
    for k in range(len(model.levels)):
        value += log_factorial - math.lgamma(model.levels[k] * model.prior + x)
    return value


@njit
def _log_cell(model, tables, c, x):
    """Return the log weight of x records in cell c."""
    value = tables.cell[int(x)] if x < len(tables.cell) else _compute_cell(model, x)
    return value - cost(model, model.released[c] - x)


@njit
def _log_class(model, tables, x):
    """Return the log weight of x records in a class, beside those of its cells."""
    return tables.classes[int(x)] if x < len(tables.classes) else _compute_class(model, x)


@njit
def _log_shift(model, tables, counts, here, there, size, shift):
    """Return the log weight of the cells here[:size] with `shift` records less, of there[:size] with more."""
    value = 0.0
    for k in range(size):
        value += _log_cell(model, tables, here[k], counts[here[k]] - shift)
        value += _log_cell(model, tables, there[k], counts[there[k]] + shift)
    return value


class _CountsLine(NamedTuple):
    """What the number x of records is drawn given that leave each of here[:size] for one of there[:size].

    `first` and `second` are the classes whose totals (I,) follow, or both -1; x is at most `high`.
    """

    model: Any
    tables: Any
    counts: Any
    totals: Any
    here: Any
    there: Any
    size: int
    first: int
    second: int
    high: float


@njit
def _log_line(line, x):
    """Return the log weight of x."""
    model, tables = line.model, line.tables
    value = _log_shift(model, tables, line.counts, line.here, line.there, line.size, x)
    if line.first >= 0:
        value += _log_class(model, tables, line.totals[line.first] - x)
        value += _log_class(model, tables, line.totals[line.second] + x)
    return value


@log_height.register
def _log_line_at(curve: _CountsLine, y):
    """Take the whole number x as the interval [x, x + 1)."""
    x = min(math.floor(y), curve.high)
    return math.inf if x == 0.0 else _log_line(curve, x)


@njit
def _move(model, tables, rng, counts, totals, here, there, size, first, second):
    """Move records from the cells here[:size] to there[:size], or back, as many from each, by a slice."""
    low, high = -math.inf, math.inf
    for k in range(size):
        low = max(low, -counts[there[k]])
        high = min(high, counts[here[k]])
    if high <= low:
        return
    line = _CountsLine(model, tables, counts, totals, here, there, size, first, second, high)
    level = _log_line(line, 0.0) - rng.standard_exponential()
    width = min(2.0 / (model.rate * math.sqrt(size)), high - low) + 1.0
    y, _ = draw_on_slice(rng, line, rng.random(), level, width, low, high + 1.0)
    x = min(math.floor(y), high)
    for k in range(size):
        counts[here[k]] -= x
        counts[there[k]] += x
    if first >= 0:
        totals[first] -= x
        totals[second] += x


@njit
def _log_total(model, tables, x):
    """Return the log weight of x records in a class, its levels summed over."""
    return tables.cell[int(x)] if x < len(tables.cell) else _compute_cell(model, x)


@njit
def _pick(rng, counts, start, width, total, prior):
    """Return a level drawn with weights prior + counts, which sum to `total`."""
    u = rng.random() * total
    for j in range(width - 1):
        u -= prior + counts[start + j]
        if u < 0.0:
            return j
    return width - 1


@njit
def _transfer(model, tables, rng, counts, totals, first, second, most, offer):
    """Offer to move records drawn at random from a class, with new levels by the predictive of another.

    Both ways are reversible for the prior given the class totals, so that what counts is the totals' prior
    and the release, where either direction is as likely. The number of records is log-uniform up to `most`.
    """
    number = float(int(math.exp(rng.random() * math.log(most + 1.0))))
    if number > totals[first]:
        return
    gain = -_log_total(model, tables, totals[first]) - _log_total(model, tables, totals[second])
    gain += _log_total(model, tables, totals[first] - number) + _log_total(
        model, tables, totals[second] + number
    )
    at = 0
    for k in range(len(model.levels)):
        width = model.levels[k]
        here, there = model.start[k] + first * width, model.start[k] + second * width
        for j in range(width):
            offer[at + j] = counts[here + j]
            offer[at + width + j] = counts[there + j]
        for done in range(int(number)):
            j = _pick(rng, offer, at, width, totals[first] - done, 0.0)
            offer[at + j] -= 1.0
            whole = totals[second] + done + width * model.prior
            offer[at + width + _pick(rng, offer, at + width, width, whole, model.prior)] += 1.0
        for j in range(width):
            gain += cost(model, model.released[here + j] - counts[here + j])
            gain -= cost(model, model.released[here + j] - offer[at + j])
            gain += cost(model, model.released[there + j] - counts[there + j])
            gain -= cost(model, model.released[there + j] - offer[at + width + j])
        at += 2 * width
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return
    at = 0
    for k in range(len(model.levels)):
        width = model.levels[k]
        here, there = model.start[k] + first * width, model.start[k] + second * width
        for j in range(width):
            counts[here + j] = offer[at + j]
            counts[there + j] = offer[at + width + j]
        at += 2 * width
    totals[first] -= number
    totals[second] += number


@njit
def _other(rng, first, size):
    """Return one of 0, .., size - 1 that is not `first`."""
    other = int(rng.random() * (size - 1))
    return other + 1 if other >= first else other


@njit
def sweep_class_counts(model, tables, rng, counts, sweeps):
    """Do `sweeps` sweeps of the counts (cells,).

    Each moves records of every cell to or from another level, or once where there are but two; and of every
    class to others, `TRANSFERS` times and once along a line.
    """
    features, classes = len(model.levels), model.classes
    here, there = np.empty(features, dtype=np.int64), np.empty(features, dtype=np.int64)
    totals = class_totals(model, counts)
    offer = np.empty(2 * model.levels.sum())
    n = totals.sum()
    most = min(n, max(8.0, 4.0 / model.rate), MOST_TRANSFERRED)
    for _ in range(sweeps):
        for k in range(features):
            width = model.levels[k]
            for i in range(classes):
                start = model.start[k] + i * width
                for j in range(width if width > 2 else 1):
                    here[0] = start + j
                    there[0] = start + _other(rng, j, width)
                    _move(model, tables, rng, counts, totals, here, there, 1, -1, -1)
        for first in range(classes if classes > 1 else 0):
            for _ in range(TRANSFERS):
                second = _other(rng, first, classes)
                if rng.random() < 0.5:  # each way as often as back, from wherever
                    _transfer(model, tables, rng, counts, totals, first, second, most, offer)
                else:
                    _transfer(model, tables, rng, counts, totals, second, first, most, offer)
            for _ in range(LINES):
                second = _other(rng, first, classes)
                for k in range(features):
                    width = model.levels[k]
                    here[k] = model.start[k] + first * width + int(rng.random() * width)
                    there[k] = model.start[k] + second * width + int(rng.random() * width)
                _move(model, tables, rng, counts, totals, here, there, features, first, second)


def start_counts(
    rng: np.random.Generator, levels: tuple[int, ...], classes: int, n: int
) -> NDArray[np.float64]:
    """Return counts (cells,) to start from, of probabilities drawn at random."""
    totals = rng.multinomial(n, rng.dirichlet(np.ones(classes)))
    parts = [rng.multinomial(totals, rng.dirichlet(np.ones(count), size=classes)).ravel() for count in levels]
    return np.concatenate(parts).astype(np.float64)
