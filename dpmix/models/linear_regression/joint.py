"""A joint move of the parameters and all records of a linear regression; what is random in records stays.

With x = x_mean + L z and y = (1, x) beta + sd e, parameters move while the z and e of all records stay, so
that the records move along. Where the release says little, this moves parameters across their posterior in
one step, while draws of parameters given the records can only creep; where it says much, those draws do well
(Yu and Meng 2011 alternate the two in the same way).

Were no value clamped, the sums would follow from the second moments W of (1, z, e) alone: those of the
rescaled (1, x~, y~) = B (1, z, e) are B W B'. So they do, but for records near the bounds, which are summed
one by one. The move is a chain of slice updates along random lines under that approximate posterior, and its
end is then accepted by the ratio of the exact and the approximate densities, at one pass over all records (a
surrogate transition: Liu 2001, section 9.4.3). It is exact however many values are clamped. The more records
are near, the fewer lines there are, so that a move takes little longer than a sweep over the records.

Which records are near is judged by their z and e at a fixed point, the same before and after. In burn-in the
move learns that point, the mean of the parameters; how near is near, so that about `WANTED` of all moves are
accepted; and the covariance of the parameters, from which lines are drawn.

Most lines are of another kind: straight in the second moments of (1, x, y) under the parameters, of which n
times as many are what the sums are but for W, so that the noise is as wide in each of them. Where it hides
the variance of a predictor, or what others do not tell of it, slopes go with that along a curve, its
covariance with the response being told, and it may be as small as it likes: in the coordinates lines miss the
curve, and draws given the records change the variance by a share of sqrt(2 / n). The moments that are those
of parameters are a convex set, in which lines of the noise's width reach everywhere, as in
`dpmix.models.linear_regression.ridge`: B is the lower factor of their matrix. Where a variance is far below
what the noise hides, it moves along its own coordinate: the other kinds of lines take small steps there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.models.linear_regression.latent_records import (
    COV,
    MEAN,
    SD,
    Moments,
    clip,
    distance,
    fill,
    subtract,
)
from dpmix.models.sum_augmentation import log_change, offer_to_all, recount, replace, save, sweep
from dpmix.numerics.factors import cholesky, invert_lower, product, solve_transposed
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.slices import draw_on_slice, log_height

# Coordinates in which the parameters of a linear regression move, and what the joint move learns of them.
#
# The coordinates are beta, the log of the errors' sd, x_mean, and the lower factor of x_cov with the logs of
# its diagonal, those of them that are not known. In burn-in the joint move
# (`dpmix.models.linear_regression.joint`) learns their mean and covariance, and which records are near the
# bounds.

ACTIVE, LEARNING, SEEN, ACCEPTED, MADE, NEAR, HEAD = 0, 1, 2, 3, 4, 5, 6  # places of `Line.learnt`
FORGET = 400.0  # states over which averages are taken


@njit
def coordinates(model):
    """Return how many coordinates are unknown of beta, log sd, x_mean, x_root with a log diagonal."""
    q = len(model.columns)
    p = q - 1
    count = q
    if not model.known[SD]:
        count += 1
    if not model.known[MEAN]:
        count += p
    if not model.known[COV]:
        count += p * (p + 1) // 2
    return count


@njit
def learnt_room(model):
    """Return `Line.learnt` before anything is learnt: steps of prior standard deviations, or 1."""
    q = len(model.columns)
    p = q - 1
    k = coordinates(model)
    learnt = np.zeros(HEAD + k + 2 * k * k)
    learnt[ACTIVE] = 1.0
    learnt[SEEN] = 10.0
    learnt[NEAR] = 0.8
    mean = learnt[HEAD : HEAD + k]
    for i in range(q):
        mean[i] = model.beta_mean[i]
    at = q
    if not model.known[SD]:
        mean[at] = 0.5 * math.log(model.scale / model.shape)
        at += 1
    if not model.known[MEAN]:
        for i in range(p):
            mean[at + i] = model.centre[i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                if i == j:
                    mean[at] = 0.5 * math.log(model.psi[i * p + i] / model.freedom)
                at += 1
    covariance = learnt[HEAD + k : HEAD + k + k * k].reshape(k, k)
    for i in range(k):
        covariance[i, i] = 1.0 / model.beta_precision[i] if i < q else 1.0
    at = q + (0 if model.known[SD] else 1)
    if not model.known[MEAN]:
        for i in range(p):
            covariance[at + i, at + i] = model.psi[i * p + i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                covariance[at, at] = 1.0 if i == j else model.psi[i * p + i]
                at += 1
    cholesky(covariance, learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k))
    return learnt


@njit
def pack(model, values, point):
    """Set the coordinates (k,) of parameters."""
    q = len(model.columns)
    p = q - 1
    point[:q] = values[:q]
    at = q
    if not model.known[SD]:
        point[at] = math.log(values[q])
        at += 1
    if not model.known[MEAN]:
        point[at : at + p] = values[q + 1 : q + 1 + p]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                entry = values[q + 1 + p + i * p + j]
                point[at] = math.log(entry) if i == j else entry
                at += 1


@njit
def unpack(model, point, values):
    """Set parameters from their coordinates (k,); what is known stays."""
    q = len(model.columns)
    p = q - 1
    values[:q] = point[:q]
    at = q
    if not model.known[SD]:
        values[q] = math.exp(point[at])
        at += 1
    if not model.known[MEAN]:
        values[q + 1 : q + 1 + p] = point[at : at + p]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                values[q + 1 + p + i * p + j] = math.exp(point[at]) if i == j else point[at]
                at += 1


@njit
def log_errors(model, sd):
    """Return the log prior density of the log of the errors' sd, up to a constant."""
    square = sd * sd
    if model.learned:  # the scale integrated out: the sd is half-t with 2 shape degrees of freedom
        return math.log(sd) - (model.shape + 0.5) * math.log1p(0.5 * square / model.scale)
    return -2.0 * model.shape * math.log(sd) - model.scale / square


