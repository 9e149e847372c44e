"""Updates of the components' parameters given the allocations.

Small components, and all of them where nothing is hidden, take their parameters given exact draws of their
members' latent values, where there are such draws: by conjugacy, or by the kernel's own moves. The others
move by random-walk Metropolis steps on the product of the exact marginal densities, with the latent values
integrated out: under strong noise these tie the parameters to themselves, and a step needs no more than one
density a record.
"""

from __future__ import annotations

import numpy as np

from dpmix.kernels import draw_posterior, propose, tally
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    hides,
    log_marginal,
    noise_variance,
    sum_logs,
)
from dpmix.numerics.jit import dispatch, njit
from dpmix.samplers.state import BLOCK, TILE, Serial, Threads, group_records

STEPS = 3  # Metropolis steps a sweep and component
_EVERY = np.iinfo(np.int64).max
SMALL = 8  # components of at most so many records are imputed


@dispatch()
def _group(executor, state, x):
    """Group all records."""


@_group.register
def _group_serial(executor: Serial, state, x):
    group_records(0, len(state.labels), state, x)


@_group.register
def _group_threads(executor: Threads, state, x):
    executor.map(lambda start, stop, rng: group_records(start, stop, state, x))


@njit
def _sum_range(start, stop, state, channel, kernel, theta, large, sums):
    scratch = np.empty(BLOCK)
    for low in range(start, stop, TILE):
        first = state.tiles[low // TILE]
        for j in range(large):
            sums[j] += sum_logs(
                channel, kernel, theta, state.order[j], state.grouped, first[j], first[j + 1], scratch
            )


@dispatch()
def _sum(executor, state, channel, kernel, theta, large):
    """Return the log-likelihoods of the `large` first components at `theta`, shape (large,)."""


@_sum.register
def _sum_serial(executor: Serial, state, channel, kernel, theta, large):
    sums = np.zeros(large)
    _sum_range(0, len(state.labels), state, channel, kernel, theta, large, sums)
    return sums


@_sum.register
def _sum_threads(executor: Threads, state, channel, kernel, theta, large):
    def block(start, stop, rng):
        sums = np.zeros(large)
        _sum_range(start, stop, state, channel, kernel, theta, large, sums)
        return sums

    return np.sum(executor.map(block), axis=0)


def _impute(channel, kernel, state, rng, first):
    """Draw the parameters of components first.. given exact draws of their members' latent values."""
    k = state.now.occupied
    for j in range(first, k):
        state.stats[:, state.order[j]] = 0.0
    for tile in range(len(state.tiles)):
        bounds = state.tiles[tile]
        for j in range(first, k):
            h = state.order[j]
            for i in range(bounds[j], bounds[j + 1]):
                y = draw_latent(channel, kernel, rng, state.grouped[i], state.theta, h)
                tally(kernel, state.theta, h, y, state.stats)
    for j in range(first, k):
        h = state.order[j]
        draw_posterior(kernel, rng, state.counts[h], state.stats, h, state.theta, state.tuning)


@njit
def _propose(state, channel, kernel, rng, large, change):
    """Propose parameters for the `large` first components; `change` gets the ratio but the likelihoods."""
    spread = noise_variance(channel)
    for j in range(large):
        h = state.order[j]
        change[j] = propose(kernel, rng, state.theta, h, state.counts[h], spread, state.proposal)


@njit
def _accept(state, rng, large, change, before, after):
    """Accept or reject each proposal; `before` keeps the log-likelihoods of what stands."""
    for j in range(large):
        if -rng.standard_exponential() < change[j] + after[j] - before[j]:
            h = state.order[j]
            for row in range(len(state.theta)):
                state.theta[row, h] = state.proposal[row, h]
            before[j] = after[j]


def _walk(executor, channel, kernel, state, rng, large):
    """Take Metropolis steps on the products of exact marginal densities of the `large` first components."""
    if large == 0:
        return
    before = _sum(executor, state, channel, kernel, state.theta, large)
    change = np.empty(large)
    for _ in range(STEPS):
        _propose(state, channel, kernel, rng, large, change)
        after = _sum(executor, state, channel, kernel, state.proposal, large)
        _accept(state, rng, large, change, before, after)


def _no_imputation(channel, kernel, state, rng, first):
    """Leave the parameters: all components walk."""


def _no_walk(executor, channel, kernel, state, rng, large):
    """Leave the parameters: all components are imputed."""


@dispatch(on=2)
def _impute_small(channel, kernel, state, rng, first):
    """Move the parameters of components first.. given latent values."""


@dispatch(on=3)
def _walk_large(executor, channel, kernel, state, rng, large):
    """Move the parameters of the `large` first components with the latent values integrated out."""


@dispatch(on=2)
def _small(channel, kernel):
    """Return up to how many members make a component small: one whose parameters are imputed."""


def _some_small(channel, kernel):
    return SMALL if hides(channel) else _EVERY


def _all_small(channel, kernel):
    return _EVERY


def _none_small(channel, kernel):
    return 0


def complete() -> None:
    """Register how parameters move for the pairs of a channel and a kernel that there are by now."""
    for pair in log_marginal.registered:
        if pair in _small.registered:
            continue
        drawn, walks = pair in draw_latent.registered, pair[1:] in propose.registered
        _impute_small.register(_impute if drawn else _no_imputation, *pair)
        _small.register(_none_small if not drawn else _some_small if walks else _all_small, *pair)
        for executor in (Serial, Threads):
            _walk_large.register(_walk if walks else _no_walk, executor, *pair)


def _update(executor, state, x, channel, kernel, rng):
    _group(executor, state, x)
    large = 0
    small = _small(channel, kernel)
    while large < state.now.occupied and state.counts[state.order[large]] > small:
        large += 1
    _impute_small(channel, kernel, state, rng, large)
    _walk_large(executor, channel, kernel, state, rng, large)


@dispatch()
def update_parameters(executor, state, x, channel, kernel, rng):
    """Move the parameters of all occupied components, largest first, given allocations and the values `x`."""


update_parameters.register(_update, Serial)
update_parameters.register(_update, Threads)
