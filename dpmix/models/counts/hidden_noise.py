"""Moves of noisy counts that were not released, of which clipped and normalised records are drawn.

With h = c + noise, S = sum_j h_j^+ and s_j of the released draws explained by the counts (all of them for a
perturbed histogram, w = 0; else a binomial share of each cell's, drawn anew in every sweep), M = sum_j s_j::

    p(s | h) = prod_j (h_j^+ / S)^s_j,  and J^-M where no h_j is positive,

so that given all else h_j has a density proportional to (h_j^+)^s_j (S_-j + h_j^+)^-M q(h_j - c_j): O(1)
each, moved by slice sampling (Neal 2003), geometric noise on the integers. A cell with s_j > 0 needs h_j > 0
unless all counts are clipped; between those two cases a joint move of all h_j is made.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmix.kernels.intervals import draw_normal_within
from dpmix.models.counts.cell_counts import (
    GAUSSIAN,
    GEOMETRIC,
    CountsWithNoise,
    HiddenCounts,
    PolyaDraws,
    SmoothedDraws,
    log_noise,
)
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.slices import draw_on_slice, log_height

__all__ = ["POSITIVE", "SUM", "TOTAL", "log_shares", "refresh", "start_noisy", "sum_of_others", "tally"]

SUM, POSITIVE, TOTAL = 0, 1, 2  # of `sums`: S, the number of positive h_j, M


@njit
def tally(noisy, explained, sums):
    """Set `sums` (3,) from noisy counts h (J,) and explained draws s (J,)."""
    sums[:] = 0.0
    for j in range(len(noisy)):
        if noisy[j] > 0.0:
            sums[SUM] += noisy[j]
            sums[POSITIVE] += 1.0
        sums[TOTAL] += explained[j]


@njit
def sum_of_others(noisy, sums, a, b):
    """Return the sum of h^+ over all cells but a and b, without the digits that a difference would lose."""
    others = sums[SUM] - max(noisy[a], 0.0)
    if b != a:
        others -= max(noisy[b], 0.0)
    if others >= 1e-6 * sums[SUM]:
        return others
    others = 0.0
    for j in range(len(noisy)):
        if j != a and j != b:
            others += max(noisy[j], 0.0)
    return others


@njit
def log_shares(explained, h, others, positive, total, cells):
    """Return the part of log p(s | h) that depends on one cell's h; the others sum to `others`.

    `explained` is its s_j, `positive` how many of the others are positive, `total` M.
    """
    if positive == 0.0:
        if h <= 0.0:
            return -total * math.log(cells)
        return 0.0 if explained == total else -math.inf
    if h <= 0.0:
        return -math.inf if explained > 0.0 else -total * math.log(others)
    found = -total * math.log(others + h)
    return found + explained * math.log(h) if explained > 0.0 else found


class _Cell(NamedTuple):
    """What h_j is drawn given: c_j, s_j, S and positive ones of the others, M, J, the noise."""

    records: float
    explained: float
    others: float
    positive: float
    total: float
    cells: float
    noise: int
    scale: float


@log_height.register
def _log_cell(curve: _Cell, at):
    """Integers are the floors of a real number."""
    h = math.floor(at) if curve.noise == GEOMETRIC else at
    value = log_shares(curve.explained, h, curve.others, curve.positive, curve.total, curve.cells)
    return value + log_noise(curve.noise, curve.scale, h - curve.records)


@njit
def _move(likelihood, rng, state, j):
    """Move h_j by slice sampling."""
    noisy, sums, scale = state.noisy, state.sums, likelihood.scale
    c, s, now = float(state.counts[j]), state.explained[j], noisy[j]
    others = sum_of_others(noisy, sums, j, j)
    positive = sums[POSITIVE] - (1.0 if now > 0.0 else 0.0)
    curve = _Cell(c, s, others, positive, sums[TOTAL], float(len(noisy)), likelihood.noise, scale)
    width = 2.0 * scale
    if s > 0.0:
        width = min(width, 3.0 * (c + scale) / math.sqrt(s))
    x = now
    if curve.noise == GEOMETRIC:
        width += 1.0
        x = now + rng.random()
    level = log_height(curve, x) - rng.standard_exponential()
    h, _ = draw_on_slice(rng, curve, x, level, width)
    noisy[j] = math.floor(h) if curve.noise == GEOMETRIC else h
    sums[SUM] = others + max(noisy[j], 0.0)
    sums[POSITIVE] = positive + (1.0 if noisy[j] > 0.0 else 0.0)


@njit
def _log_sides(noise, scale, c):
    """Return log Pr(c + noise <= 0) and log Pr(c + noise > 0) for c >= 0."""
    if noise == GAUSSIAN:
        below = 0.5 * math.erfc(c / scale * math.sqrt(0.5))
        if below < 1e-290:
            below = 0.0
    elif noise == GEOMETRIC:
        below = math.exp(-c / scale) / (1.0 + math.exp(-1.0 / scale))
    else:
        below = 0.5 * math.exp(-c / scale)
    return math.log(below) if below > 0.0 else -math.inf, math.log1p(-below)


@njit
def _draw_side(noise, scale, rng, c, above):
    """Draw c + noise given that it is positive (`above`), or that it is not, for c >= 0."""
    if noise == GAUSSIAN:
        if above:
            return c + scale * draw_normal_within(rng, -c / scale, math.inf)
        return c + scale * draw_normal_within(rng, -math.inf, -c / scale)
    if noise == GEOMETRIC:
        if not above:
            return -math.floor(rng.standard_exponential() * scale)
        if c == 0:
            return 1.0 + math.floor(rng.standard_exponential() * scale)
        while True:
            e = math.floor(rng.standard_exponential() * scale) - math.floor(
                rng.standard_exponential() * scale
            )
            if c + e > 0.0:
                return c + e
    if not above:
        return -rng.standard_exponential() * scale
    while True:
        e = rng.standard_exponential() * scale
        if rng.random() < 0.5:
            e = -e
        if c + e > 0.0:
            return c + e


@njit
def _flip(likelihood, rng, state):
    """Offer to go between all counts clipped and not: every h_j anew from the noise, given who is positive.

    Towards some being positive, those with s_j > 0 are drawn so, and the others from the noise as it is.
    """
    noisy, explained, sums = state.noisy, state.explained, state.sums
    if sums[TOTAL] == 0.0:
        return  # the slices reach everything
    log_clipped, log_open = -sums[TOTAL] * math.log(len(noisy)), 0.0
    for j in range(len(noisy)):
        below, above = _log_sides(likelihood.noise, likelihood.scale, state.counts[j])
        log_clipped += below
        if explained[j] > 0.0:
            log_open += above
    if sums[POSITIVE] > 0.0:
        log_open -= sums[TOTAL] * math.log(sums[SUM])
        for j in range(len(noisy)):
            if explained[j] > 0.0:
                log_open += explained[j] * math.log(noisy[j])
        if -rng.standard_exponential() < log_clipped - log_open:
            for j in range(len(noisy)):
                noisy[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], False)
            tally(noisy, explained, sums)
        return
    offer = np.empty(len(noisy))
    reached = 0.0
    for j in range(len(noisy)):
        # the noise as it is: a side by its probability, then a draw from that side
        above = explained[j] > 0.0
        if not above:
            below, _ = _log_sides(likelihood.noise, likelihood.scale, state.counts[j])
            above = rng.random() >= math.exp(below)
        offer[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], above)
        reached += max(offer[j], 0.0)
        if explained[j] > 0.0:
            log_open += explained[j] * math.log(offer[j])
    log_open -= sums[TOTAL] * math.log(reached)
    if -rng.standard_exponential() < log_open - log_clipped:
        noisy[:] = offer
        tally(noisy, explained, sums)


@njit
def _explain(likelihood, rng, state):
    """Draw how many of each cell's released draws the counts explain, the others being uniform."""
    noisy, explained, sums = state.noisy, state.explained, state.sums
    if likelihood.weight <= 0.0:
        return
    cells = float(len(noisy))
    for j in range(len(noisy)):
        r = int(likelihood.released[j])
        if r > 0:
            share = max(noisy[j], 0.0) / sums[SUM] if sums[POSITIVE] > 0.0 else 1.0 / cells
            share *= 1.0 - likelihood.weight
            explained[j] = rng.binomial(r, min(share / (share + likelihood.weight / cells), 1.0))
    tally(noisy, explained, sums)


@dispatch()
def refresh(likelihood, rng, state):
    """Draw everything latent besides the counts, given these."""


@dispatch()
def start_noisy(likelihood, rng, state):
    """Set latent noisy counts to values of positive density, given the counts."""


@refresh.register
def _refresh_hidden(likelihood: HiddenCounts, rng, state):
    tally(state.noisy, state.explained, state.sums)  # sums lose their last digits in time
    _explain(likelihood, rng, state)
    _flip(likelihood, rng, state)
    for j in range(len(state.noisy)):
        _move(likelihood, rng, state, j)


@start_noisy.register
def _start_hidden(likelihood: HiddenCounts, rng, state):
    for j in range(len(state.noisy)):
        state.noisy[j] = _draw_side(likelihood.noise, likelihood.scale, rng, state.counts[j], True)
        state.explained[j] = likelihood.released[j]
    tally(state.noisy, state.explained, state.sums)


def _nothing(likelihood, rng, state):
    return


for _known in (CountsWithNoise, SmoothedDraws, PolyaDraws):
    refresh.register(_nothing, _known)
    start_noisy.register(_nothing, _known)
