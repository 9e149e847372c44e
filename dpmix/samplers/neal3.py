"""Neal's algorithm 3: allocations alone, with the parameters of conjugate kernels integrated out."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.collapsed import (
    INTEGRAL,
    MASS,
    RATIO,
    give,
    grown_integral,
    new_blocks,
    put,
    refresh,
    reset_block,
    take,
)
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import CONCENTRATION, DONE, GROW, OCCUPIED, POSITION, sort_by_size, swap
from dpmix.samplers.sweeps import move_concentration, sweep

__all__ = ["Neal3", "scan_allocations"]


class Neal3(NamedTuple):
    """`constants` of the blocks by size, of `dpmix.samplers.collapsed.constants_of`; no settings."""

    constants: Any


@njit
def _blocks_of(state, kernel):
    """Return the table of blocks by slot, those of unoccupied slots empty."""
    blocks = new_blocks(len(state.order))
    for i in range(len(state.labels)):
        put(kernel, blocks, state.labels[i], state.z[i])
    for j in range(state.ints[OCCUPIED] + 1):
        refresh(kernel, blocks, state.order[j], state.counts[state.order[j]])
    return blocks


@njit
def _choose(rng, logs, places):
    """Return a position with probability proportional to the exponentials of logs[:places]."""
    top = logs[0]
    for j in range(1, places):
        top = max(top, logs[j])
    total = 0.0
    for j in range(places):
        total += exp(logs[j] - top)
        logs[j] = total
    u = rng.random() * total
    chosen = 0
    while chosen < places - 1 and logs[chosen] <= u:
        chosen += 1
    return chosen


@njit
def scan_allocations(state, kernel, mixing, rng, constants):
    """Draw the allocation of every record in turn; GROW when slots run out, to go on from there.

    The slot after the occupied ones stands for a new block: an empty one.
    """
    n = len(state.labels)
    if state.ints[OCCUPIED] + 2 > len(state.order):
        return GROW
    discount = mixing.discount
    alpha = state.floats[CONCENTRATION]
    order, where, counts = state.order, state.where, state.counts
    blocks = _blocks_of(state, kernel)
    logs, integrals = np.empty(len(order)), np.empty(len(order))
    while state.ints[POSITION] < n:
        k = state.ints[OCCUPIED]
        if k + 2 > len(order):
            return GROW
        i = state.ints[POSITION]
        z = state.z[i]
        own = state.labels[i]
        counts[own] -= 1
        own_integral = take(kernel, blocks, own, counts[own], z)
        if counts[own] == 0:
            k -= 1
            swap(state, where[own], k)
        for j in range(k + 1):
            h = order[j]
            count = counts[h]
            integrals[j] = own_integral if h == own else grown_integral(kernel, blocks, h, count, z)
            mass = constants[MASS, count] if j < k else math.log(alpha + k * discount)
            logs[j] = mass + constants[RATIO, count] + integrals[j] - blocks[INTEGRAL, h]
        chosen = _choose(rng, logs, k + 1)
        h = order[chosen]
        if chosen == k:
            k += 1
            reset_block(blocks, order[k])
            refresh(kernel, blocks, order[k], 0)
        counts[h] += 1
        give(kernel, blocks, h, counts[h], z, integrals[chosen])
        state.labels[i] = h
        state.ints[OCCUPIED] = k
        state.ints[POSITION] = i + 1
    state.ints[POSITION] = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if scan_allocations(state, kernel, mixing, rng, algorithm.constants) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


sweep.register(_sweep, Neal3, Serial)
sweep.register(_sweep, Neal3, Threads, compiled=False)
