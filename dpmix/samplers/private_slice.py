"""Private slice sampler: slice-efficient sampling (Kalli, Griffin and Walker 2011) given a release.

Beraha, Favaro and Rao (2024), section 3.2. Each sweep draws the random measure given the partition alone, by
its unnormalised weights: J_h ~ Gamma(n_h - d) for an occupied component; the others are the jumps of a
generalised gamma process whose total is Gamma(alpha + k d) (Pitman and Yor 1997, Proposition 21; a gamma
process at d = 0). This forgets old slices and has no labels, so none can get stuck, and the jumps above any
level are few and drawn at once, where sticks would have to be broken until next to nothing is left. The
slices are u_i ~ U(0, xi_{c_i}) with xi_h = min(J_h, 1): a record may go to the components with J_h > u_i,
with weight J_h / xi_h times the density of its value, which leaves the large components open to it at all
times. How many components are above the smallest weight has no finite mean from d = 0.5 on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import draw_prior
from dpmix.numerics.jit import dispatch, njit
from dpmix.samplers.conditional import LATENT, allocate, update_latent_and_parameters
from dpmix.samplers.state import CROWDED, DONE, GROW, Serial, Threads, list_occupied, sort_by_size
from dpmix.samplers.sweeps import Built, builds, by_sweeps, follow_base, keep_nothing, move_concentration

MOST_JUMPS = 2**22  # more new components than this in one sweep are not tried


class PrivateSlice(NamedTuple):
    """`latent`: ExactLatent or MetropolisLatent."""

    latent: Any


@builds("private_slice")
def _build(settings, kernel, mixing, n):
    latent = LATENT[settings.latent]
    return Built(PrivateSlice(latent), held=latent.held)


@njit
def _draw_occupied(state, mixing, rng):
    """Draw the unnormalised weights of the occupied components."""
    for j in range(state.now.occupied):
        state.weights[j] = rng.standard_gamma(state.counts[state.order[j]] - mixing.discount)


@njit
def _slices_range(start, stop, rng, state):
    """Draw u_i ~ U(0, xi_{c_i}) into state.grouped, which is free at this point; return the smallest."""
    lowest = 1.0
    for i in range(start, stop):
        u = rng.random() * min(state.weights[state.where[state.labels[i]]], 1.0)
        state.grouped[i] = u
        lowest = min(lowest, u)
    return lowest


@dispatch()
def _slices(executor, state, rng):
    """Draw the slices of all records; return the smallest."""


@_slices.register
def _slices_serial(executor: Serial, state, rng):
    return _slices_range(0, len(state.labels), rng, state)


@_slices.register
def _slices_threads(executor: Threads, state, rng):
    return min(executor.map(lambda start, stop, own: _slices_range(start, stop, own, state)))


@njit
def _count_jumps(state, mixing, rng):
    """Draw how many candidates there are for new components with weights above the lowest slice.

    The intensity of jumps is r y^(-1-d) e^(-y): candidates below 1 come from r y^(-1-d), those above from
    r e^(-y), and each is kept with the probability of the factor left out.
    """
    d = mixing.discount
    rate = state.now.concentration
    if d > 0.0:
        shape = rate / d + state.now.occupied
        rate = rng.standard_gamma(shape) * d / math.gamma(1.0 - d)
    low = max(state.now.lowest, 1e-300)
    mass = -math.log(low) if d == 0.0 else math.expm1(-d * math.log(low)) / d
    state.now.small_jumps = rng.poisson(rate * mass)
    state.now.large_jumps = rng.poisson(rate * math.exp(-1.0))


@njit
def _draw_jumps(state, kernel, mixing, rng):
    """Draw the new components behind the occupied ones. Return the number of both."""
    d = mixing.discount
    low = max(state.now.lowest, 1e-300)
    place = state.now.occupied
    small = state.now.small_jumps
    for candidate in range(small + state.now.large_jumps):
        u = rng.random()
        if candidate < small:
            jump = low**u if d == 0.0 else math.exp(-math.log1p(u * math.expm1(-d * math.log(low))) / d)
            keep = math.exp(-jump)
        else:
            jump = 1.0 - math.log(1.0 - u)
            keep = jump ** (-1.0 - d)
        if rng.random() < keep:
            state.weights[place] = jump
            draw_prior(kernel, rng, state.theta, state.order[place])
            place += 1
    return place


@njit
def _sort_by_weight(state, places):
    """List the components from the largest weight to the smallest."""
    by_weight = np.argsort(-state.weights[:places])
    order = state.order[:places].copy()
    weights = state.weights[:places].copy()
    for j in range(places):
        state.order[j] = order[by_weight[j]]
        state.where[state.order[j]] = j
        state.weights[j] = weights[by_weight[j]]


@njit
def _levels_range(start, stop, state, places):
    """Set level[i] to the number of components with J_h > u_i, which stand first."""
    for i in range(start, stop):
        u = state.grouped[i]
        low = state.where[state.labels[i]] + 1
        high = places
        while low < high:
            middle = (low + high) // 2
            if state.weights[middle] > u:
                low = middle + 1
            else:
                high = middle
        state.level[i] = low


@dispatch()
def _levels(executor, state, places):
    """Set the levels of all records."""


@_levels.register
def _levels_serial(executor: Serial, state, places):
    _levels_range(0, len(state.labels), state, places)


@_levels.register
def _levels_threads(executor: Threads, state, places):
    executor.map(lambda start, stop, own: _levels_range(start, stop, state, places))


@njit
def _weigh(state, places):
    """Divide the weights by xi."""
    for j in range(places):
        state.weights[j] = max(state.weights[j], 1.0)


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if state.now.position == 0:
        _draw_occupied(state, mixing, rng)
        state.now.lowest = _slices(executor, state, rng)
        _count_jumps(state, mixing, rng)
        state.now.position = 1
    if state.now.small_jumps > MOST_JUMPS:
        return CROWDED
    if state.now.occupied + state.now.small_jumps + state.now.large_jumps > len(state.order):
        return GROW
    state.now.position = 0
    places = _draw_jumps(state, kernel, mixing, rng)
    _sort_by_weight(state, places)
    _levels(executor, state, places)
    _weigh(state, places)
    allocate(algorithm.latent, executor, state, state.order, channel, kernel, rng)
    list_occupied(state, places)
    sort_by_size(state)
    update_latent_and_parameters(algorithm.latent, executor, state, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


by_sweeps(_sweep, PrivateSlice)
follow_base.register(keep_nothing, PrivateSlice)
