"""Neal's algorithm 8 on the exact marginal kernel.

Neal (2000), with the auxiliary components reused between records (Favaro and Teh 2013): the m empty
components are part of the state, independent draws from the base measure. A record that leaves a component
empty puts that component's parameters in the place of an auxiliary one chosen at random, which offers them
to it again; a record that takes an auxiliary component turns it into an occupied one and a new auxiliary is
drawn. Marginal densities of a block of records are computed component by component beforehand, for they
depend on the parameters alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmix.kernels import draw_prior
from dpmix.mechanisms.channels.every import augment, fill_marginal, log_marginal
from dpmix.numerics.jit import njit
from dpmix.samplers.blocks import Serial, Threads
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
    swap,
)
from dpmix.samplers.sweeps import move_concentration, sweep

__all__ = ["Neal8", "exchange", "log_weights"]


class Neal8(NamedTuple):
    """`auxiliary` empty components are offered to each record (m of Neal 8)."""

    auxiliary: int


@njit
def log_weights(channel, kernel, state, i, places, mass, weights, new):
    """Set weights[:places] to cumulative weights of record i, computed in logarithms. Return their sum.

    A finite `new` is the log density at one place more.
    """
    top = -np.inf
    for j in range(places):
        weights[j] = log_marginal(channel, kernel, state.z[i], state.theta, state.order[j])
        top = max(top, weights[j])
    last = places
    if new > -np.inf:
        weights[places] = new
        top = max(top, new)
        last += 1
    total = 0.0
    for j in range(last):
        total += mass[j] * np.exp(weights[j] - top)
        weights[j] = total
    return total


@njit
def exchange(state, mass, a, b, first, last):
    """Exchange the components at positions a and b, with masses and densities of records first..last."""
    if a != b:
        swap(state, a, b)
        mass[a], mass[b] = mass[b], mass[a]
        for i in range(first, last):
            state.density[a, i], state.density[b, i] = state.density[b, i], state.density[a, i]


@njit
def _allocate(state, channel, kernel, mixing, rng, m, start, stop):
    """Draw the allocation of records start..stop given all others.

    ``mass[j]`` is the predictive weight n_h - d of the component at position j, (alpha + k d) / m of an
    auxiliary one; the densities of the block stand by position too.
    """
    discount = mixing.discount
    alpha = state.floats[CONCENTRATION]
    order, where, density = state.order, state.where, state.density
    k = state.ints[OCCUPIED]
    weights = np.empty(len(order))
    mass = np.empty(len(order))
    size = stop - start
    for j in range(k + m):
        mass[j] = state.counts[order[j]] - discount if j < k else (alpha + k * discount) / m
        fill_marginal(channel, kernel, state.theta, order[j], state.z, start, stop, density[j])
    for i in range(start, stop):
        b = i - start
        place = where[state.labels[i]]
        mass[place] -= 1.0
        if mass[place] < 0.5 - discount:
            k -= 1
            exchange(state, mass, place, k, b, size)
            exchange(state, mass, k + m, k + 1 + int(rng.random() * m), b, size)
            state.counts[order[k]] = 0
            mass[k : k + m] = (alpha + k * discount) / m
        total = 0.0
        for j in range(k + m):
            total += mass[j] * density[j, b]
            weights[j] = total
        if not TINY < total < HUGE:
            total = log_weights(channel, kernel, state, i, k + m, mass, weights, -np.inf)
        u = rng.random() * total
        chosen = 0
        while chosen < k + m - 1 and weights[chosen] <= u:
            chosen += 1
        if chosen >= k:
            exchange(state, mass, chosen, k, b, size)
            mass[k] = -discount
            chosen = k
            k += 1
            mass[k : k + m] = (alpha + k * discount) / m
            fresh = k + m - 1
            draw_prior(kernel, rng, state.theta, order[fresh])
            if i + 1 < stop:
                row = density[fresh, b + 1 :]
                fill_marginal(channel, kernel, state.theta, order[fresh], state.z, i + 1, stop, row)
        mass[chosen] += 1.0
        state.labels[i] = order[chosen]
    for j in range(k):
        state.counts[order[j]] = round(mass[j] + discount)
    state.ints[OCCUPIED] = k


@njit
def _scan(state, channel, kernel, mixing, rng, m):
    """Draw the allocation of every record in turn; GROW when slots run out, to go on from there."""
    n = len(state.labels)
    while state.ints[POSITION] < n:
        start = state.ints[POSITION]
        if state.ints[OCCUPIED] + m + BLOCK > len(state.order):
            return GROW
        if start == 0:
            for j in range(state.ints[OCCUPIED], state.ints[OCCUPIED] + m):
                draw_prior(kernel, rng, state.theta, state.order[j])
        stop = min(start + BLOCK, n)
        _allocate(state, channel, kernel, mixing, rng, m, start, stop)
        state.ints[POSITION] = stop
    state.ints[POSITION] = 0
    sort_by_size(state)
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if _scan(state, channel, kernel, mixing, rng, algorithm.auxiliary) == GROW:
        return GROW
    update_parameters(executor, state, state.z, channel, kernel, rng)
    k = state.ints[OCCUPIED]
    augment(channel, kernel, rng, state.z, state.theta, state.labels, state.order, k)
    move_concentration(state, mixing, rng)
    return DONE


sweep.register(_sweep, Neal8, Serial)
sweep.register(_sweep, Neal8, Threads, compiled=False)
