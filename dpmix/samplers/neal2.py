"""Neal's algorithm 2 for conjugate kernels: a new component is weighed by the prior predictive density.

Its parameters are then drawn given the one record. Densities under the components that there are depend on
the parameters alone, and are computed component by component for a block of records at a time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmix._jit import njit
from dpmix.channels import fill_marginal
from dpmix.kernels import draw_posterior, tally
from dpmix.samplers.base import move_concentration, sweep
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.collapsed import log_predictive, new_blocks, ratios_of, refresh
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

__all__ = ["Neal2"]


class Neal2(NamedTuple):
    """No settings; a NamedTuple without a field cannot be compiled."""

    auxiliary: int = 0


@njit
def _draw_new(state, kernel, rng, h, z):
    """Draw the parameters of the new component h given its one value."""
    state.stats[:, h] = 0.0
    tally(kernel, state.theta, h, z, state.stats)
    draw_posterior(kernel, rng, 1, state.stats, h, state.theta, state.tuning)


@njit
def _allocate(state, channel, kernel, mixing, rng, start, stop):
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
    prior = new_blocks(1)
    ratios = ratios_of(kernel, 0)
    refresh(kernel, prior, ratios, 0, 0)
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
        new = log_predictive(kernel, prior, 0, z)
        total += (alpha + k * discount) * math.exp(new)
        weights[k] = total
        if not TINY < total < HUGE:
            mass[k] = alpha + k * discount
            total = log_weights(channel, kernel, state, i, k, mass, weights, new)
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
def _scan(state, channel, kernel, mixing, rng):
    """Draw the allocation of every record in turn; GROW when slots run out, to go on from there."""
    n = len(state.labels)
    while state.ints[POSITION] < n:
        start = state.ints[POSITION]
        if state.ints[OCCUPIED] + 1 + BLOCK > len(state.order):
            return GROW
        stop = min(start + BLOCK, n)
        _allocate(state, channel, kernel, mixing, rng, start, stop)
        state.ints[POSITION] = stop
    state.ints[POSITION] = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if _scan(state, channel, kernel, mixing, rng) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


sweep.register(_sweep, Neal2, Serial)
sweep.register(_sweep, Neal2, Threads, compiled=False)
