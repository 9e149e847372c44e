"""The sweep over clusters, weights and parameters: what a chain holds, its moves in turn, and their loop.

The state is a partition of the records into clusters with parameters, without saying which record is where.
Given it the mixing measure P has a known law (Pitman 1996; methods, section 4): the clusters' weights and the
mass left over are Dirichlet, and the mass left over is spread by a process of its own. It is broken into
sticks until less than `TAIL` of a record is expected beyond, which then lie on one atom; so n times the mass
left over is below `TAIL` in every sweep, whatever the concentration, and nothing depends on an order of
sticks.

A sweep draws in turn: the concentration given the number of clusters; P given the clusters; moves of P given
the counts, ``prod_c (sum_h w_h G_c(theta_h))^N_c``; the numbers of records at the atoms given P and the
counts, of which those that hold any are the clusters. Where the counts are latent P moves several times, each
with all that is light drawn anew; then the counts given P; then P with the counts along, and the counts
again. A sweep costs cells times atoms, whatever the number of records.

Atoms of less weight than `_LEAST` / n are not moved: they are drawn anew in every sweep. `_HEAVY` / sqrt n is
about the weight from which on the data tell of an atom.

Of a learned base measure (methods, section 15) location or scale moves with all atoms of P along, also those
without records, the records' allocation integrated out; and both are drawn given the clusters, when P is
forgotten.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.kernels import theta_rows
from dpmix.kernels.kernel_functions import draw_prior
from dpmix.kernels.learned_base import (
    adapt_step,
    carry,
    draw_base_given,
    log_base_ratio,
    propose_base,
    take_base,
    with_base,
)
from dpmix.models.counts.cell_counts import ladder_power
from dpmix.models.counts_mixture.atom_moves import (
    adopt_along,
    copy_atom,
    jump,
    langevin,
    list_atoms,
    move_mass,
    move_pair,
    pick,
    redraw_light,
)
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.source import FixedCounts, LatentCounts, log_fit, log_gain, renew, take_over
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.loops import LEAST, log, mix
from dpmix.numerics.mixing import PitmanYor, draw_concentration, draw_measure, initial_concentration

TAIL = 1e-3  # records expected on what is not broken into sticks
MOST = 12  # atoms that move together
CONCENTRATION, LOG_LIKELIHOOD, LEFT_OVER, ACCEPTED, PROPOSED = 0, 1, 2, 3, 4  # state.floats
DONE, FULL, GROW = 0, 1, 2
STEP, THIN, SKIP, SAVED = 0, 1, 2, 3  # plan: sweeps done, between saved draws, before the first; draws saved
FIXED = FixedCounts()
_FIRST_ATOMS = 8  # at most so many clusters to start from
_FIRST_RECORDS = 1000
_LEAST, _MOST_LEAST = 0.5, 0.02
_HEAVY, _MOST_HEAVY = 3.0, 0.1
_TOGETHER = 2  # steps of all heavy atoms in a sweep
_LOCAL = 4  # steps of one or two
_PAIRS = 8  # moves of the shape of a pair
_JUMPS = 16
_BOTH = 0.5  # share of local steps that take two atoms
_TARGET = 0.5  # acceptance that dampings adapt to
_SPREAD = (2.0, 1.5, 1.5)  # how far a damping is drawn around its level
_GAIN = (3.0, 2.0, 2.0)
_LOWEST, _HIGHEST = (0.0, -1.0, -1.0), 30.0
_FEW = 6  # records of a cell that are put one by one

# What a chain holds from sweep to sweep, its room to work, and where saved draws go


class CountsMixtureState(NamedTuple):
    """Kept from sweep to sweep, changed in place, with room for H clusters.

    clusters (1,): how many there are, k; sizes (H,) of the first k; theta (P, H), beyond k scratch; floats:
    the scalars named above, the last two since the last saved draw; damping (6,): what Langevin steps of the
    heavy atoms together, of one and of two atoms adapt, in logarithms, and those that take counts along.
    """

    clusters: Any
    sizes: Any
    theta: Any
    floats: Any
    damping: Any


class Work(NamedTuple):
    """Scratch of a sweep, over H atoms and B cells.

    counts, roots (B,): of the cells, to the power of a ladder, and their square roots; weights (H,), rows
    (H, 3, B): masses and derivatives of the atoms, sloped (H,): whether these are set; mixed (B,): sum_h w_h
    G_hc; proposed, terms (B,); weights_at (H,), theta_at (P, H), rows_at (MOST, 3, B): of a proposal,
    rows_along (H, 3, B) and sloped_along (H,): of one of all atoms; basis (D + 2, B), metric, metric_at
    (D, D), vectors (8, D) with D = 3 MOST; chosen, numbers (H,); source: where the counts come from
    (`dpmix.models.counts_mixture.source`), pulls (B,) its scratch.
    """

    counts: Any
    roots: Any
    weights: Any
    rows: Any
    sloped: Any
    mixed: Any
    proposed: Any
    terms: Any
    weights_at: Any
    theta_at: Any
    rows_at: Any
    sloped_at: Any
    rows_along: Any
    sloped_along: Any
    basis: Any
    metric: Any
    metric_at: Any
    vectors: Any
    chosen: Any
    numbers: Any
    source: Any
    pulls: Any


class CountsOutput(NamedTuple):
    """Where saved draws go: T draws, whose components stand one after another, F of them.

    n_clusters, concentration, acceptance_rate, log_likelihood, left_over (T,), first (T + 1,), weights (F,),
    theta (P, F), base (T, 2 or 3, d) of a learned base measure (d = 0 of others).
    """

    n_clusters: Any
    concentration: Any
    acceptance_rate: Any
    log_likelihood: Any
    left_over: Any
    first: Any
    weights: Any
    theta: Any
    base: Any


def make_state(kernel: Any, room: int) -> CountsMixtureState:
    """Return a state with no clusters."""
    return CountsMixtureState(
        np.zeros(1, dtype=np.int64),
        np.zeros(room, dtype=np.int64),
        np.ones((theta_rows(kernel), room)),
        np.zeros(5),
        np.zeros(6),
    )


def make_work(kernel: Any, room: int, cells: int, source: FixedCounts | LatentCounts = FIXED) -> Work:
    """Return room for so many atoms and cells."""
    size = 3 * MOST
    return Work(
        counts=np.zeros(cells),
        roots=np.zeros(cells),
        weights=np.zeros(room),
        rows=np.zeros((room, 3, cells)),
        sloped=np.zeros(room, dtype=np.bool_),
        mixed=np.ones(cells),
        proposed=np.ones(cells),
        terms=np.zeros(cells),
        weights_at=np.zeros(room),
        theta_at=np.ones((theta_rows(kernel), room)),
        rows_at=np.zeros((MOST, 3, cells)),
        sloped_at=np.zeros(MOST, dtype=np.bool_),
        rows_along=np.zeros((room, 3, cells)),  # takes memory once it is written to
        sloped_along=np.zeros(room, dtype=np.bool_),
        basis=np.zeros((size + 2, cells)),
        metric=np.zeros((size, size)),
        metric_at=np.zeros((size, size)),
        vectors=np.zeros((8, size)),
        chosen=np.zeros(room, dtype=np.int64),
        numbers=np.zeros(room, dtype=np.int64),
        source=source,
        pulls=np.zeros(cells),
    )


def widened(state: CountsMixtureState, kernel: Any) -> CountsMixtureState:
    """Return the same state with twice the room."""
    old = len(state.sizes)
    wider = make_state(kernel, 2 * old)
    wider.clusters[:], wider.floats[:], wider.damping[:] = state.clusters, state.floats, state.damping
    wider.sizes[:old] = state.sizes
    wider.theta[:, :old] = state.theta
    return wider


def start(
    kernel: Any, mixing: PitmanYor, rng: np.random.Generator, n: int, state: CountsMixtureState
) -> None:
    """Start from clusters of about one size with parameters from the base measure: chains start apart."""
    k = int(rng.integers(1, _FIRST_ATOMS + 1))
    state.clusters[0] = k
    state.sizes[:k] = np.maximum(rng.multinomial(min(n, _FIRST_RECORDS), np.full(k, 1.0 / k)), 1)
    state.floats[CONCENTRATION] = initial_concentration(mixing)
    _draw_parameters(kernel, rng, state.theta, k)


@njit
def _draw_parameters(kernel, rng, theta, k):
    for h in range(k):
        draw_prior(kernel, rng, theta, h)


# The loop over sweeps


@njit
def run(channel, kernel, learned, mixing, rng, state, cells, work, counts, plan, until, output):
    """Sweep until ``plan[STEP]`` is `until`, saving every thin-th state after those skipped.

    learned: the base measure as it is now, which moves where it is learned; counts (B,): numbers of records.
    Return DONE; or FULL or GROW, after which the caller makes room and calls again: the draws are the same.
    """
    total = 0.0
    for c in range(len(counts)):
        total += counts[c]
    for h in range(state.clusters[0]):
        work.sloped[h] = fill_rows(channel, kernel, state.theta, h, cells, work.rows[h])
    power = -1.0
    while plan[STEP] < until:
        done, skip = plan[STEP], plan[SKIP]
        due = done + 1 > skip and (done + 1 - skip) % plan[THIN] == 0
        if 2 * state.clusters[0] > len(state.sizes):
            return GROW
        if due and (
            plan[SAVED] == len(output.n_clusters)
            or output.first[plan[SAVED]] + len(state.sizes) > len(output.weights)
        ):
            return FULL
        wanted = ladder_power(done, skip, total)
        if wanted != power:
            power = wanted
            for c in range(len(counts)):
                work.counts[c] = power * counts[c]
                work.roots[c] = math.sqrt(work.counts[c])
        gain = 1.0 / math.sqrt(1.0 + done) if done < skip else 0.0
        now = with_base(kernel, learned.values)
        _sweep(channel, now, learned, mixing, rng, state, cells, work, power * total, power, gain)
        plan[STEP] = done + 1
        if due:
            _record(rng, state, learned, output, plan[SAVED])
            plan[SAVED] += 1
    return DONE


@njit
def _record(rng, state, learned, output, at):
    """Save the state as draw `at`, with one draw of P given it."""
    k, first = state.clusters[0], output.first[at]
    output.n_clusters[at] = k
    output.concentration[at] = state.floats[CONCENTRATION]
    made = state.floats[PROPOSED]
    output.acceptance_rate[at] = state.floats[ACCEPTED] / made if made > 0.0 else math.nan
    output.log_likelihood[at] = state.floats[LOG_LIKELIHOOD]
    output.left_over[at] = state.floats[LEFT_OVER]
    output.first[at + 1] = first + k
    for j in range(output.base.shape[2]):
        for row in range(output.base.shape[1]):
            output.base[at, row, j] = learned.values[row, j]
    draw_measure(rng, state.floats[CONCENTRATION], 0.0, state.sizes, k, output.weights[first : first + k])
    for h in range(k):
        for i in range(len(state.theta)):
            output.theta[i, first + h] = state.theta[i, h]
    state.floats[ACCEPTED] = 0.0
    state.floats[PROPOSED] = 0.0


@njit
def _sweep(channel, kernel, learned, mixing, rng, state, cells, work, total, power, gain):
    """Move everything.

    total: the sum of the counts to the power of a ladder, `power`; gain: of adaptation, 0 after burn-in.
    """
    alpha = draw_concentration(rng, mixing, state.floats[CONCENTRATION], total, state.clusters[0])
    state.floats[CONCENTRATION] = alpha
    atoms = draw_random_measure(channel, kernel, rng, state, cells, work, total)
    mix(work.weights, work.rows, atoms, work.mixed)
    atoms = _move_all(
        work.source, channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, power, gain
    )
    state.floats[LOG_LIKELIHOOD] = log_fit(work.source, _allocate(rng, work, atoms))
    _keep_clusters(state, work, atoms)
    if len(learned.rate) > 0:
        draw_base_given(kernel, rng, learned, state.theta, np.arange(state.clusters[0]))


# P given the clusters, and the clusters given P


@njit
def draw_random_measure(channel, kernel, rng, state, cells, work, total):
    """Draw P given the clusters: weights, parameters and masses; return the number of atoms.

    The masses of the clusters are set already. `total` is the number of records.
    """
    k, alpha = state.clusters[0], state.floats[CONCENTRATION]
    weights, room = work.weights, len(work.weights)
    left = draw_measure(rng, alpha, 0.0, state.sizes, k, weights)
    atoms = k
    while atoms < room - 1:
        more = left * total > TAIL
        share = rng.beta(1.0, alpha) if more else 1.0
        weights[atoms] = left * share
        left *= 1.0 - share
        draw_prior(kernel, rng, state.theta, atoms)
        work.sloped[atoms] = fill_rows(channel, kernel, state.theta, atoms, cells, work.rows[atoms])
        atoms += 1
        if not more:
            break
    weights[atoms - 1] += left  # nothing, but where there is no room
    state.floats[LEFT_OVER] = total * weights[atoms - 1]
    return atoms


@njit
def _allocate(rng, work, atoms):
    """Draw the numbers of records at the atoms given P; return the log likelihood.

    Records of a cell are put one by one where they are few, else by binomial draws of what the rest takes. Of
    a count to a power the fraction is one more at random.
    """
    _sort(work, atoms)
    order, weights, rows, numbers = work.chosen, work.weights, work.rows, work.numbers
    for h in range(atoms):
        numbers[h] = 0
    value = 0.0
    for c in range(len(work.counts)):
        count = work.counts[c]
        rest = int(count)
        if count > rest and rng.random() < count - rest:
            rest += 1
        total = work.mixed[c]
        value += count * log(total)
        if rest <= _FEW:
            for _ in range(rest):
                u = rng.random() * total
                i = 0
                while i < atoms - 1:
                    u -= weights[order[i]] * rows[order[i], 0, c]
                    if u < 0.0:
                        break
                    i += 1
                numbers[order[i]] += 1
            continue
        i = 0
        while rest > 0:
            h = order[i]
            share = weights[h] * rows[h, 0, c]
            taken = rest if i == atoms - 1 or share >= total else rng.binomial(rest, share / total)
            numbers[h] += taken
            rest -= taken
            total -= share
            i += 1
    return value


@njit
def _sort(work, atoms):
    """List all atoms in `work.chosen`, those of most weight first."""
    order, weights = work.chosen, work.weights
    for h in range(atoms):
        i = h
        while i > 0 and weights[order[i - 1]] < weights[h]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = h


@njit
def _keep_clusters(state, work, atoms):
    """Keep the atoms that hold records."""
    k = 0
    for h in range(atoms):
        if work.numbers[h] > 0:
            state.sizes[k] = work.numbers[h]
            if h != k:
                copy_atom(state.theta, work, h, k)
            k += 1
    state.clusters[0] = k


# Moves of P


@dispatch()
def _move_all(source, channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, power, gain):
    """Move P, and counts that are latent given P and with it; return the number of atoms."""


@_move_all.register
def _move_all_fixed(
    source: FixedCounts, channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, power, gain
):
    atoms = _move_measure(channel, kernel, rng, state, cells, work, atoms, total, gain, 0)
    if len(learned.rate) > 0:
        move_base_along(channel, kernel, learned, rng, state, cells, work, atoms, gain > 0.0)
    return atoms


@_move_all.register
def _move_all_latent(
    source: LatentCounts, channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, power, gain
):
    """Move P given the counts, and then with the counts along."""
    own = source.given >= source.following or power < 1.0
    for along in range(2 if power == 1.0 else 1):
        source.along[0] = along
        first, rounds = along * len(_SPREAD), source.following if along == 1 else source.given
        base = own == (along == 0)
        atoms = _move_rounds(
            channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, gain, first, rounds, base
        )
        source.along[0] = 0
        renew(source, rng, work, power)
    return atoms


@njit
def _move_rounds(
    channel, kernel, learned, mixing, rng, state, cells, work, atoms, total, gain, first, rounds, base
):
    """Move P so many times, with a draw of all that is light; base: whether a learned one moves too."""
    for _ in range(rounds):
        now = with_base(kernel, learned.values)
        atoms = _move_measure(channel, now, rng, state, cells, work, atoms, total, gain, first)
        alpha, theta = state.floats[CONCENTRATION], state.theta
        atoms, alpha = redraw_light(channel, now, mixing, rng, theta, cells, work, atoms, total, TAIL, alpha)
        state.floats[CONCENTRATION] = alpha
        mix(work.weights, work.rows, atoms, work.mixed)
        if base and len(learned.rate) > 0:
            move_base_along(channel, now, learned, rng, state, cells, work, atoms, gain > 0.0)
    return atoms


@njit
def _move_measure(channel, kernel, rng, state, cells, work, atoms, total, gain, first):
    """Move P by every kind of move; return the number of atoms. first: place of the dampings."""
    alpha = state.floats[CONCENTRATION]
    least, heavy = min(_LEAST / total, _MOST_LEAST), min(_HEAVY / math.sqrt(total), _MOST_HEAVY)
    for _ in range(_TOGETHER):
        m = _choose_heavy(rng, work, atoms, heavy)
        if m > 0:
            found = _step(channel, kernel, rng, state, cells, work, first, m, heavy, gain)
            state.floats[ACCEPTED] += found
            state.floats[PROPOSED] += 1.0
    for _ in range(_LOCAL):
        m = _choose_few(rng, work, atoms, least)
        if m > 0:
            _step(channel, kernel, rng, state, cells, work, first + m, m, least, gain)
    _move_masses(rng, work, atoms, least, total)
    _move_pairs(channel, kernel, rng, state.theta, cells, work, atoms, heavy, least)
    for _ in range(_JUMPS):
        atoms = jump(channel, kernel, rng, state.theta, cells, work, atoms, least, alpha)
    mix(work.weights, work.rows, atoms, work.mixed)
    return atoms


@njit
def _step(channel, kernel, rng, state, cells, work, kind, m, least, gain):
    """Take a Langevin step of the chosen atoms, and adapt its damping by `gain`; return its acceptance.

    kind: place of its damping, those of steps that take counts along after the others.
    """
    which = kind % len(_SPREAD)
    level = state.damping[kind] + _SPREAD[which] * (2.0 * rng.random() - 1.0)
    found = langevin(channel, kernel, rng, state.theta, cells, work, m, least, math.exp(level))
    moved = state.damping[kind] - gain * _GAIN[which] * (found - _TARGET)
    state.damping[kind] = min(max(moved, _LOWEST[which]), _HIGHEST)
    return found


@njit
def _choose_heavy(rng, work, atoms, heavy):
    """List the heavy atoms, as many of them as move together, at random; return how many."""
    k, _ = list_atoms(work, atoms, heavy)
    for j in range(MOST if k > MOST else 0):
        other = j + int(rng.random() * (k - j))
        work.chosen[j], work.chosen[other] = work.chosen[other], work.chosen[j]
    return min(k, MOST)


@njit
def _choose_few(rng, work, atoms, least):
    """List one or two atoms for a local step; return how many."""
    k, total = list_atoms(work, atoms, least)
    if k == 0:
        return 0
    one, other = work.chosen[int(rng.random() * k)], work.chosen[int(rng.random() * k)]
    if rng.random() < _BOTH:
        work.chosen[0], work.chosen[1] = one, other
        return 2 if one != other else 1
    # or by weight, which a step of one atom keeps
    work.chosen[0] = pick(rng, work, k, total, -1) if rng.random() < 0.5 else one
    return 1


@njit
def _move_masses(rng, work, atoms, least, total):
    """Move mass from each atom, or to it, from or to another."""
    k, _ = list_atoms(work, atoms, least)
    for i in range(k if k > 1 else 0):
        other = (i + 1 + int(rng.random() * (k - 1))) % k
        move_mass(rng, work, work.chosen[i], work.chosen[other], least, total)


@njit
def _move_pairs(channel, kernel, rng, theta, cells, work, atoms, heavy, least):
    """Move the shapes of pairs of a heavy atom and another."""
    for _ in range(_PAIRS):
        k, _ = list_atoms(work, atoms, heavy)
        if k == 0:
            return
        a = work.chosen[int(rng.random() * k)]
        k, _ = list_atoms(work, atoms, least)
        b = work.chosen[int(rng.random() * k)]
        if a != b:
            move_pair(channel, kernel, rng, theta, cells, work, a, b, heavy, least)


# Moves of a learned base measure


@njit
def move_base_along(channel, kernel, learned, rng, state, cells, work, atoms, adapts):
    """Move location or scale of a column, whichever, with the atoms along."""
    row = int(2.0 * rng.random())
    column = int(rng.random() * learned.values.shape[1])
    shift, factor = propose_base(rng, learned, row, column)
    ratio = log_base_ratio(learned, column, shift, factor)
    theta, proposed, moved = state.theta, work.proposed, work.theta_at
    for c in range(len(proposed)):
        proposed[c] = 0.0
    for h in range(atoms):
        for i in range(len(theta)):
            moved[i, h] = theta[i, h]
        ratio += carry(kernel, moved, h, column, shift, factor, learned.values)
        if ratio == -math.inf:
            break
        work.sloped_along[h] = fill_rows(channel, kernel, moved, h, cells, work.rows_along[h])
        weight, masses = work.weights[h], work.rows_along[h, 0]
        for c in range(len(proposed)):
            proposed[c] += weight * masses[c]
    for c in range(len(proposed)):
        proposed[c] = max(proposed[c], LEAST)
    if ratio > -math.inf:
        ratio += log_gain(work.source, rng, work)
    if -rng.standard_exponential() < ratio:
        for h in range(atoms):
            adopt_along(work, theta, h)
        take_base(learned, column, shift, factor)
        take_over(work.source, work)
    if adapts:
        adapt_step(learned, row, math.exp(min(ratio, 0.0)) if ratio == ratio else 0.0)
