"""Linear regression whose errors are truncated to the bounds of the response: `model.response: truncated`.

Given x~, the response y~ has the density N(y~; m, sd^2) / (Phi(b) - Phi(a)) on [-1, 1], m = (1, x~) beta,
a = (-1 - m) / sd, b = (1 - m) / sd. Predictors are as in the clamped model, and the line may be in clamped
ones (`dpmix.models.linear_regression.clamped_predictors`). Beta and sd given records have no conjugate law,
for the masses depend on both, and move in two ways:

- given the records, under the density above, at one pass over the records for their masses: a random walk of
  a few steps a sweep;
- together with all records, what is random in these held fixed (interweaving: Yu and Meng 2011): x~ is
  mean + L z, and y~ the value above which lies a share v of the mass, v uniform. As (z, v) have a law that is
  free of the parameters, the posterior given them is that of prior and release.

The second are slice updates along random lines under an approximate posterior, whose end is accepted by the
ratio of the exact and the approximate densities, at one pass (surrogate transition: Liu 2001, section 9.4.3).
With T(theta) the sums of the records of these z and v, it takes T(theta) - T(theta*) for n times what its
expectation, over z and v, differs by: a sum over `POINTS` fixed points spread evenly, theta* the mean that
was learnt. Of so few records it is the exact sum.

Steps and lines have the shape of the conditional law, near theta*: its precision is that of the posterior,
learnt, and what is added by records held fixed, by differences over the same points. Shapes and the lengths
of steps are learnt in burn-in alone, as in `dpmix.models.linear_regression.joint`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpmix.models.linear_regression.clamped_predictors import (
    ClampedPredictorMoments,
    scale_with_laws,
    set_predictors,
    set_scaled,
)
from dpmix.models.linear_regression.conjugate_draws import draw_predictors, residual_squares, second_moments
from dpmix.models.linear_regression.joint import (
    ACTIVE,
    HEAD,
    LEARNING,
    SEEN,
    Surrogate,
    approximate,
    carry,
    coordinates,
    follow,
    learn,
    learnt_room,
    log_prior,
    pack,
    register_kind,
    slice_lines,
    unit_of,
    unpack,
)
from dpmix.models.linear_regression.latent_records import (
    BLOCK,
    SD,
    Moments,
    clip,
    distance,
    fill,
    offer_block,
    subtract,
)
from dpmix.models.linear_regression.ridge import fitted, log_truncation, move_along_ridge, moved_response
from dpmix.models.sum_augmentation import draw_record, draw_theta
from dpmix.numerics.bounded_normal import log_mass, lower_quantile, share_above, upper_tail, value_at
from dpmix.numerics.factors import cholesky, invert_lower, product, solve_lower
from dpmix.numerics.jit import dispatch, njit

LENGTH = 3
"""Place of `Line.learnt` with the log of the length of steps, among those of the clamped model's move."""
POINTS = 256
STEPS = 3
"""Of the random walk given the records, in a sweep."""
WANTED = 0.3
REMEMBERED = 0.5
"""Share of the states of burn-in that the covariance is over: walks take longer than `FORGET` states."""
EVERY = 8
"""States of burn-in after which shapes are taken anew."""
NEARBY = 0.01
"""Standard deviations over which differences are taken."""
JITTER = 0.7
"""Standard deviation of the log of a step's length."""


class TruncatedMoments(Moments):
    """What `Moments` holds, of a model whose responses lie within their bounds."""

    __slots__ = ()


def make_learnt(law: Moments) -> NDArray[np.float64]:
    """Return `Line.learnt` before anything is learnt; of truncated errors it has two shapes at its end."""
    learnt: NDArray[np.float64] = learnt_room(law)
    if not isinstance(law, TruncatedMoments):
        return learnt
    k, line = int(coordinates(law)), int(_of_line(law))
    root = learnt[HEAD + k + k * k :].reshape(k, k)
    return np.concatenate([learnt, root.ravel(), root[:line, :line].ravel()])


register_kind(TruncatedMoments)


@dispatch()
def line_in(model):
    """Return the place in a record of the first of the predictors that the line is in."""


@line_in.register
def _line_in(model: TruncatedMoments):
    return 0


@njit
def mean_of(model, values, record):
    """Return (1, x) beta of a record."""
    first, mean = line_in(model), values[0]
    for i in range(len(model.columns) - 1):
        mean += values[i + 1] * record[first + i]
    return mean


