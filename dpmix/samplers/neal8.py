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

from dpmix._jit import njit
from dpmix.channels import fill_marginal, log_marginal
from dpmix.kernels import draw_prior
from dpmix.mixing import draw_concentration
from dpmix.samplers.base import sweep
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import (
    BLOCK,
    CONCENTRATION,
    DONE,
    GROW,
    OCCUPIED,
    POSITION,
    TINY,
    sort_by_size,
    swap,
)

__all__ = ["Neal8"]


class Neal8(NamedTuple):
    """`auxiliary` empty components are offered to each record (m of Neal 8)."""

    auxiliary: int


@njit
def _log_weights(channel, kernel, state, i, k, m, discount, new, weights):
    """Set weights[:k + m] to the cumulative weights of record i, computed in logarithms. Return their sum."""
    top = -np.inf
    for j in range(k + m):
        weights[j] = log_marginal(channel, kernel, state.z[i], state.theta, state.order[j])
        top = max(top, weights[j])
    total = 0.0
    for j in range(k + m):
        prior = state.counts[state.order[j]] - discount if j < k else new
        total += prior * np.exp(weights[j] - top)
        weights[j] = total
    return total


@njit
def _allocate(state, channel, kernel, mixing, rng, m, start, stop):
    """Draw the allocation of records start..stop given all others."""
    discount = mixing.discount
    alpha = state.floats[CONCENTRATION]
    order, counts, density = state.order, state.counts, state.density
    k = state.ints[OCCUPIED]
    weights = np.empty(len(order))
    for j in range(k + m):
        h = order[j]
        fill_marginal(channel, kernel, state.theta, h, state.z, start, stop, density[h])
    for i in range(start, stop):
        b = i - start
        own = state.labels[i]
        counts[own] -= 1
        if counts[own] == 0:
            k -= 1
            swap(state, state.where[own], k)
            swap(state, k + m, k + 1 + int(rng.random() * m))
        new = (alpha + k * discount) / m
        total = 0.0
        for j in range(k):
            h = order[j]
            total += (counts[h] - discount) * density[h, b]
            weights[j] = total
        for j in range(k, k + m):
            total += new * density[order[j], b]
            weights[j] = total
        if not total > TINY:
            total = _log_weights(channel, kernel, state, i, k, m, discount, new, weights)
        u = rng.random() * total
        chosen = 0
        while chosen < k + m - 1 and weights[chosen] <= u:
            chosen += 1
        h = order[chosen]
        if chosen >= k:
            swap(state, chosen, k)
            k += 1
            fresh = order[k + m - 1]
            draw_prior(kernel, rng, state.theta, fresh)
            if i + 1 < stop:
                fill_marginal(
                    channel, kernel, state.theta, fresh, state.z, i + 1, stop, density[fresh, b + 1 :]
                )
            counts[h] = 0
        counts[h] += 1
        state.labels[i] = h
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
    state.floats[CONCENTRATION] = draw_concentration(
        rng, mixing, state.floats[CONCENTRATION], len(state.labels), k
    )
    return DONE


sweep.register(_sweep, Neal8, Serial)
sweep.register(_sweep, Neal8, Threads, compiled=False)
