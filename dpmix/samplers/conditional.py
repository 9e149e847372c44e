"""What the conditional samplers share: given the random measure, records are independent of each other.

Stick j stands at position j of a list of slots. Record i may go to its first ``level[i]`` sticks, with
weight ``weights[j]`` times the density of its value; the value is the released one, with the latent one
integrated out, or a latent value that the state holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import MultivariateNormal, draw_record
from dpmix.mechanisms.channels.channel_functions import augment, fill_marginal, log_marginal
from dpmix.mechanisms.channels.rows import Rows
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.numerics.jit import dispatch, njit
from dpmix.samplers.offers import move_latents
from dpmix.samplers.parameters import update_parameters
from dpmix.samplers.state import BLOCK, HUGE, TINY, Serial, Threads


class ExactLatent(NamedTuple):
    """Latent values are integrated out of the allocations and drawn exactly where they are needed."""

    held: int = 0


class MetropolisLatent(NamedTuple):
    """Latent values are part of the state, moved by independence Metropolis steps from f(. | theta)."""

    held: int = 1


LATENT: dict[str, Any] = {"exact": ExactLatent(), "metropolis": MetropolisLatent()}
"""By the spec's `sampler.latent`."""


DEEP = 512  # records with more components open to them are taken one by one


@njit
def _log_choice(channel, kernel, state, x, slots, i, u):
    """Return the stick chosen for record i by `u`, with the weights computed in logarithms."""
    reach = state.level[i]
    logs = np.empty(reach)
    for j in range(reach):
        logs[j] = np.log(state.weights[j]) + log_marginal(channel, kernel, x[i], state.theta, slots[j])
    top = np.max(logs)
    total = 0.0
    for j in range(reach):
        total += np.exp(logs[j] - top)
        logs[j] = total
    chosen = 0
    while chosen < reach - 1 and logs[chosen] <= u * total:
        chosen += 1
    return chosen


@njit
def _allocate_range(start, stop, rng, state, x, slots, channel, kernel, counts):
    """Draw the components of records start..stop and count them in `counts` (S,)."""
    deepest = 0
    for i in range(start, stop):
        deepest = max(deepest, min(state.level[i], DEEP))
    cumulative = np.empty((deepest, BLOCK))
    value = np.empty(BLOCK)
    density = np.empty(BLOCK)
    open_to = np.empty(BLOCK, dtype=np.int64)
    total = np.empty(BLOCK)
    for low in range(start, stop, BLOCK):
        size = min(BLOCK, stop - low)
        left = size
        for b in range(size):
            open_to[b] = b
            total[b] = 0.0
        for j in range(deepest):
            kept = 0
            for a in range(left):
                b = open_to[a]
                if state.level[low + b] > j:
                    open_to[kept] = b
                    value[kept] = x[low + b]
                    kept += 1
            left = kept
            if left == 0:
                break
            fill_marginal(channel, kernel, state.theta, slots[j], value, 0, left, density)
            weight = state.weights[j]
            for a in range(left):
                b = open_to[a]
                total[b] += weight * density[a]
                cumulative[j, b] = total[b]
        for b in range(size):
            i = low + b
            u = rng.random()
            if TINY < total[b] < HUGE and state.level[i] <= DEEP:
                chosen = 0
                last = state.level[i] - 1
                while chosen < last and cumulative[chosen, b] <= u * total[b]:
                    chosen += 1
            else:
                chosen = _log_choice(channel, kernel, state, x, slots, i, u)
            state.labels[i] = slots[chosen]
            counts[slots[chosen]] += 1


@dispatch()
def _allocate(executor, state, x, slots, channel, kernel, rng):
    """Draw the components of all records into state.labels and state.counts."""


@_allocate.register
def _allocate_serial(executor: Serial, state, x, slots, channel, kernel, rng):
    state.counts[:] = 0
    _allocate_range(0, len(state.labels), rng, state, x, slots, channel, kernel, state.counts)


@_allocate.register
def _allocate_threads(executor: Threads, state, x, slots, channel, kernel, rng):
    def block(start, stop, own):
        counts = np.zeros_like(state.counts)
        _allocate_range(start, stop, own, state, x, slots, channel, kernel, counts)
        return counts

    state.counts[:] = np.sum(executor.map(block), axis=0)


@dispatch()
def _metropolis(executor, state, channel, kernel, rng):
    """Move all latent values and return how many moved."""


@_metropolis.register
def _metropolis_serial(executor: Serial, state, channel, kernel, rng):
    return move_latents(channel, kernel, state, rng, 0, len(state.labels))


@_metropolis.register
def _metropolis_threads(executor: Threads, state, channel, kernel, rng):
    return sum(executor.map(lambda start, stop, own: move_latents(channel, kernel, state, own, start, stop)))


@dispatch()
def held_records(kernel, state):
    """Return the latent values that the state holds as a release without noise: values, and their channel."""


def _held_numbers(kernel, state):
    return state.latent, NoNoise()


def _held_rows(kernel, state):
    return state.z, Rows(state.latent)


def complete() -> None:
    """Register how records are held for the kernels that there are by now."""
    for classes in draw_record.registered:
        if classes not in held_records.registered:
            held_records.register(_held_rows if classes == (MultivariateNormal,) else _held_numbers, *classes)


def _allocate_exact(latent, executor, state, slots, channel, kernel, rng):
    _allocate(executor, state, state.z, slots, channel, kernel, rng)


def _allocate_held(latent, executor, state, slots, channel, kernel, rng):
    x, plain = held_records(kernel, state)
    _allocate(executor, state, x, slots, plain, kernel, rng)


@dispatch(on=2)
def allocate(latent, executor, state, slots, channel, kernel, rng):
    """Draw the component of every record given sticks, parameters and ``state.level``."""


def _update_exact(latent, executor, state, channel, kernel, rng):
    update_parameters(executor, state, state.z, channel, kernel, rng)
    k = state.now.occupied
    augment(channel, kernel, rng, state.z, state.theta, state.labels, state.order, k)


def _update_held(latent, executor, state, channel, kernel, rng):
    state.now.accepted += _metropolis(executor, state, channel, kernel, rng)
    state.now.proposed += len(state.labels)
    x, plain = held_records(kernel, state)
    update_parameters(executor, state, x, plain, kernel, rng)


@dispatch(on=2)
def update_latent_and_parameters(latent, executor, state, channel, kernel, rng):
    """Move latent values, where the state holds them, and the parameters of all occupied components."""


for _executor in (Serial, Threads):
    allocate.register(_allocate_exact, ExactLatent, _executor)
    allocate.register(_allocate_held, MetropolisLatent, _executor)
    update_latent_and_parameters.register(_update_exact, ExactLatent, _executor)
    update_latent_and_parameters.register(_update_held, MetropolisLatent, _executor)
