"""Split-merge moves for conjugate kernels (Jain and Neal 2004), each sweep with a scan of Neal's algorithm 3.

Two records are chosen at random. Where they share a block, it is split in two; else their blocks are merged.
A split is proposed by restricted Gibbs sampling of the other members from a launch state that such scans
have made reasonable; the probability of the last scan enters the acceptance ratio.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp
from dpmix.samplers.collapsed import (
    INTEGRAL,
    MASS,
    RATIO,
    constants_of,
    follow_lambda,
    give,
    grown_integral,
    log_block,
    new_blocks,
    put,
    refresh,
    take,
)
from dpmix.samplers.neal3 import Neal3
from dpmix.samplers.state import GROW, swap
from dpmix.samplers.sweeps import Built, builds, by_sweeps, follow_base, sweep

SCANS = 2  # restricted Gibbs scans that make the launch state


class SplitMerge(NamedTuple):
    """`constants` of the blocks by size, of `dpmix.samplers.collapsed.constants_of`; no settings."""

    constants: Any


@builds("split_merge", tabled=True)
def _build(settings, kernel, mixing, n):
    return Built(SplitMerge(constants_of(kernel, mixing.discount, n)))


@njit
def _restricted_scan(kernel, rng, constants, z, members, sides, sizes, blocks, target):
    """Move every member between the two blocks; return the log probability of what was drawn.

    Where `target` is not empty nothing is drawn: the members take the sides it names.
    """
    total = 0.0
    for m in range(len(members)):
        x = z[members[m]]
        side = sides[m]
        sizes[side] -= 1
        stays = take(kernel, blocks, side, sizes[side], x)
        goes = grown_integral(kernel, blocks, 1 - side, sizes[1 - side], x)
        zero, one = (stays, goes) if side == 0 else (goes, stays)
        odds = one - blocks[INTEGRAL, 1] + constants[RATIO, sizes[1]] + constants[MASS, sizes[1]]
        odds -= zero - blocks[INTEGRAL, 0] + constants[RATIO, sizes[0]] + constants[MASS, sizes[0]]
        if len(target) > 0:
            side = target[m]
        else:
            u = rng.random()
            side = 1 if u * (1.0 + exp(-odds)) < 1.0 else 0
        signed = odds if side == 1 else -odds
        total -= math.log1p(exp(-signed)) if signed > -700.0 else -signed
        sides[m] = side
        sizes[side] += 1
        give(kernel, blocks, side, sizes[side], x, one if side == 1 else zero)
    return total


@njit
def _members(state, i, j):
    """Return the records other than i and j in their blocks."""
    members = np.empty(len(state.labels), dtype=np.int64)
    found = 0
    for r in range(len(state.labels)):
        if r != i and r != j and (state.labels[r] == state.labels[i] or state.labels[r] == state.labels[j]):
            members[found] = r
            found += 1
    return members[:found]


@njit
def _move(state, kernel, mixing, rng, constants):
    """Propose one split or merge. Return whether it was accepted."""
    n = len(state.labels)
    d = mixing.discount
    i = int(rng.random() * n)
    j = int(rng.random() * (n - 1))
    if j >= i:
        j += 1
    own, other = state.labels[i], state.labels[j]
    splits = own == other
    members = _members(state, i, j)
    size = len(members)
    blocks = new_blocks(3)
    sizes = np.ones(2, dtype=np.int64)
    sides = np.empty(size, dtype=np.int64)
    put(kernel, blocks, 0, state.z[i])
    put(kernel, blocks, 1, state.z[j])
    put(kernel, blocks, 2, state.z[i])
    put(kernel, blocks, 2, state.z[j])
    for m in range(size):
        x = state.z[members[m]]
        sides[m] = 1 if rng.random() < 0.5 else 0
        sizes[sides[m]] += 1
        put(kernel, blocks, sides[m], x)
        put(kernel, blocks, 2, x)
    refresh(kernel, blocks, 0, sizes[0])
    refresh(kernel, blocks, 1, sizes[1])
    target = np.empty(0, dtype=np.int64)
    for _ in range(SCANS):
        _restricted_scan(kernel, rng, constants, state.z, members, sides, sizes, blocks, target)
    if not splits:
        target = np.empty(size, dtype=np.int64)
        for m in range(size):
            target[m] = 0 if state.labels[members[m]] == own else 1
    log_q = _restricted_scan(kernel, rng, constants, state.z, members, sides, sizes, blocks, target)
    k = state.now.occupied if splits else state.now.occupied - 1
    log_ratio = math.log(state.now.concentration + k * d) - math.lgamma(1.0 - d)
    log_ratio += math.lgamma(sizes[0] - d) + math.lgamma(sizes[1] - d) - math.lgamma(size + 2 - d)
    log_ratio += log_block(kernel, blocks, 0, sizes[0]) + log_block(kernel, blocks, 1, sizes[1])
    log_ratio -= log_block(kernel, blocks, 2, size + 2) + log_q
    if -rng.standard_exponential() >= (log_ratio if splits else -log_ratio):
        return False
    if splits:
        other = state.order[k]
        state.now.occupied = k + 1
        state.labels[j] = other
        state.counts[own], state.counts[other] = sizes[0], sizes[1]
        for m in range(size):
            if sides[m] == 1:
                state.labels[members[m]] = other
    else:
        state.labels[j] = own
        for m in range(size):
            state.labels[members[m]] = own
        state.counts[own] = size + 2
        state.counts[other] = 0
        state.now.occupied = k
        swap(state, state.where[other], k)
    return True


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if state.now.position == 0:
        if state.now.occupied + 1 >= len(state.order):
            return GROW
        if len(state.labels) > 1:
            state.now.proposed += 1.0
            if _move(state, kernel, mixing, rng, algorithm.constants):
                state.now.accepted += 1.0
    return sweep(Neal3(algorithm.constants), executor, state, channel, kernel, mixing, rng)


by_sweeps(_sweep, SplitMerge)


@follow_base.register
def _follow_base(algorithm: SplitMerge, state, kernel, rng):
    follow_lambda(kernel, algorithm.constants)
