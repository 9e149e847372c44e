"""Compiled loops of `dpmix.models.multinomial.model`: what a released posterior says of the counts behind it.

With weights w(r | c) of releasing the posterior of counts r given counts c, and Z(c) = sum_r w(r | c), the
likelihood of c is w(r | c)/Z(c).
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.numerics.jit import njit
from dpmix.posteriors.simulated_draws import apart, draw_released, rate_at
from dpmix.posteriors.weight_loops import row_of_two, weight

__all__ = [
    "log_weights_of_states",
    "log_weights_of_two",
    "sweep_exchange",
    "total_of_two",
    "totals_of_states",
    "totals_of_two",
]

_GROWTH = 1.15


@njit
def log_weights_of_two(table, unit, released, rates, top):
    """Return log w(r | c) of two categories for c = 0, .., n, shape (n + 1,); -inf where it is 0.

    table (2 n + 1,) is U(k) = T_1(k) + T_2(2 n - k) (`dpmix.posteriors.hellinger_law.folded`), released is r.
    """
    found = np.empty(rates.size)
    for c in range(rates.size):
        units = table[2 * c] + table[2 * released] - 2 * table[c + released]
        own = weight(units, unit, rates[c], top)
        found[c] = math.log(own) if own > 0.0 else -math.inf
    return found


@njit
def total_of_two(table, unit, c, rate, top):
    """Return Z(c) of two categories."""
    total: float = row_of_two(table, unit, c, rate, top, np.empty((table.size + 1) // 2))[3]
    return total


@njit
def totals_of_two(table, unit, places, rates, top, budget):
    """Return Z(c) of two categories for c in `places` (k,), and whether the sums kept within the budget.

    Where they come to more than `budget` weights, the totals are lower bounds (`_lower_total`) instead.
    """
    found = np.empty(places.size)
    scratch = np.empty((table.size + 1) // 2)
    work = 0.0
    for x in range(places.size):
        c = places[x]
        first, last, _, found[x], _ = row_of_two(table, unit, c, rates[c], top, scratch)
        work += last - first
        if work > budget:
            break
    if work <= budget:
        return found, True
    for x in range(places.size):
        found[x] = _lower_total(table, unit, places[x], rates[places[x]], top)
    return found, False


@njit
def _lower_total(table, unit, c, rate, top):
    """Return a lower bound of Z(c) within some per cent: weights fall on both sides, by growing steps."""
    n = (table.size - 1) // 2
    total = top
    for side in (-1, 1):
        room = c if side < 0 else n - c
        done = 0
        while done < room:
            here = min(max(done + 1, int(done * _GROWTH)), room)
            r = c + side * here
            own = weight(table[2 * c] + table[2 * r] - 2 * table[c + r], unit, rate, top)
            if own <= 0.0:
                break
            total += own * (here - done)
            done = here
    return total * (1.0 - 1e-9)


@njit
def totals_of_states(law, states):
    """Return Z(c) and the rate of all counts of three categories or more, each of shape (k,).

    `law` is a `dpmix.posteriors.simulated_draws.DrawTables`, states (k, d) all counts.
    """
    count = states.shape[0]
    totals, rates = np.empty(count), np.empty(count)
    for x in range(count):
        rates[x] = rate_at(law, states[x])
        total = 0.0
        for r in range(count):
            total += weight(apart(law, states[x], states[r]), law.unit, rates[x], law.top)
        totals[x] = total
    return totals, rates


@njit
def log_weights_of_states(law, states, released, rates):
    """Return log w(r | c) of all counts c of three categories or more, shape (k,); -inf where it is 0."""
    found = np.empty(states.shape[0])
    for x in range(states.shape[0]):
        own = weight(apart(law, states[x], released), law.unit, rates[x], law.top)
        found[x] = math.log(own) if own > 0.0 else -math.inf
    return found


@njit
def _log_prior(prior, counts):
    """Return the log Dirichlet-multinomial probability of counts (d,), up to a constant."""
    total = 0.0
    for i in range(counts.size):
        total += math.lgamma(prior[i] + counts[i]) - math.lgamma(counts[i] + 1.0)
    return total


@njit
def sweep_exchange(law, prior, released, rng, counts, rate, moves, sweeps):
    """Move the counts by the exchange algorithm (Murray, Ghahramani and MacKay 2006).

    An offer c' from q(c' | c) is accepted with probability

        p(c') w(r | c') q(c | c') w(s | c) / (p(c) w(r | c) q(c' | c) w(s | c')),

    where s is a further posterior, drawn given c': it brings in the normalizers Z, which cancel. A sweep has
    one offer drawn by the mechanism itself as if r were true, q(c' | c) = w(c' | r)/Z(r), and one for every
    category that moves records from one to another, their number uniform in logarithms.

    Parameters
    ----------
    law : Tables
    prior : ndarray (d,)
        Parameters of the Dirichlet prior.
    released : ndarray of int64 (d,)
        Counts r of the released posterior.
    rng : Generator
    counts : ndarray of int64 (d,)
        c, changed in place.
    rate : ndarray (1,)
        Factor of the distance in the exponent at c, changed in place.
    moves : ndarray (2,)
        Accepted and made; added to.
    sweeps : int
    """
    d = counts.size
    n = law.steps.shape[1]
    other, drawn = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    span = math.log(n + 1.0)
    around = rate_at(law, released)
    for move in range(sweeps * (d + 1)):
        moves[1] += 1.0
        gain = 0.0
        if move % (d + 1) == 0:
            ahead = draw_released(law, released, around, rng, other)
            back = weight(apart(law, released, counts), law.unit, around, law.top)
            if back <= 0.0:
                continue
            gain = math.log(back) - math.log(ahead)
        else:
            i, j = int(rng.random() * d), int(rng.random() * (d - 1))
            j += 1 if j >= i else 0
            m = int(math.exp(rng.random() * span))
            if counts[i] < m:
                continue
            other[:] = counts
            other[i] -= m
            other[j] += m
        offered = rate_at(law, other)
        theirs = weight(apart(law, other, released), law.unit, offered, law.top)
        if theirs <= 0.0:
            continue
        own = weight(apart(law, counts, released), law.unit, rate[0], law.top)
        gain += math.log(theirs) - math.log(own) + _log_prior(prior, other) - _log_prior(prior, counts)
        at_other = draw_released(law, other, offered, rng, drawn)
        at_own = weight(apart(law, counts, drawn), law.unit, rate[0], law.top)
        if at_own <= 0.0:
            continue
        gain += math.log(at_own) - math.log(at_other)
        if -rng.standard_exponential() < gain:
            counts[:] = other
            rate[0] = offered
            moves[0] += 1.0
