"""Records sorted by component within tiles, and log-likelihoods of components over them."""

from __future__ import annotations

import math

import numpy as np

from dpmix._jit import njit
from dpmix.channels import fill_marginal, log_marginal
from dpmix.samplers.state import BLOCK, OCCUPIED, TILE

__all__ = ["group_records", "log_likelihood", "sum_logs"]


@njit
def group_records(start, stop, state, x):
    """Sort the values of each tile of records start..stop by component, into state.grouped."""
    k = state.ints[OCCUPIED]
    place = np.empty(k, dtype=np.int64)
    for low in range(start, stop, TILE):
        high = min(low + TILE, stop)
        first = state.tiles[low // TILE]
        place[:] = 0
        for i in range(low, high):
            place[state.where[state.labels[i]]] += 1
        at = low
        for j in range(k):
            first[j] = at
            at += place[j]
            place[j] = first[j]
        first[k] = at
        for i in range(low, high):
            j = state.where[state.labels[i]]
            state.grouped[place[j]] = x[i]
            place[j] += 1


@njit
def sum_logs(channel, kernel, theta, h, x, start, stop, scratch):
    """Return sum_i log g(x[i] | theta[:, h]) over start <= i < stop; `scratch` is for densities.

    Densities are multiplied up and their logarithm taken where the product nears the ends of a double.
    """
    total = 0.0
    product = 1.0
    size = len(scratch)
    for low in range(start, stop, size):
        high = min(low + size, stop)
        fill_marginal(channel, kernel, theta, h, x, low, high, scratch)
        for b in range(high - low):
            value = scratch[b]
            if value < 1e-30 or value > 1e30:
                total += log_marginal(channel, kernel, x[low + b], theta, h)
            else:
                product *= value
                if product < 1e-250 or product > 1e250:
                    total += math.log(product)
                    product = 1.0
    return total + math.log(product)


@njit
def log_likelihood(state, channel, kernel):
    """Return sum_i log g(z_i | theta of its component), leaving the released values grouped."""
    n = len(state.labels)
    group_records(0, n, state, state.z)
    scratch = np.empty(BLOCK)
    total = 0.0
    for tile in range(len(state.tiles)):
        first = state.tiles[tile]
        for j in range(state.ints[OCCUPIED]):
            h = state.order[j]
            total += sum_logs(channel, kernel, state.theta, h, state.grouped, first[j], first[j + 1], scratch)
    return total