@draw_record.register
def _draw_record(model: TruncatedMoments, rng, theta, record):
    q = len(model.columns)
    p = q - 1
    values = theta.values
    for i in range(p):
        record[q + i] = rng.standard_normal()
    set_predictors(model, values, record)
    record[p] = value_at(rng.random(), mean_of(model, values, record), values[q])
    record[q + p] = record[p]


@offer_block.register
def _offer_block(model: TruncatedMoments, values, block, count):
    q = len(model.columns)
    p = q - 1
    first = line_in(model)
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
            mean += values[i + 1] * block[(first + i) * BLOCK + b]
        y = value_at(share, mean, values[q])
        block[p * BLOCK + b] = y
        block[(q + p) * BLOCK + b] = y


@carry.register
def _carry(model: TruncatedMoments, old, new, matrix, record, out):
    q = len(model.columns)
    follow(matrix, record, out)
    share = share_above(record[q - 1], mean_of(model, old, record), old[q])
    fill(model, out)
    out[q - 1] = value_at(share, mean_of(model, new, out), new[q])
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
    if line_in(model) > 0:
        columns = np.empty((len(records), q))
        for n in range(len(records)):
            for i in range(q - 1):
                columns[n, i] = records[n, line_in(model) + i]
            columns[n, q - 1] = records[n, q - 1]
        second_moments(model, columns, moments)
    if learnt[ACTIVE] > 0.0:
        move_along_ridge(model, rng, theta, records, tally, moments, line_in(model))
    _move_line(model, rng, theta, records, moments)
    if learnt[ACTIVE] > 0.0:
        _move_jointly(model, rng, theta, records, tally)
    if learnt[LEARNING] > 0.0:
        learn(learnt, old, REMEMBERED)
        if int(learnt[SEEN]) % EVERY == 0:
            _take_shapes(model, learnt, theta.values, len(records))


@njit
def _shape_given_noise(model, learnt):
    """Return the lower factor (k, k) of the shape of lines together with the records."""
    k = coordinates(model)
    at = HEAD + k + 2 * k * k
    return learnt[at : at + k * k].reshape(k, k)


@njit
def _shape_given_records(model, learnt):
    """Return the lower factor of the shape of steps of beta and sd given the records."""
    k, line = coordinates(model), _of_line(model)
    at = HEAD + k + 3 * k * k
    return learnt[at : at + line * line].reshape(line, line)


@njit
def _propose(rng, root, log_length, point, offer):
    """Set `offer` (k,) to a step from a point in as many of the first coordinates as `root` is of."""
    last = len(root)
    length = 2.4 / math.sqrt(last) * math.exp(log_length + JITTER * rng.standard_normal())
    noise = np.empty(last)
    for i in range(last):
        noise[i] = length * rng.standard_normal()
    offer[:] = point
    for i in range(last):
        for j in range(i + 1):
            offer[i] += root[i, j] * noise[j]


@njit
def _add_precision(root, precision):
    """Add the inverse of root root' to `precision` (size, size)."""
    size = len(precision)
    inverse = np.zeros((size, size))
    invert_lower(root, inverse)
    for i in range(size):
        for j in range(size):
            for h in range(max(i, j), size):
                precision[i, j] += inverse[h, i] * inverse[h, j]


@njit
def _factor_of_inverse(precision, out):
    """Set `out` to the lower factor of the inverse of `precision`."""
    size = len(precision)
    root, inverse = np.zeros((size, size)), np.zeros((size, size))
    cholesky(precision, root)
    invert_lower(root, inverse)
    cholesky(product(inverse.T.copy(), inverse), out)