@njit
def log_coefficients(model, values):
    """Return the log prior density of the coefficients, up to a constant."""
    total = 0.0
    for i in range(len(model.columns)):
        gap = values[i] - model.beta_mean[i]
        square = model.beta_precision[i] * gap * gap
        # the variance integrated out: a Cauchy law
        total -= math.log1p(square) if model.beta_learned else 0.5 * square
    return total


@njit
def log_prior(model, values, inverse):
    """Return the log prior density of the coordinates, up to a constant; `inverse` (p, p) is scratch."""
    q = len(model.columns)
    p = q - 1
    total = log_coefficients(model, values)
    if not model.known[SD]:
        total += log_errors(model, values[q])
    if model.known[MEAN] and model.known[COV]:
        return total
    root = values[q + 1 + p :].reshape(p, p)
    invert_lower(root, inverse)
    if not model.known[MEAN]:
        for i in range(p):
            gap = 0.0
            for j in range(i + 1):
                gap += inverse[i, j] * (values[q + 1 + j] - model.centre[j])
            total -= 0.5 * model.weight * gap * gap
            if not model.known[COV]:
                total -= math.log(root[i, i])
    if not model.known[COV]:
        for i in range(p):
            # inverse-Wishart, the Jacobian of root root', and that of the log of the diagonal
            total += (p - i + 1 - (model.freedom + p + 1.0)) * math.log(root[i, i])
            if not model.psi_learned:
                for j in range(i + 1):
                    for k in range(i + 1):
                        total -= 0.5 * model.psi[j * p + k] * inverse[i, j] * inverse[i, k]
        if model.psi_learned:  # the scales integrated out, one for each predictor (Huang and Wand 2013)
            for j in range(p):
                scaled = model.psi[j * p + j] * precision_of(inverse, j)
                total -= 0.5 * (model.freedom + 1.0) * math.log1p(scaled)
    return total


@njit
def precision_of(inverse, j):
    """Return the j-th diagonal entry of (root root')^-1, given the inverse (p, p) of the lower factor."""
    total = 0.0
    for i in range(j, len(inverse)):
        total += inverse[i, j] * inverse[i, j]
    return total


