"""Draws of a random probability measure P from its posterior, and functionals of them.

P given a sample with distinct values z_1..z_k, z_j seen m_j times (Pitman 1996), for 0 <= d < 1 and a base
measure P0 without atoms (with d = 0, any)::

    P = sum_j W_j delta_{z_j} + W_0 P',   (W_1..W_k, W_0) ~ Dirichlet(m_1 - d, .., m_k - d, alpha + k d),
    P' ~ PY(d, alpha + k d, P0)  independent of the weights.

More generally a measure here is a set of fixed atoms and of regions, whose masses are jointly Dirichlet,
with a process PY(d, a_r, P0 given region r) in each region r, independent of all else. Given numbers of
records c_j in the cells of a partition, a Dirichlet process has regions only, with masses
Dirichlet(alpha P0(cell j) + c_j) and a_j = alpha P0(cell j): where in its cell a record lies is not seen. A
finite base measure has atoms only.

Truncation. The sticks of a region are v_i ~ Beta(1 - d, a + i d), i = 1, 2, ..; after T of them a mass r is
left, spread by PY(d, a + T d, P0), under which the mean of any f of range 1 has a standard deviation of at
most s / 2 around P0(f), s^2 = (1 - d) / (1 + a + T d). Sticks end as soon as r s <= tolerance, or at
`MOST_STICKS`. The mass r then goes in equal parts to N atoms from P0, N the nearest whole number to 1 / s^2,
at least 1 and at most `MOST_STICKS`. This has the mean of what it replaces, and its variance up to the
rounding of N: two moments of every linear functional are all but exact whatever the tolerance. The difference
that it makes to one draw of the mean of f has mean 0 and, unless N is cut off, a standard deviation of at
most r s. With several regions of masses M_j the tolerance of each is multiplied by sqrt(M_j), so that it
holds for P as a whole.

**Functionals.** Of a numeric column: mean, standard deviation, quantiles inf{x: F(x) >= q}, tail
probabilities Pr(X > t) and the distribution function F on a public grid; of a column of labels: the
probability of each. Masses are summed between the points where F is asked for, so that atoms are sorted only
within the pieces that hold a quantile: the cost is linear in the number of atoms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.discrete.base_measures import Locations, draw_location, offsets
from dpmix.numerics.equal_cells import among
from dpmix.numerics.jit import njit
from dpmix.numerics.special import log_gamma_draw

MOST_STICKS = 2**20


class Measure(NamedTuple):
    """Law of a random measure: see the module.

    atoms (K,) Dirichlet parameters of the fixed atoms; regions (R,) those of the regions; concentration (R,)
    and discount d of the processes within, -d for a single atom; cells (R, D) cell of each column that the
    region is, -1 for all.
    """

    atoms: Any
    regions: Any
    concentration: Any
    discount: float
    cells: Any
    tolerance: float


def default_tolerance(concentration: float, records: float) -> float:
    """Return 0.03 / sqrt(1 + alpha + records).

    At d = 0 the mean under P of an f of range 1 has a posterior standard deviation of at most 1/2 over that
    root; what is not drawn stick by stick then has at most 1e-3 of the variance.
    """
    return 0.03 / math.sqrt(1.0 + max(concentration, 0.0) + records)


@njit
def _fill_gamma(rng, shapes, out, logs):
    """Draw Gamma(shape) variables, or their logarithms; a shape of 0 gives 0."""
    total = 0.0
    for j in range(len(shapes)):
        if shapes[j] <= 0.0:
            out[j] = -math.inf if logs else 0.0
        elif logs:
            out[j] = log_gamma_draw(rng, shapes[j])
        else:
            out[j] = rng.standard_gamma(shapes[j])
            total += out[j]
    return total


@njit
def draw_weights(rng, measure: Measure, atoms, regions):
    """Draw the masses of the atoms (K,) and of the regions (R,), which sum to 1."""
    total = np.sum(measure.atoms) + np.sum(measure.regions)
    if total < 1.0:  # all gamma variables together may be too small for a double
        _fill_gamma(rng, measure.atoms, atoms, True)
        _fill_gamma(rng, measure.regions, regions, True)
        top = -math.inf
        for values in (atoms, regions):
            for value in values:
                top = max(top, value)
        total = 0.0
        for values in (atoms, regions):
            for j in range(len(values)):
                values[j] = math.exp(values[j] - top)
                total += values[j]
    else:
        total = _fill_gamma(rng, measure.atoms, atoms, False)
        total += _fill_gamma(rng, measure.regions, regions, False)
    scale = 1.0 / total
    for values in (atoms, regions):
        for j in range(len(values)):
            values[j] *= scale


@njit
def _wider(values, room):
    """Return an array with room for `room` entries that begins with `values`."""
    if room <= len(values):
        return values
    wide = np.empty(max(room, 2 * len(values)), dtype=values.dtype)
    wide[: len(values)] = values
    return wide


@njit
def _break_region(rng, left, a, d, tolerance, weights, used):
    """Break the mass `left` of one region; return weights, how many are used, the mass left and s^2."""
    sticks = 0
    while True:
        spread = (1.0 - d) / (1.0 + a + sticks * d)
        if left * math.sqrt(spread) <= tolerance or sticks >= MOST_STICKS:
            return weights, used, left, spread
        sticks += 1
        if d == 0.0:
            keep = math.exp(-rng.standard_exponential() / a)
        else:
            first = rng.standard_gamma(1.0 - d)
            rest = rng.standard_gamma(a + sticks * d)
            keep = rest / (first + rest)
        if used == len(weights):
            weights = _wider(weights, used + 1)
        weights[used] = left * (1.0 - keep)
        left *= keep
        used += 1


@njit
def stick_breaking(rng, measure: Measure, masses):
    """Draw the atoms' weights of the processes in all regions, of `masses` (R,).

    Returns
    -------
    weights (T,), homes (T,)
        Weight and region of each atom; the weights of a region sum to its mass.
    """
    weights, used = np.empty(256), 0
    sizes = np.zeros(len(masses), dtype=np.int64)
    for r in range(len(masses)):
        if not masses[r] > 0.0:
            continue
        start, left, parts = used, masses[r], 1
        if measure.concentration[r] > -measure.discount:  # else one atom
            a, tolerance = measure.concentration[r], measure.tolerance * math.sqrt(masses[r])
            weights, used, left, spread = _break_region(
                rng, left, a, measure.discount, tolerance, weights, used
            )
            parts = int(min(max(math.floor(1.0 / spread + 0.5), 1.0), float(MOST_STICKS)))
        if left > 0.0:
            weights = _wider(weights, used + parts)
            weights[used : used + parts] = left / parts
            used += parts
        sizes[r] = used - start
    return weights[:used], np.repeat(np.arange(len(masses)), sizes)


@njit
def pick(rng, atoms, sticks):
    """Draw an atom by its weight: its index among `atoms`, or len(atoms) plus that among `sticks`."""
    u = rng.random() * (np.sum(atoms) + np.sum(sticks))
    last = -1
    for j in range(len(atoms)):
        if atoms[j] > 0.0:
            last = j
            u -= atoms[j]
            if u < 0.0:
                return j
    for t in range(len(sticks)):
        if sticks[t] > 0.0:
            last = len(atoms) + t
            u -= sticks[t]
            if u < 0.0:
                return last
    return last


# Functionals of a drawn measure

QUANTILES = (0.25, 0.5, 0.75)
GRID_POINTS = 101
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """A column of numbers between public bounds.

    Parameters
    ----------
    low, high : float
        The bounds.
    tail, quantiles, at : tuple of float
        Thresholds of the tail probabilities, levels of the quantiles, and points of the distribution function
        that are wanted beside the grid's.
    gini : bool
        Whether the Gini coefficient is wanted; then low is at least 0.
    edges : tuple of float
        Edges of cells that the release tells the shares of: points of the grid, too, as a draw of P may have
        all of a cell's share at one place of it.
    """

    low: float
    high: float
    tail: tuple[float, ...]
    quantiles: tuple[float, ...] = QUANTILES
    at: tuple[float, ...] = ()
    gini: bool = False
    edges: tuple[float, ...] = ()

    @cached_property
    def grid(self) -> Floats:
        """Where the distribution function is wanted, from low to high."""
        found = self.low + (self.high - self.low) * (np.arange(GRID_POINTS) / (GRID_POINTS - 1))
        found[-1] = self.high
        edges = np.asarray(self.edges, dtype=np.float64)
        return np.asarray(np.union1d(found, edges[~among(edges, found)]), dtype=np.float64)

    @property
    def points(self) -> Floats:
        """All points at which the distribution function is summed."""
        return np.unique(np.concatenate([self.grid, self.tail, self.at]))

    @property
    def entries(self) -> dict[str, int]:
        """Numbers of results, in their order."""
        return {
            "mean": 1,
            "sd": 1,
            "quantile": len(self.quantiles),
            "tail": len(self.tail),
            **({"cdf_at": len(self.at)} if self.at else {}),
            **({"gini": 1} if self.gini else {}),
            "cdf": self.grid.size,
        }


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """A column of codes 0..C-1; `slots` (C,) says which probability each code counts for.

    With free labels, the last code stands for all labels that were not released.
    """

    slots: NDArray[np.int64]

    @property
    def entries(self) -> dict[str, int]:
        """Numbers of results."""
        return {"probability": int(self.slots.max()) + 1}


Column = NumericColumn | LabelColumn


class FunctionalsPlan(NamedTuple):
    """What is wanted of D columns, in arrays.

    numeric (D,); points of each column from ``first[l]`` to ``first[l + 1]``; of labels the slots of the
    codes. grid_at, tail_at: places of the grid (after those of the points asked for) and of the thresholds
    among the points, quantiles: with offsets (D + 1,) each. own (D,): how many points were asked for; gini
    (D,). out (D + 1,): offsets of the columns' results in a row. centre (D,): near means.
    """

    numeric: Any
    first: Any
    points: Any
    slots: Any
    first_tail: Any
    tail_at: Any
    first_grid: Any
    grid_at: Any
    first_quantile: Any
    quantiles: Any
    out: Any
    centre: Any
    own: Any
    gini: Any


class FixedAtoms(NamedTuple):
    """Fixed atoms as `draw` takes them.

    values (K, D) numbers or codes; order (D, K) sorts a numeric column, ordered (D, K) its values so sorted;
    piece (D, K) the piece between points, or the slot, of each.
    """

    values: Any
    order: Any
    ordered: Any
    piece: Any


def plan(columns: Sequence[Column]) -> FunctionalsPlan:
    """Return what is wanted of the columns in arrays."""
    parts: dict[str, list[Any]] = {name: [] for name in ("points", "slots", "tail", "grid", "quantiles")}
    none, nowhere = np.zeros(0), np.zeros(0, dtype=np.int64)
    for column in columns:
        if isinstance(column, NumericColumn):
            points = column.points
            parts["points"].append(points)
            parts["slots"].append(np.zeros(len(points), dtype=np.int64))
            parts["tail"].append(np.searchsorted(points, column.tail).astype(np.int64))
            places = np.concatenate([column.at, column.grid])
            parts["grid"].append(np.searchsorted(points, places).astype(np.int64))
            parts["quantiles"].append(np.array(column.quantiles, dtype=np.float64))
        else:
            parts["points"].append(np.zeros(len(column.slots)))
            parts["slots"].append(np.asarray(column.slots, dtype=np.int64))
            parts["tail"].append(nowhere)
            parts["grid"].append(nowhere)
            parts["quantiles"].append(none)
    starts = {name: offsets([len(part) for part in found]) for name, found in parts.items()}
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    return FunctionalsPlan(
        np.array([isinstance(column, NumericColumn) for column in columns]),
        starts["points"],
        joined["points"],
        joined["slots"],
        starts["tail"],
        joined["tail"],
        starts["grid"],
        joined["grid"],
        starts["quantiles"],
        joined["quantiles"],
        offsets([sum(column.entries.values()) for column in columns]),
        np.array([0.5 * (c.low + c.high) if isinstance(c, NumericColumn) else 0.0 for c in columns]),
        np.array([len(c.at) if isinstance(c, NumericColumn) else 0 for c in columns], dtype=np.int64),
        np.array([isinstance(c, NumericColumn) and c.gini for c in columns]),
    )


def fixed_atoms(columns: Sequence[Column], values: Floats) -> FixedAtoms:
    """Return atoms at `values` (K, D), sorted column by column."""
    k, d = values.shape
    order = np.empty((d, k), dtype=np.int64)
    ordered = np.empty((d, k))
    piece = np.empty((d, k), dtype=np.int64)
    for i, column in enumerate(columns):
        part = np.ascontiguousarray(values[:, i])
        if isinstance(column, NumericColumn):
            order[i] = np.argsort(part, kind="stable")
            ordered[i] = part[order[i]]
            points = column.points
            piece[i] = np.minimum(np.searchsorted(points, ordered[i], side="left"), len(points) - 1)
        else:
            order[i] = np.arange(k)
            ordered[i] = part
            piece[i] = column.slots[part.astype(np.int64)]
    return FixedAtoms(np.ascontiguousarray(values, dtype=np.float64), order, ordered, piece)


@njit
def _quantile(q, masses, fixed, column, atoms, sticks, places, pieces):
    """Return the smallest atom up to which the weights sum to q or more; `masses` are those of the pieces."""
    below, at = 0.0, 0
    while at < len(masses) - 1 and below + masses[at] < q:
        below += masses[at]
        at += 1
    while at > 0 and masses[at] <= 0.0:  # q beyond the sum, by rounding
        at -= 1
        below -= masses[at]
    chosen = np.flatnonzero(pieces == at)
    ranks = chosen[np.argsort(places[chosen])]
    i = np.searchsorted(fixed.piece[column], at)
    stop = np.searchsorted(fixed.piece[column], at, side="right")
    t = 0
    found = 0.0
    while i < stop or t < len(ranks):
        if t == len(ranks) or (i < stop and fixed.ordered[column, i] <= places[ranks[t]]):
            weight, x = atoms[fixed.order[column, i]], fixed.ordered[column, i]
            i += 1
        else:
            weight, x = sticks[ranks[t]], places[ranks[t]]
            t += 1
        if weight > 0.0:
            found = x
            below += weight
            if below >= q:
                break
    return found


@njit
def _gini(fixed, column, atoms, sticks, places, mean):
    """Return E|X - X'| / (2 E X) of values from 0 on; 0 where all are 0."""
    values = np.concatenate((fixed.values[:, column], places))
    weights = np.concatenate((atoms, sticks))
    below, total = 0.0, 0.0
    for i in np.argsort(values):
        total += weights[i] * values[i] * (2.0 * below + weights[i] - 1.0)
        below += weights[i]
    return total / mean if mean > 0.0 else 0.0


