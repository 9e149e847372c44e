"""Private slice sampler: the slice-efficient sampler of Kalli, Griffin and Walker (2011) for a release.

Beraha, Favaro and Rao (2024), section 3.2. Each sweep draws the random measure given the partition alone:
the occupied components take weights (w_1..w_k, w_0) ~ Dirichlet(n_1 - d, .., n_k - d, alpha + k d), and w_0
is broken by v ~ Beta(1 - d, alpha + k d + d), .. (Pitman 1996). This forgets old sticks, slices and labels.
All components, occupied and new, are then listed in size-biased order, the order of the stick-breaking
prior, which depends on the measure alone; so no label can get stuck. The slices u_i ~ U(0, xi_{c_i}) take
for xi_h the mass that the components before h left: at d = 0, alpha = 1 its mean is 2^(1-h), and whatever
the weights are a component's weight over xi_h stays below one, so that none is starved. Past DEEP
components xi_h halves each time, for the mass left falls only as a power of h when d > 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix._jit import dispatch, njit
from dpmix.kernels import draw_prior
from dpmix.mixing import draw_concentration, draw_measure
from dpmix.samplers.base import sweep
from dpmix.samplers.blocks import Serial, Threads
from dpmix.samplers.conditional import allocate, update_latent_and_parameters
from dpmix.samplers.state import (
    CONCENTRATION,
    DONE,
    FRESH,
    GROW,
    LEFT,
    LOWEST,
    OCCUPIED,
    PHASE,
    POSITION,
    WAITING,
    list_occupied,
    sort_by_size,
    swap,
)

__all__ = ["PrivateSlice"]

DEEP = 64  # components whose slices follow the mass left


class PrivateSlice(NamedTuple):
    """`latent`: ExactLatent or MetropolisLatent."""

    latent: Any


@njit
def _slices_range(start, stop, rng, state):
    """Draw u_i ~ U(0, xi_{c_i}) into state.grouped, which is free at this point; return the smallest."""
    lowest = 1.0
    for i in range(start, stop):
        u = rng.random() * state.xi[state.where[state.labels[i]]]
        state.grouped[i] = u
        lowest = min(lowest, u)
    return lowest


@dispatch()
def _slices(executor, state, rng):
    """Draw the slices of all records; return the smallest."""


@_slices.register
def _slices_serial(executor: Serial, state, rng):
    return _slices_range(0, len(state.labels), rng, state)


def _slices_threads(executor, state, rng):
    return min(executor.map(lambda block, start, stop, own: _slices_range(start, stop, own, state)))


_slices.register(_slices_threads, Threads, compiled=False)


@njit
def _levels_range(start, stop, state, sticks):
    """Set level[i] to the number of components with xi_h > u_i, which stand first."""
    for i in range(start, stop):
        reach = state.where[state.labels[i]] + 1
        u = state.grouped[i]
        while reach < sticks and state.xi[reach] > u:
            reach += 1
        state.level[i] = reach


@dispatch()
def _levels(executor, state, sticks):
    """Set the levels of all records."""


@_levels.register
def _levels_serial(executor: Serial, state, sticks):
    _levels_range(0, len(state.labels), state, sticks)


def _levels_threads(executor, state, sticks):
    executor.map(lambda block, start, stop, own: _levels_range(start, stop, state, sticks))


_levels.register(_levels_threads, Threads, compiled=False)


@njit
def _draw_weights(state, mixing, rng):
    """Draw the weights of the occupied components and what is left."""
    k = state.ints[OCCUPIED]
    counts = np.empty(k)
    for j in range(k):
        counts[j] = state.counts[state.order[j]]
    alpha = state.floats[CONCENTRATION]
    state.floats[LEFT] = draw_measure(rng, alpha, mixing.discount, counts, k, state.weights)
    state.ints[WAITING] = k
    state.floats[LOWEST] = 2.0


@njit
def _exchange(state, a, b):
    """Exchange two components of the list and their weights."""
    swap(state, a, b)
    state.weights[a], state.weights[b] = state.weights[b], state.weights[a]


@njit
def _list_components(state, kernel, mixing, rng):
    """Place components in size-biased order till all occupied ones stand and xi is below every slice.

    Placed ones stand first, then the WAITING occupied ones, then free slots. Return False when these run
    out, to go on from there.
    """
    while True:
        place = state.ints[POSITION]
        waiting = state.ints[WAITING]
        left = state.floats[LEFT]
        mass = left
        for j in range(place, place + waiting):
            mass += state.weights[j]
        xi = mass if place < DEEP else 0.5 * state.xi[place - 1]
        if waiting == 0 and xi <= state.floats[LOWEST]:
            return True
        if place + waiting == len(state.order):
            return False
        state.xi[place] = xi
        u = rng.random() * mass
        chosen = place
        while chosen < place + waiting and u >= state.weights[chosen]:
            u -= state.weights[chosen]
            chosen += 1
        _exchange(state, place, chosen)
        if chosen == place + waiting:
            v = rng.beta(1.0 - mixing.discount, state.floats[FRESH] + mixing.discount)
            state.floats[FRESH] += mixing.discount
            state.weights[place] = v * left
            state.floats[LEFT] = left * (1.0 - v)
            draw_prior(kernel, rng, state.theta, state.order[place])
        else:
            state.ints[WAITING] = waiting - 1
        state.ints[POSITION] = place + 1


@njit
def _weigh(state, sticks):
    """Divide the weights by xi."""
    for j in range(sticks):
        state.weights[j] /= state.xi[j]


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if state.ints[PHASE] == 0:
        _draw_weights(state, mixing, rng)
        state.floats[FRESH] = state.floats[CONCENTRATION] + state.ints[OCCUPIED] * mixing.discount
        state.ints[PHASE] = 1
    if state.ints[PHASE] == 1:
        if not _list_components(state, kernel, mixing, rng):
            return GROW
        state.floats[LOWEST] = _slices(executor, state, rng)
        state.ints[PHASE] = 2
    if not _list_components(state, kernel, mixing, rng):
        return GROW
    sticks = state.ints[POSITION]
    state.ints[POSITION] = 0
    state.ints[PHASE] = 0
    _levels(executor, state, sticks)
    _weigh(state, sticks)
    allocate(algorithm.latent, executor, state, state.order, channel, kernel, rng)
    list_occupied(state, sticks)
    sort_by_size(state)
    update_latent_and_parameters(algorithm.latent, executor, state, channel, kernel, rng)
    k = state.ints[OCCUPIED]
    state.floats[CONCENTRATION] = draw_concentration(
        rng, mixing, state.floats[CONCENTRATION], len(state.labels), k
    )
    return DONE


sweep.register(_sweep, PrivateSlice, Serial)
sweep.register(_sweep, PrivateSlice, Threads, compiled=False)
