"""Linear regression whose errors are truncated to the bounds of the response: `model.response: truncated`.

Given x~, the response y~ has the density N(y~; m, sd^2) / (Phi(b) - Phi(a)) on [-1, 1], m = (1, x~) beta,
a = (-1 - m) / sd, b = (1 - m) / sd. Predictors are as in the clamped model. Beta and sd given records have no
conjugate law, for the masses depend on both, and move in two ways:

- given the records, under the density above, at one pass over the records for their masses;
- together with all records, what is random in these held fixed (interweaving: Yu and Meng 2011): x~ is
  mean + L z, and y~ the value above which lies a share v of the mass, v uniform. As (z, v) have a law that is
  free of the parameters, such a move is accepted by the ratio of the prior densities and of those of the
  release, at one pass, too.

Both are random walks of a few steps a sweep, along the covariance of the parameters; it and the lengths of
the steps are learnt in burn-in alone, as in `dpmix.models.regression_joint`. Lengths vary at random, so that
a covariance of another shape than the conditional one does not stop all of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix._jit import njit
from dpmix.models.augmentation import draw_record, draw_theta, log_change, recount, replace
from dpmix.models.bounded_normal import log_mass, share_above, upper_tail, value_at
from dpmix.models.moments import BLOCK, SD, Moments, clip, distance, fill, subtract
from dpmix.models.moments_sweep import offer_block
from dpmix.models.regression_coordinates import (
    ACTIVE,
    HEAD,
    LEARNING,
    SEEN,
    coordinates,
    learn,
    learnt_room,
    log_prior,
    pack,
    unpack,
)
from dpmix.models.regression_joint import carry, follow, given_sums
from dpmix.models.regression_theta import draw_predictors, second_moments

__all__ = ["TruncatedMoments", "make_learnt"]

CENTRED, LINE, WHOLE = 3, 4, 5
"""Places of `Line.learnt` with the logs of lengths, in those of what the clamped model's move keeps."""
STEPS, LINE_STEPS, WHOLE_STEPS = 3, 2, 2
"""Of a sweep: given the records; of beta and sd, and of all parameters, together with the records."""
WANTED = 0.3
REMEMBERED = 0.5
"""Share of the states of burn-in that the covariance is over: walks take longer than `FORGET` states."""
JITTER = 0.7
"""Standard deviation of the log of a step's length."""


class TruncatedMoments(Moments):
    """What `Moments` holds, of a model whose responses lie within their bounds."""

    __slots__ = ()


def make_learnt(law: Moments) -> NDArray[np.float64]:
    """Return `Line.learnt` before anything is learnt."""
    learnt: NDArray[np.float64] = learnt_room(law)
    if isinstance(law, TruncatedMoments):
        learnt[[CENTRED, LINE, WHOLE]] = 0.0
    return learnt


@given_sums.register
def _given_sums(model: TruncatedMoments, released):
    return TruncatedMoments(
        model.columns,
        released,
        model.bounds,
        model.rate,
        model.beta_mean,
        model.beta_precision,
        model.shape,
        model.scale,
        model.centre,
        model.weight,
        model.freedom,
        model.psi,
        model.known,
    )


for function in (recount, log_change, replace):
    function.register(function.registered[(Moments,)], TruncatedMoments, compiled=False)


@njit
def _mean(q, values, record):
    """Return (1, x~) beta of a record."""
    mean = values[0]
    for i in range(q - 1):
        mean += values[i + 1] * record[i]
    return mean


@draw_record.register
def _draw_record(model: TruncatedMoments, rng, theta, record):
    q = len(model.columns)
    p = q - 1
    values = theta.values
    for i in range(p):
        record[q + i] = rng.standard_normal()
    for back in range(p):  # from the last, so that a normal is read before its place is taken
        i = p - 1 - back
        x = values[q + 1 + i]
        for j in range(i + 1):
            x += values[q + 1 + p + i * p + j] * record[q + j]
        record[i] = x
        record[q + i] = clip(x)
    record[p] = value_at(rng.random(), _mean(q, values, record), values[q])
    record[q + p] = record[p]


@offer_block.register
def _offer_block(model: TruncatedMoments, values, block, count):
    q = len(model.columns)
    p = q - 1
    for b in range(count):
        share = upper_tail(block[p * BLOCK + b])
        mean = values[0]
        for back in range(p):
            i = p - 1 - back
            x = values[q + 1 + i]
            for j in range(i + 1):
                x += values[q + 1 + p + i * p + j] * block[j * BLOCK + b]
            block[i * BLOCK + b] = x
            block[(q + i) * BLOCK + b] = clip(x)
            mean += values[i + 1] * x
        y = value_at(share, mean, values[q])
        block[p * BLOCK + b] = y
        block[(q + p) * BLOCK + b] = y


@carry.register
def _carry(model: TruncatedMoments, old, new, matrix, record, out):
    q = len(model.columns)
    follow(matrix, record, out)
    share = share_above(record[q - 1], _mean(q, old, record), old[q])
    out[q - 1] = value_at(share, _mean(q, new, out), new[q])
    fill(model, out)


