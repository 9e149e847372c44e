"""Moves of atoms, allocations integrated out: of pairs, of their number, of all that is light, of several.

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

**Jumps.** Seen as a Poisson process, those of a gamma process have the intensity alpha w^-1 e^-w dw
G0(dtheta); moves keep the total. So k atoms {(w_h, theta_h)} with their sum kept have the density prod_h
alpha w_h^-1 g0(theta_h), and the moves are reversible jumps on it (Green 1995). With weights w = u + (w - u),
x = logit(u / w), the ratio of the two jumps' density to the one's is alpha w / (u (w - u)) du = alpha dx:
flat in x. k counts atoms of weight l or more, W is their sum. Others are left alone: they are drawn anew in
each sweep.

**Birth.** A donor, of weight w, is picked in proportion to weight (w / W); it gives u, with x uniform on
(-L, 0), L = log(w / l - 1), to a new atom with theta ~ G0. **Death** of i into j: i is picked out of k + 1
atoms, j in proportion to weight among the others; refused where w_i > w_j. With v = w - u the ratio of a
birth is

    alpha L / (k + 1)  (v / (W - u)) / (w / W)  times that of the likelihoods,

and its inverse that of a death, k + 1 the number before it.

**Split.** One is picked in proportion to weight and split with x uniform on (-L, L), and d = c sqrt(V) e_1,
rho = e_2 with e normal, its mean M and variance V kept (as above, by which dm_1
dm_2 dlog v_1 dlog v_2 = V / R dM dlog V dd drho). **Merge**: the first is picked in proportion to weight, the
second among the others evenly, so that an unordered pair has probability (w_1 + w_2) / (W k) out of k + 1. A
pair comes from either of two orders of the split, equally likely: its density is (w / W) 2 q, q = (1 / 2L)
N(d; 0, c^2 V) N(rho; 0, 1), but for what is cut off at e_1^2 + e_2^2 = 60, a share of 1e-13. So the ratio of
a split is

    alpha / (2 k q)  (V / R)  g0(1) g0(2) / g0(M, V)  times that of the likelihoods,

g0 in means and log variances, and its inverse that of a merge, k + 1 the number before it.

**Light.** In an order drawn by weight without replacement the atoms of P are broken off by sticks v_1, v_2,
.. ~ Beta(1, alpha), each with a parameter of its own from G0 (Pitman 1996). Stop with the first J sticks that
leave a mass R = prod_j (1 - v_j) of r or less, r whatever the state is. Given these sticks alone alpha has
the law Gamma(a + J, b - log R), and all behind them is a Dirichlet process again: the proposal draws both, so
that of the acceptance ratio that of the likelihoods is left.

Where single records made the number of clusters, and that the concentration, both move by a root of their
number at a time; the smaller R, the less the data can object, and the more sticks hold the concentration
where it is: log r is uniform.

**Langevin steps** move several atoms together: their shares of their mass, and the parameters of each. With
x_j = log(w_j / w_m), j < m, at a fixed sum of the m weights, and the two coordinates of each component: the
weights' prior, jumps of a gamma process with density prod_j w_j^-1 given their sum, is uniform in x (dw_1 ..
dw_(m-1) = prod_j w_j / W dx). The likelihood is prod_c p_c^N_c, p_c = sum_h w_h G_c(theta_h), with

    dp_c/dx_j = w_j (G_cj - sum_i w_i G_ci / W),    dp_c/dtheta_j = w_j dG_c/dtheta_j.

The proposal from phi is N(phi + e^2/2 M^-1 grad, e^2 M^-1), e = 1, M the Fisher information of the cells,
sum_c N_c grad p_c grad p_c' / p_c^2, plus a damping times the prior's curvature; the way back is weighed with
gradient and metric at the proposal (Girolami and Calderhead 2011, without the metric's derivatives). Where
the data say much M makes steps of the posterior's own size in all its correlations. Where they say little a
step as long as the prior would leave the ridge on which the likelihood is large: damping shortens those
directions alone (Levenberg 1944). It is drawn for each step, whatever the state, around a level that adapts
in burn-in.

Which atoms move is chosen by what the step keeps, so that the choice is as likely on the way back: all those
above a weight, if all stay above it; one picked by its weight, which does not change; two of those above a
weight.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels.kernel_functions import draw_prior, log_prior
from dpmix.models.counts_mixture.coordinates import (
    log_prior_moments,
    moments,
    place,
    place_moments,
    prior_slopes,
    walk,
)
from dpmix.models.counts_mixture.masses import fill_rows, fill_slopes
from dpmix.models.counts_mixture.source import log_gain, take_over, weigh
from dpmix.numerics.factors import cholesky, solve_lower, solve_transposed
from dpmix.numerics.jit import njit
from dpmix.numerics.loops import LEAST, dot

_ANYWHERE = 0.5  # share of moves of mass that go anywhere
_NARROWEST = 5.0  # log of how much smaller the smallest steps of a pair's shape are than the largest
_HOPELESS = -100.0  # log of a ratio below which nothing more is computed
_APART = 0.8  # c
_FAR = 60.0  # e_1^2 + e_2^2, held below it
_LOG_2PI = math.log(2.0 * math.pi)
_LONGEST = 4.0  # of the drift in the metric, times the root of the dimension, for starts far out
_FLAT = 0.1  # curvature that stands for the flat prior of log ratios of weights
_PART = 0.5  # e^2 / 2

# Atoms: which of them, and how one takes the place of another


@njit
def list_atoms(work, atoms, least):
    """List atoms of a weight of `least` or more in `work.chosen`; return how many, and their weight."""
    k, total = 0, 0.0
    for h in range(atoms):
        if work.weights[h] >= least:
            work.chosen[k] = h
            k += 1
            total += work.weights[h]
    return k, total


@njit
def pick(rng, work, k, total, but):
    """Return one of the listed atoms in proportion to weight, other than atom `but`; `total` is theirs."""
    z = rng.random() * total
    found = -1
    for i in range(k):
        h = work.chosen[i]
        if h != but:
            found = h
            z -= work.weights[h]
            if z < 0.0:
                break
    return found


@njit
def copy_atom(theta, work, source, target):
    """Copy parameters, masses and slopes of an atom to another place; its weight is the caller's."""
    work.sloped[target] = work.sloped[source]
    for i in range(len(theta)):
        theta[i, target] = theta[i, source]
    _copy(work.rows[source], work.rows[target])


