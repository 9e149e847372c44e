"""What a sampler is: how it is built of the spec's section `sampler`, and the loop over its sweeps.

Between sweeps a learned base measure moves, whichever the algorithm (methods, section 15).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels.learned_base import (
    adapt_step,
    carry,
    draw_base_given,
    log_base_ratio,
    propose_base,
    take_base,
    with_base,
)
from dpmix.mechanisms.channels.channel_functions import log_constant, sum_logs
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.mixing import PitmanYor, draw_concentration, draw_measure
from dpmix.samplers.state import BLOCK, DONE, Serial, Threads, group_records


class Algorithm(NamedTuple):
    """What the spec's `sampler` section says of the algorithm: kind, auxiliary m, truncation H, latent."""

    kind: str
    auxiliary: int = 1
    truncation: int = 100
    latent: str = "exact"


class Built(NamedTuple):
    """A sampler, and what its chain has to have for it.

    Parameters
    ----------
    algorithm : NamedTuple
        For which `sweep` is registered.
    held : int
        Latent values that are held of each record.
    slots : int
        Components that there is room for at first; 0 for as many as are offered at once, twice.
    block : int
        Components whose densities are kept beside each other; 0 where none are.
    """

    algorithm: Any
    held: int = 0
    slots: int = 0
    block: int = 0


Builder = Callable[[Algorithm, Any, PitmanYor, int], Built]
"""Of the settings, the kernel, the prior of weights and the number of records."""
BUILDERS: dict[str, Builder] = {}
"""By the spec's `sampler.kind`; each sampler's file, which is called by it, adds its own."""
TABLED: set[str] = set()
"""Samplers that ask for so many integrals of a component that a kernel makes them a table first."""


def builds(kind: str, *, tabled: bool = False) -> Callable[[Builder], Builder]:
    """Let a function build the sampler of a kind."""

    def decorate(builder: Builder) -> Builder:
        BUILDERS[kind] = builder
        if tabled:
            TABLED.add(kind)
        return builder

    return decorate


def builder_of(kind: str) -> Builder:
    """Return what builds the sampler of a kind, whose file is imported when it is asked for.

    Raises
    ------
    ValueError
        For a kind that there is not.
    """
    if kind not in BUILDERS and find_spec(f"dpmix.samplers.{kind}") is not None:
        import_module(f"dpmix.samplers.{kind}")
    if kind not in BUILDERS:
        raise ValueError(f"unknown sampler {kind!r}")
    return BUILDERS[kind]


def by_fields(algorithm: Any) -> Builder:
    """Return what builds a sampler whose fields are among the settings."""
    return lambda settings, *_: Built(algorithm(*(getattr(settings, name) for name in algorithm._fields)))


# What each saved draw holds


class Output(NamedTuple):
    """Where saved draws go; the components of all draws stand one after the other.

    n_clusters, concentration, acceptance_rate, log_likelihood (T,), first (T + 1,) offsets into weights
    (F,) and theta (P, F), base (T, 2 or 3, d) of a learned base measure (d = 0 of others), allocations (T, m)
    of the m records whose places are in `kept` (m,).
    """

    n_clusters: Any
    concentration: Any
    acceptance_rate: Any
    log_likelihood: Any
    first: Any
    weights: Any
    theta: Any
    base: Any
    allocations: Any
    kept: Any


@njit
def record(state, channel, kernel, learned, mixing, rng, output, t):
    """Save the state as draw t, with one draw of P given it. Return False where `output` is too small."""
    k = state.now.occupied
    start = output.first[t]
    if start + k > len(output.weights):
        return False
    output.first[t + 1] = start + k
    output.n_clusters[t] = k
    alpha = state.now.concentration
    output.concentration[t] = alpha
    proposed = state.now.proposed
    output.acceptance_rate[t] = state.now.accepted / proposed if proposed > 0.0 else math.nan
    output.log_likelihood[t] = log_likelihood(state, channel, kernel) + log_constant(channel)
    counts = np.empty(k)
    for j in range(k):
        h = state.order[j]
        counts[j] = state.counts[h]
        for p in range(len(state.theta)):
            output.theta[p, start + j] = state.theta[p, h]
    draw_measure(rng, alpha, mixing.discount, counts, k, output.weights[start : start + k])
    for j in range(output.base.shape[2]):
        for row in range(output.base.shape[1]):
            output.base[t, row, j] = learned.values[row, j]
    for i in range(len(output.kept)):
        output.allocations[t, i] = state.where[state.labels[output.kept[i]]]
    return True


