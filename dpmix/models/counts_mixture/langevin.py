"""Langevin steps of several atoms together: their shares of their mass, and the parameters of each.

With x_j = log(w_j / w_m), j < m, at a fixed sum of the m weights, and the two coordinates of each component:
the weights' prior, jumps of a gamma process with density prod_j w_j^-1 given their sum, is uniform in x
(dw_1 .. dw_(m-1) = prod_j w_j / W dx). The likelihood is prod_c p_c^N_c, p_c = sum_h w_h G_c(theta_h), with

    dp_c/dx_j = w_j (G_cj - sum_i w_i G_ci / W),    dp_c/dtheta_j = w_j dG_c/dtheta_j.

The proposal from phi is N(phi + e^2/2 M^-1 grad, e^2 M^-1), e = 1, M the Fisher information of the cells,
sum_c N_c grad p_c grad p_c' / p_c^2, plus a damping times the prior's curvature; the way back is weighed with
gradient and metric at the proposal (Girolami and Calderhead 2011, without the metric's derivatives). Where
the data say much M makes steps of the posterior's own size in all its correlations. Where they say little a
step as long as the prior would leave the ridge on which the likelihood is large: damping shortens those
directions alone (Levenberg 1944). It is drawn for each step, whatever the state, around a level that adapts
in burn-in.

Which atoms move is chosen by what the step keeps, so that the choice is as likely on the way back: all those
above a weight, if all stay above it; one picked by its weight, which does not change; two of those above a
weight.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix.kernels.kernel_functions import log_prior
from dpmix.models.counts_mixture.coordinates import place, prior_slopes, walk
from dpmix.models.counts_mixture.loops import LEAST, dot
from dpmix.models.counts_mixture.masses import fill_rows, fill_slopes
from dpmix.models.counts_mixture.source import log_gain, take_over, weigh
from dpmix.numerics.factors import cholesky, solve_lower, solve_transposed
from dpmix.numerics.jit import njit

__all__ = ["langevin"]

_LONGEST = 4.0  # of the drift in the metric, times the root of the dimension, for starts far out
_FLAT = 0.1  # curvature that stands for the flat prior of log ratios of weights
_HOPELESS = -100.0  # a log ratio of likelihoods that nothing makes up for
_PART = 0.5  # e^2 / 2


@njit
def _look(kernel, work, chosen, m, weights, theta, rows, of, mixed, after, damping, metric, drift):
    """Set `metric` to the factor of M and `drift` to M^-1 grad, held to a length; return the log prior.

    ``rows[of[j]]`` are those of the j-th chosen atom; after: whether at the proposal. Minus infinity where
    there is no such metric.
    """
    cells, size = len(mixed), 3 * m - 1
    basis = work.basis
    mean, factor = basis[size], basis[size + 1]
    pulls = weigh(work.source, work, mixed, after, factor)
    for c in range(cells):
        mean[c] = 0.0
    if m > 1:
        total = 0.0
        for j in range(m):
            total += weights[chosen[j]]
        for j in range(m):
            share, masses = weights[chosen[j]] / total, rows[of[j], 0]
            for c in range(cells):
                mean[c] += share * masses[c]
        for j in range(m - 1):
            weight, masses, row = weights[chosen[j]], rows[of[j], 0], basis[j]
            for c in range(cells):
                row[c] = weight * (masses[c] - mean[c]) * factor[c]
    for k in range(2):
        for j in range(m):
            weight, slopes, row = weights[chosen[j]], rows[of[j], 1 + k], basis[m - 1 + k * m + j]
            for c in range(cells):
                row[c] = weight * slopes[c] * factor[c]
    for i in range(size):
        drift[i] = dot(basis[i], pulls)
        for k in range(i + 1):
            metric[i, k] = dot(basis[i], basis[k])
    for i in range(m - 1):
        for k in range(i + 1):
            metric[i, k] += damping * _FLAT * ((1.0 if i == k else 0.0) - 1.0 / m)
    value = 0.0
    for j in range(m):
        h = chosen[j]
        value += log_prior(kernel, theta, h)
        slope, other, curvature, other_curvature = prior_slopes(kernel, theta, h)
        at = m - 1 + j
        drift[at] += slope
        metric[at, at] += damping * curvature
        drift[at + m] += other
        metric[at + m, at + m] += damping * other_curvature
    own = metric[:size, :size]
    if not cholesky(own, own):
        return -math.inf
    length = solve_lower(metric, drift[:size])
    solve_transposed(metric, drift[:size])
    most = _LONGEST * math.sqrt(size)
    length = math.sqrt(length)
    if length > most:
        for i in range(size):
            drift[i] *= most / length
    return value


@njit
def _propose(kernel, work, chosen, m, least, y):
    """Set weights and parameters of the chosen atoms to those at y; False where they may not be."""
    top = total = 0.0
    for j in range(m):
        total += work.weights[chosen[j]]
    for j in range(m - 1):
        top = max(top, y[j])
    scale = math.exp(-top)
    for j in range(m - 1):
        scale += math.exp(y[j] - top)
    for j in range(m):
        h = chosen[j]
        work.weights_at[h] = total * (math.exp((y[j] if j < m - 1 else 0.0) - top) / scale)
        if not work.weights_at[h] >= least:
            return False
        if not place(kernel, y[m - 1 + j], y[2 * m - 1 + j], work.theta_at, h):
            return False
    return True


@njit
def langevin(channel, kernel, rng, theta, cells, work, m, least, damping):
    """Take one step of the atoms ``work.chosen[:m]``, none to fall below `least`; return its acceptance."""
    chosen, size, slots = work.chosen, 3 * m - 1, np.arange(m)
    drift, back, x, y, noise = (
        work.vectors[0],
        work.vectors[1],
        work.vectors[2],
        work.vectors[3],
        work.vectors[4],
    )
    for j in range(m):
        h = chosen[j]
        if not work.sloped[h]:
            fill_slopes(channel, kernel, theta, h, cells, work.rows[h])
            work.sloped[h] = True
    here = _look(
        kernel,
        work,
        chosen,
        m,
        work.weights,
        theta,
        work.rows,
        chosen,
        work.mixed,
        False,
        damping,
        work.metric,
        drift,
    )
    if not here > -math.inf:
        return 0.0
    for j in range(m):
        h = chosen[j]
        if j < m - 1:
            x[j] = math.log(work.weights[h] / work.weights[chosen[m - 1]])
        x[m - 1 + j], x[2 * m - 1 + j] = walk(kernel, theta, h)
    ratio = 0.0
    for i in range(size):
        noise[i] = rng.standard_normal()
        ratio += 0.5 * noise[i] * noise[i] - math.log(work.metric[i, i])
        y[i] = noise[i]
    solve_transposed(work.metric, y[:size])
    for i in range(size):
        y[i] += x[i] + _PART * drift[i]
    if not _propose(kernel, work, chosen, m, least, y):
        return 0.0
    proposed, mixed = work.proposed, work.mixed
    for c in range(len(mixed)):
        proposed[c] = mixed[c]
    for j in range(m):
        h = chosen[j]
        work.sloped_at[j] = fill_rows(channel, kernel, work.theta_at, h, cells, work.rows_at[j])
        after, before = work.weights_at[h], work.weights[h]
        masses, old = work.rows_at[j, 0], work.rows[h, 0]
        for c in range(len(mixed)):
            proposed[c] += after * masses[c] - before * old[c]
    for c in range(len(mixed)):
        proposed[c] = max(proposed[c], LEAST)
    gain = log_gain(work.source, rng, work)
    if not gain > _HOPELESS:
        return 0.0
    ratio += gain
    for j in range(m):
        if not work.sloped_at[j]:
            fill_slopes(channel, kernel, work.theta_at, chosen[j], cells, work.rows_at[j])
    there = _look(
        kernel,
        work,
        chosen,
        m,
        work.weights_at,
        work.theta_at,
        work.rows_at,
        slots,
        proposed,
        True,
        damping,
        work.metric_at,
        back,
    )
    if not there > -math.inf:
        return 0.0
    ratio += there - here
    for i in range(size):
        gap = 0.0
        for k in range(i, size):
            gap += work.metric_at[k, i] * (x[k] - y[k] - _PART * back[k])
        ratio += math.log(work.metric_at[i, i]) - 0.5 * gap * gap
    if not ratio > -math.inf:
        return 0.0
    acceptance = math.exp(min(ratio, 0.0))
    if rng.random() < acceptance:
        for j in range(m):
            h = chosen[j]
            work.weights[h] = work.weights_at[h]
            for i in range(len(theta)):
                theta[i, h] = work.theta_at[i, h]
            _copy(work.rows_at[j], work.rows[h])
            work.sloped[h] = True
        take_over(work.source, work)
    return acceptance


@njit
def _copy(source, target):
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            target[i, c] = source[i, c]