@njit
def adopt(work, theta, place, slot):
    """Take over the proposed component `slot` as atom `place`."""
    for i in range(len(theta)):
        theta[i, place] = work.theta_at[i, slot]
    _copy(work.rows_at[slot], work.rows[place])
    work.sloped[place] = work.sloped_at[slot]


@njit
def adopt_along(work, theta, h):
    """Take over what is proposed for atom h with all others."""
    for i in range(len(theta)):
        theta[i, h] = work.theta_at[i, h]
    _copy(work.rows_along[h], work.rows[h])
    work.sloped[h] = work.sloped_along[h]


@njit
def _copy(source, target):
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]


@njit
def _move_last(work, theta, place, atoms):
    """Put the last atom into `place`, which is free; return how many there are then."""
    last = atoms - 1
    if place != last:
        work.weights[place] = work.weights[last]
        copy_atom(theta, work, last, place)
    return last


@njit
def _shift(work, gain, new, old):
    """Propose the masses of the cells that P has with so much more weight on masses `new`, less on `old`."""
    mixed = work.mixed
    for c in range(len(mixed)):
        work.proposed[c] = max(mixed[c] + gain * (new[c] - old[c]), LEAST)


@njit
def _accepts(rng, work, ratio):
    """Return whether a proposal is accepted, and adopt it; `ratio`: the log of all but the likelihoods."""
    ratio += log_gain(work.source, rng, work)
    if not -rng.standard_exponential() < ratio:
        return False
    take_over(work.source, work)
    return True


# Mass and shape of a pair