@draw_theta.register
def _draw_theta(model: TruncatedMoments, rng, theta, records, tally):
    q = len(model.columns)
    learnt = theta.learnt
    old = np.empty(coordinates(model))
    pack(model, theta.values, old)
    moments = np.empty((q + 1, q + 1))
    second_moments(model, records, moments)
    draw_predictors(model, rng, theta.values, moments)
    _move_line(model, rng, theta, records, moments)
    if learnt[ACTIVE] > 0.0:
        _move_jointly(model, rng, theta, records, tally)
    if learnt[LEARNING] > 0.0:
        learn(learnt, old, REMEMBERED)


@njit
def _adapt(learnt, place, accepted):
    if learnt[LEARNING] > 0.0:
        step = 4.0 / (20.0 + learnt[SEEN])
        learnt[place] += step * ((1.0 if accepted else 0.0) - WANTED)


@njit
def _propose(rng, learnt, place, last, point, offer):
    """Set `offer` (k,) to a step from a point in the first `last` coordinates."""
    k = len(point)
    root = learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k)
    length = 2.4 / math.sqrt(last) * math.exp(learnt[place] + JITTER * rng.standard_normal())
    noise = np.empty(last)
    for i in range(last):
        noise[i] = length * rng.standard_normal()
    offer[:] = point
    for i in range(last):
        for j in range(i + 1):
            offer[i] += root[i, j] * noise[j]


@njit
def _of_line(model):
    """Return how many coordinates beta and sd have: the first."""
    q = len(model.columns)
    return q if model.known[SD] else q + 1


@njit
def _log_density_of_line(model, values, records, moments, inverse):
    """Return the log density of beta and log sd given the records, whose second moments are `moments`."""
    q = len(model.columns)
    sd = values[q]
    squares = moments[q, q]
    for i in range(q):
        squares -= 2.0 * values[i] * moments[i, q]
        for j in range(q):
            squares += values[i] * values[j] * moments[i, j]
    total = log_prior(model, values, inverse) - 0.5 * max(squares, 0.0) / (sd * sd)
    total -= len(records) * math.log(sd)
    for i in range(len(records)):
        total -= log_mass(_mean(q, values, records[i]), sd)
    return total


@njit
def _move_line(model, rng, theta, records, moments):
    """Move beta and sd given the records."""
    q, k, last = len(model.columns), coordinates(model), _of_line(model)
    learnt, values = theta.learnt, theta.values
    point, offer, moved = np.empty(k), np.empty(k), values.copy()
    inverse = np.empty((q - 1, q - 1))
    pack(model, values, point)
    now = _log_density_of_line(model, values, records, moments, inverse)
    for _ in range(STEPS):
        _propose(rng, learnt, CENTRED, last, point, offer)
        unpack(model, offer, moved)
        found = _log_density_of_line(model, moved, records, moments, inverse)
        accepted = found >= now or rng.random() < math.exp(found - now)
        if accepted:
            point[:] = offer
            values[:] = moved
            now = found
        _adapt(learnt, CENTRED, accepted)


@njit
def _standardize(model, values, records, out):
    """Set `out` (n, q) to z and v of the records."""
    q = len(model.columns)
    p = q - 1
    root = values[q + 1 + p :].reshape(p, p)
    for n in range(len(records)):
        record, own = records[n], out[n]
        own[p] = share_above(record[p], _mean(q, values, record), values[q])
        for i in range(p):
            z = record[i] - values[q + 1 + i]
            for j in range(i):
                z -= root[i, j] * own[j]
            own[i] = z / root[i, i]


@njit
def _restore(model, values, standard, records, rest):
    """Set records (n, 2 q) from z and v (n, q), and `rest` (size,) to what is released less their sums."""
    q = len(model.columns)
    p = q - 1
    rest[:] = model.released
    for n in range(len(standard)):
        own, record = standard[n], records[n]
        for i in range(p):
            x = values[q + 1 + i]
            for j in range(i + 1):
                x += values[q + 1 + p + i * p + j] * own[j]
            record[i] = x
            record[q + i] = clip(x)
        y = value_at(own[p], _mean(q, values, record), values[q])
        record[p] = y
        record[q + p] = y
        subtract(record, rest)


@njit
def _move_jointly(model, rng, theta, records, tally):
    """Move parameters together with the records, whose z and v stay."""
    q, k = len(model.columns), coordinates(model)
    learnt, values = theta.learnt, theta.values
    point, offer, moved = np.empty(k), np.empty(k), values.copy()
    inverse, rest = np.empty((q - 1, q - 1)), np.empty(len(tally.sums))
    standard, offered = np.empty((len(records), q)), np.empty(records.shape)
    pack(model, values, point)
    _standardize(model, values, records, standard)
    prior = log_prior(model, values, inverse)
    for step in range(LINE_STEPS + WHOLE_STEPS):
        place, last = (LINE, _of_line(model)) if step < LINE_STEPS else (WHOLE, k)
        _propose(rng, learnt, place, last, point, offer)
        unpack(model, offer, moved)
        _restore(model, moved, standard, offered, rest)
        level, own = distance(rest), log_prior(model, moved, inverse)
        gain = own - prior + model.rate * (tally.level[0] - level)
        accepted = gain >= 0.0 or rng.random() < math.exp(gain)
        if accepted:
            point[:] = offer
            values[:] = moved
            records[:, :] = offered
            tally.sums[:] = rest
            tally.level[0] = level
            prior = own
        _adapt(learnt, place, accepted)