@njit
def log_likelihood(state, channel, kernel):
    """Return sum_i log g(z_i | theta of its component), leaving the released values grouped."""
    n = len(state.labels)
    group_records(0, n, state, state.z)
    scratch = np.empty(BLOCK)
    total = 0.0
    for tile in range(len(state.tiles)):
        first = state.tiles[tile]
        for j in range(state.now.occupied):
            h = state.order[j]
            total += sum_logs(channel, kernel, state.theta, h, state.grouped, first[j], first[j + 1], scratch)
    return total


# One sweep of an algorithm, and the loop over sweeps that every algorithm shares

FULL = 2  # what `run` returns when the output has no room for a draw
FEW = 2_000  # records up to which components are taken along by a learned base measure in each sweep
# plan, an integer array: sweeps done, sweeps between saved draws, sweeps before the first, draws saved in
# the output, whether the last sweep has still to be saved
STEP, THIN, SKIP, SAVED, PENDING = 0, 1, 2, 3, 4


@dispatch(on=2)
def sweep(algorithm, executor, state, channel, kernel, mixing, rng):
    """Move the state by one sweep that leaves the posterior invariant; DONE, or GROW to be called again."""


def by_sweeps(function: Callable[..., Any], algorithm: type) -> None:
    """Let an algorithm sweep by one function: compiled whole, or in Python over phases on threads."""
    sweep.register(function, algorithm, Serial)
    sweep.register(function, algorithm, Threads)


@dispatch()
def follow_base(algorithm, state, kernel, rng):
    """Make anew what an algorithm keeps between sweeps that depends on the base measure."""


def keep_nothing(algorithm, state, kernel, rng):
    """Do nothing, as of most: unoccupied components are drawn when a sweep needs them."""


@njit
def move_concentration(state, mixing, rng):
    """Move the concentration given the present partition."""
    alpha, k = state.now.concentration, state.now.occupied
    state.now.concentration = draw_concentration(rng, mixing, alpha, len(state.labels), k)


@njit
def run(algorithm, executor, state, channel, kernel, learned, mixing, rng, output, plan, until):
    """Sweep until plan[STEP] is `until`, saving every plan[THIN]-th state after the first plan[SKIP].

    `learned`: the base measure of the kernel as it is now, which moves between sweeps where it is learned.

    Return DONE; or GROW or FULL, after which the caller makes room and calls again: the draws are the same.
    """
    while plan[STEP] < until or plan[PENDING] == 1:
        if plan[PENDING] == 0:
            state.tuning.adapting = 1.0 if plan[STEP] < plan[SKIP] else 0.0
            now = with_base(kernel, learned.values)
            status = sweep(algorithm, executor, state, channel, now, mixing, rng)
            if status != DONE:
                return status
            if len(learned.rate) > 0:
                _move_base(learned, algorithm, state, channel, now, rng, plan[STEP])
            plan[STEP] += 1
            if plan[STEP] > plan[SKIP] and (plan[STEP] - plan[SKIP]) % plan[THIN] == 0:
                plan[PENDING] = 1
        if plan[PENDING] == 1:
            if plan[SAVED] == len(output.n_clusters):
                return FULL
            if not record(state, channel, kernel, learned, mixing, rng, output, plan[SAVED]):
                return FULL
            plan[SAVED] += 1
            plan[PENDING] = 0
            state.now.accepted = 0.0
            state.now.proposed = 0.0
    return DONE


@njit
def _move_base(learned, algorithm, state, channel, kernel, rng, sweeps):
    """Move a learned base measure, before which so many sweeps were done, in two ways in turn.

    Location or scale moves with all occupied components along, the latent values integrated out: where the
    release says little of a component, it would follow the base measure, and the base measure it, in steps
    too small to get anywhere. That needs the likelihood of all records twice. It is made every so many
    sweeps, the more records there are, and not where the state holds latent values: given these components
    have nowhere to go. And given the parameters of the occupied components location and scale are drawn from
    their conditionals; the unoccupied are integrated out, so that what a sampler keeps of them is drawn anew.
    """
    if len(state.latent) == 0 and sweeps % (1 + len(state.labels) // FEW) == 0:
        _move_along(state, channel, kernel, learned, rng)
    draw_base_given(kernel, rng, learned, state.theta, state.order[: state.now.occupied])
    follow_base(algorithm, state, with_base(kernel, learned.values), rng)


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
            ratio += carry(kernel, theta, h, column, shift, factor, learned.values)
        after = log_likelihood(state, channel, kernel) if ratio > -math.inf else before
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


run_plain = getattr(run, "py_func", run)  # the same loop in plain Python, over sweeps that run on threads