@njit
def move_mass(rng, work, a, b, least, total):
    """Move mass between atoms a and b; `total` records. Return whether it did."""
    weights = work.weights
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
    _shift(work, first - weights[a], work.rows[a, 0], work.rows[b, 0])
    if not -rng.standard_exponential() < log_gain(work.source, rng, work):
        return False
    weights[a], weights[b] = first, second
    take_over(work.source, work)
    return True


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
    if not _accepts(rng, work, ratio):
        return False
    weights[a], weights[b] = first, second
    adopt(work, theta, a, 0)
    adopt(work, theta, b, 1)
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


# Births, deaths, splits and merges of atoms of at least a weight l


@njit
def jump(channel, kernel, rng, theta, cells, work, atoms, least, alpha):
    """Propose a birth, death, split or merge; return the number of atoms."""
    k, total = list_atoms(work, atoms, least)
    kind = int(4.0 * rng.random())
    room = k > 0 and atoms < len(work.weights)
    if kind == 0 and room:
        return _birth(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total)
    if kind == 1 and k > 1:
        return _death(rng, theta, work, atoms, least, alpha, k, total)
    if kind == 2 and room:
        return _split(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total)
    if kind == 3 and k > 1:
        return _merge(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total)
    return atoms


@njit
def _birth(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total):
    weights = work.weights
    donor = pick(rng, work, k, total, -1)
    weight = weights[donor]
    if not weight > 2.0 * least:
        return atoms
    length = math.log(weight / least - 1.0)
    logit = -length * rng.random()
    gift, rest = weight / (1.0 + math.exp(-logit)), weight / (1.0 + math.exp(logit))
    if not gift >= least:
        return atoms
    draw_prior(kernel, rng, theta, atoms)
    work.sloped[atoms] = fill_rows(channel, kernel, theta, atoms, cells, work.rows[atoms])
    _shift(work, gift, work.rows[atoms, 0], work.rows[donor, 0])
    ratio = math.log(alpha * length / (k + 1) * (rest / (total - gift)) * (total / weight))
    if not _accepts(rng, work, ratio):
        return atoms
    weights[donor], weights[atoms] = rest, gift
    return atoms + 1


@njit
def _death(rng, theta, work, atoms, least, alpha, k, total):
    weights = work.weights
    gone = work.chosen[int(rng.random() * k)]
    gift = weights[gone]
    heir = pick(rng, work, k, total - gift, gone)
    rest = weights[heir]
    if gift > rest:
        return atoms
    weight = gift + rest
    length = math.log(weight / least - 1.0)
    _shift(work, gift, work.rows[heir, 0], work.rows[gone, 0])
    ratio = -math.log(alpha * length / k * (rest / (total - gift)) * (total / weight))
    if not _accepts(rng, work, ratio):
        return atoms
    weights[heir] = weight
    return _move_last(work, theta, gone, atoms)


@njit
def _log_split(kernel, theta, whole, parts, a, b, variance, inner, gap, log_odds, length, alpha, k):
    """Return the log ratio, but for data, of a split of ``theta[:, whole]`` into parts a and b.

    k: the number of atoms before it, which is that after a merge.
    """
    spread = _APART * math.sqrt(variance)
    e = gap / spread
    log_q = -math.log(2.0 * length * spread) - 0.5 * (e * e + log_odds * log_odds) - _LOG_2PI
    ratio = log_prior_moments(kernel, parts, a) + log_prior_moments(kernel, parts, b)
    ratio -= log_prior_moments(kernel, theta, whole)
    return ratio + math.log(variance / inner) + math.log(0.5 * alpha / k) - log_q


