"""The record kept of a chain: what each saved draw holds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix._jit import njit
from dpmix.channels import log_constant
from dpmix.mixing import draw_measure
from dpmix.samplers.grouping import log_likelihood
from dpmix.samplers.state import ACCEPTED, CONCENTRATION, OCCUPIED, PROPOSED

__all__ = ["Output", "record"]


class Output(NamedTuple):
    """Where saved draws go; the components of all draws stand one after the other.

    n_clusters, concentration, acceptance_rate, log_likelihood (T,), first (T + 1,) offsets into weights
    (F,) and theta (P, F), allocations (T, m) of the m records whose places are in `kept` (m,).
    """

    n_clusters: Any
    concentration: Any
    acceptance_rate: Any
    log_likelihood: Any
    first: Any
    weights: Any
    theta: Any
    allocations: Any
    kept: Any


@njit
def record(state, channel, kernel, mixing, rng, output, t):
    """Save the state as draw t, with one draw of P given it. Return False where `output` is too small."""
    k = state.ints[OCCUPIED]
    start = output.first[t]
    if start + k > len(output.weights):
        return False
    output.first[t + 1] = start + k
    output.n_clusters[t] = k
    alpha = state.floats[CONCENTRATION]
    output.concentration[t] = alpha
    proposed = state.floats[PROPOSED]
    output.acceptance_rate[t] = state.floats[ACCEPTED] / proposed if proposed > 0.0 else math.nan
    output.log_likelihood[t] = log_likelihood(state, channel, kernel) + log_constant(channel)
    counts = np.empty(k)
    for j in range(k):
        h = state.order[j]
        counts[j] = state.counts[h]
        for p in range(len(state.theta)):
            output.theta[p, start + j] = state.theta[p, h]
    draw_measure(rng, alpha, mixing.discount, counts, k, output.weights[start : start + k])
    for i in range(len(output.kept)):
        output.allocations[t, i] = state.where[state.labels[output.kept[i]]]
    return True