@njit
def learn(learnt, point, share):
    """Take mean and covariance of the coordinates (k,) one state further.

    They are over `FORGET` states, or over that share of all that were seen, where this is more.
    """
    k = len(point)
    learnt[SEEN] += 1.0
    gain = 1.0 / max(min(learnt[SEEN], FORGET), share * learnt[SEEN])
    mean = learnt[HEAD : HEAD + k]
    covariance = learnt[HEAD + k : HEAD + k + k * k].reshape(k, k)
    for i in range(k):
        for j in range(k):
            product = (1.0 - gain) * (point[i] - mean[i]) * (point[j] - mean[j])
            covariance[i, j] += gain * (product - covariance[i, j])
    for i in range(k):
        mean[i] += gain * (point[i] - mean[i])
    cholesky(covariance, learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k))


WANTED, FARTHEST = 0.8, 2.0
BY_MOMENTS = 2.0 / 3.0
"""Share of the lines that are straight in the moments."""
MOST_STEPS = 32.0
"""Of a slice, where coefficients are Cauchy: to where all responses lie beyond a bound it is long, and the
noise, by which its steps in the moments are, narrow."""


@njit
def map_of(model, values, out, rescaled):
    """Set `out` (q + 1, q + 1) to the matrix that takes (1, z, e) to (1, x, y), or to (1, x~, y~)."""
    q = len(model.columns)
    p = q - 1
    out[:] = 0.0
    out[0, 0] = 1.0
    out[q, 0] = values[0]
    for i in range(p):
        out[i + 1, 0] = values[q + 1 + i]
        out[q, 0] += values[i + 1] * values[q + 1 + i]
        for j in range(i + 1):
            entry = values[q + 1 + p + i * p + j]
            out[i + 1, j + 1] = entry
            out[q, j + 1] += values[i + 1] * entry
    out[q, q] = values[q]
    if rescaled:
        for i in range(q):
            for j in range(i + 2):
                out[i + 1, j] *= model.bounds[q + i]
            out[i + 1, 0] -= model.bounds[q + i] * model.bounds[i] + 1.0


@njit
def _subtract_moments(table, rest):
    """Subtract the sums that second moments (q + 1, q + 1) of (1, x~, y~) stand for from `rest` (size,)."""
    q = len(table) - 1
    for i in range(q):
        rest[i] -= table[i, q]
    rest[q] -= table[q, q]
    at = q + 1
    for i in range(q):
        for j in range(max(i, 1), q):
            rest[at] -= table[i, j]
            at += 1


@dispatch()
def approximate(model, values, moments, near, work, rest):
    """Return the sum of absolute differences of released and approximate sums."""


@approximate.register
def _approximate(model: Moments, values, moments, near, work, rest):
    """Take the sums from second moments, but for records near the bounds.

    moments (q + 1, q + 1) are those of (1, z, e) over the records that are not in `near` (count, 2 q), whose
    rows hold z and e, and room; `rest` (size,) is set to the differences, work (3, q + 1, q + 1) is scratch.
    """
    approximate_by_moments(model, values, moments, work, rest)
    matrix, q = work[0], len(model.columns)
    for i in range(len(near)):
        record = near[i]
        for j in range(q):
            value = matrix[j + 1, 0]
            for k in range(j + 1):
                value += matrix[j + 1, k + 1] * record[k]
            record[q + j] = clip(value)
        subtract(record, rest)
    return distance(rest)


@njit
def _turn(lower, moments, half, out):
    """Set `out` to the moments of what a lower triangular matrix makes of variables with these moments."""
    size = len(lower)
    for i in range(size):
        for j in range(size):
            half[i, j] = 0.0
            for k in range(i + 1):
                half[i, j] += lower[i, k] * moments[k, j]
    for i in range(size):
        for j in range(size):
            out[i, j] = 0.0
            for k in range(j + 1):
                out[i, j] += half[i, k] * lower[j, k]


@njit
def approximate_by_moments(model, values, moments, work, rest):
    """Set `rest` to what is released less the sums of the records that moments stand for.

    work[0] is set to the matrix that takes (1, z, e) to (1, x~, y~), unclamped.
    """
    map_of(model, values, work[0], True)
    _turn(work[0], moments, work[1], work[2])
    rest[:] = model.released
    _subtract_moments(work[2], rest)


