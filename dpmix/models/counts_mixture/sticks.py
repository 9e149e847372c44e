"""The concentration and all that is light, drawn anew together, allocations integrated out.

In an order drawn by weight without replacement the atoms of P are broken off by sticks v_1, v_2, .. ~ Beta(1,
alpha), each with a parameter of its own from G0 (Pitman 1996). Stop with the first J sticks that leave a mass
R = prod_j (1 - v_j) of r or less, r whatever the state is. Given these sticks alone alpha has the law
Gamma(a + J, b - log R), and all behind them is a Dirichlet process again: the proposal draws both, so that
of the acceptance ratio that of the likelihoods is left.

Where single records made the number of clusters, and that the concentration, both move by a root of their
number at a time; the smaller R, the less the data can object, and the more sticks hold the concentration
where it is: log r is uniform.
"""

from __future__ import annotations

import math

from dpmix.kernels.kernel_functions import draw_prior
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.pairs import copy_atom
from dpmix.models.counts_mixture.source import log_gain, take_over
from dpmix.numerics.jit import njit

__all__ = ["redraw_light"]


@njit
def _break_off(rng, work, atoms, most):
    """List all atoms in `work.chosen` in an order drawn by weight, until `most` or less is left.

    Return the number of sticks, and the mass that is left behind them.
    """
    order, weights = work.chosen, work.weights
    for h in range(atoms):
        order[h] = h
    for j in range(atoms):
        left = 0.0
        for i in range(j, atoms):
            left += weights[order[i]]
        if left <= most:
            return j, left
        z = left * rng.random()
        found = atoms - 1
        for i in range(j, atoms):
            z -= weights[order[i]]
            if z < 0.0:
                found = i
                break
        order[j], order[found] = order[found], order[j]
    return atoms, 0.0


@njit
def _compact(theta, work, atoms):
    """Keep the atoms that `work.numbers` marks; return how many."""
    k = 0
    for h in range(atoms):
        if work.numbers[h] == 0:
            continue
        if h != k:
            work.weights[k] = work.weights[h]
            copy_atom(theta, work, h, k)
        k += 1
    return k


@njit
def redraw_light(channel, kernel, mixing, rng, theta, cells, work, atoms, total, tail, alpha):
    """Draw the concentration and the atoms behind some sticks; return their number and the concentration.

    total: the number of records; tail: how many may be expected on what is not broken off.
    """
    sticks, left = _break_off(rng, work, atoms, math.exp(-rng.random() * math.log(1.0 + total)))
    if sticks == atoms or not left > 0.0:
        return atoms, alpha
    proposed, mixed, weights, room = work.proposed, work.mixed, work.weights, len(work.weights)
    for c in range(len(mixed)):
        proposed[c] = mixed[c]
    for i in range(sticks, atoms):
        h = work.chosen[i]
        weight, masses = weights[h], work.rows[h, 0]
        for c in range(len(mixed)):
            proposed[c] -= weight * masses[c]
    other = alpha
    if mixing.shape > 0.0:
        other = max(rng.standard_gamma(mixing.shape + sticks) / (mixing.rate - math.log(left)), 1e-12)
    end = atoms
    while True:
        if end == room:
            return atoms, alpha
        more = left * total > tail
        share = rng.beta(1.0, other) if more else 1.0
        weight = left * share
        left *= 1.0 - share
        weights[end] = weight
        draw_prior(kernel, rng, theta, end)
        work.sloped[end] = fill_rows(channel, kernel, theta, end, cells, work.rows[end])
        masses = work.rows[end, 0]
        for c in range(len(mixed)):
            proposed[c] += weight * masses[c]
        end += 1
        if not more:
            break
    for c in range(len(mixed)):
        proposed[c] = max(proposed[c], LEAST)
    if not -rng.standard_exponential() < log_gain(work.source, rng, work):
        return atoms, alpha
    take_over(work.source, work)
    for h in range(end):
        work.numbers[h] = 1 if h >= atoms else 0
    for i in range(sticks):
        work.numbers[work.chosen[i]] = 1
    return _compact(theta, work, end), other
