"""Moves of a learned base measure given counts (methods, section 15): those of `dpmix.samplers.base_moves`.

Location or scale moves with all atoms of P along, also those without records, the records' allocation
integrated out; and both are drawn given the clusters, when P is forgotten.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels.learned_base import (
    adapt_step,
    carry,
    draw_base,
    gather,
    log_base_ratio,
    propose_base,
    take_base,
)
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.source import log_gain, take_over
from dpmix.numerics.jit import njit

__all__ = ["draw_base_given", "move_base_along"]


@njit
def move_base_along(channel, kernel, learned, rng, state, cells, work, atoms, adapts):
    """Move location or scale of a column, whichever, with the atoms along."""
    row = int(2.0 * rng.random())
    column = int(rng.random() * learned.values.shape[1])
    shift, factor = propose_base(rng, learned, row, column)
    theta, proposed = state.theta, work.proposed
    for c in range(len(proposed)):
        proposed[c] = 0.0
    for h in range(atoms):
        for i in range(len(theta)):
            work.theta_at[i, 0] = theta[i, h]
        carry(kernel, work.theta_at, 0, column, shift, factor, learned.values)
        fill_rows(channel, kernel, work.theta_at, 0, cells, work.rows_at[0])
        weight, masses = work.weights[h], work.rows_at[0, 0]
        for c in range(len(proposed)):
            proposed[c] += weight * masses[c]
    for c in range(len(proposed)):
        proposed[c] = max(proposed[c], LEAST)
    ratio = log_base_ratio(learned, column, shift, factor)
    ratio += log_gain(work.source, rng, work)
    if -rng.standard_exponential() < ratio:
        for h in range(atoms):
            carry(kernel, theta, h, column, shift, factor, learned.values)
            work.sloped[h] = fill_rows(channel, kernel, theta, h, cells, work.rows[h])
        take_base(learned, column, shift, factor)
        take_over(work.source, work)
    if adapts:
        adapt_step(learned, row, math.exp(min(ratio, 0.0)) if ratio == ratio else 0.0)


@njit
def draw_base_given(kernel, learned, rng, theta, clusters):
    """Draw location and scale given the parameters of the clusters."""
    d = learned.values.shape[1]
    sums = np.zeros((d + 1, d))
    for h in range(clusters):
        gather(kernel, theta, h, sums)
    draw_base(kernel, rng, learned, sums, clusters)
