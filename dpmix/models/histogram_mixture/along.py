"""Moves of the mixing measure, and of group sizes, that take the counts along.

Given the counts the measure is as certain as if they were the data, however little the release says of them:
where noise is strong, moves of one given the other go nowhere. Here a record follows its measure: from
masses p to p' a record in bin j stays with probability min(1, p'_j / p_j), and goes else to a bin l with
probability proportional to (p'_l - p_l)^+. For independent records of law p this joint law of both places
has p' for the other marginal, and is its own reverse with p and p' exchanged, so that

    Mult(c; p) K(c -> c') = Mult(c'; p') K'(c' -> c):

what is left of the acceptance ratio is the measure's own prior and proposal, and the release's likelihood of
c' over that of c. Likewise b records picked at random from a group, and put into another by its own masses,
leave the law of the counts given the sizes, and the sizes are uniform a priori. As many binomial draws as
there are bins, whatever the number of records.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix._jit import njit
from dpmix.kernels.base import draw_prior, fill_masses, propose
from dpmix.models.cell_counts import log_count

__all__ = ["move_along", "move_sizes"]

SIZE_MOVES = 4  # of each group in a sweep


@njit
def _share_out(rng, number, shares, total, out, sign):
    """Add `sign` times a multinomial draw of `number` to `out`; `shares` (m,) sum to `total`."""
    last = 0
    for j in range(len(shares)):
        if number == 0:
            return
        if shares[j] > 0.0:
            last = j
            share = shares[j] / total if total > 0.0 else 1.0
            taken = number if share >= 1.0 else rng.binomial(number, share)
            out[j] += sign * taken
            number -= taken
            total -= shares[j]
    out[last] += sign * number


@njit
def _couple(rng, before, after, counts, proposed, excess):
    """Draw counts of records that follow masses from `before` to `after`; False where they cannot."""
    moved, total = 0, 0.0
    for j in range(len(counts)):
        proposed[j] = counts[j]
        gap = before[j] - after[j]
        excess[j] = max(-gap, 0.0)
        total += excess[j]
        if gap > 0.0 and counts[j] > 0:
            left = rng.binomial(counts[j], min(gap / before[j], 1.0))
            proposed[j] -= left
            moved += left
    if moved == 0:
        return True
    if not total > 0.0:  # they differ by rounding alone
        return False
    _share_out(rng, moved, excess, total, proposed, 1)
    return True


@njit
def _log_release(likelihood, noisy, first, counts, proposed):
    """Return the log likelihood ratio of proposed counts (m,) to those there are, from bin `first` on."""
    total = 0.0
    for j in range(len(counts)):
        if counts[j] != proposed[j]:
            total += log_count(likelihood, noisy, first + j, float(proposed[j]))
            total -= log_count(likelihood, noisy, first + j, float(counts[j]))
    return total


@njit
def move_along(
    kernel,
    discount,
    least,
    likelihood,
    rng,
    theta,
    edges,
    spread,
    noisy,
    first,
    counts,
    heavy,
    atoms,
    weights,
    masses,
    mixed,
    scratch,
):
    """Move parameters of heavy atoms, and mass between pairs of weights of `least` or more, counts along.

    first: the group's first bin among all; heavy: atoms, chosen by weights alone. Steps are of every size,
    from what all records of an atom would tell to what the base measure says.
    """
    proposal, fresh, after, excess, moved = scratch
    size = float(np.sum(counts))
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
            if not _couple(rng, mixed, after, counts, moved, excess):
                continue
            ratio += _log_release(likelihood, noisy, first, counts, moved)
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
        if not _couple(rng, mixed, after, counts, moved, excess):
            continue
        ratio = -discount * math.log(one * other / (weights[a] * weights[b]))
        ratio += _log_release(likelihood, noisy, first, counts, moved)
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
def move_sizes(rng, likelihood, noisy, counts, mixed, moved):
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
        _share_out(rng, number, mixed[h], np.sum(mixed[h]), come, 1)
        ratio = _log_release(likelihood, noisy, g * bins, here, left)
        ratio += _log_release(likelihood, noisy, h * bins, there, come)
        if -rng.standard_exponential() < ratio:
            here[:] = left
            there[:] = come
