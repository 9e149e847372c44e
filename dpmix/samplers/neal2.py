"""Neal's algorithm 2 for conjugate kernels: a new component is weighed by the prior predictive density.

Its parameters are then drawn given the one record. Densities under the components that there are depend on
the parameters alone, and are computed component by component for a block of records at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import draw_posterior, tally
from dpmix.mechanisms.channels.every import fill_marginal
from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.collapsed import INTEGRAL, RATIO, constants_of, grown_integral, new_blocks, refresh
from dpmix.samplers.neal8 import exchange, log_weights
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import (
    BLOCK,
    CONCENTRATION,
    DONE,
    GROW,
    HUGE,
    OCCUPIED,
    POSITION,
    TINY,
    sort_by_size,
)
from dpmix.samplers.sweeps import move_concentration, sweep

__all__ = ["Neal2", "prior_predictive"]


DENSITY, LOG = 0, 1  # rows of `prior_predictive`


class Neal2(NamedTuple):
    """`prior` (2, n), of `prior_predictive`: it depends on no parameter; no settings."""

    prior: Any


@njit
def prior_predictive(kernel, z):
    """Return the prior predictive densities of the values `z` (n,) and their logarithms, shape (2, n)."""
    found = np.empty((2, len(z)))
    block = new_blocks(1)
    refresh(kernel, block, 0, 0)
    head = constants_of(kernel, 0.0, 0)[RATIO, 0] - block[INTEGRAL, 0]
    for i in range(len(z)):
        found[LOG, i] = head + grown_integral(kernel, block, 0, 0, z[i])
        found[DENSITY, i] = exp(found[LOG, i])
    return found


@njit
def _draw_new(state, kernel, rng, h, z):
    """Draw the parameters of the new component h given its one value."""
    state.stats[:, h] = 0.0
    tally(kernel, state.theta, h, z, state.stats)
    draw_posterior(kernel, rng, 1, state.stats, h, state.theta, state.tuning)


@njit
def _allocate(state, channel, kernel, mixing, rng, prior, start, stop):
    """Draw the allocation of records start..stop given all others and the parameters.

    ``mass[j]`` is the predictive weight n_h - d of the component at position j; position k stands for a new
    one.
    """
    discount = mixing.discount
    alpha = state.floats[CONCENTRATION]
    order, where, density = state.order, state.where, state.density
    k = state.ints[OCCUPIED]
    weights = np.empty(len(order))
    mass = np.empty(len(order))
    size = stop - start
    for j in range(k):
        mass[j] = state.counts[order[j]] - discount
        fill_marginal(channel, kernel, state.theta, order[j], state.z, start, stop, density[j])
    for i in range(start, stop):
        b = i - start
        z = state.z[i]
        place = where[state.labels[i]]
        mass[place] -= 1.0
        if mass[place] < 0.5 - discount:
            k -= 1
            exchange(state, mass, place, k, b, size)
            state.counts[order[k]] = 0
        total = 0.0
        for j in range(k):
            total += mass[j] * density[j, b]
            weights[j] = total
        total += (alpha + k * discount) * prior[DENSITY, i]
        weights[k] = total
        if not TINY < total < HUGE:
            mass[k] = alpha + k * discount
            total = log_weights(channel, kernel, state, i, k, mass, weights, prior[LOG, i])
        u = rng.random() * total
        chosen = 0
        while chosen < k and weights[chosen] <= u:
            chosen += 1
        if chosen == k:
            k += 1
            h = order[chosen]
            mass[chosen] = -discount
            _draw_new(state, kernel, rng, h, z)
            if i + 1 < stop:
                row = density[chosen, b + 1 :]
                fill_marginal(channel, kernel, state.theta, h, state.z, i + 1, stop, row)
        mass[chosen] += 1.0
        state.labels[i] = order[chosen]
    for j in range(k):
        state.counts[order[j]] = round(mass[j] + discount)
    state.ints[OCCUPIED] = k


@njit
def _scan(state, channel, kernel, mixing, rng, prior):
    """Draw the allocation of every record in turn; GROW when slots run out, to go on from there."""
    n = len(state.labels)
    while state.ints[POSITION] < n:
        start = state.ints[POSITION]
        if state.ints[OCCUPIED] + 1 + BLOCK > len(state.order):
            return GROW
        stop = min(start + BLOCK, n)
        _allocate(state, channel, kernel, mixing, rng, prior, start, stop)
        state.ints[POSITION] = stop
    state.ints[POSITION] = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if _scan(state, channel, kernel, mixing, rng, algorithm.prior) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


sweep.register(_sweep, Neal2, Serial)
sweep.register(_sweep, Neal2, Threads, compiled=False)
