"""The scan: every record in turn is offered a component given all others, by what an algorithm weighs.

An algorithm that draws the component of a record from weights states what is kept for a block of records
(`open_desk`, `lay_out`), what the record leaves behind (`leave`, and `close` where nobody is left), the
weights of the places it may go to (`weigh`), what becomes of an empty one that it takes (`furnish`), and what
it adds to the one it is in (`join`): `by_densities` states these for who weighs by marginal densities. Any
other algorithm states its own `visit`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.mechanisms.channels.channel_functions import augment, fill_marginal, log_marginal
from dpmix.numerics.jit import dispatch, inlined, njit
from dpmix.numerics.mixing import opening_mass
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import BLOCK, DONE, GROW, HUGE, TINY, sort_by_size, swap
from dpmix.samplers.sweeps import by_sweeps, move_concentration


@dispatch()
def room(algorithm):
    """Return how many records make a block, and how many slots it may need besides the occupied ones."""


@dispatch()
def open_desk(algorithm, state, kernel):
    """Return the arrays that a scan works with; its `weights` (S,) are by position."""


@dispatch()
def lay_out(algorithm, desk, state, channel, kernel, mixing, rng, start, stop):
    """Prepare the desk for the records start..stop."""


@dispatch()
def visit(algorithm, desk, state, channel, kernel, mixing, rng, i):
    """Move record i by a step that leaves its conditional distribution invariant."""


@dispatch()
def leave(algorithm, desk, state, kernel, i):
    """Take record i out of what is kept of its component, whose count is already without it."""


@dispatch()
def close(algorithm, desk, state, mixing, rng, i):
    """Move the component of record i, empty without it, behind the occupied ones."""


@dispatch()
def weigh(algorithm, desk, state, channel, kernel, mixing, i):
    """Set ``desk.weights`` to cumulative weights for record i, by position; return the last position."""


@dispatch()
def furnish(algorithm, desk, state, channel, kernel, mixing, rng, i, chosen):
    """Make the empty component that record i has chosen the first behind the occupied ones, and ready."""


@dispatch()
def join(algorithm, desk, state, kernel, i, h):
    """Add record i to what is kept of component h, whose count is already with it."""


@inlined
def _choose(rng, weights, last):
    """Draw a position by the cumulative weights up to `last`."""
    u = rng.random() * weights[last]
    chosen = 0
    while chosen < last and weights[chosen] <= u:
        chosen += 1
    return chosen


@inlined
def reallocate(algorithm, desk, state, channel, kernel, mixing, rng, i):
    """Draw the component of record i given all others."""
    now = state.now
    own = state.labels[i]
    state.counts[own] -= 1
    leave(algorithm, desk, state, kernel, i)
    if state.counts[own] == 0:
        now.occupied -= 1
        close(algorithm, desk, state, mixing, rng, i)
    last = weigh(algorithm, desk, state, channel, kernel, mixing, i)
    chosen = _choose(rng, desk.weights, last)
    if chosen >= now.occupied:
        furnish(algorithm, desk, state, channel, kernel, mixing, rng, i, chosen)
        chosen = now.occupied
        now.occupied += 1
    h = state.order[chosen]
    state.counts[h] += 1
    state.labels[i] = h
    join(algorithm, desk, state, kernel, i, h)


@njit
def scan(algorithm, state, channel, kernel, mixing, rng):
    """Visit every record in turn; GROW when slots run out, to go on from there."""
    now, n = state.now, len(state.labels)
    block, slots = room(algorithm)
    desk = open_desk(algorithm, state, kernel)
    while now.position < n:
        if now.occupied + slots > len(state.order):
            return GROW
        start = now.position
        stop = min(start + block, n)
        lay_out(algorithm, desk, state, channel, kernel, mixing, rng, start, stop)
        for i in range(start, stop):
            visit(algorithm, desk, state, channel, kernel, mixing, rng, i)
        now.position = stop
    now.position = 0
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if scan(algorithm, state, channel, kernel, mixing, rng) == GROW:
        return GROW
    sort_by_size(state)
    update_parameters(executor, state, state.z, channel, kernel, rng)
    augment(channel, kernel, rng, state.z, state.theta, state.labels, state.order, state.now.occupied)
    move_concentration(state, mixing, rng)
    return DONE


def sweep_by_scan(algorithm: type) -> None:
    """Let an algorithm sweep by a scan and moves of the parameters and the concentration."""
    by_sweeps(_sweep, algorithm)


# Scans by marginal densities, which depend on parameters alone, laid out for a block of records at a time


class Desk(NamedTuple):
    """By position: `mass` (S,) and cumulative `weights` (S,); ``state.density[j]`` are those of the block.

    A mass is the predictive weight n_h - d of a component, and (alpha + k d) / m that of each of the m empty
    ones offered right behind the occupied.
    """

    mass: Any
    weights: Any


@dispatch()
def offers(algorithm):
    """Return how many empty components are offered to each record."""


@dispatch()
def prepare(algorithm, state, channel, kernel, rng, start, stop):
    """Ready the empty components for a block; return how many of their densities are to be laid out."""


@dispatch()
def show(algorithm, state, i):
    """Write the densities of record i in empty components that were not laid out."""


@dispatch()
def log_offer(algorithm, channel, kernel, state, i, h):
    """Return the log density of record i in the empty component h."""


@dispatch()
def discard(algorithm, rng, k):
    """Return the position of the empty component to drop for one that has become empty, at position k."""


@dispatch()
def renew(algorithm, state, kernel, rng, i, k):
    """Draw the parameters of one component now that record i takes that at position k; return its place."""


@njit
def _open_desk(algorithm, state, kernel):
    return Desk(np.empty(len(state.order)), np.empty(len(state.order)))


@inlined
def _set_offers(algorithm, desk, state, mixing, k):
    """Set the masses of the empty components behind k occupied ones."""
    m = offers(algorithm)
    desk.mass[k : k + m] = opening_mass(state.now.concentration, mixing.discount, k) / m


@njit
def _lay_out(algorithm, desk, state, channel, kernel, mixing, rng, start, stop):
    k = state.now.occupied
    empty = prepare(algorithm, state, channel, kernel, rng, start, stop)
    for j in range(k):
        desk.mass[j] = state.counts[state.order[j]] - mixing.discount
    _set_offers(algorithm, desk, state, mixing, k)
    for j in range(k + empty):
        fill_marginal(channel, kernel, state.theta, state.order[j], state.z, start, stop, state.density[j])


@njit
def _exchange(desk, state, a, b, i):
    """Exchange the components at positions a and b, with masses and densities from record i on."""
    if a != b:
        mass, density = desk.mass, state.density
        swap(state, a, b)
        mass[a], mass[b] = mass[b], mass[a]
        first = i % BLOCK
        for c in range(first, first + min(BLOCK - first, len(state.labels) - i)):
            density[a, c], density[b, c] = density[b, c], density[a, c]


@inlined
def _leave(algorithm, desk, state, kernel, i):
    desk.mass[state.where[state.labels[i]]] -= 1.0


@njit
def _close(algorithm, desk, state, mixing, rng, i):
    k = state.now.occupied
    _exchange(desk, state, state.where[state.labels[i]], k, i)
    _exchange(desk, state, k + offers(algorithm), discard(algorithm, rng, k), i)
    _set_offers(algorithm, desk, state, mixing, k)


@njit
def _log_weights(algorithm, channel, kernel, state, i, last, mass, weights):
    """Set weights[: last + 1] to cumulative weights of record i, computed in logarithms."""
    top = -np.inf
    for j in range(last + 1):
        h = state.order[j]
        if j < state.now.occupied:
            weights[j] = log_marginal(channel, kernel, state.z[i], state.theta, h)
        else:
            weights[j] = log_offer(algorithm, channel, kernel, state, i, h)
        top = max(top, weights[j])
    total = 0.0
    for j in range(last + 1):
        total += mass[j] * np.exp(weights[j] - top)
        weights[j] = total


@inlined
def _cumulate(mass, density, b, last, weights):
    """Set weights[: last + 1] to cumulative weights of a block's record b; return their sum."""
    total = 0.0
    for j in range(last + 1):
        total += mass[j] * density[j, b]
        weights[j] = total
    return total


