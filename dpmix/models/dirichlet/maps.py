"""The smooth maps by which a latent database of compositions follows its parameters.

A composition is that of gamma variates G_j of shapes alpha_j over their sum T, and T is independent of it:
drawn anew, T makes any database one of gamma variates. Their cube roots w are close to normal (Wilson and
Hilferty 1931): z = (w - mean) / sd, by mean and standard deviation of w given alpha_j, has nearly the same
law for every alpha. A move of alpha that keeps every z takes w to A_j + B_j w. The density of w given alpha,
3 w^(3 alpha - 1) exp(-w^3) / Gamma(alpha), is known, and so is the Jacobian prod_j B_j^n.

Where alpha_j is small, G_j is taken as V_j exp(-E_j / alpha_j), V_j of shape alpha_j + 1 and E_j standard
exponential, of which both are drawn given G_j (V_j - G_j is standard exponential): V_j moves as above, E_j
stays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.models.dirichlet.latent_records import standard_cube
from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp, log

__all__ = ["MapsRoom", "follow", "make_room", "root_density", "set_maps", "unpack", "write"]

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
def _pass(room, first, last, maps, small, floor, sums, logs, cubes):
    """Follow the records from `first` to `last` (a multiple of LANES from it) by `maps` (3, d).

    Set sums (d,) to those of max(log x, floor), and add those of log w and of w^3 to logs and cubes (d,).
    Return whether all w stay positive.
    """
    d = len(sums)
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
    """Set sums (parts, d), and those of log w and w^3 (d,), over the first `few` of each part by `_pass`."""
    logs[:] = 0.0
    cubes[:] = 0.0
    for part in range(len(sums)):
        first, last = law.starts[part], law.starts[part + 1]
        if not _pass(room, first, min(last, first + few), maps, small, law.floor, sums[part], logs, cubes):
            return False
    return True
