"""Neal's algorithm 3: allocations alone, with the parameters of conjugate kernels integrated out."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.mixing import opening_mass
from dpmix.numerics.special import exp
from dpmix.samplers.collapsed import (
    INTEGRAL,
    MASS,
    RATIO,
    constants_of,
    follow_lambda,
    give,
    grown_integral,
    new_blocks,
    put,
    refresh,
    reset_block,
    take,
)
from dpmix.samplers.scan import (
    close,
    furnish,
    join,
    lay_out,
    leave,
    open_desk,
    reallocate,
    room,
    sweep_by_scan,
    visit,
    weigh,
)
from dpmix.samplers.state import swap
from dpmix.samplers.sweeps import Built, builds, follow_base


class Neal3(NamedTuple):
    """`constants` of the blocks by size, of `dpmix.samplers.collapsed.constants_of`; no settings."""

    constants: Any


@builds("neal3", tabled=True)
def _build(settings, kernel, mixing, n):
    return Built(Neal3(constants_of(kernel, mixing.discount, n)))


class BlocksDesk(NamedTuple):
    """The table of `blocks` and their `grown` integrals (S,), both by slot; cumulative `weights` (S,)."""

    blocks: Any
    grown: Any
    weights: Any


@room.register
@inlined
def _room(algorithm: Neal3):
    return 1, 2


@open_desk.register
@njit
def _open_desk(algorithm: Neal3, state, kernel):
    slots = len(state.order)
    blocks = new_blocks(slots)
    for i in range(len(state.labels)):
        put(kernel, blocks, state.labels[i], state.z[i])
    for j in range(min(state.now.occupied + 1, slots)):
        refresh(kernel, blocks, state.order[j], state.counts[state.order[j]])
    return BlocksDesk(blocks, np.empty(slots), np.empty(slots))


@lay_out.register
@inlined
def _lay_out(algorithm: Neal3, desk, state, channel, kernel, mixing, rng, start, stop):
    """Do nothing: the blocks follow the records."""


@leave.register
@inlined
def _leave(algorithm: Neal3, desk, state, kernel, i):
    own = state.labels[i]
    desk.grown[own] = take(kernel, desk.blocks, own, state.counts[own], state.z[i])


@close.register
@inlined
def _close(algorithm: Neal3, desk, state, mixing, rng, i):
    swap(state, state.where[state.labels[i]], state.now.occupied)


@weigh.register
@inlined
def _weigh(algorithm: Neal3, desk, state, channel, kernel, mixing, i):
    """Weigh all blocks; the slot after the occupied ones stands for a new one."""
    k, logs, constants = state.now.occupied, desk.weights, algorithm.constants
    opened = opening_mass(state.now.concentration, mixing.discount, k)
    top = -np.inf
    for j in range(k + 1):
        h = state.order[j]
        count = state.counts[h]
        if h != state.labels[i]:
            desk.grown[h] = grown_integral(kernel, desk.blocks, h, count, state.z[i])
        mass = constants[MASS, count] if j < k else math.log(opened)
        logs[j] = mass + constants[RATIO, count] + desk.grown[h] - desk.blocks[INTEGRAL, h]
        top = max(top, logs[j])
    total = 0.0
    for j in range(k + 1):
        total += exp(logs[j] - top)
        desk.weights[j] = total
    return k


@furnish.register
@inlined
def _furnish(algorithm: Neal3, desk, state, channel, kernel, mixing, rng, i, chosen):
    following = state.order[chosen + 1]
    reset_block(desk.blocks, following)
    refresh(kernel, desk.blocks, following, 0)


@join.register
@inlined
def _join(algorithm: Neal3, desk, state, kernel, i, h):
    give(kernel, desk.blocks, h, state.counts[h], state.z[i], desk.grown[h])


visit.register(reallocate, Neal3)
sweep_by_scan(Neal3)


@follow_base.register
def _follow_base(algorithm: Neal3, state, kernel, rng):
    follow_lambda(kernel, algorithm.constants)