@njit
def _take_shapes(model, learnt, values, count):
    """Set the shapes of steps, for `count` records; of `values` what is known is read."""
    q, k, line = len(model.columns), coordinates(model), _of_line(model)
    mean, moved = learnt[HEAD : HEAD + k], values.copy()
    covariance = learnt[HEAD + k : HEAD + k + k * k].reshape(k, k)
    root = learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k)
    points, work = _spread_evenly(q), np.empty(2 * q + 1)
    work[2 * q] = count / POINTS
    size = len(model.released)
    zeros, here, there = np.zeros(size), np.empty(size), np.empty(size)
    slopes, scores = np.empty((size, k)), np.empty((POINTS, line))
    records, densities = np.empty((POINTS, 2 * q)), np.empty(POINTS)
    unpack(model, mean, moved)
    approximate(model, moved, zeros, points, work, here)
    for n in range(POINTS):
        _set_record(model, moved, points[n], records[n])
        densities[n] = _log_response(model, moved, records[n])
    point = mean.copy()
    for i in range(k):
        step = NEARBY * math.sqrt(covariance[i, i])
        point[i] = mean[i] + step
        unpack(model, point, moved)
        approximate(model, moved, zeros, points, work, there)
        for j in range(size):
            slopes[j, i] = (there[j] - here[j]) / step
        if i < line:
            for n in range(POINTS):
                scores[n, i] = (_log_response(model, moved, records[n]) - densities[n]) / step
        point[i] = mean[i]
    precision = np.zeros((k, k))
    _add_precision(root, precision)
    for i in range(k):
        for j in range(k):
            for h in range(size):
                precision[i, j] += 0.5 * model.rate * model.rate * slopes[h, i] * slopes[h, j]
    _factor_of_inverse(precision, _shape_given_noise(model, learnt))
    precision = np.zeros((line, line))
    _add_precision(root[:line, :line].copy(), precision)
    for i in range(line):
        for j in range(line):
            for n in range(POINTS):
                precision[i, j] += count / POINTS * scores[n, i] * scores[n, j]
    _factor_of_inverse(precision, _shape_given_records(model, learnt))


@njit
def _log_response(model, values, record):
    """Return the log density of the response of a record given its predictors, up to a constant."""
    q = len(model.columns)
    mean, sd = mean_of(model, values, record), values[q]
    gap = (record[q - 1] - mean) / sd
    return -0.5 * gap * gap - math.log(sd) - log_mass(mean, sd)


@njit
def _of_line(model):
    """Return how many coordinates beta and sd have: the first."""
    q = len(model.columns)
    return q if model.known[SD] else q + 1


@njit
def _log_density_of_line(model, values, records, moments, inverse):
    """Return the log density of beta and log sd given the records, whose second moments are `moments`."""
    sd = values[len(model.columns)]
    total = log_prior(model, values, inverse) - 0.5 * residual_squares(model, values, moments) / (sd * sd)
    total -= len(records) * math.log(sd)
    for i in range(len(records)):
        total -= log_mass(mean_of(model, values, records[i]), sd)
    return total


@njit
def _move_line(model, rng, theta, records, moments):
    """Move beta and sd given the records."""
    q, k = len(model.columns), coordinates(model)
    learnt, values = theta.learnt, theta.values
    root = _shape_given_records(model, learnt)
    point, offer, moved = np.empty(k), np.empty(k), values.copy()
    inverse = np.empty((q - 1, q - 1))
    pack(model, values, point)
    now = _log_density_of_line(model, values, records, moments, inverse)
    for _ in range(STEPS):
        _propose(rng, root, learnt[LENGTH], point, offer)
        unpack(model, offer, moved)
        found = _log_density_of_line(model, moved, records, moments, inverse)
        accepted = found >= now or rng.random() < math.exp(found - now)
        if accepted:
            point[:] = offer
            values[:] = moved
            now = found
        if learnt[LEARNING] > 0.0:
            step = 4.0 / (20.0 + learnt[SEEN])
            learnt[LENGTH] += step * ((1.0 if accepted else 0.0) - WANTED)


@njit
def _standardize(model, values, records, out):
    """Set `out` (n, q) to z and v of the records."""
    q = len(model.columns)
    p = q - 1
    root = values[q + 1 + p :].reshape(p, p)
    for n in range(len(records)):
        record, own = records[n], out[n]
        own[p] = share_above(record[p], mean_of(model, values, record), values[q])
        for i in range(p):
            own[i] = record[i] - values[q + 1 + i]
        solve_lower(root, own[:p])


@njit
def _set_record(model, values, own, record):
    """Set a record (2 q,) from its z and v (q,)."""
    q = len(model.columns)
    p = q - 1
    record[q : q + p] = own[:p]
    set_predictors(model, values, record)
    y = value_at(own[p], mean_of(model, values, record), values[q])
    record[p] = y
    record[q + p] = y


@log_truncation.register
def _log_truncation(model: TruncatedMoments, values, records, first, old, new, by):
    q, total = len(old), 0.0
    for n in range(len(records)):
        if abs(moved_response(records[n], first, old, new, by)) > 1.0:
            return -math.inf
        total -= log_mass(fitted(records[n], first, values[:q]), values[q])
    return total


