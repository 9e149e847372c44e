"""Moves of a learned base measure, between the sweeps of whichever algorithm (methods, section 15).

Two kinds, in turn. Given the parameters of the occupied components location and scale are drawn from their
conditionals; the unoccupied are integrated out, so that what a sampler keeps of them is drawn anew
(`follow_base`). And location or scale moves with all occupied components along, the latent values integrated
out: where the release says little of a component, it would follow the base measure, and the base measure it,
in steps too small to get anywhere. The second needs the likelihood of all records twice. It is made every so
many sweeps, the more records there are, and not where the state holds latent values: given these components
have nowhere to go.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels.learned_base import (
    LearnedBase,
    adapt_step,
    carry,
    draw_base,
    gather,
    log_base_ratio,
    propose_base,
    take_base,
    with_base,
)
from dpmix.numerics.jit import njit
from dpmix.samplers.sweeps import follow_base, log_likelihood, move_base

FEW = 2_000  # records up to which components are taken along in each sweep


@njit
def _move_along(state, channel, kernel, learned, rng):
    """Move location and scale of a column with the occupied components along."""
    column = int(rng.random() * learned.values.shape[1])
    k, rows, theta, kept = state.now.occupied, len(state.theta), state.theta, state.proposal
    before = log_likelihood(state, channel, kernel)
    for row in range(2):
        shift, factor = propose_base(rng, learned, row, column)
        ratio = log_base_ratio(learned, column, shift, factor)
        for j in range(k):
            h = state.order[j]
            for i in range(rows):
                kept[i, h] = theta[i, h]
            carry(kernel, theta, h, column, shift, factor, learned.values)
        after = log_likelihood(state, channel, kernel)
        ratio += after - before
        if -rng.standard_exponential() < ratio:
            take_base(learned, column, shift, factor)
            before = after
        else:
            for j in range(k):
                h = state.order[j]
                for i in range(rows):
                    theta[i, h] = kept[i, h]
        if state.tuning.adapting > 0.0:
            adapt_step(learned, row, math.exp(min(ratio, 0.0)) if ratio == ratio else 0.0)


@move_base.register
def _move_base(learned: LearnedBase, algorithm, state, channel, kernel, rng, sweeps):
    if len(state.latent) == 0 and sweeps % (1 + len(state.labels) // FEW) == 0:
        _move_along(state, channel, kernel, learned, rng)
    d, k = learned.values.shape[1], state.now.occupied
    sums = np.zeros((d + 1, d))
    for j in range(k):
        gather(kernel, state.theta, state.order[j], sums)
    draw_base(kernel, rng, learned, sums, k)
    follow_base(algorithm, state, with_base(kernel, learned.values), rng)
