"""Moves of two atoms: mass from one to the other, and both with what they have in common kept.

**Mass.** Given their sum, two jumps of the process have a density proportional to (w v)^-1; on the logit of
one's share that is flat (d share = share (1 - share) d logit). The logit moves by a normal step of any size,
or to anywhere; what would leave one below the least weight is refused. Both are symmetric.

**Shape.** With s the share of the first, M = s m_1 + (1 - s) m_2 and V = R + s (1 - s) d^2 the mean and
variance of the pair, d = m_1 - m_2, R = s v_1 + (1 - s) v_2, and rho = log(v_1 / v_2): the likelihood sees
little but M and V where components overlap, so that (logit s, d, rho) move, by symmetric steps, with M, V and
the pair's weight kept. Back from there, v_2 = R / (s e^rho + 1 - s), v_1 = e^rho v_2, m_1 = M + (1 - s) d,
m_2 = M - s d. The Jacobian: (m_1, m_2) to (M, d) has determinant 1; with D = s e^rho + 1 - s, log v_1 = log R
+ rho - log D and log v_2 = log R - log D have the determinant |(1)(-D'/D) - (1 - D'/D)| = 1 by (log R, rho);
and dR = dV at fixed s and d. Hence

    dm_1 dm_2 dlog v_1 dlog v_2 = dM dd dV drho / R,

and the ratio is that of prior (in means and log variances) times likelihood over R. For kernels where not all
means and variances are possible, those that are not are refused.

The first of a pair is one of the heavy atoms, the second any above the least weight; a move that would change
which these are is refused, so that the pair is as likely to be chosen on the way back.
"""

from __future__ import annotations

import math

from dpmix.models.counts_mixture.coordinates import log_prior_moments, place_moments
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.source import log_gain, take_over
from dpmix.models.histogram_mixture.model import moments
from dpmix.numerics.jit import njit

__all__ = ["adopt", "common", "copy_atom", "move_mass", "move_pair", "part"]

_ANYWHERE = 0.5  # share of moves of mass that go anywhere
_NARROWEST = 5.0  # log of how much smaller the smallest steps of a pair's shape are than the largest
_HOPELESS = -100.0


@njit
def move_mass(rng, work, a, b, least, total):
    """Move mass between atoms a and b; `total` records. Return whether it did."""
    weights, mixed, proposed = work.weights, work.mixed, work.proposed
    both = weights[a] + weights[b]
    if not both > 2.0 * least:
        return False
    if rng.random() < _ANYWHERE:
        logit = (2.0 * rng.random() - 1.0) * math.log(both / least - 1.0)
    else:
        spread = 3.0 * math.exp(-0.5 * rng.random() * math.log(1.0 + total * both))
        logit = math.log(weights[a] / weights[b]) + spread * rng.standard_normal()
    first, second = both / (1.0 + math.exp(-logit)), both / (1.0 + math.exp(logit))
    if not min(first, second) >= least:
        return False
    gain, one, other = first - weights[a], work.rows[a, 0], work.rows[b, 0]
    for c in range(len(mixed)):
        proposed[c] = max(mixed[c] + gain * (one[c] - other[c]), LEAST)
    if not -rng.standard_exponential() < log_gain(work.source, rng, work):
        return False
    weights[a], weights[b] = first, second
    take_over(work.source, work)
    return True


@njit
def common(kernel, theta, a, b, share):
    """Return M, V, R, d and rho of two components, the first with this share of their weight."""
    mean_a, variance_a = moments(kernel, theta, a)
    mean_b, variance_b = moments(kernel, theta, b)
    gap = mean_a - mean_b
    inner = share * variance_a + (1.0 - share) * variance_b
    outer = share * (1.0 - share) * gap * gap
    middle = share * mean_a + (1.0 - share) * mean_b
    return middle, inner + outer, inner, gap, math.log(variance_a / variance_b)


@njit
def part(kernel, mean, variance, share, gap, log_odds, theta):
    """Set theta[:, 0] and theta[:, 1] to the two components; return R, 0 where there are none.

    mean, variance: of the pair; gap, log_odds: d and rho.
    """
    rest = 1.0 - share
    inner = variance - share * rest * gap * gap
    if not (inner > 0.0 and abs(log_odds) < 100.0):
        return 0.0
    second = inner / (share * math.exp(log_odds) + rest)
    if not place_moments(kernel, mean + rest * gap, second * math.exp(log_odds), theta, 0):
        return 0.0
    if not place_moments(kernel, mean - share * gap, second, theta, 1):
        return 0.0
    return inner


@njit
def copy_atom(theta, work, source, target):
    """Copy parameters, masses and slopes of an atom to another place; its weight is the caller's."""
    work.sloped[target] = work.sloped[source]
    for i in range(len(theta)):
        theta[i, target] = theta[i, source]
    own, other = work.rows[source], work.rows[target]
    for i in range(own.shape[0]):
        for c in range(own.shape[1]):
            other[i, c] = own[i, c]


@njit
def adopt(work, theta, place, slot):
    """Take over the proposed component `slot` as atom `place`."""
    for i in range(len(theta)):
        theta[i, place] = work.theta_at[i, slot]
    source, target = work.rows_at[slot], work.rows[place]
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]
    work.sloped[place] = work.sloped_at[slot]


@njit
def move_pair(channel, kernel, rng, theta, cells, work, a, b, heavy, least):
    """Move the shape of atoms a, a heavy one, and b; return whether it did."""
    weights, mixed, proposed = work.weights, work.mixed, work.proposed
    both, was_heavy = weights[a] + weights[b], weights[b] >= heavy
    mean, variance, inner, gap, log_odds = common(kernel, theta, a, b, weights[a] / both)
    scale = math.exp(-_NARROWEST * rng.random())
    logit = math.log(weights[a] / weights[b]) + 2.0 * scale * rng.standard_normal()
    gap += math.sqrt(variance) * scale * rng.standard_normal()
    log_odds += 2.0 * scale * rng.standard_normal()
    first, second = both / (1.0 + math.exp(-logit)), both / (1.0 + math.exp(logit))
    if not (first >= heavy and second >= least and (second >= heavy) == was_heavy):
        return False
    after = part(kernel, mean, variance, 1.0 / (1.0 + math.exp(-logit)), gap, log_odds, work.theta_at)
    if not after > 0.0:
        return False
    ratio = log_prior_moments(kernel, work.theta_at, 0) + log_prior_moments(kernel, work.theta_at, 1)
    ratio -= log_prior_moments(kernel, theta, a) + log_prior_moments(kernel, theta, b)
    ratio -= math.log(after / inner)
    if not ratio > _HOPELESS:
        return False
    for j in range(2):
        work.sloped_at[j] = fill_rows(channel, kernel, work.theta_at, j, cells, work.rows_at[j])
    one, other = work.rows_at[0, 0], work.rows_at[1, 0]
    old_one, old_other = work.rows[a, 0], work.rows[b, 0]
    for c in range(len(mixed)):
        change = (first * one[c] - weights[a] * old_one[c]) + (second * other[c] - weights[b] * old_other[c])
        proposed[c] = max(mixed[c] + change, LEAST)
    ratio += log_gain(work.source, rng, work)
    if not -rng.standard_exponential() < ratio:
        return False
    weights[a], weights[b] = first, second
    adopt(work, theta, a, 0)
    adopt(work, theta, b, 1)
    take_over(work.source, work)
    return True