@njit
def _restore(model, values, standard, records, rest):
    """Set records (n, 2 q) from z and v (n, q), and `rest` (size,) to what is released less their sums."""
    rest[:] = model.released
    for n in range(len(standard)):
        _set_record(model, values, standard[n], records[n])
        subtract(records[n], rest)


@njit
def _spread_evenly(q):
    """Return z and v of fixed points (POINTS, q): multiples of powers of a root, of x^(q + 1) = x + 1."""
    root = 1.5
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (q + 1.0))
    points = np.empty((POINTS, q))
    for n in range(POINTS):
        for j in range(q):
            u = (0.5 + (n + 1) * root ** -(j + 1.0)) % 1.0
            points[n, j] = u if j == q - 1 else lower_quantile(u)
    return points


@approximate.register
def _approximate(model: TruncatedMoments, values, moments, near, work, rest):
    """Take the sums from points `near` (m, q), which work[-1] times over stand for all records.

    moments (size,) are the released sums less what these points do not tell; work (2 q + 1,) is scratch.
    """
    q = len(model.columns)
    rest[:] = 0.0
    record, times = work[: 2 * q], work[2 * q]
    for n in range(len(near)):
        _set_record(model, values, near[n], record)
        subtract(record, rest)
    for j in range(len(rest)):
        rest[j] = moments[j] + times * rest[j]
    return distance(rest)


@njit
def _move_jointly(model, rng, theta, records, tally):
    """Move parameters together with the records, whose z and v stay."""
    q, k = len(model.columns), coordinates(model)
    learnt, values = theta.learnt, theta.values
    root = _shape_given_noise(model, learnt)
    rest, inverse, work = np.empty(len(tally.sums)), np.empty((q - 1, q - 1)), np.ones(2 * q + 1)
    standard, offered = np.empty((len(records), q)), np.empty(records.shape)
    _standardize(model, values, records, standard)
    left, points, moved = model.released.copy(), standard, values.copy()
    if len(records) > POINTS:
        points = _spread_evenly(q)
        unpack(model, learnt[HEAD : HEAD + k], moved)
        _restore(model, moved, standard, offered, left)
        work[2 * q] = len(records) / POINTS
        approximate(model, moved, np.zeros(len(left)), points, work, rest)
        left -= rest
    point = np.empty(k)
    pack(model, values, point)
    moved[:] = values
    before = approximate(model, values, left, points, work, rest)
    unit = unit_of(model, rng, learnt, len(records))
    slice_lines(Surrogate(model, moved, left, points, work, rest, inverse), rng, k + 2, unit, point, root)
    unpack(model, point, moved)
    after = approximate(model, moved, left, points, work, rest)
    _restore(model, moved, standard, offered, rest)
    level = distance(rest)
    gain = model.rate * (tally.level[0] - level + after - before)
    if gain >= 0.0 or rng.random() < math.exp(gain):
        values[:] = moved
        records[:, :] = offered
        tally.sums[:] = rest
        tally.level[0] = level


# Truncated errors about a line in clamped predictors. All moves are those of truncated errors, which go by
# what the line is in; predictors are scaled with their law, too.


class TruncatedClampedMoments(TruncatedMoments, ClampedPredictorMoments):  # type: ignore[misc]  # one layout
    """What `Moments` holds, of a model of responses within their bounds and a line in clamped predictors."""

    __slots__ = ()


register_kind(TruncatedClampedMoments)
for function in (draw_record, offer_block, carry, approximate, log_truncation):
    function.register(function.registered[(TruncatedMoments,)], TruncatedClampedMoments, compiled=False)
_draw_line_and_law = draw_theta.registered[(TruncatedMoments,)]


@line_in.register
def _line_in_clamped(model: TruncatedClampedMoments):
    return len(model.columns)


@set_scaled.register
def _set_scaled(model: TruncatedClampedMoments, values, record, i, centre, by, out):
    q = len(model.columns)
    out[:] = record
    out[i] = centre + by * (record[i] - centre)
    out[q + i] = clip(out[i])
    if out[q + i] != record[q + i]:
        share = share_above(record[q - 1], mean_of(model, values, record), values[q])
        out[q - 1] = value_at(share, mean_of(model, values, out), values[q])
        out[2 * q - 1] = out[q - 1]


@draw_theta.register
def _draw_theta_with_scales(model: TruncatedClampedMoments, rng, theta, records, tally):
    _draw_line_and_law(model, rng, theta, records, tally)
    if theta.learnt[ACTIVE] > 0.0:
        scale_with_laws(model, rng, theta, records, tally)