@inlined
def _weigh(algorithm, desk, state, channel, kernel, mixing, i):
    last = state.now.occupied + offers(algorithm) - 1
    show(algorithm, state, i)
    total = _cumulate(desk.mass, state.density, i % BLOCK, last, desk.weights)
    if not TINY < total < HUGE:
        _log_weights(algorithm, channel, kernel, state, i, last, desk.mass, desk.weights)
    return last


@njit
def _furnish(algorithm, desk, state, channel, kernel, mixing, rng, i, chosen):
    k = state.now.occupied
    _exchange(desk, state, chosen, k, i)
    desk.mass[k] = -mixing.discount
    _set_offers(algorithm, desk, state, mixing, k + 1)
    fresh = renew(algorithm, state, kernel, rng, i, k)
    rest = i % BLOCK + 1
    stop = min(i + 1 + BLOCK - rest, len(state.labels))
    if i + 1 < stop:
        row = state.density[fresh, rest:]
        fill_marginal(channel, kernel, state.theta, state.order[fresh], state.z, i + 1, stop, row)


@inlined
def _join(algorithm, desk, state, kernel, i, h):
    desk.mass[state.where[h]] += 1.0


def by_densities(algorithm: type) -> None:
    """Let an algorithm scan by marginal densities; it states what it offers by the functions above."""
    open_desk.register(_open_desk, algorithm)
    lay_out.register(_lay_out, algorithm)
    visit.register(reallocate, algorithm)
    leave.register(_leave, algorithm)
    close.register(_close, algorithm)
    weigh.register(_weigh, algorithm)
    furnish.register(_furnish, algorithm)
    join.register(_join, algorithm)
