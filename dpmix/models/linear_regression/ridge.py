"""A move of the latent responses along the ridge on which slopes and errors lie.

The release tells sums c of y and x y, and v of y^2, to within its noise. Of the sums that it admits, those of
larger errors are of flatter lines, as v is what the line explains and the rest R = v - c' M^-1 c, M the
second moments of (1, x). Where little but the prior tells small errors from none, their sd may be as small as
it likes, and other moves creep: draws given the records change the sd by a share of 1 / sqrt(2 n), and the
lines of joint moves, with z and e held fixed, are drawn from what was learnt of all parameters, of which the
release leaves x_mean and x_cov, given z, no room.

With x held fixed, responses y = (1, x) b + sqrt(R) w have as many degrees of freedom for w, a unit vector
that is held fixed, too, as they have sums. In (c, v) the density of the noise is that of independent Laplace
variables of one scale, and R > 0 a convex set, in which random lines reach everywhere: there is nothing to
learn of their directions. The errors' variance goes with R, sigma2/R held fixed, and beta is integrated out:
with d = M^-1 c - m, m the prior mean, P the prior precision, drawn given beta where it is learned, and q
coefficients,

    p(c, v, log sigma2 | x, w) ~ R^((n - q)/2 - 1) sigma2^(-(n - q)/2) exp(-R/(2 sigma2)) p(log sigma2)
        |M + sigma2 P|^(-1/2) exp(-(d' P d - sigma2 d' P (M + sigma2 P)^-1 P d)/2)

times the density of the release. Clamped, y has other sums than c and v. The slice updates take them to
differ by as much as they do at one point, the beta and sd that were learnt, with the same x and w; at their
end the move is accepted by the ratio of the exact and the approximate densities, at one pass over the records
(Liu 2001, section 9.4.3), beta being drawn anew; of truncated errors the ratio has their masses within the
bounds, too.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpmix.models.linear_regression.joint import HEAD, log_errors
from dpmix.models.linear_regression.latent_records import SD, Moments, clip, distance
from dpmix.numerics.factors import cholesky, half_log_determinant, solve_lower, solve_transposed
from dpmix.numerics.jit import dispatch, njit
from dpmix.numerics.slices import draw_on_slice, log_height

LINES = 2
"""Random lines of a move, more than the sums of responses are."""
LEAST = 1e-12
"""Share of the sum of squares below which the rest is rounding."""


class _SumsLine(NamedTuple):
    """A line through `sums` (q + 1,), c and v, along `step`; `offer` (q + 1,), `work` (2, q) are scratch.

    released (q + 1,): the sums that were released, less what clamping adds; moments and root (q, q): M and
    its factor; matrix (q, q) is scratch; precision (q,): P's diagonal; ratio: sigma2 over R.
    """

    model: Any
    released: Any
    moments: Any
    root: Any
    sums: Any
    step: Any
    offer: Any
    work: Any
    matrix: Any
    precision: Any
    ratio: float


@log_height.register
def _log_density(line: _SumsLine, at):
    """Approximate: clamping adds what it does at the point that is held fixed."""
    model, moments, work = line.model, line.moments, line.work
    q = len(moments)
    level = 0.0
    for j in range(q + 1):
        line.offer[j] = line.sums[j] + at * line.step[j]
        level += abs(line.released[j] - line.offer[j])
    work[0, :] = line.offer[:q]
    rest = line.offer[q] - solve_lower(line.root, work[0])
    if not rest > LEAST * line.offer[q]:
        return -math.inf
    variance = line.ratio * rest
    solve_transposed(line.root, work[0])
    total = log_errors(model, math.sqrt(variance)) - math.log(rest) - model.rate * level
    for i in range(q):
        gap, precision = work[0, i] - model.beta_mean[i], line.precision[i]
        total -= 0.5 * precision * gap * gap
        work[1, i] = precision * gap
        for j in range(q):
            line.matrix[i, j] = moments[i, j]
        line.matrix[i, i] += variance * precision
    cholesky(line.matrix, line.matrix)
    total -= half_log_determinant(line.matrix)
    return total + 0.5 * variance * solve_lower(line.matrix, work[1])


@njit
def fitted(record, first, beta):
    """Return the line at a record, whose predictors begin at `first`."""
    value = beta[0]
    for i in range(len(beta) - 1):
        value += beta[i + 1] * record[first + i]
    return value


@njit
def moved_response(record, first, old, new, by):
    """Return a response whose residual of a line is scaled about a new one."""
    return fitted(record, first, new) + by * (record[len(old) - 1] - fitted(record, first, old))


@njit
def _sum_responses(records, first, old, new, by, out):
    """Set `out` (q + 1,) to the sums of clamped responses of which `moved_response` makes others."""
    q = len(old)
    out[:] = 0.0
    for n in range(len(records)):
        record = records[n]
        y = clip(moved_response(record, first, old, new, by))
        out[0] += y
        for i in range(q - 1):
            out[i + 1] += record[q + i] * y
        out[q] += y * y


@dispatch()
def log_truncation(model, values, records, first, old, new, by):
    """Return what truncation adds to the log density of responses moved as by `_sum_responses`."""


@log_truncation.register
def _log_truncation(model: Moments, values, records, first, old, new, by):
    return 0.0


@njit
def draw_precision(model, rng, values):
    """Return the prior precisions (q,) of the coefficients, drawn given these where they are learned."""
    found = np.empty(len(model.columns))
    for i in range(len(found)):
        found[i] = model.beta_precision[i]
        if model.beta_learned:  # the variance over the square of the scale is IG(1, (1 + square) / 2)
            gap = values[i] - model.beta_mean[i]
            found[i] *= 2.0 * rng.standard_exponential() / (1.0 + found[i] * gap * gap)
    return found


@njit
def draw_beta(model, rng, values, moments, prior):
    """Draw beta given sigma2 and the moments of (1, x, y), under prior precisions (q,)."""
    q = len(model.columns)
    precision, root, mean = np.empty((q, q)), np.empty((q, q)), np.empty(q)
    variance = values[q] * values[q]
    for i in range(q):
        for j in range(q):
            precision[i, j] = moments[i, j] / variance
        precision[i, i] += prior[i]
        mean[i] = prior[i] * model.beta_mean[i] + moments[i, q] / variance
    cholesky(precision, root)
    solve_lower(root, mean)
    for i in range(q):
        mean[i] += rng.standard_normal()
    solve_transposed(root, mean)
    values[:q] = mean


@njit
def move_along_ridge(model, rng, theta, records, tally, moments, first):
    """Move responses, sd and beta, and `moments` with them, or leave all as it is.

    moments (q + 1, q + 1): those of 1, the predictors that the line is in, which begin at `first` of a
    record, and the response.
    """
    q, n = len(model.columns), len(records)
    if model.known[SD] or n <= q:
        return
    values, learnt = theta.values, theta.learnt
    second, root = moments[:q, :q].copy(), np.empty((q, q))
    sums, work = moments[q].copy(), np.empty((2, q))
    old = sums[:q].copy()
    if not cholesky(second, root):
        return
    rest = sums[q] - solve_lower(root, old)
    if not rest > LEAST * sums[q]:
        return
    solve_transposed(root, old)
    ratio, prior = values[q] * values[q] / rest, draw_precision(model, rng, values)
    # what clamping adds
    fixed, sd = learnt[HEAD : HEAD + q].copy(), math.exp(learnt[HEAD + q])
    added, released = np.empty(q + 1), np.empty(q + 1)
    _sum_responses(records, first, old, fixed, sd * math.sqrt(n / rest), added)
    added[q] -= n * sd * sd
    for i in range(q):
        share = 0.0
        for j in range(q):
            share += second[i, j] * fixed[j]
        added[i] -= share
        added[q] -= share * fixed[i]
    before = 0.0
    for j in range(q + 1):
        released[j] = model.released[j] - added[j]
        before += abs(released[j] - sums[j])
    step = np.empty(q + 1)
    line = _SumsLine(
        model, released, second, root, sums, step, np.empty(q + 1), work, np.empty((q, q)), prior, ratio
    )
    for _ in range(q + 1 + LINES):
        for j in range(q + 1):
            step[j] = rng.standard_normal() / model.rate
        level = log_height(line, 0.0) - rng.standard_exponential()
        at, _ = draw_on_slice(rng, line, 0.0, level, 4.0)
        for j in range(q + 1):
            sums[j] += at * step[j]
    after = 0.0
    for j in range(q + 1):
        after += abs(released[j] - sums[j])
    new = sums[:q].copy()
    left = sums[q] - solve_lower(root, new)
    solve_transposed(root, new)
    by = math.sqrt(left / rest)
    offered = tally.sums.copy()
    _sum_responses(records, first, old, new, by, added)
    for j in range(q + 1):
        offered[j] = model.released[j] - added[j]
    level = distance(offered)
    kept = moments[q].copy()
    moments[q], moments[:, q] = sums, sums
    moved = values.copy()
    moved[q] *= by
    draw_beta(model, rng, moved, moments, prior)
    gain = model.rate * (tally.level[0] - level + after - before)
    gain += log_truncation(model, moved, records, first, old, new, by)
    gain -= log_truncation(model, values, records, first, old, old, 1.0)
    if not (gain >= 0.0 or rng.random() < math.exp(gain)):
        moments[q], moments[:, q] = kept, kept
        return
    for i in range(n):
        record = records[i]
        y = moved_response(record, first, old, new, by)
        record[q - 1] = y
        record[2 * q - 1] = clip(y)
    values[:] = moved
    tally.sums[:] = offered
    tally.level[0] = level
