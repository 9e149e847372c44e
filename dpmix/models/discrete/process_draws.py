"""Draws of a random probability measure P from a Dirichlet- or Pitman-Yor-process posterior.

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
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.gamma import log_gamma_draw
from dpmix.numerics.jit import njit

__all__ = ["MOST_STICKS", "Measure", "default_tolerance", "draw_weights", "pick", "stick_breaking"]

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
    weights = np.empty(256)
    homes = np.empty(256, dtype=np.int32)
    used = 0
    for r in range(len(masses)):
        if not masses[r] > 0.0:
            continue
        start = used
        if measure.concentration[r] <= -measure.discount:  # one atom
            weights = _wider(weights, used + 1)
            weights[used] = masses[r]
            used += 1
            if used > len(homes):
                homes = _wider(homes, len(weights))
            homes[start] = r
            continue
        weights, used, left, spread = _break_region(
            rng,
            masses[r],
            measure.concentration[r],
            measure.discount,
            measure.tolerance * math.sqrt(masses[r]),
            weights,
            used,
        )
        if left > 0.0:
            parts = int(min(max(math.floor(1.0 / spread + 0.5), 1.0), float(MOST_STICKS)))
            weights = _wider(weights, used + parts)
            weights[used : used + parts] = left / parts
            used += parts
        if used > len(homes):
            homes = _wider(homes, len(weights))
        homes[start:used] = r
    return weights[:used], homes[:used]


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
