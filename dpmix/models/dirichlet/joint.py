"""Moves of alpha together with the whole latent database, which follows by smooth maps.

A composition is that of gamma variates G_j of shapes alpha_j over their sum T, and T is independent of it:
drawn anew, T makes any database one of gamma variates. Their cube roots w are close to normal (Wilson and
Hilferty 1931): z = (w - mean) / sd, by mean and standard deviation of w given alpha_j, has nearly the same
law for every alpha. A move of alpha that keeps every z takes w to A_j + B_j w. The density of w given alpha,
3 w^(3 alpha - 1) exp(-w^3) / Gamma(alpha), is known, so that a Metropolis step makes the move exact, by the
ratio of the prior, of the density of the release and of those of all w, and the Jacobian prod_j B_j^n.

Where alpha_j is small, G_j is taken as V_j exp(-E_j / alpha_j), V_j of shape alpha_j + 1 and E_j standard
exponential, of which both are drawn given G_j (V_j - G_j is standard exponential): V_j moves as above, E_j
stays.

The offered alpha is drawn by slice sampling from an approximate density: that of all but the density of z,
with sums as they are at a fixed alpha, and from there on by what a few records say. The fixed alpha is learnt
in burn-in alone: the approximate density is the same from both ends of a move. One offer costs three passes
over the database, which vectorise, where a sweep of the records draws d gamma variates for each.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix._jit import njit
from dpmix.models.dirichlet.alpha import log_prior
from dpmix.models.dirichlet.law import standard_cube
from dpmix.models.dirichlet.vector import log
from dpmix.models.factors import cholesky
from dpmix.special import exp

__all__ = ["JointRoom", "Learnt", "learn", "make_learnt", "make_room", "move_jointly"]

FEW = 64  # records of each part that offers go by
LANES = 32  # products are taken side by side
SMALL = 3.0  # alpha up to which G = V exp(-E / alpha)
LOWEST = 0.4  # alpha below which no other is moved
FORGET = 400.0  # states over which averages are taken
LINES = 2  # slice updates of an offer, for each dimension
SEEN, ACCEPTED, MADE = 0, 1, 2  # places of `Learnt.counts`


class Learnt(NamedTuple):
    """What burn-in has found.

    centre (d,) and covariance (d, d) of log alpha, and its lower factor root (d, d); small (d,): 1 where
    G = V exp(-E / alpha); counts (3,): states seen, moves accepted and made.
    """

    centre: Any
    covariance: Any
    root: Any
    small: Any
    counts: Any


class JointRoom(NamedTuple):
    """Scratch: roots (d, n or more), w; ratios (d, n or more), log V - log G; shares (d, LANES)."""

    roots: Any
    ratios: Any
    shares: Any


def make_learnt(alpha: Any, root: Any) -> Learnt:
    """Return what is known at a start at alpha (d,), with a lower factor of the covariance of log alpha."""
    small = (alpha < SMALL).astype(np.float64)
    return Learnt(np.log(alpha), root @ root.T, root.copy(), small, np.array([10.0, 0.0, 0.0]))


def make_room(n: int, d: int) -> JointRoom:
    """Return room for n compositions of d parts."""
    padded = -(-n // LANES) * LANES
    return JointRoom(np.ones((d, padded)), np.zeros((d, padded)), np.empty((d, LANES)))


@njit
def learn(learnt, alpha):
    """Take one more state into the averages."""
    d = len(alpha)
    learnt.counts[SEEN] += 1.0
    gain = 1.0 / min(learnt.counts[SEEN], FORGET)
    centre, covariance = learnt.centre, learnt.covariance
    for j in range(d):
        for k in range(d):
            gaps = (math.log(alpha[j]) - centre[j]) * (math.log(alpha[k]) - centre[k])
            covariance[j, k] += gain * ((1.0 - gain) * gaps - covariance[j, k])
    for j in range(d):
        centre[j] += gain * (math.log(alpha[j]) - centre[j])
        learnt.small[j] = 1.0 if centre[j] < math.log(SMALL) else 0.0
    cholesky(covariance, learnt.root)


@njit
def _centre(shape):
    """Return mean and standard deviation of the cube root of a gamma variate."""
    if shape > 100.0:
        mode = shape - 1.0 / 3.0
        root = mode ** (1.0 / 3.0)
        return root, 1.0 / (3.0 * math.sqrt(root))
    level = math.lgamma(shape)
    mean = math.exp(math.lgamma(shape + 1.0 / 3.0) - level)
    return mean, math.sqrt(math.exp(math.lgamma(shape + 2.0 / 3.0) - level) - mean * mean)


@njit
def _maps(old, new, small, maps):
    """Set the rows of `maps` (3, d) to A, B and alpha_old / alpha_new; return whether there are such maps."""
    for j in range(len(old)):
        if not (small[j] > 0.0 or (old[j] > LOWEST and new[j] > LOWEST)):
            return False
        mean, sd = _centre(old[j] + small[j])
        mean_new, sd_new = _centre(new[j] + small[j])
        maps[1, j] = sd_new / sd
        maps[0, j] = mean_new - maps[1, j] * mean
        maps[2, j] = old[j] / new[j]
    return True


@njit
def _unpack(rng, alpha, records, small, room):
    """Draw gamma variates of which the records (d, n) are the compositions: w and log V - log G."""
    d, n = records.shape
    roots, ratios = room.roots, room.ratios
    whole = 0.0
    for j in range(d):
        whole += alpha[j]
    size = roots[0]
    mode = whole - 1.0 / 3.0 if whole >= 1.0 else whole + 2.0 / 3.0
    spread = 1.0 / math.sqrt(9.0 * mode)
    for i in range(n):
        size[i] = mode * standard_cube(rng, mode, spread)
    for i in range(n):
        size[i] = log(size[i])
    if whole < 1.0:
        for i in range(n):
            size[i] -= rng.standard_exponential() / whole
    for back in range(d):
        j = d - 1 - back  # the first row holds log T until its turn
        row, ratio = roots[j], ratios[j]
        if small[j] > 0.0:
            for i in range(n):
                ratio[i] = rng.standard_exponential()
            for i in range(n):
                logged = records[j, i] + size[i]
                row[i] = log(exp(logged) + ratio[i]) / 3.0
                ratio[i] = 3.0 * row[i] - logged
        else:
            for i in range(n):
                row[i] = (records[j, i] + size[i]) / 3.0
        for i in range(n):
            row[i] = exp(row[i])


@njit
def _density(alpha, small, total_logs, total_cubes, n):
    """Return the log density of the roots w given alpha, of their sums of log w and of w^3, (d,) each."""
    total = 0.0
    for j in range(len(alpha)):
        shape = alpha[j] + 1.0 if small[j] > 0.0 else alpha[j]
        total += (3.0 * shape - 1.0) * total_logs[j] - total_cubes[j] - n * math.lgamma(shape)
    return total


@njit
def _lift(maps, small, ratios, start, width, lifts):
    """Set the least (alpha_old / alpha_new) (log V - log G) of each record, or 0 where a part has G = V.

    Gamma variates are multiplied by its exponential, so that not all of a record are too small for a double.
    """
    for j in range(len(small)):
        if small[j] == 0.0:
            return
    for q in range(width):
        least = math.inf
        for j in range(len(small)):
            least = min(least, maps[2, j] * ratios[j, start + q])
        lifts[q] = least


@njit
def _pass(room, first, last, maps, small, floor, sums, logs, cubes):
    """Follow the records from `first` to `last` (a multiple of LANES from it) by `maps` (3, d).

    Set sums (d,) to those of max(log x, floor), and add those of log w and of w^3 to logs and cubes (d,).
    Return whether all w stay positive.
    """
    d = len(sums)
    roots, ratios, shares = room.roots, room.ratios, room.shares
    lowest = math.exp(floor)
    # as many factors as cannot leave the range of doubles
    most = max(1, int(min(16.0, -600.0 / min(floor, -1.0))))
    totals, wide, deep, sizes = (
        np.empty(LANES),
        np.ones((d, LANES)),
        np.ones((d, LANES)),
        np.zeros((d, LANES)),
    )
    least, lifts = np.full(LANES, 1.0), np.zeros(LANES)
    sums[:] = 0.0
    count = 0
    for start in range(first, last, LANES):
        width = min(LANES, last - start)
        totals[:] = 0.0
        _lift(maps, small, ratios, start, width, lifts)
        for j in range(d):
            a, b, root, share = maps[0, j], maps[1, j], roots[j, start : start + width], shares[j]
            low, size = deep[j], sizes[j]
            for q in range(width):
                w = a + b * root[q]
                least[q] = min(least[q], w)
                low[q] *= w
                cube = w * w * w
                size[q] += cube
                share[q] = cube
            if small[j] > 0.0:
                c, ratio = maps[2, j], ratios[j, start : start + width]
                for q in range(width):
                    share[q] *= exp(lifts[q] - c * ratio[q])
            for q in range(width):
                totals[q] += share[q]
        for q in range(width):
            totals[q] = 1.0 / totals[q]
        for j in range(d):
            share, product = shares[j], wide[j]
            for q in range(width):
                product[q] *= max(share[q] * totals[q], lowest)
        count += 1
        if count == most or start + LANES >= last:
            count = 0
            for j in range(d):
                for q in range(LANES):
                    sums[j] += log(wide[j, q])
                    wide[j, q] = 1.0
                    logs[j] += log(deep[j, q])
                    deep[j, q] = 1.0
    for j in range(d):
        for q in range(LANES):
            cubes[j] += sizes[j, q]
    return least.min() > 1e-12


@njit
def _write(room, maps, small, records):
    """Set records (d, n) to the compositions that follow by `maps`."""
    d, n = records.shape
    roots, ratios = room.roots, room.ratios
    totals, shares, lifts = np.empty(LANES), room.shares, np.zeros(LANES)
    for start in range(0, n, LANES):
        width = min(LANES, n - start)
        totals[:] = 0.0
        _lift(maps, small, ratios, start, width, lifts)
        for j in range(d):
            a, b, c, share = maps[0, j], maps[1, j], maps[2, j], shares[j]
            root, ratio = roots[j, start : start + width], ratios[j, start : start + width]
            gate = small[j]
            for q in range(width):
                share[q] = 3.0 * log(a + b * root[q]) + gate * (lifts[q] - c * ratio[q])
            for q in range(width):
                totals[q] += exp(share[q])
        for q in range(width):
            totals[q] = log(totals[q])
        for j in range(d):
            share, row = shares[j], records[j]
            for q in range(width):
                row[start + q] = share[q] - totals[q]


@njit
def _log_release(law, sums):
    """Return the log density of the release given the sums (parts, d)."""
    total = 0.0
    for part in range(len(sums)):
        gap = 0.0
        for j in range(sums.shape[1]):
            gap += abs(law.released[part, j] - sums[part, j])
        total -= law.rate[part] * gap
    return total


@njit
def _follow(law, room, maps, small, few, sums, logs, cubes):
    """Set sums (parts, d), and those of log w and w^3 (d,), over the first `few` of each part by `_pass`."""
    logs[:] = 0.0
    cubes[:] = 0.0
    for part in range(len(sums)):
        first, last = law.starts[part], law.starts[part + 1]
        if not _pass(room, first, min(last, first + few), maps, small, law.floor, sums[part], logs, cubes):
            return False
    return True


@njit
def _approximate(law, learnt, room, alpha, point, start, offered, maps, sums, logs, cubes):
    """Return the approximate log density of `point` = log alpha, and set the alpha that is `offered`.

    start (parts, d) is what the sums of few records, in proportion, lack of those of all at the centre.
    """
    jacobian = 0.0
    for j in range(len(point)):
        if not abs(point[j]) < 300.0:
            return -math.inf
        offered[j] = math.exp(point[j])
        jacobian += point[j]
    if not _maps(alpha, offered, learnt.small, maps):
        return -math.inf
    if not _follow(law, room, maps, learnt.small, FEW, sums, logs, cubes):
        return -math.inf
    for part in range(len(sums)):
        size = law.starts[part + 1] - law.starts[part]
        times = size / min(size, FEW)
        for j in range(len(point)):
            sums[part, j] = start[part, j] + times * sums[part, j]
    return log_prior(offered, law.prior) + jacobian + _log_release(law, sums)


@njit
def _slice(rng, law, learnt, room, alpha, point, start, offered, maps, sums, logs, cubes):
    """Move `point` along random lines by slice sampling (Neal 2003); return the change of log density.

    Lines are drawn independently of the point and each in the same way, so that all steps together, like one,
    are reversible for the approximate density.
    """
    d = len(point)
    step, trial = np.empty(d), np.empty(d)
    now = _approximate(law, learnt, room, alpha, point, start, offered, maps, sums, logs, cubes)
    first = now
    if now == -math.inf:
        return math.nan
    for _ in range(LINES * d):
        for j in range(d):
            step[j] = rng.standard_normal()
        for back in range(d):
            j = d - 1 - back
            value = 0.0
            for k in range(j + 1):
                value += learnt.root[j, k] * step[k]
            step[j] = value
        bar = now - rng.standard_exponential()
        low = -3.0 * rng.random()
        high = low + 3.0
        for end in range(2):
            while True:
                at = low if end == 0 else high
                for j in range(d):
                    trial[j] = point[j] + at * step[j]
                if not (
                    _approximate(law, learnt, room, alpha, trial, start, offered, maps, sums, logs, cubes)
                    > bar
                ):
                    break
                if end == 0:
                    low -= 3.0
                else:
                    high += 3.0
        while high - low > 1e-13:
            at = low + (high - low) * rng.random()
            for j in range(d):
                trial[j] = point[j] + at * step[j]
            found = _approximate(law, learnt, room, alpha, trial, start, offered, maps, sums, logs, cubes)
            if found > bar:
                point[:] = trial
                now = found
                break
            if at < 0.0:
                low = at
            else:
                high = at
    return now - first


@njit
def move_jointly(rng, law, learnt, room, alpha, records, sums):
    """Move alpha (d,) and the records (d, n), and their sums (parts, d); return whether they moved."""
    d, n = records.shape
    small = learnt.small
    maps, offered, point = np.empty((3, d)), np.empty(d), np.empty(d)
    found, start, logs, cubes = np.empty_like(sums), np.empty_like(sums), np.empty(d), np.empty(d)
    centre = np.empty(d)
    learnt.counts[MADE] += 1.0
    _unpack(rng, alpha, records, small, room)
    for j in range(d):
        point[j] = math.log(alpha[j])
        centre[j] = math.exp(learnt.centre[j])
    # the density of what is there
    if not _maps(alpha, alpha, small, maps) or not _follow(law, room, maps, small, n, found, logs, cubes):
        return False
    before = _log_release(law, sums) + _density(alpha, small, logs, cubes, n)
    # what few records say, and all, at the centre
    if not _maps(alpha, centre, small, maps) or not _follow(law, room, maps, small, n, start, logs, cubes):
        return False
    _follow(law, room, maps, small, FEW, found, logs, cubes)
    for part in range(len(sums)):
        size = law.starts[part + 1] - law.starts[part]
        for j in range(d):
            start[part, j] -= found[part, j] * size / min(size, FEW)
    old_prior = log_prior(alpha, law.prior)
    for j in range(d):
        old_prior += point[j]
    gain = -_slice(rng, law, learnt, room, alpha, point, start, offered, maps, found, logs, cubes)
    if math.isnan(gain):
        return False
    for j in range(d):
        offered[j] = math.exp(point[j])
    if not _maps(alpha, offered, small, maps) or not _follow(law, room, maps, small, n, found, logs, cubes):
        return False
    after = _log_release(law, found) + _density(offered, small, logs, cubes, n)
    new_prior = log_prior(offered, law.prior)
    for j in range(d):
        new_prior += point[j]
        after += n * math.log(maps[1, j])
    gain += after + new_prior - before - old_prior
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return False
    _write(room, maps, small, records)
    alpha[:] = offered
    sums[:] = found
    learnt.counts[ACCEPTED] += 1.0
    return True
