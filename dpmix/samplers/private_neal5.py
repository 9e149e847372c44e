"""Private Neal 5: Metropolis steps with an unbiased estimate of the marginal density.

Beraha, Favaro and Rao (2024), Algorithm 1: each record proposes a component from the predictive weights of
all others and m auxiliary values from it; the estimate is the mean of q(z | .) over them. The state's
target is prod_i (1/m) sum_j q(z_i | Y_ij) prod_j f(Y_ij | theta_{c_i}), so parameters are drawn given all m
values of their members. A component is proposed by picking another record at random and taking its
component with probability (n_h - d) / n_h, else picking again: O(1) a record whatever the number of
components.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpmix.kernels import draw_posterior, draw_prior, draw_record, tally
from dpmix.numerics.jit import inlined, njit
from dpmix.samplers.offers import keep, odds
from dpmix.samplers.scan import lay_out, open_desk, room, scan, visit
from dpmix.samplers.state import DONE, GROW, sort_by_size, swap
from dpmix.samplers.sweeps import Built, builds, by_sweeps, follow_base, keep_nothing, move_concentration


class PrivateNeal5(NamedTuple):
    """`auxiliary`: the number m of auxiliary values a record."""

    auxiliary: int


@builds("private_neal5")
def _build(settings, kernel, mixing, n):
    return Built(PrivateNeal5(settings.auxiliary), held=settings.auxiliary)


@njit
def _propose_component(state, mixing, rng, i):
    """Return a slot from the predictive weights given all records but i; the first empty one is new."""
    n = len(state.labels)
    own = state.labels[i]
    k = state.now.occupied
    occupied = k - 1 if state.counts[own] == 1 else k
    alpha = state.now.concentration
    if rng.random() * (alpha + n - 1.0) < alpha + occupied * mixing.discount or n == 1:
        return state.order[k]
    while True:
        r = int(rng.random() * (n - 1))
        h = state.labels[r if r < i else r + 1]
        size = state.counts[h] - 1 if h == own else state.counts[h]
        if mixing.discount == 0.0 or rng.random() * size < size - mixing.discount:
            return h


@room.register
@inlined
def _room(algorithm: PrivateNeal5):
    return 1, 1


@open_desk.register
@njit
def _open_desk(algorithm: PrivateNeal5, state, kernel):
    """Return room for the auxiliary values of a record."""
    return np.empty_like(state.latent[: algorithm.auxiliary])


@lay_out.register
@inlined
def _lay_out(algorithm: PrivateNeal5, values, state, channel, kernel, mixing, rng, start, stop):
    """Do nothing: each record has its own values."""


@visit.register
@inlined
def _visit(algorithm: PrivateNeal5, values, state, channel, kernel, mixing, rng, i):
    """Offer a component and values from it, and accept or reject both."""
    now, m = state.now, algorithm.auxiliary
    own = state.labels[i]
    h = _propose_component(state, mixing, rng, i)
    if h == state.order[now.occupied]:
        draw_prior(kernel, rng, state.theta, h)
        state.counts[h] = 0
    for a in range(m):
        values[a] = draw_record(kernel, rng, state.theta, h)
    density, present = odds(channel, kernel, i, state.z[i], state.estimate[i], values)
    now.proposed += 1.0
    if rng.random() * present < density:
        now.accepted += 1.0
        keep(channel, kernel, i, values)
        state.estimate[i] = density
        state.latent[i * m : (i + 1) * m] = values
        if h != own:
            if state.counts[h] == 0:
                now.occupied += 1
            state.labels[i] = h
            state.counts[h] += 1
            state.counts[own] -= 1
            if state.counts[own] == 0:
                now.occupied -= 1
                swap(state, state.where[own], now.occupied)


@njit
def _draw_parameters(state, kernel, rng, m):
    """Draw the parameters of every component given all auxiliary values of its members."""
    state.stats[:] = 0.0
    for i in range(len(state.labels)):
        for a in range(i * m, (i + 1) * m):
            tally(kernel, state.theta, state.labels[i], state.latent[a], state.stats)
    for j in range(state.now.occupied):
        h = state.order[j]
        draw_posterior(kernel, rng, state.counts[h] * m, state.stats, h, state.theta, state.tuning)


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    if scan(algorithm, state, channel, kernel, mixing, rng) == GROW:
        return GROW
    _draw_parameters(state, kernel, rng, algorithm.auxiliary)
    sort_by_size(state)
    move_concentration(state, mixing, rng)
    return DONE


by_sweeps(_sweep, PrivateNeal5)
follow_base.register(keep_nothing, PrivateNeal5)
