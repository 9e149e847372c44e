"""Latent records of classes and features given noisy counts of every feature's levels within every class.

The released count of cell c = (feature k, class i, level j) is m_c = n_c + noise e with density proportional
to exp(-|e| / s), for Laplace and for two-sided geometric noise alike, or to exp(-e^2 / (2 s^2)) for discrete
Gaussian noise. A record is the row of the K cells that it is counted in, and its class; the tally holds, for
every cell, what one record more and one less would change, so that moving a record costs 2 K look-ups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.sum_augmentation import draw_record, draw_theta, log_change, recount, replace
from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.streams import fill_gammas, fill_normals, fill_uniforms, seed

__all__ = [
    "COUNT",
    "FEW",
    "KEEP",
    "RELEASED",
    "CellTally",
    "ClassCounts",
    "Probabilities",
    "class_totals",
    "cost",
    "draw_probabilities",
    "entry",
    "make_cell_tally",
    "make_class_counts",
    "make_probabilities",
    "set_alias",
    "weigh_cell",
]

COUNT, MORE, LESS, RELEASED = 0, 1, 2, 3  # columns of `CellTally.cells`
KEEP, OTHER = 0, 1  # columns of `Probabilities.alias`
FEW = 8  # entries among which adding up comparisons is faster than an alias table, and making it


class ClassCounts(NamedTuple):
    """Released counts and prior.

    released (cells,) m, by feature, then class, then level; levels (K,); start (K + 1,) first cell of each
    feature; classes I; rate 1 / s; prior: parameter of the symmetric Dirichlet priors; power: 1, or 2 of the
    discrete Gaussian.
    """

    released: Any
    levels: Any
    start: Any
    classes: int
    rate: float
    prior: float
    power: int


class Probabilities(NamedTuple):
    """Probabilities of classes (I,) and of levels within classes (cells,), and one table to draw from both.

    alias (I + cells, 2): entry j of a block of J is drawn as j with probability `KEEP`, else as `OTHER`, j
    uniform (Walker 1977); of `FEW` or less, where sums of the probabilities, in `KEEP`, exceed a uniform.
    Classes stand first.
    """

    classes: Any
    levels: Any
    alias: Any


class CellTally(NamedTuple):
    """Of each cell, (cells, 4): records, what one more and one less would change, the released count."""

    cells: Any


def make_class_counts(
    released: NDArray[np.float64],
    levels: tuple[int, ...],
    classes: int,
    scale: float,
    prior: float,
    power: int = 1,
) -> ClassCounts:
    """Return released counts (cells,) with their layout; `scale` and `power` are those of the noise."""
    start = np.concatenate([[0], np.cumsum([classes * count for count in levels])]).astype(np.int64)
    return ClassCounts(
        np.ascontiguousarray(released, dtype=np.float64),
        np.array(levels, dtype=np.int64),
        start,
        classes,
        1.0 / float(scale),
        float(prior),
        power,
    )


def make_probabilities(model: ClassCounts) -> Probabilities:
    """Return room for the probabilities."""
    classes, cells = model.classes, len(model.released)
    return Probabilities(np.zeros(classes), np.zeros(cells), np.zeros((classes + cells, 2)))


def make_cell_tally(model: ClassCounts) -> CellTally:
    """Return room for the tally."""
    cells = np.zeros((len(model.released), 4))
    cells[:, RELEASED] = model.released
    return CellTally(cells)


@njit
def _alias(probabilities, table, small, large):
    """Set the alias table (J, 2) of probabilities (J,): Vose's construction, O(J); the rest is scratch."""
    size = len(probabilities)
    few = many = 0
    for j in range(size):
        table[j, KEEP] = probabilities[j] * size
        table[j, OTHER] = j
        if table[j, KEEP] < 1.0:
            small[few] = j
            few += 1
        else:
            large[many] = j
            many += 1
    while few > 0 and many > 0:
        few -= 1
        low, high = small[few], large[many - 1]
        table[low, OTHER] = high
        table[high, KEEP] -= 1.0 - table[low, KEEP]
        if table[high, KEEP] < 1.0:
            many -= 1
            small[few] = high
            few += 1
    for i in range(few):  # one, but for rounding
        table[small[i], KEEP] = 1.0
    for i in range(many):
        table[large[i], KEEP] = 1.0


@njit
def _add_up(probabilities, table, first):
    """Set a few rows of the table to sums of the probabilities, the last to what no uniform reaches."""
    total = 0.0
    for j in range(len(probabilities) - 1):
        total += probabilities[j]
        table[first + j, KEEP] = total
    table[first + len(probabilities) - 1, KEEP] = 2.0


@njit
def set_alias(model, theta):
    """Set the tables of all probabilities."""
    classes = model.classes
    longest = classes
    for width in model.levels:
        longest = max(longest, width)
    small = np.empty(longest if longest > FEW else 0, dtype=np.int64)
    large = np.empty_like(small)
    if classes <= FEW:
        _add_up(theta.classes, theta.alias, 0)
    else:
        _alias(theta.classes, theta.alias, small, large)
    for k in range(len(model.levels)):
        width = model.levels[k]
        for first in range(model.start[k], model.start[k + 1], width):
            last, ahead = first + width, classes + first
            if width <= FEW:
                _add_up(theta.levels[first:last], theta.alias, ahead)
            else:
                _alias(theta.levels[first:last], theta.alias[ahead : ahead + width], small, large)


