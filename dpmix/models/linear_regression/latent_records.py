"""Latent records of predictors and response given noisy second moments of their clamped values.

A record is x_1, .., x_p, y in the units of the data, and then the same clamped to the public bounds and
rescaled to [-1, 1]: x~_1, .., x~_p, y~. The sum over records has the entries x~'y~ (intercept first), y~'y~
and the upper triangle of x~'x~ by rows without its constant first entry, to each of which Laplace noise was
added. The tally holds released minus summed, entry by entry, and the sum of the absolute differences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpmix.models.sum_augmentation import draw_record, log_change, recount, replace
from dpmix.numerics.jit import njit

__all__ = ["BLOCK", "COV", "MEAN", "SD", "Line", "Moments", "farthest_change", "fill", "size_of"]

BLOCK = 64  # records that are worked on side by side; what they take stays in the nearest cache
SD, MEAN, COV = 0, 1, 2  # of `Moments.known`: sigma2, x_mean, x_cov


class Moments(NamedTuple):
    """Released moments and prior of a linear regression with p predictors, q = p + 1.

    columns (q,): a tuple of any numbers, whose length is known where functions are compiled, so that loops
    over columns are unrolled. released (size,); bounds (2 q,): x~_j = bounds[q + j] (x_j - bounds[j]) - 1,
    the response last; rate: 1 over the scale of the noise. What follows are numbers and tuples, which cost
    nothing to pass. beta ~ N(beta_mean, diag 1 / beta_precision), (q,) each, the intercept first. Errors have
    variance sigma2 ~ IG(shape, scale), predictors are N(x_mean, x_cov) with x_cov ~ IW(freedom, psi), psi
    (p p,), and x_mean ~ N(centre, x_cov / weight); `known` (3,) says which of sigma2, x_mean and x_cov is
    known instead.
    """

    columns: Any
    released: Any
    bounds: Any
    rate: float
    beta_mean: Any
    beta_precision: Any
    shape: float
    scale: float
    centre: Any
    weight: float
    freedom: float
    psi: Any
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
