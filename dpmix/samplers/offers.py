"""Metropolis moves of latent values that the state holds, given the release of one record or of all.

Where each record has a release of its own, an offer is weighed by its density, or the mean of it over several
latent values; where a histogram of the whole sample was released, by the ratio of its likelihoods with one
record moved, which changes two counts (Beraha, Favaro and Rao 2024, sections 3.1 and 5.1).
"""

from __future__ import annotations

import math

from dpmix.kernels import draw_record, value
from dpmix.mechanisms.channels.channel_functions import augment, log_marginal, noise_density, settle
from dpmix.mechanisms.channels.histograms import HistogramBins, bin_of, log_count_of
from dpmix.numerics.jit import dispatch, njit


@njit
def estimate(channel, kernel, z, values):
    """Return the mean of q(z | y) over the m latent values `values`."""
    total = 0.0
    for y in values:
        total += noise_density(channel, z, value(kernel, y))
    return total / len(values)


@dispatch()
def odds(channel, kernel, i, z, present, values):
    """Return the density of the release with `values` for record i, and without.

    Records that are released on their own have a value z, and the density `present` of what they hold now.
    """


@dispatch()
def keep(channel, kernel, i, values):
    """Account for `values` of record i in the channel's own variables."""


def _odds_local(channel, kernel, i, z, present, values):
    return estimate(channel, kernel, z, values), present


def _keep_local(channel, kernel, i, values):
    """Do nothing: the channel has none."""


def _odds_global(channel, kernel, i, z, present, values):
    old, new = channel.bins[i], bin_of(channel, value(kernel, values[0]))
    if old == new:
        return 1.0, 1.0
    before, after = channel.counts[old], channel.counts[new]
    change = log_count_of(channel, new, after + 1) - log_count_of(channel, new, after)
    change += log_count_of(channel, old, before - 1) - log_count_of(channel, old, before)
    return math.exp(min(change, 700.0)), 1.0


def _keep_global(channel, kernel, i, values):
    channel.counts[channel.bins[i]] -= 1
    channel.bins[i] = bin_of(channel, value(kernel, values[0]))
    channel.counts[channel.bins[i]] += 1


@dispatch()
def estimates(channel, kernel, state, m):
    """Set the densities of all records' m latent values."""


def _estimates_local(channel, kernel, state, m):
    for i in range(len(state.labels)):
        state.estimate[i] = estimate(channel, kernel, state.z[i], state.latent[i * m : (i + 1) * m])


def _estimates_global(channel, kernel, state, m):
    """Do nothing: a record has no density of its own."""


@dispatch()
def move_latents(channel, kernel, state, rng, start, stop):
    """Offer records start..stop a latent value of their component each; return how many took it."""


def _move_local(channel, kernel, state, rng, start, stop):
    accepted = 0
    for i in range(start, stop):
        proposal = draw_record(kernel, rng, state.theta, state.labels[i])
        ratio = noise_density(channel, state.z[i], value(kernel, proposal))
        present = noise_density(channel, state.z[i], value(kernel, state.latent[i]))
        if rng.random() * present < ratio:
            state.latent[i] = proposal
            accepted += 1
    return accepted


def _move_global(channel, kernel, state, rng, start, stop):
    accepted = 0
    proposal = state.latent[:1].copy()
    for i in range(start, stop):
        proposal[0] = draw_record(kernel, rng, state.theta, state.labels[i])
        ratio, _ = odds(channel, kernel, i, state.z[i], 1.0, proposal)
        if rng.random() < ratio:
            keep(channel, kernel, i, proposal)
            state.latent[i] = proposal[0]
            accepted += 1
    return accepted


def _no_settling(channel, kernel, rng, values):
    """Do nothing: the channel has no variables of its own."""


def _no_augmenting(channel, kernel, rng, z, theta, labels, order, k):
    """Do nothing: the channel has no variables of its own."""


_ASKED = odds, keep, estimates, move_latents
for _function, _answer in zip(
    _ASKED, (_odds_global, _keep_global, _estimates_global, _move_global), strict=True
):
    _function.register(_answer, HistogramBins)


def complete() -> None:
    """Register what follows for channels, and pairs of a channel and a kernel, that there are by now."""
    answers = _odds_local, _keep_local, _estimates_local, _move_local
    for classes in [each for each in noise_density.registered if each not in odds.registered]:
        for function, answer in zip(_ASKED, answers, strict=True):
            function.register(answer, *classes)
    for pair in log_marginal.registered:
        if pair not in augment.registered:
            settle.register(_no_settling, *pair)
            augment.register(_no_augmenting, *pair)
