"""Births, deaths, splits and merges of atoms of at least a weight l, allocations integrated out.

Seen as a Poisson process, jumps of a gamma process have the intensity alpha w^-1 e^-w dw G0(dtheta); moves
keep the total. So k atoms {(w_h, theta_h)} with their sum kept have the density prod_h alpha w_h^-1
g0(theta_h), and the moves are reversible jumps on it (Green 1995). With weights w = u + (w - u), x =
logit(u / w), the ratio of the two jumps' density to the one's is alpha w / (u (w - u)) du = alpha dx: flat in
x. k counts atoms of weight l or more, W is their sum. Others are left alone: they are drawn anew in each
sweep.

**Birth.** A donor, of weight w, is picked in proportion to weight (w / W); it gives u, with x uniform on
(-L, 0), L = log(w / l - 1), to a new atom with theta ~ G0. **Death** of i into j: i is picked out of k + 1
atoms, j in proportion to weight among the others; refused where w_i > w_j. With v = w - u the ratio of a
birth is

    alpha L / (k + 1)  (v / (W - u)) / (w / W)  times that of the likelihoods,

and its inverse that of a death, k + 1 the number before it.

**Split.** One is picked in proportion to weight and split with x uniform on (-L, L), and d = c sqrt(V) e_1,
rho = e_2 with e normal, its mean M and variance V kept (`dpmix.models.counts_mixture.pairs`, by which dm_1
dm_2 dlog v_1 dlog v_2 = V / R dM dlog V dd drho). **Merge**: the first is picked in proportion to weight, the
second among the others evenly, so that an unordered pair has probability (w_1 + w_2) / (W k) out of k + 1. A
pair comes from either of two orders of the split, equally likely: its density is (w / W) 2 q, q = (1 / 2L)
N(d; 0, c^2 V) N(rho; 0, 1), but for what is cut off at e_1^2 + e_2^2 = 60, a share of 1e-13. So the ratio of
a split is

    alpha / (2 k q)  (V / R)  g0(1) g0(2) / g0(M, V)  times that of the likelihoods,

g0 in means and log variances, and its inverse that of a merge, k + 1 the number before it.
"""

from __future__ import annotations

import math

from dpmix.kernels.kernel_functions import draw_prior
from dpmix.models.counts_mixture.coordinates import log_prior_moments, place_moments
from dpmix.models.counts_mixture.loops import LEAST
from dpmix.models.counts_mixture.masses import fill_rows
from dpmix.models.counts_mixture.pairs import adopt, common, copy_atom, part
from dpmix.models.counts_mixture.source import log_gain, take_over
from dpmix.numerics.jit import njit

__all__ = ["jump"]

_APART = 0.8  # c
_FAR = 60.0  # e_1^2 + e_2^2, held below it
_LOG_2PI = math.log(2.0 * math.pi)


@njit
def _list(work, atoms, least):
    """List atoms of a weight of `least` or more in `work.chosen`; return how many, and their weight."""
    k, total = 0, 0.0
    for h in range(atoms):
        if work.weights[h] >= least:
            work.chosen[k] = h
            k += 1
            total += work.weights[h]
    return k, total


@njit
def _pick(rng, work, k, total, but):
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
def _accepts(rng, work, ratio):
    """Return whether a proposal is accepted, and adopt it; `ratio`: the log of all but the likelihoods."""
    ratio += log_gain(work.source, rng, work)
    if not -rng.standard_exponential() < ratio:
        return False
    take_over(work.source, work)
    return True


@njit
def _move_last(work, theta, place, atoms):
    """Put the last atom into `place`, which is free; return how many there are then."""
    last = atoms - 1
    if place != last:
        work.weights[place] = work.weights[last]
        copy_atom(theta, work, last, place)
    return last


@njit
def _birth(channel, kernel, rng, theta, cells, work, atoms, least, alpha, k, total):
    weights = work.weights
    donor = _pick(rng, work, k, total, -1)
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
    new, old, mixed = work.rows[atoms, 0], work.rows[donor, 0], work.mixed
    for c in range(len(mixed)):
        work.proposed[c] = max(mixed[c] + gift * (new[c] - old[c]), LEAST)
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
    heir = _pick(rng, work, k, total - gift, gone)
    rest = weights[heir]
    if gift > rest:
        return atoms
    weight = gift + rest
    length = math.log(weight / least - 1.0)
    old, new, mixed = work.rows[gone, 0], work.rows[heir, 0], work.mixed
    for c in range(len(mixed)):
        work.proposed[c] = max(mixed[c] + gift * (new[c] - old[c]), LEAST)
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
    h = _pick(rng, work, k, total, -1)
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
    a = _pick(rng, work, k, total, -1)
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


@njit
def jump(channel, kernel, rng, theta, cells, work, atoms, least, alpha):
    """Propose a birth, death, split or merge; return the number of atoms."""
    k, total = _list(work, atoms, least)
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
