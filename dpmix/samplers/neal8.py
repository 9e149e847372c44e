"""Neal's algorithm 8 on the exact marginal kernel.

Neal (2000), with the auxiliary components reused between records (Favaro and Teh 2013): the m empty
components are part of the state, independent draws from the base measure. A record that leaves a component
empty puts that component's parameters in the place of an auxiliary one chosen at random, which offers them
to it again; a record that takes an auxiliary component turns it into an occupied one and a new auxiliary is
drawn. Marginal densities of a block of records are computed component by component beforehand, for they
depend on the parameters alone.
"""

from __future__ import annotations

from typing import NamedTuple

from dpmix.kernels import draw_prior
from dpmix.mechanisms.channels.channel_functions import log_marginal
from dpmix.numerics.jit import inlined, njit
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
from dpmix.samplers.sweeps import Built, builds, follow_base, keep_nothing


class Neal8(NamedTuple):
    """`auxiliary` empty components are offered to each record (m of Neal 8)."""

    auxiliary: int


@builds("neal8")
def _build(settings, kernel, mixing, n):
    return Built(Neal8(settings.auxiliary), block=BLOCK)


@room.register
@inlined
def _room(algorithm: Neal8):
    return BLOCK, algorithm.auxiliary + BLOCK


@offers.register
@inlined
def _offers(algorithm: Neal8):
    return algorithm.auxiliary


@prepare.register
@njit
def _prepare(algorithm: Neal8, state, channel, kernel, rng, start, stop):
    k, m = state.now.occupied, algorithm.auxiliary
    if start == 0:
        for j in range(k, k + m):
            draw_prior(kernel, rng, state.theta, state.order[j])
    return m


@show.register
@inlined
def _show(algorithm: Neal8, state, i):
    """Do nothing: the auxiliary components are laid out."""


@log_offer.register
@njit
def _log_offer(algorithm: Neal8, channel, kernel, state, i, h):
    return log_marginal(channel, kernel, state.z[i], state.theta, h)


@discard.register
@njit
def _discard(algorithm: Neal8, rng, k):
    return k + 1 + int(rng.random() * algorithm.auxiliary)


@renew.register
@njit
def _renew(algorithm: Neal8, state, kernel, rng, i, k):
    fresh = k + algorithm.auxiliary
    draw_prior(kernel, rng, state.theta, state.order[fresh])
    return fresh


by_densities(Neal8)
sweep_by_scan(Neal8)
follow_base.register(keep_nothing, Neal8)
