"""Moves of alpha together with the whole latent database, which follows by smooth maps.

A Metropolis step makes them exact: by the ratio of the prior, of the density of the release and of those of
all cube roots, and the Jacobian of the maps. The offered alpha is drawn by slice sampling from an approximate
density: that of prior and means alone, with sums as they are at a fixed alpha, and from there on by what a
few records say (scores of thresholds are left to the step: few records say little of numbers of them). The
fixed alpha is learnt in burn-in alone: the approximate density is the same from both ends of a move. One
offer costs three passes over the database, which vectorise, where a sweep of the records draws d gamma
variates for each.

**The maps.** A composition is that of gamma variates G_j of shapes alpha_j over their sum T, and T is
independent of it: drawn anew, T makes any database one of gamma variates. Their cube roots w are close to
normal (Wilson and Hilferty 1931): z = (w - mean) / sd, by mean and standard deviation of w given alpha_j, has
nearly the same law for every alpha. A move of alpha that keeps every z takes w to A_j + B_j w. The density of
w given alpha, 3 w^(3 alpha - 1) exp(-w^3) / Gamma(alpha), is known, and so is the Jacobian prod_j B_j^n.

Where alpha_j is small, G_j is taken as V_j exp(-E_j / alpha_j), V_j of shape alpha_j + 1 and E_j standard
exponential, of which both are drawn given G_j (V_j - G_j is standard exponential): V_j moves as above, E_j
stays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.models.dirichlet.alpha import log_prior
from dpmix.models.dirichlet.latent_records import first_level, log_scores, standard_cube
from dpmix.numerics.factors import cholesky
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_on_slice, log_height
from dpmix.numerics.special import exp, log

# The smooth maps by which a latent database of compositions follows its parameters

LANES = 32  # products are taken side by side
LOWEST = 0.4  # alpha below which no other is moved


class MapsRoom(NamedTuple):
    """Scratch: roots (d, n or more), w; ratios (d, n or more), log V - log G; shares (d, LANES)."""

    roots: Any
    ratios: Any
    shares: Any


def make_room(n: int, d: int) -> MapsRoom:
    """Return room for n compositions of d parts."""
    padded = -(-n // LANES) * LANES
    return MapsRoom(np.ones((d, padded)), np.zeros((d, padded)), np.empty((d, LANES)))


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
def set_maps(old, new, small, maps):
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
def unpack(rng, alpha, records, small, room):
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
def root_density(alpha, small, total_logs, total_cubes, n):
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
def _count(shares, totals, width, scores, sums):
    """Add records, columns of shares (d, LANES) times totals (LANES,), to the numbers of their levels."""
    d = len(shares)
    for q in range(width):
        least = math.inf
        for j in range(d):
            least = min(least, shares[j, q])
        least *= totals[q]
        m = first_level(scores, math.log(least) if least > 0.0 else -math.inf)
        if m < len(scores.noisy):
            sums[d + m] += 1.0


@njit
def _pass(room, first, last, maps, small, floor, scores, sums, logs, cubes):
    """Follow the records from `first` to `last` (a multiple of LANES from it) by `maps` (3, d).

    Set sums (d + M,) to those of max(log x, floor) and to numbers of levels, and add those of log w and of
    w^3 to logs and cubes (d,). Return whether all w stay positive.
    """
    d = len(logs)
    roots, ratios, shares = room.roots, room.ratios, room.shares
    censored = math.exp(floor)
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
        if len(scores.noisy) > 0:
            _count(shares, totals, width, scores, sums)
        for j in range(d):
            share, product = shares[j], wide[j]
            for q in range(width):
                product[q] *= max(share[q] * totals[q], censored)
        count += 1
        if count == most or start + LANES >= last:
            count = 0
            for j in range(d):
                for q in range(LANES):
                    sums[j] += log(wide[j, q])
                    wide[j, q] = 1.0
                    logs[j] += log(deep[j, q])
                    deep[j, q] = 1.0
    lowest = math.inf
    for q in range(LANES):
        lowest = min(lowest, least[q])
        for j in range(d):
            cubes[j] += sizes[j, q]
    return lowest > 1e-12


@njit
def write(room, maps, small, records):
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
def follow(law, room, maps, small, few, sums, logs, cubes):
    """Set sums (parts, d + M), and those of log w and w^3 (d,), over the first `few` of each part by `_pass`.

    Return whether all w stay positive.
    """
    logs[:] = 0.0
    cubes[:] = 0.0
    for part in range(len(sums)):
        first, last = law.starts[part], min(law.starts[part + 1], law.starts[part] + few)
        if not _pass(room, first, last, maps, small, law.floor, law.scores, sums[part], logs, cubes):
            return False
    return True


# Moves of alpha together with the whole latent database

FEW = 64  # records of each part that offers go by
SMALL = 3.0  # alpha up to which G = V exp(-E / alpha)
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


def make_learnt(alpha: Any, root: Any) -> Learnt:
    """Return what is known at a start at alpha (d,), with a lower factor of the covariance of log alpha."""
    small = (alpha < SMALL).astype(np.float64)
    return Learnt(np.log(alpha), root @ root.T, root.copy(), small, np.array([10.0, 0.0, 0.0]))


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
def _log_means(law, sums):
    """Return the log density of the means given the sums (parts, d or more)."""
    total = 0.0
    for part in range(len(sums)):
        gap = 0.0
        for j in range(law.released.shape[1]):
            gap += abs(law.released[part, j] - sums[part, j])
        total -= law.rate[part] * gap
    return total


class _AlphaLine(NamedTuple):
    """A line through `point` = log alpha (d,) along `step` (d,).

    start (parts, d) is what the sums of few records, in proportion, lack of those of all at the centre;
    `offered`, maps, sums, logs and cubes are set.
    """

    law: Any
    learnt: Any
    room: Any
    alpha: Any
    point: Any
    step: Any
    start: Any
    offered: Any
    maps: Any
    sums: Any
    logs: Any
    cubes: Any


@log_height.register
def _approximate(line: _AlphaLine, at):
    """Of log alpha, approximately."""
    law, small, sums = line.law, line.learnt.small, line.sums
    jacobian = 0.0
    for j in range(len(line.point)):
        log_alpha = line.point[j] + at * line.step[j]
        if not abs(log_alpha) < 300.0:
            return -math.inf
        line.offered[j] = math.exp(log_alpha)
        jacobian += log_alpha
    if not set_maps(line.alpha, line.offered, small, line.maps):
        return -math.inf
    if not follow(law, line.room, line.maps, small, min(FEW, law.starts[-1]), sums, line.logs, line.cubes):
        return -math.inf
    for part in range(len(sums)):
        size = law.starts[part + 1] - law.starts[part]
        times = size / min(size, FEW)
        for j in range(len(line.point)):
            sums[part, j] = line.start[part, j] + times * sums[part, j]
    return log_prior(line.offered, law.prior) + jacobian + _log_means(law, sums)


@njit
def _slice(rng, law, learnt, room, alpha, point, start, offered, maps, sums, logs, cubes):
    """Move `point` along random lines by slice sampling (Neal 2003); return the change of log density.

    Lines are drawn independently of the point and each in the same way, so that all steps together, like one,
    are reversible for the approximate density.
    """
    d = len(point)
    step = np.zeros(d)
    line = _AlphaLine(law, learnt, room, alpha, point, step, start, offered, maps, sums, logs, cubes)
    now = log_height(line, 0.0)
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
        at, found = draw_on_slice(rng, line, 0.0, now - rng.standard_exponential(), 3.0)
        if at != 0.0:
            now = found
        for j in range(d):
            point[j] += at * step[j]
    return now - first


@njit
def reach(law, room, old, new, small, few, maps, sums, logs, cubes):
    """Set the maps from alpha `old` to `new`, and sums (parts, d + M) over the first `few` of each part.

    Return the log density of `new`, in log alpha, of means and scores and of the roots that follow, times the
    Jacobian, where `few` is all; -inf where there is no such map.
    """
    if not set_maps(old, new, small, maps) or not follow(law, room, maps, small, few, sums, logs, cubes):
        return -math.inf
    n = law.starts[-1]
    total = log_prior(new, law.prior) + _log_means(law, sums) + root_density(new, small, logs, cubes, n)
    if len(law.scores.noisy) > 0:
        total += log_scores(law.scores, sums)
    for j in range(len(new)):
        total += math.log(new[j]) + n * math.log(maps[1, j])
    return total


@njit
def move_jointly(rng, law, learnt, room, alpha, records, sums):
    """Move alpha (d,) and the records (d, n), and their sums (parts, d + M); return whether they moved."""
    d, n = records.shape
    small = learnt.small
    maps, offered, point, centre = np.empty((3, d)), np.empty(d), np.empty(d), np.empty(d)
    found, start, logs, cubes = np.empty_like(sums), np.empty_like(sums), np.empty(d), np.empty(d)
    learnt.counts[MADE] += 1.0
    unpack(rng, alpha, records, small, room)
    for j in range(d):
        point[j] = math.log(alpha[j])
        centre[j] = math.exp(learnt.centre[j])
    before = reach(law, room, alpha, alpha, small, n, maps, found, logs, cubes)
    if (
        before == -math.inf
        or reach(law, room, alpha, centre, small, n, maps, start, logs, cubes) == -math.inf
        or reach(law, room, alpha, centre, small, min(FEW, n), maps, found, logs, cubes) == -math.inf
    ):
        return False
    for part in range(len(sums)):
        size = law.starts[part + 1] - law.starts[part]
        for j in range(d):
            start[part, j] -= found[part, j] * size / min(size, FEW)
    gain = -_slice(rng, law, learnt, room, alpha, point, start, offered, maps, found, logs, cubes)
    if math.isnan(gain):
        return False
    for j in range(d):
        offered[j] = math.exp(point[j])
    gain += reach(law, room, alpha, offered, small, n, maps, found, logs, cubes) - before
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        return False
    write(room, maps, small, records)
    alpha[:] = offered
    sums[:] = found
    learnt.counts[ACCEPTED] += 1.0
    return True
