"""The state of a chain, shared by all samplers of mixtures, and how a sweep goes through its records.

Components live in slots; ``order[:k]`` lists the occupied ones and ``where`` is its inverse, so that a
component is born or dies in O(1) and no record is relabelled. The marginal samplers keep their empty
auxiliary components in the slots right after; the slice its unoccupied sticks.

A sweep goes through the records in one piece within compiled code (`Serial`), or in blocks on `Threads`, of
plain Python over compiled phases, which are long enough for that to cost nothing: it is one function for
both. A block has its own generator, and blocks depend on n alone, so that the draws do not depend on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from dpmix.kernels import TUNING, make_tuning
from dpmix.numerics.jit import njit

BLOCK = 512  # records whose marginal densities are computed at a time: they fit the first-level cache
TILE = 4096  # records that are grouped by component at a time
TINY, HUGE = 1e-280, 1e280  # densities beyond these are computed again in logarithms
DONE, GROW, CROWDED = 0, 1, 3  # what a sweep returns: GROW asks for more slots and to be called again there
BLOCK_TILES = 8  # tiles that one thread works at a time
SERIAL_LIMIT = 65536  # records up to which there is one block
FIRST_STEP = 0.05

COUNTERS = ("occupied", "position", "small_jumps", "large_jumps")
STEPS = TUNING.names or ()
NUMBERS = ("concentration", "accepted", "proposed", "lowest")
NOW = np.dtype([(name, np.int64) for name in COUNTERS] + [(name, np.float64) for name in NUMBERS])
"""Numbers of a chain: occupied components k, the record that a scan has come to (of the slice sampler 1 where
its slices are drawn), jumps below and above 1 that slices open, the concentration, Metropolis steps accepted
and proposed since the last saved draw, and the lowest slice."""


class State(NamedTuple):
    """Arrays of one chain: n records, S slots, P parameters a component, m latent values a record, T tiles.

    Kept from sweep to sweep: z (n,), latent (n m,) or (n m, d) values of Y (m = 0 where integrated out),
    estimate (n,) of private Neal 5, labels (n,) slot of each record, counts (S,), theta (P, S), order (S,),
    where (S,), `now` and `tuning`, numbers by the names of `NOW` and `TUNING`. Scratch: level (n,) sticks
    open to each record, weights (S,), stats (P, S), density (S, BLOCK) of Neal 8, grouped (n,) values sorted
    by component within tiles, tiles (T, S + 1) where each component starts, proposal (P, S).
    """

    z: Any
    latent: Any
    estimate: Any
    labels: Any
    counts: Any
    theta: Any
    order: Any
    where: Any
    now: Any
    tuning: Any
    level: Any
    weights: Any
    stats: Any
    density: Any
    grouped: Any
    tiles: Any
    proposal: Any


def numbers_of(state: State) -> dict[str, Any]:
    """Return the numbers of a state as checkpoints hold them: arrays ints (4,), floats (4,), tuning (3,)."""
    return {
        "ints": np.array([state.now[name] for name in COUNTERS]),
        "floats": np.array([state.now[name] for name in NUMBERS]),
        "tuning": np.array([state.tuning[name] for name in STEPS]),
    }


def set_numbers(state: State, stored: Mapping[str, Any]) -> None:
    """Set the numbers of a state to those of `numbers_of`; what is not stored stays."""
    for numbers, names, key in (
        (state.now, COUNTERS, "ints"),
        (state.now, NUMBERS, "floats"),
        (state.tuning, STEPS, "tuning"),
    ):
        for name, number in zip(names, stored.get(key, ()), strict=key in stored):
            numbers[name] = number


def blank_state(
    z: Any, parameters: int, slots: int, latent: int, block: int = BLOCK, columns: int = 0
) -> State:
    """Return a state with no occupied component.

    `block` is 0 where the sampler keeps no densities, `columns` the length of a latent value, 0 for a number.
    """
    n = len(z)
    return State(
        z=z,
        latent=np.zeros((n * latent, columns) if columns else n * latent),
        estimate=np.zeros(n if latent else 0),
        labels=np.zeros(n, dtype=np.int32),
        counts=np.zeros(slots, dtype=np.int64),
        theta=np.ones((parameters, slots)),
        order=np.arange(slots, dtype=np.int32),
        where=np.arange(slots, dtype=np.int32),
        now=np.zeros(1, NOW).view(np.recarray)[0],
        tuning=make_tuning(FIRST_STEP),
        level=np.zeros(n, dtype=np.int32),
        weights=np.zeros(slots),
        stats=np.zeros((parameters, slots)),
        density=np.zeros((slots, block)),
        grouped=np.zeros(n),
        tiles=np.zeros(((n + TILE - 1) // TILE, slots + 1), dtype=np.int32),
        proposal=np.ones((parameters, slots)),
    )


def grown(state: State, slots: int) -> State:
    """Return the same state with more slots; what does not depend on their number is shared."""
    old = len(state.counts)
    more = blank_state(state.z[:0], len(state.theta), slots, 0, state.density.shape[1])
    for name in ("counts", "order", "where", "weights"):
        getattr(more, name)[:old] = getattr(state, name)
    for name in ("theta", "stats"):
        getattr(more, name)[:, :old] = getattr(state, name)
    tiles = np.zeros((len(state.tiles), slots + 1), dtype=np.int32)
    same = ("z", "latent", "estimate", "labels", "now", "tuning", "level", "grouped")
    return more._replace(tiles=tiles, **{name: getattr(state, name) for name in same})


@njit
def swap(state, a, b):
    """Exchange the positions a and b of the list of slots."""
    first, second = state.order[a], state.order[b]
    state.order[a], state.order[b] = second, first
    state.where[second], state.where[first] = a, b


@njit
def list_occupied(state, last):
    """Move the occupied ones among the first `last` positions of the list of slots to its front."""
    k = 0
    for j in range(last):
        if state.counts[state.order[j]] > 0:
            swap(state, j, k)
            k += 1
    state.now.occupied = k


@njit
def sort_by_size(state):
    """List the occupied components from the largest to the smallest: searches among them end sooner."""
    for j in range(1, state.now.occupied):
        i = j
        while i > 0 and state.counts[state.order[i - 1]] < state.counts[state.order[i]]:
            swap(state, i - 1, i)
            i -= 1


# How a sweep goes through the records


class Serial(NamedTuple):
    """All records in one piece."""

    blocks: int = 1


class Threads:
    """Blocks of records on the threads of a pool; `rngs` has one generator a block."""

    def __init__(self, n: int, rngs: Sequence[Generator], pool: Executor | None) -> None:
        size = BLOCK_TILES * TILE
        self.bounds = [(start, min(start + size, n)) for start in range(0, n, size)]
        self.rngs = list(rngs)
        self.pool = pool

    def map(self, function: Callable[..., Any]) -> list[Any]:
        """Return [function(start, stop, rng)] over the blocks, in their order."""
        calls = *zip(*self.bounds, strict=True), self.rngs
        return list((map if self.pool is None else self.pool.map)(function, *calls))


def block_count(n: int) -> int:
    """Return the number of blocks that `n` records are worked in; 1 means `Serial`."""
    return 1 if n <= SERIAL_LIMIT else -(-n // (BLOCK_TILES * TILE))


@njit
def group_records(start, stop, state, x):
    """Sort the values of each tile of records start..stop by component, into state.grouped."""
    k = state.now.occupied
    place = np.empty(k, dtype=np.int64)
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        first = state.tiles[low // TILE]
        place[:] = 0
        for i in range(low, high):
            place[state.where[state.labels[i]]] += 1
        at = low
        for j in range(k):
            first[j] = at
            at += place[j]
            place[j] = first[j]
        first[k] = at
        for i in range(low, high):
            j = state.where[state.labels[i]]
            state.grouped[place[j]] = x[i]
            place[j] += 1