@inlined
def entry(alias, first, width, u):
    """Return the entry 0, 1, .. of a block of the table that a uniform stands for."""
    if width <= FEW:
        j = 0
        for i in range(first, first + width - 1):
            j += int(u >= alias[i, KEEP])
        return j
    place = u * width
    j = int(place)
    keep, other = alias[first + j, KEEP], int(alias[first + j, OTHER])
    return j if place - j < keep else other


@njit
def _normalize(rng, values, first, last):
    """Divide gamma variates first, .., last - 1 by their sum."""
    total = 0.0
    for j in range(first, last):
        total += values[j]
    if not total > 0.0:  # a sparse prior, and every gamma below the smallest double: the limit is one-hot
        values[first:last] = 0.0
        values[first + int(rng.random() * (last - first))] = 1.0
        return
    share = 1.0 / total
    for j in range(first, last):
        values[j] *= share


@njit
def class_totals(model, counts):
    """Return the number of records in each class (I,), of the counts (cells,)."""
    width = model.levels[0]
    totals = np.zeros(model.classes)
    for i in range(model.classes):
        for j in range(i * width, (i + 1) * width):
            totals[i] += counts[j]
    return totals


@njit
def draw_probabilities(model, rng, counts, classes, levels):
    """Draw p (I,) and the p_i^k (cells,) given the counts (cells,)."""
    cells, groups = len(counts), model.classes
    size = groups + cells
    room, words, totals = np.empty(3 * size), np.empty(4, dtype=np.uint64), class_totals(model, counts)
    normals, uniforms, shapes = room[:size], room[size : 2 * size], room[2 * size :]
    for c in range(cells):
        shapes[c] = model.prior + counts[c]
    for i in range(groups):
        shapes[cells + i] = model.prior + totals[i]
    seed(rng, words)
    fill_uniforms(words, uniforms, size)
    fill_normals(words, normals, size)
    fill_gammas(rng, shapes, normals, uniforms, levels, cells)
    fill_gammas(rng, shapes[cells:], normals[cells:], uniforms[cells:], classes, groups)
    _normalize(rng, classes, 0, groups)
    for k in range(len(model.levels)):
        width = model.levels[k]
        for first in range(model.start[k], model.start[k + 1], width):
            _normalize(rng, levels, first, first + width)


@draw_theta.register
def _draw_probabilities(model: ClassCounts, rng, theta, records, tally):
    draw_probabilities(model, rng, tally.cells[:, COUNT], theta.classes, theta.levels)
    set_alias(model, theta)


@draw_record.register
def _draw_record(model: ClassCounts, rng, theta, record):
    alias, classes, features = theta.alias, model.classes, len(model.levels)
    i = entry(alias, 0, classes, rng.random())
    record[features] = i
    for k in range(features):
        width = model.levels[k]
        first = model.start[k] + i * width
        record[k] = first + entry(alias, classes + first, width, rng.random())


@inlined
def cost(model, off):
    """Return minus the log density of noise, but for a constant."""
    return abs(off) * model.rate if model.power == 1 else 0.5 * (off * model.rate) ** 2


@inlined
def step_cost(model, off, step):
    """Return what noise of `off` costs more than noise of `off + step`, step 1 or -1."""
    if model.power == 1:
        return (abs(off) - abs(off + step)) * model.rate
    return -(off * step + 0.5) * model.rate * model.rate


@njit
def weigh_cell(model, cells, c):
    """Set what one record more and one less in a cell would change."""
    rest = cells[c, RELEASED] - cells[c, COUNT]
    cells[c, MORE] = step_cost(model, rest, -1.0)
    cells[c, LESS] = step_cost(model, rest, 1.0)


@recount.register
def _recount(model: ClassCounts, records, tally):
    cells = tally.cells
    cells[:, COUNT] = 0.0
    features = len(model.levels)
    for i in range(len(records)):
        for k in range(features):
            cells[records[i, k], COUNT] += 1.0
    for c in range(len(cells)):
        weigh_cell(model, cells, c)


@log_change.register
def _log_change(model: ClassCounts, tally, old, new):
    cells = tally.cells
    total = 0.0
    for k in range(len(old) - 1):
        away, here = old[k], new[k]
        if away != here:
            total += cells[away, LESS] + cells[here, MORE]
    return total


@replace.register
def _replace(model: ClassCounts, tally, old, new):
    cells = tally.cells
    for k in range(len(old) - 1):
        away, here = old[k], new[k]
        if away != here:
            cells[away, COUNT] -= 1.0
            cells[here, COUNT] += 1.0
            weigh_cell(model, cells, away)
            weigh_cell(model, cells, here)
