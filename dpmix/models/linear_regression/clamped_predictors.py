"""Linear regression whose line is in what the table holds of predictors: `model.predictors: clamped`.

Latent predictors are x = x_mean + L z, as in the unclamped model, and what the table holds of them is x~,
clamped to the public bounds. The response has its line in these: y = (1, x~) beta + sd e. So x_mean and x_cov
say how values spread over the bounds and at them, and nothing of the slope: a predictor of zeros and ones is
a normal one of which nearly all lies beyond.

Given the records beta and sd are conjugate as before, by the second moments of (1, x~, y), and x_mean and
x_cov by those of (1, x). Where parameters move together with all records, z and e stay, as in
`dpmix.models.linear_regression.joint`. The straight response y + (x - x~) b, b the slopes, is linear in
these: with it in the place of y all of that move holds, but that y~ is made of it by clamping x first.

Of a predictor that nearly always lies at its bounds, mean and spread go along a ridge: a law twice as far out
and as wide has the same values at the bounds, and a few less within. Along it, z being held fixed, random
lines hardly move. So the latent values of each predictor are also scaled by exp(t), with its x_mean and its
row of L, y following x~; accepted is by the ratio of the prior densities, that of the release, and the
Jacobian, exp(t) for each number scaled but for the diagonal, whose coordinate is its log. The length of t is
drawn anew each time, between steps that suit much and little information: nothing is to be learnt. Sums
change by records alone whose clamped values do, so that a predictor that nearly always lies at its bounds is
scaled many times a sweep at the cost of once; how often, the mean says that the joint move learns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.models.linear_regression.conjugate_draws import (
    draw_coefficients,
    draw_predictors,
    second_moments,
)
from dpmix.models.linear_regression.joint import (
    ACTIVE,
    HEAD,
    approximate,
    approximate_by_moments,
    carry,
    coordinates,
    follow,
    log_prior,
    move_jointly,
    register_kind,
    unpack,
)
from dpmix.models.linear_regression.latent_records import (
    BLOCK,
    COV,
    MEAN,
    Moments,
    clip,
    distance,
    fill,
    offer_block,
    subtract,
)
from dpmix.models.linear_regression.ridge import fitted, log_truncation, move_along_ridge
from dpmix.models.sum_augmentation import draw_record, draw_theta
from dpmix.numerics.bounded_normal import upper_tail
from dpmix.numerics.jit import dispatch, njit

SHORTEST, LONGEST = 0.01, 1.0
"""Standard deviations of t, between which its is drawn, uniform in its log."""
MOST = 8
"""Times that a predictor is scaled in a sweep, where nearly all of its values lie at the bounds."""


class ClampedPredictorMoments(Moments):
    """What `Moments` holds, of a model whose line is in clamped predictors."""

    __slots__ = ()


def start_within(law: Moments, values: NDArray[np.float64]) -> None:
    """Start where the release tells the way: a draw from the prior may be where chains stay for long.

    Coefficients that are Cauchy a priori start within 1 of their centres: steep lines clamp all responses.
    Predictors' means start within the bounds: of a predictor all of whose values lie beyond one, lines find
    laws thousands of times as wide as the bounds before they find the release. The law of clamped
    predictors, where it is not known, starts wide and in the middle of the bounds: of zeros and ones a
    narrow one finds all records at one bound.
    """
    q = len(law.columns)
    if law.beta_learned:
        gap = values[:q] - law.beta_mean
        values[:q] = law.beta_mean + gap / (1.0 + np.abs(gap))
    clamped = isinstance(law, ClampedPredictorMoments)
    if not law.known[MEAN]:
        values[q + 1 : 2 * q] = 0.0 if clamped else np.clip(values[q + 1 : 2 * q], -1.0, 1.0)
    if clamped and not law.known[COV]:
        values[2 * q :] = np.eye(q - 1).ravel()


register_kind(ClampedPredictorMoments)
log_truncation.register(log_truncation.registered[(Moments,)], ClampedPredictorMoments, compiled=False)


@njit
def set_predictors(model, values, record):
    """Set x and x~ of a record from the normals that stand in the place of x~."""
    q = len(model.columns)
    p = q - 1
    for back in range(p):  # from the last, so that a normal is read before its place is taken
        i = p - 1 - back
        x = values[q + 1 + i]
        for j in range(i + 1):
            x += values[q + 1 + p + i * p + j] * record[q + j]
        record[i] = x
        record[q + i] = clip(x)


@draw_record.register
def _draw_record(model: ClampedPredictorMoments, rng, theta, record):
    q = len(model.columns)
    p = q - 1
    values = theta.values
    for i in range(q):
        record[q + i] = rng.standard_normal()
    y = values[0] + values[q] * record[q + p]
    set_predictors(model, values, record)
    for back in range(p):
        y += values[p - back] * record[q + p - 1 - back]
    record[p] = y
    record[q + p] = clip(y)


@offer_block.register
def _offer_block(model: ClampedPredictorMoments, values, block, count):
    q = len(model.columns)
    p = q - 1
    for b in range(count):
        y = values[0] + values[q] * block[p * BLOCK + b]
        for back in range(p):
            i = p - 1 - back
            x = values[q + 1 + i]
            for j in range(i + 1):
                x += values[q + 1 + p + i * p + j] * block[j * BLOCK + b]
            block[i * BLOCK + b] = x
            clamped = clip(x)
            block[(q + i) * BLOCK + b] = clamped
            y += values[i + 1] * clamped
        block[p * BLOCK + b] = y
        block[(q + p) * BLOCK + b] = clip(y)


@carry.register
def _carry(model: ClampedPredictorMoments, old, new, matrix, record, out):
    q = len(model.columns)
    follow(matrix, record, out)
    fill(model, out)
    residual = record[q - 1] - fitted(record, q, old[:q])
    y = fitted(out, q, new[:q]) + residual * (new[q] / old[q])
    out[q - 1] = y
    out[2 * q - 1] = clip(y)


@approximate.register
def _approximate(model: ClampedPredictorMoments, values, moments, near, work, rest):
    """Take the sums from second moments as in the unclamped model, and of records near the bounds exactly."""
    approximate_by_moments(model, values, moments, work, rest)
    matrix, q = work[0], len(model.columns)
    for i in range(len(near)):
        record = near[i]
        y = matrix[q, 0] + matrix[q, q] * record[q - 1]
        for j in range(q - 1):
            x = matrix[j + 1, 0]
            for k in range(j + 1):
                x += matrix[j + 1, k + 1] * record[k]
            clamped = clip(x)
            record[q + j] = clamped
            y += matrix[q, j + 1] * record[j] - values[j + 1] * (x - clamped)
        record[2 * q - 1] = clip(y)
        subtract(record, rest)
    return distance(rest)


@draw_theta.register
def _draw_theta(model: ClampedPredictorMoments, rng, theta, records, tally):
    q = len(model.columns)
    p = q - 1
    values = theta.values
    moments, columns = np.empty((q + 1, q + 1)), np.empty((len(records), q))
    for n in range(len(records)):
        for i in range(p):
            columns[n, i] = records[n, q + i]
        columns[n, p] = records[n, p]
    second_moments(model, columns, moments)
    if theta.learnt[ACTIVE] > 0.0:
        move_along_ridge(model, rng, theta, records, tally, moments, q)
    draw_coefficients(model, rng, values, moments)
    for n in range(len(records)):
        straight = records[n, p]
        for i in range(p):
            columns[n, i] = records[n, i]
            straight += values[i + 1] * (records[n, i] - records[n, q + i])
        columns[n, p] = straight
    second_moments(model, columns, moments)
    draw_predictors(model, rng, values, moments)
    if theta.learnt[ACTIVE] > 0.0:
        move_jointly(model, rng, theta, records, columns, tally, moments)
        scale_with_laws(model, rng, theta, records, tally)


@njit
def scale_with_laws(model, rng, theta, records, tally):
    """Scale the latent values of all predictors, with their laws where these are not known."""
    if model.known[COV]:
        return
    q, k = len(model.columns), coordinates(model)
    p = q - 1
    about = theta.values.copy()
    unpack(model, theta.learnt[HEAD : HEAD + k], about)
    for i in range(p):
        square = 0.0
        for j in range(i + 1):
            square += about[q + 1 + p + i * p + j] ** 2
        mean, sd = about[q + 1 + i], math.sqrt(square)
        inside = 1.0 - upper_tail((1.0 - mean) / sd) - upper_tail((1.0 + mean) / sd)
        for _ in range(int(min(MOST, 1.0 / max(inside, 1.0 / MOST)))):
            scale_with_law(model, rng, theta.values, records, tally, i)


@njit
def scale_with_law(model, rng, values, records, tally, i):
    """Scale the latent values of predictor i, with their law."""
    q = len(model.columns)
    p = q - 1
    step = SHORTEST * math.exp(math.log(LONGEST / SHORTEST) * rng.random()) * rng.standard_normal()
    by, moved, inverse = math.exp(step), values.copy(), np.empty((p, p))
    centre, scaled = values[q + 1 + i], i
    if not model.known[MEAN]:
        centre, scaled = 0.0, i + 1
        moved[q + 1 + i] *= by
    for j in range(i + 1):
        moved[q + 1 + p + i * p + j] *= by
    gain = log_prior(model, moved, inverse) - log_prior(model, values, inverse) + scaled * step
    rest, gone, offer = tally.sums.copy(), np.zeros(len(tally.sums)), np.empty(2 * q)
    for n in range(len(records)):
        record = records[n]
        if clip(centre + by * (record[i] - centre)) != record[q + i]:
            subtract(record, gone)
            set_scaled(model, values, record, i, centre, by, offer)
            subtract(offer, rest)
    rest -= gone
    level = distance(rest)
    gain += model.rate * (tally.level[0] - level)
    if gain >= 0.0 or rng.random() < math.exp(gain):
        for n in range(len(records)):
            latent = centre + by * (records[n, i] - centre)
            if clip(latent) != records[n, q + i]:
                set_scaled(model, values, records[n], i, centre, by, offer)
                records[n, :] = offer
            else:
                records[n, i] = latent
        values[:] = moved
        tally.sums[:] = rest
        tally.level[0] = level


@dispatch()
def set_scaled(model, values, record, i, centre, by, out):
    """Set `out` (2 q,) to a record whose predictor i is scaled about a centre, errors staying."""


@set_scaled.register
def _set_scaled(model: ClampedPredictorMoments, values, record, i, centre, by, out):
    q = len(model.columns)
    out[:] = record
    out[i] = centre + by * (record[i] - centre)
    out[q + i] = clip(out[i])
    if out[q + i] != record[q + i]:
        out[q - 1] += values[i + 1] * (out[q + i] - record[q + i])
        out[2 * q - 1] = clip(out[q - 1])
