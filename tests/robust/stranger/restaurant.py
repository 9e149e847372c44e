"""A sampler in one file: each record is offered a seat as the prior has it, and takes it by Metropolis' rule.

Neal's (2000) algorithm 5 on the density of the released value, its latent value integrated out.
"""

import math
from typing import NamedTuple

import dpmix
from dpmix.kernels import draw_prior
from dpmix.mechanisms.channels.channel_functions import log_marginal
from dpmix.numerics.jit import njit
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import DONE, GROW, sort_by_size, swap
from dpmix.samplers.sweeps import by_sweeps, move_concentration
from dpmix.spec.capabilities import SamplerCapabilities


class Restaurant(NamedTuple):
    """`auxiliary` seats are offered to each record, one after the other."""

    auxiliary: int


@njit
def _offer(state, kernel, mixing, rng, i):
    """Return a component from its law given those of the other records; a new one has parameters."""
    order, counts, d = state.order, state.counts, mixing.discount
    k = state.now.occupied
    u = rng.random() * (len(state.labels) - 1 + state.now.concentration)
    for j in range(k):
        others = counts[order[j]] - (order[j] == state.labels[i])
        u -= others - d if others > 0 else 0.0
        if u < 0.0:
            return order[j]
    draw_prior(kernel, rng, state.theta, order[k])
    return order[k]


@njit
def _seat(state, i, h):
    """Move record i to component h."""
    old = state.labels[i]
    state.labels[i] = h
    state.counts[h] += 1
    state.counts[old] -= 1
    if state.counts[h] == 1:
        state.now.occupied += 1
    if state.counts[old] == 0:
        state.now.occupied -= 1
        swap(state, state.where[old], state.now.occupied)


@njit
def _visit(state, channel, kernel, mixing, rng, offers):
    for i in range(state.now.position, len(state.labels)):
        state.now.position = i
        if state.now.occupied + 2 > len(state.order):
            return GROW
        for _ in range(offers):
            old, new = state.labels[i], _offer(state, kernel, mixing, rng, i)
            ratio = log_marginal(channel, kernel, state.z[i], state.theta, new)
            ratio -= log_marginal(channel, kernel, state.z[i], state.theta, old)
            if new != old and math.log(rng.random()) < ratio:
                _seat(state, i, new)
    state.now.position = 0
    sort_by_size(state)
    return DONE


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if _visit(state, channel, kernel, mixing, rng, algorithm.auxiliary) == GROW:
        return GROW
    update_parameters(executor, state, state.z, channel, kernel, rng)
    move_concentration(state, mixing, rng)
    return DONE


by_sweeps(_sweep, Restaurant)
dpmix.register(SamplerCapabilities("restaurant", exact=True), algorithm=Restaurant)