@njit
def _set_apart(model, learnt, values, scratch, records, moments, work):
    """Return z and e of the records near the bounds, (count, 2 q), and take them out of the moments.

    Near are those with a value beyond `learnt[NEAR]`, rescaled, at the point that was learnt.
    """
    q = len(model.columns)
    at, inverse = work[0], work[1]
    map_of(model, values, work[2], False)
    invert_lower(work[2], inverse)
    scratch[:] = values  # for what is known
    unpack(model, learnt[HEAD : HEAD + coordinates(model)], scratch)
    map_of(model, scratch, at, True)
    matrix = product(at, inverse)
    bar = learnt[NEAR]
    chosen = np.empty(len(records), dtype=np.bool_)
    count = 0
    for i in range(len(records)):
        record = records[i]
        chosen[i] = False
        for j in range(q):
            value = matrix[j + 1, 0]
            for k in range(j + 1):
                value += matrix[j + 1, k + 1] * record[k]
            if abs(value) > bar:
                chosen[i] = True
        count += chosen[i]
    near = np.empty((count, 2 * q))
    count = 0
    for i in range(len(records)):
        if chosen[i]:
            record = records[i]
            moments[0, 0] -= 1.0
            for j in range(q):
                moments[0, j + 1] -= record[j]
                moments[j + 1, 0] -= record[j]
                for k in range(q):
                    moments[j + 1, k + 1] -= record[j] * record[k]
            follow(inverse, record, near[count])
            count += 1
    return near


class Surrogate(NamedTuple):
    """The approximate posterior: by the moments, with the records near a bound apart, as `approximate`.

    It is that of the parameters in `values`; work, rest and inverse (p, p) are scratch.
    """

    model: Any
    values: Any
    moments: Any
    near: Any
    work: Any
    rest: Any
    inverse: Any


@njit
def _log_surrogate(surrogate):
    """Return the log density of the coordinates of `values`, up to a constant."""
    model, values, moments, near, work, rest, inverse = surrogate
    level = approximate(model, values, moments, near, work, rest)
    return log_prior(model, values, inverse) - model.rate * level


class _CoefficientLine(NamedTuple):
    """A line through `point` (k,) along `step` (k,); `offer` (k,) and the surrogate's values are set."""

    surrogate: Any
    point: Any
    step: Any
    offer: Any


@log_height.register
def _log_density(line: _CoefficientLine, at):
    """Approximate."""
    for i in range(len(line.point)):
        line.offer[i] = line.point[i] + at * line.step[i]
    unpack(line.surrogate.model, line.offer, line.surrogate.values)
    return _log_surrogate(line.surrogate)


