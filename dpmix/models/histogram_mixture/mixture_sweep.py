"""The sweep over counts, clusters and parameters of all groups.

In turn, of each group: the concentration given the clusters, P given the clusters, the parameters and
weights of its atoms with the allocation of records integrated out, ``prod_j (sum_h w_h F_j(theta_h))^c_j``
(methods, section 12); of all groups together the counts, between any two bins; and then the allocation given
P and the counts, of which only the numbers of records at the atoms are kept. Given these a draw of P forgets
how atoms were numbered, so that nothing depends on an order of sticks.

Which atoms are moved depends on weights alone: allocations are integrated out, and a choice made by them
would bring them back.

A chain holds of each group a partition of its records into clusters with parameters, without saying which
record is where, and the number of records in each bin. Given these P has a known law (Pitman 1996; methods,
section 4): the clusters' weights and the mass left over are Dirichlet, and the mass left over is spread by a
process of its own. It is broken into sticks until less than `TAIL` of a record is expected beyond, which then
lie on one atom.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels import draw_prior, fill_masses, propose, theta_rows
from dpmix.models.counts.cell_counts import couple, ladder_power, log_release, share_out
from dpmix.models.counts.latent_counts import sweep_counts
from dpmix.numerics.jit import njit
from dpmix.numerics.mixing import (
    PitmanYor,
    draw_concentration,
    draw_measure,
    initial_concentration,
    truncation_error,
)

TAIL = 1e-3  # records expected on what is not broken into sticks
_FEWEST = 32  # components that there is room for, at least
MOST_STICKS = 512
SIZE_MOVES = 4  # of each group in a sweep
HEAVY = 0.5  # records expected at an atom whose parameters are moved
LIGHT = 0.01  # records, if all were of one group, expected at an atom whose weight is: above `TAIL`
FEW = 30.0  # records at an atom up to which its parameters are also offered draws of the base measure
WEIGHT_ROUNDS = 2
STEPS = 3  # moves of each in a sweep
LEAST = 1e-300  # of a bin's mass
COUNT_ROUNDS = 2

Ints = NDArray[np.int64]

# What a chain holds, and draws of the mixing measure given it


class GroupsState(NamedTuple):
    """The state, all changed in place.

    counts (G m,) of the bins, group by group; clusters (G,) k; members (G, K) records of the first k
    components; theta (G, parameters, K), those beyond the first k are scratch; concentration (G,); age (1,)
    sweeps done.
    """

    counts: Any
    clusters: Any
    members: Any
    theta: Any
    concentration: Any
    age: Any


class GroupMeasure(NamedTuple):
    """P of one group as it moves within a sweep, and the counts of its records; all changed in place.

    theta (parameters, K), weights (K,) and masses (K, m) of the atoms, mixed (m,) the masses of P; counts
    (m,) of the bins.
    """

    theta: Any
    weights: Any
    masses: Any
    mixed: Any
    counts: Any


def sticks_for(mixing: PitmanYor, n: int) -> int | None:
    """Return how many sticks leave less than `TAIL` of n records expected; None above `MOST_STICKS`."""
    low, high = 1, MOST_STICKS
    if truncation_error(mixing, high, n) > TAIL:
        return None
    while low + 1 < high:
        middle = (low + high) // 2
        if truncation_error(mixing, middle, n) > TAIL:
            low = middle
        else:
            high = middle
    return high


def make_groups(kernel: Any, mixing: PitmanYor, counts: Ints, groups: int, sticks: int) -> GroupsState:
    """Return a state with these counts (G m,), no clusters yet, and room for twice as many as `sticks`."""
    room = max(_FEWEST, 2 * sticks)
    return GroupsState(
        counts,
        np.zeros(groups, dtype=np.int64),
        np.zeros((groups, room), dtype=np.int64),
        np.zeros((groups, theta_rows(kernel), room)),
        np.full(groups, initial_concentration(mixing)),
        np.zeros(1, dtype=np.int64),
    )


@njit
def draw_random_measure(kernel, mixing, rng, state, g, total, weights):
    """Draw P of group g given its clusters: weights and `theta`; return the number of atoms.

    `total` is the number of records of all groups together.
    """
    k, alpha, d = state.clusters[g], state.concentration[g], mixing.discount
    room = len(weights)
    left = draw_measure(rng, alpha, d, state.members[g], k, weights)
    strength, atoms = alpha + k * d, k
    while left * total > TAIL and atoms < room - 1:
        share = rng.beta(1.0 - d, strength + (atoms - k + 1) * d)
        weights[atoms] = left * share
        left *= 1.0 - share
        draw_prior(kernel, rng, state.theta[g], atoms)
        atoms += 1
    if atoms == room:
        weights[room - 1] += left
        return room
    weights[atoms] = left
    draw_prior(kernel, rng, state.theta[g], atoms)
    return atoms + 1


# Moves of the mixing measure, and of group sizes, that take the counts along.
#
# Given the counts the measure is as certain as if they were the data, however little the release says of
# them: where noise is strong, moves of one given the other go nowhere. Here a record follows its measure:
# from masses p to p' a record in bin j stays with probability min(1, p'_j / p_j), and goes else to a bin l
# with probability proportional to (p'_l - p_l)^+. For independent records of law p this joint law of both
# places has p' for the other marginal, and is its own reverse with p and p' exchanged, so that
#
#     Mult(c; p) K(c -> c') = Mult(c'; p') K'(c' -> c):
#
# what is left of the acceptance ratio is the measure's own prior and proposal, and the release's likelihood
# of c' over that of c. Likewise b records picked at random from a group, and put into another by its own
# masses, leave the law of the counts given the sizes, and the sizes are uniform a priori. As many binomial
# draws as there are bins, whatever the number of records.


@njit
def _move_along(kernel, rng, own, atoms, edges, spread, mixing, least, likelihood, latent, g, scratch):
    """Move parameters of heavy atoms, and mass between pairs of weights of `least` or more, counts along.

    g: the number of the group. Steps are of every size, from what all records of an atom would tell to what
    the base measure says.
    """
    theta, weights, masses, mixed, counts = own
    proposal, fresh, after, excess, moved = scratch
    size, first, noisy = float(np.sum(counts)), g * len(counts), latent.noisy
    heavy = np.flatnonzero(weights[:atoms] * size >= HEAVY)  # by weights alone
    for turn in range(2):
        for h in heavy:
            if turn == 0:
                seen = math.exp(rng.random() * math.log(max(size * weights[h], 1.0)))
                ratio = propose(kernel, rng, theta, h, seen, spread, proposal)
                if not ratio > -math.inf:
                    continue
            else:
                draw_prior(kernel, rng, proposal, h)
                ratio = 0.0
            fill_masses(kernel, proposal, h, edges, fresh)
            for j in range(len(mixed)):
                after[j] = max(mixed[j] + weights[h] * (fresh[j] - masses[h, j]), 0.0)
            if not couple(rng, mixed, after, counts, moved, excess):
                continue
            ratio += log_release(likelihood, noisy, first, counts, moved)
            if -rng.standard_exponential() < ratio:
                theta[:, h] = proposal[:, h]
                masses[h] = fresh
                mixed[:] = after
                counts[:] = moved
    listed = np.flatnonzero(weights[:atoms] >= least)
    if len(listed) < 2:
        return
    for place in range(len(listed)):
        a = listed[place]
        b = listed[(place + 1 + int(rng.random() * (len(listed) - 1))) % len(listed)]
        both = weights[a] + weights[b]
        if not both > 2.0 * least:
            continue
        logit = (2.0 * rng.random() - 1.0) * math.log(both / least - 1.0)
        share = 1.0 / (1.0 + math.exp(-logit))
        one, other = both * share, both / (1.0 + math.exp(logit))
        if min(one, other) < least:
            continue
        gain = one - weights[a]
        for j in range(len(mixed)):
            after[j] = max(mixed[j] + gain * (masses[a, j] - masses[b, j]), 0.0)
        if not couple(rng, mixed, after, counts, moved, excess):
            continue
        ratio = -mixing.discount * math.log(one * other / (weights[a] * weights[b]))
        ratio += log_release(likelihood, noisy, first, counts, moved)
        if -rng.standard_exponential() < ratio:
            weights[a], weights[b] = one, other
            mixed[:] = after
            counts[:] = moved


@njit
def _take_out(rng, number, counts, out):
    """Take `number` records at random out of `out`, a copy of `counts`: a multivariate hypergeometric draw.

    Drawn as binomials given their sum would be: the thinning of each bin by the same share, corrected record
    by record to the number that is wanted.
    """
    rest = int(np.sum(counts))
    share = number / rest
    taken = 0
    for j in range(len(counts)):
        if counts[j] > 0:
            gone = rng.binomial(counts[j], share)
            out[j] -= gone
            taken += gone
    while taken < number:  # one more of those that stay, at random
        u = rng.random() * (rest - taken)
        j = 0
        while j < len(out) - 1 and u >= out[j]:
            u -= out[j]
            j += 1
        out[j] -= 1
        taken += 1
    while taken > number:  # one back of those that went
        u = rng.random() * taken
        j = 0
        while j < len(out) - 1 and u >= counts[j] - out[j]:
            u -= counts[j] - out[j]
            j += 1
        out[j] += 1
        taken -= 1


@njit
def _move_sizes(rng, likelihood, noisy, counts, mixed, moved):
    """Move records from group to group, put into bins by the masses (G, m) of the one they come to.

    From which group to which is drawn for each move: the way back is a move of the other direction.
    """
    groups, bins = mixed.shape
    for _ in range(SIZE_MOVES * groups if groups > 1 else 0):
        g = int(rng.random() * groups)
        h = (g + 1 + int(rng.random() * (groups - 1))) % groups
        here = counts[g * bins : (g + 1) * bins]
        there = counts[h * bins : (h + 1) * bins]
        size, other = np.sum(here), np.sum(there)
        number = int(math.exp(rng.random() * math.log(1.0 + size + other)))
        if number > size:
            continue
        left, come = moved[0], moved[1]
        left[:] = here
        come[:] = there
        _take_out(rng, number, here, left)
        share_out(rng, number, mixed[h], np.sum(mixed[h]), come)
        ratio = log_release(likelihood, noisy, g * bins, here, left)
        ratio += log_release(likelihood, noisy, h * bins, there, come)
        if -rng.standard_exponential() < ratio:
            here[:] = left
            there[:] = come


# The sweep over counts, clusters and parameters of all groups


@njit
def _mix(weights, masses, atoms, out):
    """Set ``out[j]`` to sum_h w_h F_hj."""
    out[:] = 0.0
    for h in range(atoms):
        w = weights[h]
        for j in range(len(out)):
            out[j] += w * masses[h, j]


@njit
def _log_ratio(counts, power, mixed, proposed):
    """Return the log of prod_j (proposed / mixed)^(power c_j)."""
    total = 0.0
    for j in range(len(counts)):
        if counts[j] > 0:
            total += counts[j] * math.log(max(proposed[j], LEAST) / max(mixed[j], LEAST))
    return power * total


@njit
def _move_parameters(kernel, rng, own, atoms, edges, spread, power, room, moves):
    """Move the parameters of the heavy atoms one by one, allocations integrated out.

    By random walks scaled to so many records; those of atoms of few records also by draws of the base
    measure, which are not counted in `moves`.
    """
    theta, weights, masses, mixed, counts = own
    proposal, fresh, proposed = room
    size = power * np.sum(counts)
    heavy = np.flatnonzero(weights[:atoms] * size >= HEAVY)
    for step in range(STEPS + 1):
        for h in heavy:
            anywhere = step == STEPS
            if anywhere:
                if size * weights[h] > FEW:
                    continue
                draw_prior(kernel, rng, proposal, h)
                ratio = 0.0
            else:
                ratio = propose(kernel, rng, theta, h, size * weights[h], spread, proposal)
                moves[1] += 1.0
            if not ratio > -math.inf:
                continue
            fill_masses(kernel, proposal, h, edges, fresh)
            for j in range(len(mixed)):
                proposed[j] = max(mixed[j] + weights[h] * (fresh[j] - masses[h, j]), 0.0)
            ratio += _log_ratio(counts, power, mixed, proposed)
            if -rng.standard_exponential() < ratio:
                theta[:, h] = proposal[:, h]
                masses[h] = fresh
                mixed[:] = proposed
                if not anywhere:
                    moves[0] += 1.0


@njit
def _move_weights(rng, own, atoms, discount, least, power, proposed):
    """Move mass between pairs of atoms of a weight of `least` or more, allocations integrated out.

    Given their sum, two jumps of the process have a density proportional to (w v)^(-1 - d): on the logit of
    one's share (w v)^(-d). It moves by a normal step of any size, or anywhere; a move that would leave one
    below `least` is refused, so that the way back is as likely.
    """
    _, weights, masses, mixed, counts = own
    size = power * np.sum(counts)
    listed = np.flatnonzero(weights[:atoms] >= least)
    if len(listed) < 2:
        return
    for i in range(WEIGHT_ROUNDS * len(listed)):
        place = i % len(listed)
        a = listed[place]
        b = listed[(place + 1 + int(rng.random() * (len(listed) - 1))) % len(listed)]
        both = weights[a] + weights[b]
        if not both > 2.0 * least:
            continue
        if rng.random() < 0.5:
            spread = 2.0 * math.exp(-0.5 * rng.random() * math.log(1.0 + size * both))
            logit = math.log(weights[a] / weights[b]) + spread * rng.standard_normal()
        else:
            logit = (2.0 * rng.random() - 1.0) * math.log(both / least - 1.0)
        share = 1.0 / (1.0 + math.exp(-logit))
        first, second = both * share, both / (1.0 + math.exp(logit))
        if min(first, second) < least:
            continue
        ratio = -discount * math.log(first * second / (weights[a] * weights[b]))
        gain = first - weights[a]
        for j in range(len(mixed)):
            proposed[j] = max(mixed[j] + gain * (masses[a, j] - masses[b, j]), 0.0)
        ratio += _log_ratio(counts, power, mixed, proposed)
        if -rng.standard_exponential() < ratio:
            weights[a], weights[b] = first, second
            mixed[:] = proposed


@njit
def _allocate(rng, own, power, atoms, members, numbers, shares):
    """Draw how many records are at each atom given P, and keep the atoms that hold any; return how many."""
    theta, weights, masses, _, counts = own
    numbers[:] = 0
    for j in range(len(counts)):
        left = counts[j]
        if power < 1.0:
            wanted = power * left
            left = int(wanted)
            left += int(rng.random() < wanted - left)
        if left == 0:
            continue
        total = 0.0
        for h in range(atoms):
            shares[h] = weights[h] * masses[h, j]
            total += shares[h]
        if not total > 0.0:  # beyond what a double can tell: as the weights have it
            for h in range(atoms):
                shares[h] = weights[h]
                total += shares[h]
        h = 0
        while left > 0 and h < atoms:
            share = shares[h] / total if total > 0.0 else 1.0
            taken = left if share >= 1.0 else rng.binomial(left, share) if share > 0.0 else 0
            numbers[h] += taken
            left -= taken
            total -= shares[h]
            h += 1
        numbers[atoms - 1] += left
    k = 0
    for h in range(atoms):
        if numbers[h] > 0:
            members[k] = numbers[h]
            theta[:, k] = theta[:, h]
            k += 1
    return k


@njit
def _draw_strength(rng, mixing, alpha, n, k):
    """Move the concentration given k clusters of n records; draw it from its prior where there are none."""
    if mixing.shape <= 0.0:
        return alpha
    if n == 0:
        return rng.standard_gamma(mixing.shape) / mixing.rate
    return draw_concentration(rng, mixing, alpha, n, k)


@njit
def sweep_groups(kernel, mixing, likelihood, prior, rng, state, latent, edges, spread, moves, count, skip):
    """Do `count` sweeps; of those before `skip` the first half take powers of the counts.

    edges (m - 1,) between the bins; spread: variance of a value within one; latent: the counts of `state` as
    `dpmix.models.counts.latent_counts` takes them, prior its `GroupMasses`. Adds to `moves` (accepted, made).
    """
    groups, room = state.members.shape
    bins = len(edges) + 1
    weights, masses = np.zeros((groups, room)), np.zeros((groups, room, bins))
    atoms, mixed = np.zeros(groups, dtype=np.int64), np.zeros((groups, bins))
    scratch = (np.zeros_like(state.theta[0]), np.zeros(bins), np.zeros(bins))
    along = (scratch[0], scratch[1], scratch[2], np.zeros(bins), np.zeros(bins, dtype=np.int64))
    taken = np.zeros((2, bins), dtype=np.int64)
    numbers, shares = np.zeros(room, dtype=np.int64), np.zeros(room)
    total = np.sum(state.counts)
    for _ in range(count):
        power = ladder_power(state.age[0], skip, total)
        prior.tempered[0] = power
        for g in range(groups):
            own = _measure(state, g, weights, masses, mixed)
            k, least = state.clusters[g], LIGHT / total
            state.concentration[g] = _draw_strength(
                rng, mixing, state.concentration[g], np.sum(state.members[g, :k]), k
            )
            atoms[g] = draw_random_measure(kernel, mixing, rng, state, g, total, own.weights)
            for h in range(atoms[g]):
                fill_masses(kernel, own.theta, h, edges, own.masses[h])
            _mix(own.weights, own.masses, atoms[g], own.mixed)
            _move_parameters(kernel, rng, own, atoms[g], edges, spread, power, scratch, moves)
            _move_weights(rng, own, atoms[g], mixing.discount, least, power, scratch[2])
            if power == 1.0:
                _move_along(
                    kernel, rng, own, atoms[g], edges, spread, mixing, least, likelihood, latent, g, along
                )
        if power == 1.0:
            _move_sizes(rng, likelihood, latent.noisy, state.counts, mixed, taken)
        for g in range(groups):
            for j in range(bins):
                prior.logs[g * bins + j] = math.log(max(mixed[g, j], LEAST))
        sweep_counts(prior, likelihood, rng, latent, COUNT_ROUNDS)
        for g in range(groups):
            own = _measure(state, g, weights, masses, mixed)
            state.clusters[g] = _allocate(rng, own, power, atoms[g], state.members[g], numbers, shares)
        state.age[0] += 1


@njit
def _measure(state, g, weights, masses, mixed):
    """Return P of group g, of the atoms and masses of all groups."""
    bins = mixed.shape[1]
    counts = state.counts[g * bins : (g + 1) * bins]
    return GroupMeasure(state.theta[g], weights[g], masses[g], mixed[g], counts)