@njit
def _split(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total):
    weights, mixed = work.weights, work.mixed
    h = pick(rng, work, k, total, -1)
    weight = weights[h]
    if not weight > 2.0 * least:
        return atoms
    length = math.log(weight / least - 1.0)
    logit = length * (2.0 * rng.random() - 1.0)
    first, second = weight / (1.0 + math.exp(-logit)), weight / (1.0 + math.exp(logit))
    mean, variance, _, _, _ = common(kernel, theta, h, h, 0.5)
    gap = _APART * math.sqrt(variance) * rng.standard_normal()
    log_odds = rng.standard_normal()
    e = gap / (_APART * math.sqrt(variance))
    if not (min(first, second) >= least and e * e + log_odds * log_odds < _FAR):
        return atoms
    inner = part(kernel, mean, variance, 1.0 / (1.0 + math.exp(-logit)), gap, log_odds, work.theta_at)
    if not inner > 0.0:
        return atoms
    ratio = _log_split(
        kernel, theta, h, work.theta_at, 0, 1, variance, inner, gap, log_odds, length, alpha, k
    )
    for j in range(2):
        work.sloped_at[j] = fill_rows(channel, kernel, work.theta_at, j, cells, work.rows_at[j])
    one, other, old = work.rows_at[0, 0], work.rows_at[1, 0], work.rows[h, 0]
    for c in range(len(mixed)):
        change = first * one[c] + second * other[c] - weight * old[c]
        work.proposed[c] = max(mixed[c] + change, LEAST)
    if not _accepts(rng, work, ratio):
        return atoms
    weights[h], weights[atoms] = first, second
    adopt(work, theta, h, 0)
    adopt(work, theta, atoms, 1)
    return atoms + 1


@njit
def _merge(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total):
    weights, mixed = work.weights, work.mixed
    a = pick(rng, work, k, total, -1)
    place = int(rng.random() * (k - 1))
    b = work.chosen[place]
    if b >= a:  # the list is in increasing order
        b = work.chosen[place + 1]
    weight = weights[a] + weights[b]
    length = math.log(weight / least - 1.0)
    mean, variance, inner, gap, log_odds = common(kernel, theta, a, b, weights[a] / weight)
    e = gap / (_APART * math.sqrt(variance))
    if not e * e + log_odds * log_odds < _FAR:
        return atoms
    if not place_moments(kernel, mean, variance, work.theta_at, 0):
        return atoms
    ratio = -_log_split(
        kernel, work.theta_at, 0, theta, a, b, variance, inner, gap, log_odds, length, alpha, k - 1
    )
    work.sloped_at[0] = fill_rows(channel, kernel, work.theta_at, 0, cells, work.rows_at[0])
    new, one, other = work.rows_at[0, 0], work.rows[a, 0], work.rows[b, 0]
    for c in range(len(mixed)):
        change = weight * new[c] - (weights[a] * one[c] + weights[b] * other[c])
        work.proposed[c] = max(mixed[c] + change, LEAST)
    if not _accepts(rng, work, ratio):
        return atoms
    weights[a] = weight
    adopt(work, theta, a, 0)
    return _move_last(work, theta, b, atoms)


# The concentration and all that is light, drawn anew together


@njit
def redraw_light(channel, kernel, mixing, rng, theta, cells, work, atoms, total, tail, alpha):
    """Draw the concentration and the atoms behind some sticks; return their number and the concentration.

    total: the number of records; tail: how many may be expected on what is not broken off.
    """
    sticks, left = _break_off(rng, work, atoms, math.exp(-rng.random() * math.log(1.0 + total)))
    if sticks == atoms or not left > 0.0:
        return atoms, alpha
    proposed, mixed, weights, room = work.proposed, work.mixed, work.weights, len(work.weights)
    for c in range(len(mixed)):
        proposed[c] = mixed[c]
    for i in range(sticks, atoms):
        h = work.chosen[i]
        weight, masses = weights[h], work.rows[h, 0]
        for c in range(len(mixed)):
            proposed[c] -= weight * masses[c]
    other = alpha
    if mixing.shape > 0.0:
        other = max(rng.standard_gamma(mixing.shape + sticks) / (mixing.rate - math.log(left)), 1e-12)
    end = atoms
    while True:
        if end == room:
            return atoms, alpha
        more = left * total > tail
        share = rng.beta(1.0, other) if more else 1.0
        weight = left * share
        left *= 1.0 - share
        weights[end] = weight
        draw_prior(kernel, rng, theta, end)
        work.sloped[end] = fill_rows(channel, kernel, theta, end, cells, work.rows[end])
        masses = work.rows[end, 0]
        for c in range(len(mixed)):
            proposed[c] += weight * masses[c]
        end += 1
        if not more:
            break
    for c in range(len(mixed)):
        proposed[c] = max(proposed[c], LEAST)
    if not -rng.standard_exponential() < log_gain(work.source, rng, work):
        return atoms, alpha
    take_over(work.source, work)
    for h in range(end):
        work.numbers[h] = 1 if h >= atoms else 0
    for i in range(sticks):
        work.numbers[work.chosen[i]] = 1
    return _compact(theta, work, end), other