@njit
def _draw_line(model, rng, root, step):
    """Set `step` (k,) to a random direction: of all coordinates, of those of beta, or of a scale of x_cov."""
    k, q = len(step), len(model.columns)
    kind = 0 if k == q else int(rng.random() * (2.0 if model.known[COV] else 3.0))
    if kind == 2:
        step[:] = 0.0
        row = int(rng.random() * (q - 1.0))  # whose log is the last of its row's coordinates
        step[k - q * (q - 1) // 2 + (row + 1) * (row + 2) // 2 - 1] = 2.0 * rng.standard_normal()
        return
    last = k if kind == 0 else q
    for i in range(last):
        step[i] = rng.standard_normal()
    for back in range(last):
        i = last - 1 - back
        step[i] *= root[i, i]
        for j in range(i):
            step[i] += root[i, j] * step[j]
    step[last:] = 0.0


class _MomentLine(NamedTuple):
    """A line through parameters whose second moments of (1, x, y) are `middle` (q + 1, q + 1), along `step`.

    Of both the lower halves matter. `offer` and `root` (q + 1, q + 1) and the surrogate's values are set.
    """

    surrogate: Any
    middle: Any
    step: Any
    offer: Any
    root: Any


@log_height.register
def _log_density_of_moments(line: _MomentLine, at):
    """Approximate, with the Jacobian of parameters' coordinates in their moments."""
    model, root = line.surrogate.model, line.root
    q = len(model.columns)
    if not _set_from_moments(line, at):
        return -math.inf
    total = _log_surrogate(line.surrogate)
    if not model.known[SD]:
        total -= 2.0 * math.log(root[q, q])
    for i in range(1, q):
        total -= (q + 3.0 - i) * math.log(root[i, i])
    return total


@njit
def _set_from_moments(line, at):
    """Set the values of a line to those of its moments; return whether there are any."""
    model, values, root = line.surrogate.model, line.surrogate.values, line.root
    q = len(model.columns)
    p = q - 1
    for i in range(q + 1):
        for j in range(i + 1):
            line.offer[i, j] = line.middle[i, j] + at * line.step[i, j]
    definite = cholesky(line.offer, root)
    if model.known[SD]:
        definite = cholesky(line.offer[:q, :q], root[:q, :q])
    if not definite:
        return False
    beta = root[q, 1:q].copy()
    solve_transposed(root[1:q, 1:q], beta)
    values[0] = root[q, 0]
    for i in range(p):
        values[0] -= beta[i] * root[i + 1, 0]
        values[i + 1] = beta[i]
    if not (model.known[MEAN] or model.known[COV]):
        for i in range(p):
            values[q + 1 + i] = root[i + 1, 0]
            for j in range(i + 1):
                values[q + 1 + p + i * p + j] = root[i + 1, j + 1]
    if not model.known[SD]:
        values[q] = root[q, q]
    return True


@njit
def unit_of(model, rng, learnt, count):
    """Return how far to step in moments of `count` records: as far as the noise is wide in each.

    In burn-in, which may begin far off, also farther.
    """
    widths = model.rate * max(count, 1)
    return 1.0 / (widths ** rng.random() if learnt[LEARNING] > 0.0 else widths)


@njit
def _draw_moment_step(model, rng, unit, step):
    """Set the lower half of `step` to a direction, `unit` wide in each of the moments.

    Those of predictors stay where a part of their law is known, and that of y^2 where sigma2 is.
    """
    q = len(model.columns)
    step[:] = 0.0
    for i in range(q if model.known[MEAN] or model.known[COV] else 1, q + 1):
        for j in range(i + 1):
            if not (i == j == q and model.known[SD]):
                step[i, j] = unit * rng.standard_normal()


@njit
def slice_lines(surrogate, rng, lines, unit, point, root):
    """Move `point` along random lines by slice sampling (Neal 2003).

    A line is straight in the coordinates or, more often, in the moments, with steps of a `unit`. Lines are
    drawn independently of the point and each in the same way, so that all steps together, like one, are
    reversible for the approximate posterior.
    """
    model, values = surrogate.model, surrogate.values
    k, q = len(point), len(model.columns)
    step, turn = np.empty(k), np.empty((q + 1, q + 1))
    line = _CoefficientLine(surrogate, point, step, np.empty(k))
    middle, offer, factor = np.empty((q + 1, q + 1)), np.empty((q + 1, q + 1)), np.empty((q + 1, q + 1))
    other = _MomentLine(surrogate, middle, turn, offer, factor)
    most = MOST_STEPS if model.beta_learned else math.inf
    for _ in range(lines):
        if rng.random() < BY_MOMENTS:
            unpack(model, point, values)
            map_of(model, values, factor, False)
            middle[:] = product(factor, factor.T)
            _draw_moment_step(model, rng, unit, turn)
            level = log_height(other, 0.0) - rng.standard_exponential()
            at, _ = draw_on_slice(rng, other, 0.0, level, 4.0, -math.inf, math.inf, most)
            if at != 0.0:
                _set_from_moments(other, at)
                pack(model, values, point)
        else:
            _draw_line(model, rng, root, step)
            level = log_height(line, 0.0) - rng.standard_exponential()
            at, _ = draw_on_slice(rng, line, 0.0, level, 2.0, -math.inf, math.inf, most)
            for i in range(k):
                point[i] += at * step[i]


@njit
def follow(matrix, record, out):
    """Set the first half of `out` to what (1, x, y) of a record becomes under `matrix` (q + 1, q + 1)."""
    q = len(matrix) - 1
    for i in range(q):
        value = matrix[i + 1, 0]
        for j in range(i + 1):
            value += matrix[i + 1, j + 1] * record[j]
        out[i] = value


@dispatch()
def carry(model, old, new, matrix, record, out):
    """Set `out` (2 q,) to what a record becomes as parameters do, `old` to `new`, what is random staying.

    `matrix` (q + 1, q + 1) takes (1, x, y) over (1, z, e) from the old to the new.
    """


@carry.register
def _carry(model: Moments, old, new, matrix, record, out):
    follow(matrix, record, out)
    fill(model, out)


@njit
def between(model, old, new, work):
    """Return the matrix that `carry` takes; work (3, q + 1, q + 1) is scratch."""
    map_of(model, old, work[0], False)
    invert_lower(work[0], work[1])
    map_of(model, new, work[2], False)
    return product(work[2], work[1])


@njit
def subtract_carried(model, old, new, matrix, records, rest):
    """Subtract the sums of what records become, by `carry`, from `rest` (size,)."""
    offer = np.empty(records.shape[1])
    for i in range(len(records)):
        carry(model, old, new, matrix, records[i], offer)
        subtract(offer, rest)


@njit
def carry_all(model, old, new, matrix, records):
    """Set records to what they become by `carry`."""
    offer = np.empty(records.shape[1])
    for i in range(len(records)):
        carry(model, old, new, matrix, records[i], offer)
        records[i][:] = offer


@dispatch()
def given_sums(model, released):
    """Return the same with other released sums (size,)."""


def register_kind(kind: type[Moments]) -> None:
    """Let laws of this kind do what all do alike.

    `given_sums` makes them field by field, as compiled code has no other way.
    """
    for function in (recount, log_change, replace, sweep, offer_to_all, save):
        function.register(function.registered[(Moments,)], kind, compiled=False)

    def given(model, released):
        return kind(
            model.columns,
            released,
            model.bounds,
            model.rate,
            model.beta_mean,
            model.beta_precision,
            model.beta_learned,
            model.shape,
            model.scale,
            model.learned,
            model.centre,
            model.weight,
            model.freedom,
            model.psi,
            model.psi_learned,
            model.known,
        )

    given_sums.register(given, kind)


register_kind(Moments)


@njit
def move_jointly(model, rng, theta, records, straight, tally, moments):
    """Move parameters and records.

    `straight` has in its first q columns what the matrix of `map_of` makes of z and e: of records whose line
    is in unclamped predictors, x and y themselves. `moments` (q + 1, q + 1) are those of 1 and these.
    """
    q = len(model.columns)
    k = coordinates(model)
    learnt, values = theta.learnt, theta.values
    root = learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k)
    work = np.empty((3, q + 1, q + 1))
    rest, inverse = np.empty(len(tally.sums)), np.empty((q - 1, q - 1))
    point, moved, standard = np.empty(k), values.copy(), np.empty((q + 1, q + 1))
    pack(model, values, point)
    near = _set_apart(model, learnt, values, moved, straight, moments, work)
    map_of(model, values, work[0], False)
    invert_lower(work[0], work[1])
    _turn(work[1], moments, work[2], standard)  # those of (1, z, e)
    before = approximate(model, values, standard, near, work, rest)
    old = point.copy()
    lines = min(2 * k + 4, 1 + len(records) // max(len(near), 1))
    unit = unit_of(model, rng, learnt, len(records))
    surrogate = Surrogate(model, moved, standard, near, work, rest, inverse)
    slice_lines(surrogate, rng, lines, unit, point, root)
    unpack(model, point, moved)
    after = approximate(model, moved, standard, near, work, rest)
    matrix = between(model, values, moved, work)
    rest[:] = model.released
    subtract_carried(model, values, moved, matrix, records, rest)
    level = distance(rest)
    gain = model.rate * (tally.level[0] - level + after - before)
    learnt[MADE] += 1.0
    accepted = gain >= 0.0 or rng.random() < math.exp(gain)
    if accepted:
        learnt[ACCEPTED] += 1.0
        carry_all(model, values, moved, matrix, records)
        values[:] = moved
        tally.sums[:] = rest
        tally.level[0] = level
    if learnt[LEARNING] > 0.0:
        step = 4.0 / (20.0 + learnt[SEEN])
        learnt[NEAR] *= math.exp(step * ((1.0 if accepted else 0.0) - WANTED))
        learnt[NEAR] = min(learnt[NEAR], FARTHEST)
        learn(learnt, old, 0.0)
