"""Latent compositions given noisy sums of their censored logarithms, one part of the records at a time.

A record holds log x_1, .., log x_d, which do not underflow where a share is too small for a double. The sum
over records is that of max(log x_j, log a), to which Laplace noise was added. Where a was chosen among
several thresholds, the noisy numbers of records that this was done by are known too (`Scores`): these are
sums over records as well, and stand behind the others. The sweeps are those of
`dpmix.models.sum_augmentation`, for a database by columns, in a third of the time: offers do not depend on
the present records, and are drawn for many at a time, so that logarithms vectorise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.numerics.jit import inlined, njit
from dpmix.numerics.special import exp, log

AT_ONCE = 64  # offers drawn at a time


class Scores(NamedTuple):
    """How many records each of M candidate thresholds is the first to leave uncensored, with geometric noise.

    levels (M,): their logarithms, which decrease; noisy (M,); rate: epsilon2 / 2, so that k more or less than
    a number have the log density -rate |k|. Empty where none are known.
    """

    levels: Any
    noisy: Any
    rate: float


class CensoredLogs(NamedTuple):
    """What is known of one part.

    released (d,): the noisy sums; rate: 1 over their scale; floor: log a; and the scores. The sums of its
    records are (d + M,): of max(log x, floor), and the numbers that the scores are of.
    """

    released: Any
    rate: float
    floor: float
    scores: Scores


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


def no_scores() -> Scores:
    """Return the scores of a release that tells none."""
    return Scores(np.empty(0), np.empty(0), 0.0)


@inlined
def least_log(columns, i):
    """Return the least logarithm of record i of columns (d, n)."""
    least = columns[0, i]
    for j in range(1, len(columns)):
        least = min(least, columns[j, i])
    return least


@inlined
def first_level(scores, least):
    """Return the first level that is not above the least logarithm of a record; M where all are."""
    m = 0
    while m < len(scores.levels) and least < scores.levels[m]:
        m += 1
    return m


@inlined
def _score_gain(scores, sums, d, old, new):
    """Return the change of the scores' log density as a record goes from one level to another."""
    gain = 0.0
    if old == new:
        return gain
    if old < len(scores.noisy):
        gap = scores.noisy[old] - sums[d + old]
        gain += abs(gap) - abs(gap + 1.0)
    if new < len(scores.noisy):
        gap = scores.noisy[new] - sums[d + new]
        gain += abs(gap) - abs(gap - 1.0)
    return scores.rate * gain


@inlined
def _move_level(scores, sums, d, old, new):
    """Count a record at another level."""
    if old < len(scores.noisy):
        sums[d + old] -= 1.0
    if new < len(scores.noisy):
        sums[d + new] += 1.0


@njit
def count_levels(scores, columns, sums):
    """Set the last of sums (d + M,) to the numbers of records, columns (d, n), of each level."""
    d, n = columns.shape
    if len(scores.noisy) == 0:
        return
    sums[d:] = 0.0
    for i in range(n):
        m = first_level(scores, least_log(columns, i))
        if m < len(scores.noisy):
            sums[d + m] += 1.0


@njit
def scores_without(scores, sums, part):
    """Return the scores less the records of all parts but one: sums (parts, d + M)."""
    noisy = scores.noisy.copy()
    d = sums.shape[1] - len(noisy)
    for other in range(len(sums)):
        if other != part:
            for m in range(len(noisy)):
                noisy[m] -= sums[other, d + m]
    return Scores(scores.levels, noisy, scores.rate)


@njit
def log_scores(scores, sums):
    """Return the log density of the scores given the sums (parts, d + M)."""
    gap, d = 0.0, sums.shape[1] - len(scores.noisy)
    for m in range(len(scores.noisy)):
        number = 0.0
        for part in range(len(sums)):
            number += sums[part, d + m]
        gap += abs(scores.noisy[m] - number)
    return -scores.rate * gap


@njit
def sweep_logs(model, rng, shapes, columns, sums, moves):
    """Offer every record, a column of `columns` (d, n), a new one; keep sums (d + M,); add to moves (2,)."""
    d, n = columns.shape
    scores = model.scores
    scored, old, new = len(scores.noisy) > 0, 0, 0
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
            if scored:
                old = first_level(scores, least_log(columns, start + q))
                new = first_level(scores, least_log(offers, q))
                gain += _score_gain(scores, sums, d, old, new)
            if gain >= 0.0 or rng.random() < math.exp(gain):
                moves[0] += 1.0
                level = found
                if scored:
                    _move_level(scores, sums, d, old, new)
                for j in range(d):
                    sums[j] = offered[j]
                    columns[j, start + q] = offers[j, q]
    moves[1] += n


@njit
def sweep_offers(model, rng, shapes, columns, sums, moves, offers):
    """Make `offers` offers, each of one record to all n columns; see `dpmix.models.sum_augmentation`."""
    d, n = columns.shape
    scores = model.scores
    scored, new = len(scores.noisy) > 0, 0
    offer, weights = np.empty((d, 1)), np.empty(n)
    for _ in range(offers):
        draw_logs(rng, shapes, offer, offer.shape[1])  # a literal 1 would be compiled by itself
        if scored:
            new = first_level(scores, least_log(offer, 0))
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
            if scored:
                weights[i] += _score_gain(scores, sums, d, first_level(scores, least_log(columns, i)), new)
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
            if scored:
                _move_level(scores, sums, d, first_level(scores, least_log(columns, chosen)), new)
            for j in range(d):
                sums[j] += max(offer[j, 0], model.floor) - max(columns[j, chosen], model.floor)
                columns[j, chosen] = offer[j, 0]
            moves[0] += 1.0