@njit
def _break_off(rng, work, atoms, most):
    """List all atoms in `work.chosen` in an order drawn by weight, until `most` or less is left.

    Return the number of sticks, and the mass that is left behind them.
    """
    order, weights = work.chosen, work.weights
    for h in range(atoms):
        order[h] = h
    for j in range(atoms):
        left = 0.0
        for i in range(j, atoms):
            left += weights[order[i]]
        if left <= most:
            return j, left
        z = left * rng.random()
        found = atoms - 1
        for i in range(j, atoms):
            z -= weights[order[i]]
            if z < 0.0:
                found = i
                break
        order[j], order[found] = order[found], order[j]
    return atoms, 0.0


@njit
def _compact(theta, work, atoms):
    """Keep the atoms that `work.numbers` marks; return how many."""
    k = 0
    for h in range(atoms):
        if work.numbers[h] == 0:
            continue
        if h != k:
            work.weights[k] = work.weights[h]
            copy_atom(theta, work, h, k)
        k += 1
    return k


# Langevin steps of several atoms


@njit
def langevin(channel, kernel, rng, theta, cells, work, m, least, damping):
    """Take one step of the atoms ``work.chosen[:m]``, none to fall below `least`; return its acceptance."""
    chosen, size = work.chosen, 3 * m - 1
    vectors, mixed, proposed = work.vectors, work.mixed, work.proposed
    drift, back, x, y, noise = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    for j in range(m):
        h = chosen[j]
        if not work.sloped[h]:
            fill_slopes(channel, kernel, theta, h, cells, work.rows[h])
            work.sloped[h] = True
    here = _look(kernel, work, theta, m, False, damping, drift)
    if not here > -math.inf:
        return 0.0
    for j in range(m):
        h = chosen[j]
        if j < m - 1:
            x[j] = math.log(work.weights[h] / work.weights[chosen[m - 1]])
        x[m - 1 + j], x[2 * m - 1 + j] = walk(kernel, theta, h)
    ratio = 0.0
    for i in range(size):
        noise[i] = rng.standard_normal()
        ratio += 0.5 * noise[i] * noise[i] - math.log(work.metric[i, i])
        y[i] = noise[i]
    solve_transposed(work.metric, y[:size])
    for i in range(size):
        y[i] += x[i] + _PART * drift[i]
    if not _propose(kernel, work, chosen, m, least, y):
        return 0.0
    for c in range(len(mixed)):
        proposed[c] = mixed[c]
    for j in range(m):
        h = chosen[j]
        work.sloped_at[j] = fill_rows(channel, kernel, work.theta_at, h, cells, work.rows_at[j])
        after, before = work.weights_at[h], work.weights[h]
        masses, old = work.rows_at[j, 0], work.rows[h, 0]
        for c in range(len(mixed)):
            proposed[c] += after * masses[c] - before * old[c]
    for c in range(len(mixed)):
        proposed[c] = max(proposed[c], LEAST)
    gain = log_gain(work.source, rng, work)
    if not gain > _HOPELESS:
        return 0.0
    ratio += gain
    for j in range(m):
        if not work.sloped_at[j]:
            fill_slopes(channel, kernel, work.theta_at, chosen[j], cells, work.rows_at[j])
    there = _look(kernel, work, work.theta_at, m, True, damping, back)
    if not there > -math.inf:
        return 0.0
    ratio += there - here
    for i in range(size):
        gap = 0.0
        for k in range(i, size):
            gap += work.metric_at[k, i] * (x[k] - y[k] - _PART * back[k])
        ratio += math.log(work.metric_at[i, i]) - 0.5 * gap * gap
    if not ratio > -math.inf:
        return 0.0
    acceptance = math.exp(min(ratio, 0.0))
    if rng.random() < acceptance:
        for j in range(m):
            h = chosen[j]
            work.weights[h] = work.weights_at[h]
            for i in range(len(theta)):
                theta[i, h] = work.theta_at[i, h]
            _copy(work.rows_at[j], work.rows[h])
            work.sloped[h] = True
        take_over(work.source, work)
    return acceptance


