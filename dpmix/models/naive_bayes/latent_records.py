"""Naive Bayes given noisy counts of features' levels within classes: latent records, or counts alone.

The released count of cell c = (feature k, class i, level j) is m_c = n_c + noise e with density proportional
to exp(-|e| / s), for Laplace and for two-sided geometric noise alike, or to exp(-e^2 / (2 s^2)) for discrete
Gaussian noise. Given the counts n_c, the probabilities p of classes and p_i^k of levels are Dirichlet.

**Records.** A record is the row of the K cells that it is counted in, and its class; the tally holds, for
every cell, what one record more and one less would change, so that moving a record costs 2 K look-ups.

**Counts** alone are moved at a cost that does not grow with n. Given the class, features are independent, and
so are their levels given the probabilities: with p and the p_i^k integrated out, the counts n_c of all cells
c = (k, i, j) have the prior

    prod_i Gamma(a + n_i) / n_i! * prod_k prod_i n_i! / Gamma(J_k a + n_i) * prod_j Gamma(a + n_kij) / n_kij!

up to a constant, where n_i = sum_j n_kij for every k, and the release the likelihood of its noise. Three
moves keep the sums right. Records go from a level to another of the same class and feature, or from a class
to another with one level of either picked in every feature, as many as slice sampling gives (Neal 2003), so
that no step size is needed. And records drawn at random leave a class for another, where their levels are
drawn by its predictive.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.sum_augmentation import draw_record, draw_theta, log_change, recount, replace
from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.slices import draw_on_slice, log_height
from dpmix.numerics.streams import fill_gammas, fill_normals, fill_uniforms, seed

COUNT, MORE, LESS, RELEASED = 0, 1, 2, 3  # columns of `CellTally.cells`
KEEP, OTHER = 0, 1  # columns of `Probabilities.alias`
FEW = 8  # entries among which adding up comparisons is faster than an alias table, and making it
_MOST = 1 << 20  # entries of a table
TRANSFERS, LINES, MOST_TRANSFERRED = 8, 1, 4096.0  # moves of a class in a sweep; records of one at most

# The release, the probabilities, and the cost of noise


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


class Probabilities(NamedTuple):
    """Probabilities of classes (I,) and of levels within classes (cells,), and one table to draw from both.

    alias (I + cells, 2): entry j of a block of J is drawn as j with probability `KEEP`, else as `OTHER`, j
    uniform (Walker 1977); of `FEW` or less, where sums of the probabilities, in `KEEP`, exceed a uniform.
    Classes stand first.
    """

    classes: Any
    levels: Any
    alias: Any


def make_probabilities(model: ClassCounts) -> Probabilities:
    """Return room for the probabilities."""
    classes, cells = model.classes, len(model.released)
    return Probabilities(np.zeros(classes), np.zeros(cells), np.zeros((classes + cells, 2)))


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


@inlined
def cost(model, off):
    """Return minus the log density of noise, but for a constant."""
    return abs(off) * model.rate if model.power == 1 else 0.5 * (off * model.rate) ** 2


# Latent records


class CellTally(NamedTuple):
    """Of each cell, (cells, 4): records, what one more and one less would change, the released count."""

    cells: Any


def make_cell_tally(model: ClassCounts) -> CellTally:
    """Return room for the tally."""
    cells = np.zeros((len(model.released), 4))
    cells[:, RELEASED] = model.released
    return CellTally(cells)


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


@njit
def weigh_cell(model, cells, c):
    """Set what one record more and one less in a cell would change."""
    rest = cells[c, RELEASED] - cells[c, COUNT]
    cells[c, MORE] = step_cost(model, rest, -1.0)
    cells[c, LESS] = step_cost(model, rest, 1.0)


@inlined
def step_cost(model, off, step):
    """Return what noise of `off` costs more than noise of `off + step`, step 1 or -1."""
    if model.power == 1:
        return (abs(off) - abs(off + step)) * model.rate
    return -(off * step + 0.5) * model.rate * model.rate


# Moves of counts, without records


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


def start_counts(
    rng: np.random.Generator, levels: tuple[int, ...], classes: int, n: int
) -> NDArray[np.float64]:
    """Return counts (cells,) to start from, of probabilities drawn at random."""
    totals = rng.multinomial(n, rng.dirichlet(np.ones(classes)))
    parts = [rng.multinomial(totals, rng.dirichlet(np.ones(count), size=classes)).ravel() for count in levels]
    return np.concatenate(parts).astype(np.float64)


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


@njit
def _other(rng, first, size):
    """Return one of 0, .., size - 1 that is not `first`."""
    other = int(rng.random() * (size - 1))
    return other + 1 if other >= first else other


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


@log_height.register
def _log_line_at(curve: _CountsLine, y):
    """Take the whole number x as the interval [x, x + 1)."""
    x = min(math.floor(y), curve.high)
    return math.inf if x == 0.0 else _log_line(curve, x)


@njit
def _log_line(line, x):
    """Return the log weight of x."""
    model, tables = line.model, line.tables
    value = _log_shift(model, tables, line.counts, line.here, line.there, line.size, x)
    if line.first >= 0:
        value += _log_class(model, tables, line.totals[line.first] - x)
        value += _log_class(model, tables, line.totals[line.second] + x)
    return value


@njit
def _log_shift(model, tables, counts, here, there, size, shift):
    """Return the log weight of the cells here[:size] with `shift` records less, of there[:size] with more."""
    value = 0.0
    for k in range(size):
        value += _log_cell(model, tables, here[k], counts[here[k]] - shift)
        value += _log_cell(model, tables, there[k], counts[there[k]] + shift)
    return value


@njit
def _log_records(model, tables, x):
    """Return the log weight of x records in a cell, or of as many in a class whose levels are summed over."""
    return tables.cell[int(x)] if x < len(tables.cell) else _compute_cell(model, x)


@njit
def _log_cell(model, tables, c, x):
    """Return the log weight of x records in cell c, its released count included."""
    return _log_records(model, tables, x) - cost(model, model.released[c] - x)


@njit
def _log_class(model, tables, x):
    """Return the log weight of x records in a class, beside those of its cells."""
    return tables.classes[int(x)] if x < len(tables.classes) else _compute_class(model, x)


@njit
def _transfer(model, tables, rng, counts, totals, first, second, most, offer):
    """Offer to move records drawn at random from a class, with new levels by the predictive of another.

    Both ways are reversible for the prior given the class totals, so that what counts is the totals' prior
    and the release, where either direction is as likely. The number of records is log-uniform up to `most`.
    """
    number = float(int(math.exp(rng.random() * math.log(most + 1.0))))
    if number > totals[first]:
        return
    gain = -_log_records(model, tables, totals[first]) - _log_records(model, tables, totals[second])
    gain += _log_records(model, tables, totals[first] - number) + _log_records(
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
def _pick(rng, counts, start, width, total, prior):
    """Return a level drawn with weights prior + counts, which sum to `total`."""
    u = rng.random() * total
    for j in range(width - 1):
        u -= prior + counts[start + j]
        if u < 0.0:
            return j
    return width - 1
