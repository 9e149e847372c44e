"""Neal's algorithm 2 for conjugate kernels: a new component is weighed by the prior predictive density.

Its parameters are then drawn given the one record. Densities under the components that there are depend on
the parameters alone, and are computed component by component for a block of records at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import draw_posterior, tally
from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.special import exp
from dpmix.samplers.collapsed import INTEGRAL, RATIO, constants_of, grown_integral, new_blocks, refresh
from dpmix.samplers.scan import (
    by_densities,
    discard,
    log_offer,
    offers,
    prepare,
    renew,
    room,
    show,
    sweep_by_scan,
)
from dpmix.samplers.state import BLOCK
from dpmix.samplers.sweeps import Built, builds, follow_base

DENSITY, LOG = 0, 1  # rows of `prior_predictive`


class Neal2(NamedTuple):
    """`prior` (2, n), of `prior_predictive`: it depends on no parameter; no settings."""

    prior: Any


@builds("neal2")
def _build(settings, kernel, mixing, n):
    return Built(Neal2(np.empty((2, 0))), block=BLOCK)


@njit
def prior_predictive(kernel, z):
    """Return the prior predictive densities of the values `z` (n,) and their logarithms, shape (2, n)."""
    found = np.empty((2, len(z)))
    block = new_blocks(1)
    refresh(kernel, block, 0, 0)
    head = constants_of(kernel, 0.0, 0)[RATIO, 0] - block[INTEGRAL, 0]
    for i in range(len(z)):
        found[LOG, i] = head + grown_integral(kernel, block, 0, 0, z[i])
        found[DENSITY, i] = exp(found[LOG, i])
    return found


@room.register
@inlined
def _room(algorithm: Neal2):
    return BLOCK, 1 + BLOCK


@offers.register
@inlined
def _offers(algorithm: Neal2):
    return 1


@prepare.register
@njit
def _prepare(algorithm: Neal2, state, channel, kernel, rng, start, stop):
    return 0


@show.register
@inlined
def _show(algorithm: Neal2, state, i):
    state.density[state.now.occupied, i % BLOCK] = algorithm.prior[DENSITY, i]


@log_offer.register
@njit
def _log_offer(algorithm: Neal2, channel, kernel, state, i, h):
    return algorithm.prior[LOG, i]


@discard.register
@njit
def _discard(algorithm: Neal2, rng, k):
    return k + 1


@renew.register
@njit
def _renew(algorithm: Neal2, state, kernel, rng, i, k):
    h = state.order[k]
    state.stats[:, h] = 0.0
    tally(kernel, state.theta, h, state.z[i], state.stats)
    draw_posterior(kernel, rng, 1, state.stats, h, state.theta, state.tuning)
    return k


by_densities(Neal2)
sweep_by_scan(Neal2)


@follow_base.register
def _follow_base(algorithm: Neal2, state, kernel, rng):
    algorithm.prior[:] = prior_predictive(kernel, state.z)
