"""Blocked Gibbs sampler on a truncated stick-breaking measure (Ishwaran and James 2001).

Sticks v_h ~ Beta(1 - d + n_h, alpha + h d + sum_{l > h} n_l) for h < H, and v_H = 1. An approximation of the
Pitman-Yor mixture: `dpmix.numerics.mixing.truncation_error` bounds what it leaves out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import draw_prior
from dpmix.numerics.jit import njit
from dpmix.numerics.mixing import draw_concentration_truncated
from dpmix.samplers.conditional import LATENT, allocate, update_latent_and_parameters
from dpmix.samplers.state import DONE, list_occupied, sort_by_size
from dpmix.samplers.sweeps import Built, builds, by_sweeps, follow_base


class BlockedGibbs(NamedTuple):
    """`truncation` sticks; `latent`: ExactLatent or MetropolisLatent."""

    truncation: int
    latent: Any


@builds("blocked_gibbs")
def _build(settings, kernel, mixing, n):
    latent = LATENT[settings.latent]
    return Built(BlockedGibbs(settings.truncation, latent), held=latent.held, slots=settings.truncation)


@njit
def _draw_sticks(state, mixing, rng, truncation):
    """Draw the weights of all sticks given the counts."""
    d = mixing.discount
    alpha = state.now.concentration
    after = float(len(state.labels))
    left = 1.0
    for h in range(truncation):
        after -= state.counts[h]
        v = 1.0
        if h < truncation - 1:
            v = rng.beta(1.0 - d + state.counts[h], alpha + (h + 1) * d + after)
        state.weights[h] = v * left
        left *= 1.0 - v


@njit
def _draw_empty(state, kernel, rng, truncation):
    """Draw the parameters of the unoccupied components from the base measure."""
    for j in range(state.now.occupied, truncation):
        draw_prior(kernel, rng, state.theta, state.order[j])


def _sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    truncation = algorithm.truncation
    alpha = state.now.concentration
    counts = state.counts[:truncation]
    state.now.concentration = draw_concentration_truncated(rng, mixing, alpha, len(state.labels), counts)
    _draw_sticks(state, mixing, rng, truncation)
    state.level[:] = truncation
    allocate(algorithm.latent, executor, state, np.arange(truncation), channel, kernel, rng)
    list_occupied(state, truncation)
    sort_by_size(state)
    update_latent_and_parameters(algorithm.latent, executor, state, channel, kernel, rng)
    _draw_empty(state, kernel, rng, truncation)
    return DONE


by_sweeps(_sweep, BlockedGibbs)


@follow_base.register
def _follow_base(algorithm: BlockedGibbs, state, kernel, rng):
    _draw_empty(state, kernel, rng, algorithm.truncation)