@njit
def _look(kernel, work, theta, m, after, damping, drift):
    """Set the metric to the factor of M and `drift` to M^-1 grad, held to a length; return the log prior.

    after: whether at the proposal, where the j-th chosen atom has row j. Minus infinity where there is no
    such metric.
    """
    chosen, of = work.chosen, np.arange(m) if after else work.chosen
    weights, rows = (work.weights_at, work.rows_at) if after else (work.weights, work.rows)
    mixed, metric = (work.proposed, work.metric_at) if after else (work.mixed, work.metric)
    cells, size = len(mixed), 3 * m - 1
    basis = work.basis
    mean, factor = basis[size], basis[size + 1]
    pulls = weigh(work.source, work, mixed, after, factor)
    for c in range(cells):
        mean[c] = 0.0
    if m > 1:
        total = 0.0
        for j in range(m):
            total += weights[chosen[j]]
        for j in range(m):
            share, masses = weights[chosen[j]] / total, rows[of[j], 0]
            for c in range(cells):
                mean[c] += share * masses[c]
        for j in range(m - 1):
            weight, masses, row = weights[chosen[j]], rows[of[j], 0], basis[j]
            for c in range(cells):
                row[c] = weight * (masses[c] - mean[c]) * factor[c]
    for k in range(2):
        for j in range(m):
            weight, slopes, row = weights[chosen[j]], rows[of[j], 1 + k], basis[m - 1 + k * m + j]
            for c in range(cells):
                row[c] = weight * slopes[c] * factor[c]
    for i in range(size):
        drift[i] = dot(basis[i], pulls)
        for k in range(i + 1):
            metric[i, k] = dot(basis[i], basis[k])
    for i in range(m - 1):
        for k in range(i + 1):
            metric[i, k] += damping * _FLAT * ((1.0 if i == k else 0.0) - 1.0 / m)
    value = 0.0
    for j in range(m):
        h = chosen[j]
        value += log_prior(kernel, theta, h)
        slope, other, curvature, other_curvature = prior_slopes(kernel, theta, h)
        at = m - 1 + j
        drift[at] += slope
        metric[at, at] += damping * curvature
        drift[at + m] += other
        metric[at + m, at + m] += damping * other_curvature
    own = metric[:size, :size]
    if not cholesky(own, own):
        return -math.inf
    length = solve_lower(metric, drift[:size])
    solve_transposed(metric, drift[:size])
    most = _LONGEST * math.sqrt(size)
    length = math.sqrt(length)
    if length > most:
        for i in range(size):
            drift[i] *= most / length
    return value


@njit
def _propose(kernel, work, chosen, m, least, y):
    """Set weights and parameters of the chosen atoms to those at y; False where they may not be."""
    top = total = 0.0
    for j in range(m):
        total += work.weights[chosen[j]]
    for j in range(m - 1):
        top = max(top, y[j])
    scale = math.exp(-top)
    for j in range(m - 1):
        scale += math.exp(y[j] - top)
    for j in range(m):
        h = chosen[j]
        work.weights_at[h] = total * (math.exp((y[j] if j < m - 1 else 0.0) - top) / scale)
        if not work.weights_at[h] >= least:
            return False
        if not place(kernel, y[m - 1 + j], y[2 * m - 1 + j], work.theta_at, h):
            return False
    return True
