"""Moves of alpha together with the whole latent database, which follows by `dpmix.models.dirichlet.maps`.

A Metropolis step makes them exact: by the ratio of the prior, of the density of the release and of those of
all cube roots, and the Jacobian of the maps. The offered alpha is drawn by slice sampling from an approximate
density: that of all but the density of the roots, with sums as they are at a fixed alpha, and from there on
by what a few records say. The fixed alpha is learnt in burn-in alone: the approximate density is the same
from both ends of a move. One offer costs three passes over the database, which vectorise, where a sweep of
the records draws d gamma variates for each.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.models.dirichlet.alpha import log_prior
from dpmix.models.dirichlet.maps import follow, root_density, set_maps, unpack, write
from dpmix.numerics.factors import cholesky
from dpmix.numerics.jit import njit
from dpmix.numerics.slices import draw_on_slice, log_height

__all__ = ["Learnt", "learn", "make_learnt", "move_jointly", "reach"]

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
def _log_release(law, sums):
    """Return the log density of the release given the sums (parts, d)."""
    total = 0.0
    for part in range(len(sums)):
        gap = 0.0
        for j in range(sums.shape[1]):
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
    return log_prior(line.offered, law.prior) + jacobian + _log_release(law, sums)


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
    """Set the maps from alpha `old` to `new`, and sums (parts, d) over the first `few` records of each part.

    Return the log density of `new`, in log alpha, of the release and of the roots that follow, times the
    Jacobian, where `few` is all; -inf where there is no such map.
    """
    if not set_maps(old, new, small, maps) or not follow(law, room, maps, small, few, sums, logs, cubes):
        return -math.inf
    n = law.starts[-1]
    total = log_prior(new, law.prior) + _log_release(law, sums) + root_density(new, small, logs, cubes, n)
    for j in range(len(new)):
        total += math.log(new[j]) + n * math.log(maps[1, j])
    return total


@njit
def move_jointly(rng, law, learnt, room, alpha, records, sums):
    """Move alpha (d,) and the records (d, n), and their sums (parts, d); return whether they moved."""
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
    for j in range(d):
        alpha[j] = offered[j]
    for part in range(len(sums)):
        for j in range(d):
            sums[part, j] = found[part, j]
    learnt.counts[ACCEPTED] += 1.0
    return True
