"""Scans by marginal densities, which depend on parameters alone, laid out for a block of records at a time.

``mass[j]`` is the predictive weight n_h - d of the component at position j, and (alpha + k d) / m that of
each of the m empty ones offered right behind the occupied; ``density[j]`` are the densities of the block.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.mechanisms.channels.all_channels import fill_marginal, log_marginal
from dpmix.numerics.jit import dispatch, inlined, njit
from dpmix.samplers.scan import (
    close,
    furnish,
    join,
    lay_out,
    leave,
    open_desk,
    reallocate,
    visit,
    weigh,
)
from dpmix.samplers.state import BLOCK, HUGE, TINY, swap

__all__ = ["by_densities", "discard", "log_offer", "offers", "prepare", "renew", "show"]


class Desk(NamedTuple):
    """`mass` and cumulative `weights` (S,), by position."""

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
    desk.mass[k : k + m] = (state.now.concentration + k * mixing.discount) / m


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
