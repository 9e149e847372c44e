"""Latent compositions given noisy sums of their censored logarithms, one part of the records at a time.

A record holds log x_1, .., log x_d, which do not underflow where a share is too small for a double. The sum
over records is that of max(log x_j, log a), to which Laplace noise was added. The sweeps are those of
`dpmix.models.sum_augmentation`, for a database by columns, in a third of the time: offers do not depend on
the present records, and are drawn for many at a time, so that logarithms vectorise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.special import exp, log

__all__ = [
    "CensoredLogs",
    "Shapes",
    "draw_logs",
    "make_shapes",
    "set_shapes",
    "standard_cube",
    "sweep_logs",
    "sweep_offers",
]

AT_ONCE = 64  # offers drawn at a time


class CensoredLogs(NamedTuple):
    """What is known of one part: released (d,), the noisy sums; rate: 1 over their scale; floor: log a."""

    released: Any
    rate: float
    floor: float


class Shapes(NamedTuple):
    """Parameters of a Dirichlet distribution, as draws of gamma variates use them, all (d,).

    alpha; with m = alpha - 1/3, or alpha + 2/3 where alpha < 1, mode: m; spread: 1 / sqrt(9 m). The last
    entry of `boost` (d + 1,) says whether there is any alpha < 1, the others hold 1 / alpha there, and 0.
    """

    alpha: Any
    mode: Any
    spread: Any
    boost: Any


def make_shapes(d: int) -> Shapes:
    """Return room for `d` parameters."""
    return Shapes(np.ones(d), np.ones(d), np.ones(d), np.zeros(d + 1))


@njit
def set_shapes(shapes):
    """Set the rest from `alpha`."""
    shapes.boost[-1] = 0.0
    for j in range(len(shapes.alpha)):
        alpha = shapes.alpha[j]
        shapes.boost[j] = 0.0
        if alpha < 1.0:
            shapes.boost[j] = 1.0 / alpha
            shapes.boost[-1] = 1.0
            alpha += 1.0
        shapes.mode[j] = alpha - 1.0 / 3.0
        shapes.spread[j] = 1.0 / math.sqrt(9.0 * shapes.mode[j])


@inlined
def standard_cube(rng, mode, spread):
    """Draw v, `mode` times which is a gamma variate of shape `mode` + 1/3 >= 1 (Marsaglia and Tsang 2000)."""
    while True:
        z = rng.standard_normal()
        v = 1.0 + spread * z
        if v <= 0.0:
            continue
        v = v * v * v
        u = rng.random()
        square = z * z
        if u < 1.0 - 0.0331 * square * square:
            return v
        if math.log(u) < 0.5 * square + mode * (1.0 - v + math.log(v)):
            return v


@njit
def draw_logs(rng, shapes, logs, width):
    """Set the first `width` columns of `logs` (d, width or more) to log compositions given the shapes.

    Gamma variates of alpha < 1 are those of alpha + 1 times U^(1 / alpha), in logarithms.
    """
    mode, spread, boost = shapes.mode, shapes.spread, shapes.boost
    d = len(mode)
    totals = np.zeros(width)
    for j in range(d):
        row, size, width_j = logs[j], mode[j], spread[j]
        for q in range(width):
            row[q] = size * standard_cube(rng, size, width_j)
    if boost[d] == 0.0:
        for j in range(d):
            row = logs[j]
            for q in range(width):
                totals[q] += row[q]
        for q in range(width):
            totals[q] = 1.0 / totals[q]
        for j in range(d):
            row = logs[j]
            for q in range(width):
                row[q] = log(row[q] * totals[q])
        return
    tops = np.full(width, -math.inf)
    for j in range(d):
        row, times = logs[j], boost[j]
        for q in range(width):
            row[q] = log(row[q])
        if times > 0.0:
            for q in range(width):
                row[q] -= times * rng.standard_exponential()
        for q in range(width):
            tops[q] = max(tops[q], row[q])
    for j in range(d):
        row = logs[j]
        for q in range(width):
            totals[q] += exp(row[q] - tops[q])
    for q in range(width):
        totals[q] = tops[q] + log(totals[q])
    for j in range(d):
        row = logs[j]
        for q in range(width):
            row[q] -= totals[q]


@njit
def sweep_logs(model, rng, shapes, columns, sums, moves):
    """Offer every record, a column of `columns` (d, n), a new one; keep sums (d,); add to moves (2,)."""
    d, n = columns.shape
    offers, released, floor, rate = np.empty((d, AT_ONCE)), model.released, model.floor, model.rate
    offered = np.empty(d)
    level = 0.0
    for j in range(d):
        level += abs(released[j] - sums[j])
    for start in range(0, n, AT_ONCE):
        width = min(AT_ONCE, n - start)
        draw_logs(rng, shapes, offers, width)
        for q in range(width):
            found = 0.0
            for j in range(d):
                offered[j] = sums[j] - max(columns[j, start + q], floor) + max(offers[j, q], floor)
                found += abs(released[j] - offered[j])
            gain = rate * (level - found)
            if gain >= 0.0 or rng.random() < math.exp(gain):
                moves[0] += 1.0
                level = found
                for j in range(d):
                    sums[j] = offered[j]
                    columns[j, start + q] = offers[j, q]
    moves[1] += n


@njit
def sweep_offers(model, rng, shapes, columns, sums, moves, offers):
    """Make `offers` offers, each of one record to all n columns; see `dpmix.models.sum_augmentation`."""
    d, n = columns.shape
    offer, weights = np.empty((d, 1)), np.empty(n)
    for _ in range(offers):
        draw_logs(rng, shapes, offer, offer.shape[1])  # a literal 1 would be compiled by itself
        level = 0.0
        for j in range(d):
            level += abs(model.released[j] - sums[j])
        top = 0.0
        for i in range(n):
            found = 0.0
            for j in range(d):
                moved = sums[j] - max(columns[j, i], model.floor) + max(offer[j, 0], model.floor)
                found += abs(model.released[j] - moved)
            weights[i] = model.rate * (level - found)
            top = max(top, weights[i])
        total = 0.0
        for i in range(n):
            weights[i] = exp(weights[i] - top)
            total += weights[i]
        moves[1] += 1.0
        left = rng.random() * total
        chosen = 0
        for i in range(n):
            chosen = i  # the last, where rounding runs past the end
            left -= weights[i]
            if left < 0.0:
                break
        back = total - weights[chosen] + exp(-top)
        if total >= back or rng.random() * back < total:
            for j in range(d):
                sums[j] += max(offer[j, 0], model.floor) - max(columns[j, chosen], model.floor)
                columns[j, chosen] = offer[j, 0]
            moves[0] += 1.0
