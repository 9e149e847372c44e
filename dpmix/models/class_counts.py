"""Latent records of classes and features given noisy counts of every feature's levels within every class.

The released count of cell c = (feature k, class i, level j) is m_c = n_c + noise with density proportional to
exp(-|m_c - n_c| / s), for Laplace and for two-sided geometric noise alike. A record is the row of the K cells
that it is counted in, and its class; the tally holds, for every cell, what one record more and one less would
change, so that moving a record costs 2 K look-ups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.models.augmentation import draw_record, draw_theta, log_change, recount, replace

__all__ = [
    "COUNT",
    "CellTally",
    "ClassCounts",
    "Probabilities",
    "class_totals",
    "draw_probabilities",
    "make_cell_tally",
    "make_class_counts",
    "make_probabilities",
    "set_alias",
]

COUNT, MORE, LESS, RELEASED = 0, 1, 2, 3  # columns of `CellTally.cells`
KEEP, OTHER = 0, 1  # columns of `Probabilities.alias`


class ClassCounts(NamedTuple):
    """Released counts and prior.

    released (cells,) m, by feature, then class, then level; levels (K,); start (K + 1,) first cell of each
    feature; classes I; rate 1 / s; prior: parameter of the symmetric Dirichlet priors.
    """

    released: Any
    levels: Any
    start: Any
    classes: int
    rate: float
    prior: float


class Probabilities(NamedTuple):
    """Probabilities of classes (I,) and of levels within classes (cells,), and one alias table of both.

    alias (I + cells, 2): entry j of a block of J is drawn as j with probability `KEEP`, else as `OTHER`, j
    uniform (Walker 1977). Classes stand first.
    """

    classes: Any
    levels: Any
    alias: Any


class CellTally(NamedTuple):
    """Of each cell, (cells, 4): records, what one more and one less would change, the released count."""

    cells: Any


def make_class_counts(
    released: NDArray[np.float64], levels: tuple[int, ...], classes: int, scale: float, prior: float
) -> ClassCounts:
    """Return released counts (cells,) with their layout; `scale` is that of the noise."""
    start = np.concatenate([[0], np.cumsum([classes * count for count in levels])]).astype(np.int64)
    return ClassCounts(
        np.ascontiguousarray(released, dtype=np.float64),
        np.array(levels, dtype=np.int64),
        start,
        classes,
        1.0 / float(scale),
        float(prior),
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
def set_alias(model, theta):
    """Set the alias table of all probabilities."""
    classes = model.classes
    longest = classes
    for width in model.levels:
        longest = max(longest, width)
    small, large = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    _alias(theta.classes, theta.alias, small, large)
    for k in range(len(model.levels)):
        width = model.levels[k]
        for first in range(model.start[k], model.start[k + 1], width):
            last = first + width
            _alias(theta.levels[first:last], theta.alias[classes + first : classes + last], small, large)


@njit
def _dirichlet(rng, prior, counts, out):
    """Draw probabilities (J,) with parameters prior + counts."""
    total = 0.0
    for j in range(len(out)):
        out[j] = rng.standard_gamma(prior + counts[j])
        total += out[j]
    if not total > 0.0:  # a sparse prior, and every gamma below the smallest double: the limit is one-hot
        out[:] = 0.0
        out[int(rng.random() * len(out))] = 1.0
        return
    for j in range(len(out)):
        out[j] /= total


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
    _dirichlet(rng, model.prior, class_totals(model, counts), classes)
    for k in range(len(model.levels)):
        width = model.levels[k]
        for first in range(model.start[k], model.start[k + 1], width):
            last = first + width
            _dirichlet(rng, model.prior, counts[first:last], levels[first:last])


@draw_theta.register
def _draw_probabilities(model: ClassCounts, rng, theta, records, tally):
    draw_probabilities(model, rng, tally.cells[:, COUNT], theta.classes, theta.levels)
    set_alias(model, theta)


@njit
def _draw_entry(rng, alias, first, width):
    """Return an entry 0, 1, .. of a block of the alias table."""
    u = rng.random() * width
    j = int(u)
    return j if u - j < alias[first + j, KEEP] else int(alias[first + j, OTHER])


@draw_record.register
def _draw_record(model: ClassCounts, rng, theta, record):
    alias, classes, features = theta.alias, model.classes, len(model.levels)
    i = _draw_entry(rng, alias, 0, classes)
    record[features] = i
    for k in range(features):
        width = model.levels[k]
        first = model.start[k] + i * width
        record[k] = first + _draw_entry(rng, alias, classes + first, width)


@njit
def _weigh_cell(model, cells, c):
    rest = cells[c, RELEASED] - cells[c, COUNT]
    here = abs(rest)
    cells[c, MORE] = (here - abs(rest - 1.0)) * model.rate
    cells[c, LESS] = (here - abs(rest + 1.0)) * model.rate


@recount.register
def _recount(model: ClassCounts, records, tally):
    cells = tally.cells
    cells[:, COUNT] = 0.0
    features = len(model.levels)
    for i in range(len(records)):
        for k in range(features):
            cells[records[i, k], COUNT] += 1.0
    for c in range(len(cells)):
        _weigh_cell(model, cells, c)


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
            _weigh_cell(model, cells, away)
            _weigh_cell(model, cells, here)
