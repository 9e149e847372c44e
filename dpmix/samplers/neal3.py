"""Neal's algorithm 3: allocations alone, with the parameters of conjugate kernels integrated out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmix._jit import njit
from dpmix.samplers.base import move_concentration, sweep
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.collapsed import (
    add_value,
    log_predictive,
    new_blocks,
    ratios_of,
    refresh,
    remove_value,
    reset_block,
)
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import CONCENTRATION, DONE, GROW, OCCUPIED, POSITION, sort_by_size, swap

__all__ = ["Neal3", "scan_allocations"]


class Neal3(NamedTuple):
    """No settings; a NamedTuple without a field cannot be compiled."""

    auxiliary: int = 0


@njit
def _blocks_of(state, kernel, ratios):
    """Return the table of blocks by slot, those of unoccupied slots empty."""
    blocks = new_blocks(len(state.order))
    for i in range(len(state.labels)):
        add_value(kernel, blocks, state.labels[i], state.z[i])
    for h in range(len(state.order)):
        if state.counts[h] > 0 or h == state.order[state.ints[OCCUPIED]]:
            refresh(kernel, blocks, ratios, h, state.counts[h])
    return blocks


@njit
def _choose(rng, logs, places):
    """Return a position with probability proportional to the exponentials of logs[:places]."""
    top = np.max(logs[:places])
    total = 0.0
    for j in range(places):
        total += math.exp(logs[j] - top)
        logs[j] = total
    u = rng.random() * total
    chosen = 0
    while chosen < places - 1 and logs[chosen] <= u:
        chosen += 1
    return chosen


@njit
def scan_allocations(state, kernel, mixing, rng):
    """Draw the allocation of every record in turn; GROW when slots run out, to go on from there.

    The slot after the occupied ones stands for a new block: an empty one.
    """
    n = len(state.labels)
    if state.ints[OCCUPIED] + 2 > len(state.order):
        return GROW
    discount = mixing.discount
    alpha = state.floats[CONCENTRATION]
    order, where, counts = state.order, state.where, state.counts
    ratios = ratios_of(kernel, n)
    blocks = _blocks_of(state, kernel, ratios)
    logs = np.empty(len(order))
    log_mass = np.log(np.maximum(np.arange(n + 1) - discount, 1e-300))
    while state.ints[POSITION] < n:
        k = state.ints[OCCUPIED]
        if k + 2 > len(order):
            return GROW
        i = state.ints[POSITION]
        z = state.z[i]
        own = state.labels[i]
        counts[own] -= 1
        if counts[own] == 0:
            k -= 1
            swap(state, where[own], k)
            reset_block(blocks, own)
        else:
            remove_value(kernel, blocks, own, z)
        refresh(kernel, blocks, ratios, own, counts[own])
        for j in range(k):
            h = order[j]
            logs[j] = log_mass[counts[h]] + log_predictive(kernel, blocks, h, z)
        logs[k] = math.log(alpha + k * discount) + log_predictive(kernel, blocks, order[k], z)
        chosen = _choose(rng, logs, k + 1)
        h = order[chosen]
        if chosen == k:
            k += 1
            reset_block(blocks, order[k])
            refresh(kernel, blocks, ratios, order[k], 0)
        counts[h] += 1
        add_value(kernel, blocks, h, z)
        refresh(kernel, blocks, ratios, h, counts[h])
        state.labels[i] = h
        state.ints[OCCUPIED] = k
        state.ints[POSITION] = i + 1
    state.ints[POSITION] = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if scan_allocations(state, kernel, mixing, rng) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


sweep.register(_sweep, Neal3, Serial)
sweep.register(_sweep, Neal3, Threads, compiled=False)