@njit
def _numbers(plan, column, fixed, atoms, sticks, places, row):
    """Write the functionals of a numeric column, whose stick atoms are at `places` (T,), to `row`."""
    points, centre = plan.points[plan.first[column] : plan.first[column + 1]], plan.centre[column]
    masses = np.zeros(len(points))
    pieces = np.empty(len(sticks), dtype=np.int64)
    one, two = 0.0, 0.0
    for i in range(len(atoms)):
        weight, gap = atoms[fixed.order[column, i]], fixed.ordered[column, i] - centre
        masses[fixed.piece[column, i]] += weight
        one += weight * gap
        two += weight * gap * gap
    for t in range(len(sticks)):
        gap = places[t] - centre
        pieces[t] = min(np.searchsorted(points, places[t]), len(points) - 1)
        masses[pieces[t]] += sticks[t]
        one += sticks[t] * gap
        two += sticks[t] * gap * gap
    row[0] = centre + one
    row[1] = math.sqrt(max(two - one * one, 0.0))
    at = 2
    for i in range(plan.first_quantile[column], plan.first_quantile[column + 1]):
        row[at] = _quantile(plan.quantiles[i], masses, fixed, column, atoms, sticks, places, pieces)
        at += 1
    upper = np.empty(len(masses))  # summed from above: small tails keep their digits
    total = 0.0
    for b in range(len(masses) - 1, -1, -1):
        upper[b] = total
        total += masses[b]
    for i in range(plan.first_tail[column], plan.first_tail[column + 1]):
        row[at] = upper[plan.tail_at[i]]
        at += 1
    for b in range(1, len(masses)):
        masses[b] += masses[b - 1]
    asked = plan.first_grid[column] + plan.own[column]
    for i in range(plan.first_grid[column], plan.first_grid[column + 1]):
        if i == asked and plan.gini[column]:
            row[at] = _gini(fixed, column, atoms, sticks, places, row[0])
            at += 1
        row[at] = min(masses[plan.grid_at[i]], 1.0)
        at += 1


@njit
def draw(rng, measure: Measure, base: Locations, plan: FunctionalsPlan, fixed: FixedAtoms, row, record):
    """Draw P, write its functionals to `row` and one record drawn from it to `record` (D,)."""
    atoms = np.empty(len(measure.atoms))
    regions = np.empty(len(measure.regions))
    draw_weights(rng, measure, atoms, regions)
    sticks, homes = stick_breaking(rng, measure, regions)
    chosen = pick(rng, atoms, sticks)
    places = np.empty(len(sticks))
    for column in range(len(plan.numeric)):
        for t in range(len(sticks)):
            places[t] = draw_location(base, rng, column, measure.cells[homes[t], column])
        out = row[plan.out[column] : plan.out[column + 1]]
        if chosen < len(atoms):
            record[column] = fixed.values[chosen, column]
        else:
            record[column] = places[chosen - len(atoms)]
        if plan.numeric[column]:
            _numbers(plan, column, fixed, atoms, sticks, places, out)
            continue
        out[:] = 0.0
        for i in range(len(atoms)):
            out[fixed.piece[column, i]] += atoms[i]
        for t in range(len(sticks)):
            out[plan.slots[plan.first[column] + int(places[t])]] += sticks[t]
