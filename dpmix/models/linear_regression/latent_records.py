"""Latent records of predictors and response given noisy second moments of their clamped values.

A record is x_1, .., x_p, y in the units of the data, and then the same clamped to the public bounds and
rescaled to [-1, 1]: x~_1, .., x~_p, y~. The sum over records has the entries x~'y~ (intercept first), y~'y~
and the upper triangle of x~'x~ by rows without its constant first entry, to each of which Laplace noise was
added. The tally holds released minus summed, entry by entry, and the sum of the absolute differences.

The sweep over the records of a linear regression, by the block: what can be done at once for many is.

Offers do not depend on what became of earlier ones. So those of a block are drawn together, and how each
would change the sums, in loops over records that the compiler turns into vector instructions. What remains to
be done in order is to accept. An offer that lowers the log density by g is accepted where E > g, for E
exponential. Now g is at most h, what the absolute changes of the sums come to. Where E > h the offer is
accepted whatever g, and E - h is exponential again, for the next record; only where E <= h are the densities
looked at, and E drawn anew. That is as exact, and under much noise seldom needed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpmix.models.sum_augmentation import (
    draw_record,
    log_change,
    offer_to_all,
    recount,
    replace,
    save,
    sweep,
    sweep_bounded_offers,
)
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.streams import fill_normals, make_words, seed

BLOCK = 64  # records that are worked on side by side; what they take stays in the nearest cache
SD, MEAN, COV = 0, 1, 2  # of `Moments.known`: sigma2, x_mean, x_cov


class Moments(NamedTuple):
    """Released moments and prior of a linear regression with p predictors, q = p + 1.

    columns (q,): a tuple of any numbers, whose length is known where functions are compiled, so that loops
    over columns are unrolled. released (size,); bounds (2 q,): x~_j = bounds[q + j] (x_j - bounds[j]) - 1,
    the response last; rate: 1 over the scale of the noise. What follows are numbers and tuples, which cost
    nothing to pass. beta ~ N(beta_mean, diag 1 / beta_precision), (q,) each, the intercept first, or,
    `beta_learned`, Cauchy with these as centres and scales: the variance of each over its scale squared is
    IG(1/2, 1/2). Errors have
    variance sigma2 ~ IG(shape, b), where b is the scale or, `learned`, b ~ Gamma(1/2) of mean scale.
    Predictors are N(x_mean, x_cov) with x_cov ~ IW(freedom, psi), psi (p p,), or, `psi_learned`, with a
    diagonal scale matrix whose entries are Gamma(1/2) of the means on psi's diagonal, independent, and
    x_mean ~ N(centre, x_cov / weight); `known` (3,) says which of sigma2, x_mean and x_cov is known instead.
    """

    columns: Any
    released: Any
    bounds: Any
    rate: float
    beta_mean: Any
    beta_precision: Any
    beta_learned: bool
    shape: float
    scale: float
    learned: bool
    centre: Any
    weight: float
    freedom: float
    psi: Any
    psi_learned: bool
    known: Any


class Line(NamedTuple):
    """Parameters, and what the joint move has learnt.

    values (q + 1 + p + p p,): beta, the sd of the errors, x_mean, and the lower factor of x_cov by rows;
    learnt: of the joint move, see `dpmix.models.linear_regression.joint`.
    """

    values: Any
    learnt: Any


def size_of(q: int) -> int:
    """Return the number of released moments of q - 1 predictors and a response."""
    return q + 1 + q * (q + 1) // 2 - 1


@njit
def farthest_change(q):
    """Return the most by which all sums together can change with one record, in absolute value."""
    return q + q / (2.0 * (q + 1.0)) + q * (q + 1.0) / 2.0


@njit
def clip(u):
    """Return u within [-1, 1]; two comparisons are faster here than `min` and `max`, which mind NaN."""
    if u < -1.0:
        u = -1.0
    if u > 1.0:
        u = 1.0
    return u


@njit
def _normals(rng, record):
    """Draw the second half of a record, in a loop that is not unrolled: two thirds of the time."""
    q = len(record) // 2
    for i in range(q):
        record[q + i] = rng.standard_normal()


@draw_record.register
def _draw_record(model: Moments, rng, theta, record):
    q = len(model.columns)
    p = q - 1
    values, bounds = theta.values, model.bounds
    _normals(rng, record)
    y = values[0] + values[q] * record[q + p]
    for back in range(p):  # from the last, so that a normal is read before its place is taken
        i = p - 1 - back
        x = values[q + 1 + i]
        for j in range(i + 1):
            x += values[q + 1 + p + i * p + j] * record[q + j]
        record[i] = x
        record[q + i] = clip((x - bounds[i]) * bounds[q + i] - 1.0)
        y += values[i + 1] * x
    record[p] = y
    record[q + p] = clip((y - bounds[p]) * bounds[q + p] - 1.0)


@njit
def fill(model, record):
    """Set the clamped half of a record from the other."""
    q = len(model.columns)
    bounds = model.bounds
    for j in range(q):
        record[q + j] = clip((record[j] - bounds[j]) * bounds[q + j] - 1.0)


@njit
def subtract(record, rest):
    """Subtract what a record adds to the sums from `rest` (size,)."""
    q = len(record) // 2
    p = q - 1
    y = record[q + p]
    rest[0] -= y
    for i in range(p):
        rest[1 + i] -= record[q + i] * y
    rest[q] -= y * y
    at = q + 1
    for j in range(p):
        rest[at + j] -= record[q + j]
    at += p
    for i in range(p):
        for j in range(i, p):
            rest[at] -= record[q + i] * record[q + j]
            at += 1


@njit
def distance(rest):
    """Return the sum of absolute values."""
    total = 0.0
    for value in rest:
        total += abs(value)
    return total


@recount.register
def _recount(model: Moments, records, tally):
    for j in range(len(tally.sums)):
        tally.sums[j] = model.released[j]
    for i in range(len(records)):
        subtract(records[i], tally.sums)
    tally.level[0] = distance(tally.sums)


@log_change.register
def _log_change(model: Moments, tally, old, new):
    q = len(model.columns)
    p = q - 1
    sums, offered = tally.sums, tally.offered
    v, y = old[q + p], new[q + p]
    r = sums[0] + v - y
    offered[0] = r
    level = abs(r)
    for i in range(p):
        r = sums[1 + i] + old[q + i] * v - new[q + i] * y
        offered[1 + i] = r
        level += abs(r)
    r = sums[q] + v * v - y * y
    offered[q] = r
    level += abs(r)
    at = q + 1
    for j in range(p):
        r = sums[at + j] + old[q + j] - new[q + j]
        offered[at + j] = r
        level += abs(r)
    at += p
    for i in range(p):
        a, b = old[q + i], new[q + i]
        for j in range(i, p):
            r = sums[at] + a * old[q + j] - b * new[q + j]
            offered[at] = r
            level += abs(r)
            at += 1
    tally.level[1] = level
    return (tally.level[0] - level) * model.rate


@replace.register
def _replace(model: Moments, tally, old, new):
    for j in range(len(tally.sums)):
        tally.sums[j] = tally.offered[j]
    tally.level[0] = tally.level[1]


# The sweep over the records of a linear regression, by the block: what can be done at once for many is


class StreamRoom(NamedTuple):
    """Scratch: words (4,) of the stream; block, rows of BLOCK numbers one after the other.

    The rows are what was offered, as records are; the clamped values that it would replace (q,); the changes
    of the sums (size,); and how far these might lower the log density.
    """

    words: Any
    block: Any


def make_room(q: int) -> StreamRoom:
    """Return scratch for q - 1 predictors and a response."""
    return StreamRoom(make_words(), np.zeros((3 * q + size_of(q) + 1) * BLOCK))


@dispatch()
def offer_block(model, values, block, count):
    """Turn normals in the first q rows into records, on the rescaled variables and clamped."""


@offer_block.register
def _offer_block(model: Moments, values, block, count):
    q = len(model.columns)
    p = q - 1
    bounds = model.bounds
    for b in range(count):
        y = values[0] + values[q] * block[p * BLOCK + b]
        for back in range(p):  # from the last, so that a normal is read before its place is taken
            i = p - 1 - back
            x = values[q + 1 + i]
            for j in range(i + 1):
                x += values[q + 1 + p + i * p + j] * block[j * BLOCK + b]
            block[i * BLOCK + b] = x
            block[(q + i) * BLOCK + b] = clip((x - bounds[i]) * bounds[q + i] - 1.0)
            y += values[i + 1] * x
        block[p * BLOCK + b] = y
        block[(q + p) * BLOCK + b] = clip((y - bounds[p]) * bounds[q + p] - 1.0)


@njit
def _change(model, block, count):
    """Set the rows of changes, and of how far they might lower the log density."""
    q = len(model.columns)
    p = q - 1
    size = q + 1 + q * (q + 1) // 2 - 1
    new, old, row = q * BLOCK, 2 * q * BLOCK, 3 * q * BLOCK
    for b in range(count):
        v, y = block[old + p * BLOCK + b], block[new + p * BLOCK + b]
        block[row + b] = v - y
        block[row + q * BLOCK + b] = v * v - y * y
        at = row + (q + 1) * BLOCK + b
        for i in range(p):
            a, x = block[old + i * BLOCK + b], block[new + i * BLOCK + b]
            block[row + (1 + i) * BLOCK + b] = a * v - x * y
            block[at + i * BLOCK] = a - x
        at += p * BLOCK
        for i in range(p):
            a, x = block[old + i * BLOCK + b], block[new + i * BLOCK + b]
            for j in range(i, p):
                block[at] = a * block[old + j * BLOCK + b] - x * block[new + j * BLOCK + b]
                at += BLOCK
    for b in range(count):
        total = 0.0
        for k in range(size):
            total += abs(block[row + k * BLOCK + b])
        block[row + size * BLOCK + b] = total * model.rate


@njit
def _accept(model, rng, block, records, sums, count, left):
    """Put what is accepted in the place of `records` (count, 2 q); return how many, and what is left of E."""
    q = len(model.columns)
    size = q + 1 + q * (q + 1) // 2 - 1
    row = 3 * q * BLOCK
    accepted = 0
    for b in range(count):
        bound = block[row + size * BLOCK + b]
        if left > bound:
            left -= bound
        else:
            before = after = 0.0
            for k in range(size):
                before += abs(sums[k])
                after += abs(sums[k] + block[row + k * BLOCK + b])
            stays = left <= (after - before) * model.rate
            left = rng.standard_exponential()
            if stays:
                continue
        accepted += 1
        for k in range(size):
            sums[k] += block[row + k * BLOCK + b]
        for j in range(2 * q):
            records[b, j] = block[j * BLOCK + b]
    return accepted, left


@sweep.register
def _sweep(model: Moments, rng, theta, records, tally, room, moves):
    q = len(model.columns)
    block = room.block
    seed(rng, room.words)
    left = rng.standard_exponential()
    accepted = 0
    for first in range(0, len(records), BLOCK):
        part = records[first : first + BLOCK]
        count = len(part)
        fill_normals(room.words, block, q * BLOCK if count == BLOCK else 0)
        if count < BLOCK:
            for j in range(q):
                fill_normals(room.words, block[j * BLOCK :], count)
        for b in range(count):
            for j in range(q):
                block[(2 * q + j) * BLOCK + b] = part[b, q + j]
        offer_block(model, theta.values, block, count)
        _change(model, block, count)
        more, left = _accept(model, rng, block, part, tally.sums, count, left)
        accepted += more
    tally.level[0] = distance(tally.sums)
    moves[0] += accepted
    moves[1] += len(records)


@offer_to_all.register
def _offer_to_all(model: Moments, rng, theta, records, tally, offer, weights, moves, offers):
    bound = farthest_change(len(model.columns)) * model.rate
    sweep_bounded_offers(model, rng, theta, records, tally, offer, weights, moves, offers, bound)


@save.register
def _save(model: Moments, rng, theta, saved):
    """Write `Line.values`, and then normals for predictions."""
    width = len(theta.values)
    saved[:width] = theta.values
    for j in range(width, len(saved)):
        saved[j] = rng.standard_normal()
