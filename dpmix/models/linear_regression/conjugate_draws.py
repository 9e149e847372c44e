"""Parameters of a linear regression given a whole database: their units, and conjugate draws.

**Units.** Chains run on variables rescaled to [-1, 1] by public bounds, so that priors do not depend on the
units of the data (methods, section 15); results are given in these. With centres c and half-widths h of the
bounds, x~ = (x - c)/h, a slope is h_y b~/h_x, and the intercept c_y + h_y b~_0 - sum_j slope_j c_j.

**Draws.** beta ~ N(b, diag 1/precision) and sigma2 ~ IG are drawn in turn, each given a draw of its scale, or
scales, where learned; x_mean and x_cov are normal-inverse-Wishart, given a draw of the scales of x_cov
where these are learned, or the one of them that is not known is normal or inverse-Wishart given the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.models.linear_regression.joint import move_jointly, precision_of
from dpmix.models.linear_regression.latent_records import BLOCK, COV, MEAN, SD, Moments
from dpmix.models.linear_regression.ridge import draw_beta, draw_precision, move_along_ridge
from dpmix.models.sum_augmentation import draw_theta
from dpmix.numerics.factors import cholesky, invert_lower, product
from dpmix.numerics.jit import njit

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """Centre and half-width of the public bounds of each column, the response's last, shapes (q,)."""

    centre: Floats
    half: Floats

    @classmethod
    def of(cls, bounds: Any) -> Units:
        """Return the units of pairs of bounds, the response's last."""
        low, high = np.array(bounds, dtype=np.float64).T
        half = 0.5 * (high - low)
        return cls(low + half, half)

    def rescaled(self, rows: Floats) -> Floats:
        """Return predictors (.., p) of new rows on the rescaled variables."""
        return np.asarray((rows - self.centre[:-1]) / self.half[:-1])

    def coefficients(self, beta: Floats) -> Floats:
        """Return coefficients (draws, q), the intercept first, in the units of the data."""
        slopes = beta[:, 1:] * (self.half[-1] / self.half[:-1])
        intercept = self.centre[-1] + self.half[-1] * beta[:, 0]
        for j, centre in enumerate(self.centre[:-1]):  # one by one: the same for any number of draws at once
            intercept = intercept - slopes[:, j] * centre
        return np.column_stack([intercept, slopes])

    def response(self, values: Floats) -> Floats:
        """Return responses in the units of the data."""
        return np.asarray(self.centre[-1] + self.half[-1] * values)

    def variance(self, values: Any) -> Any:
        """Return variances of the response in the units of the data."""
        return values * self.half[-1] ** 2

    def covariance(self) -> Floats:
        """Return what predictors' covariances (p, p) are multiplied by, in the units of the data."""
        return np.asarray(np.outer(self.half[:-1], self.half[:-1]))


# Conjugate draws from the second moments of a database


@njit
def draw_line(model, rng, values, moments):
    """Draw all that is not known of the parameters given the moments (q + 1, q + 1) of a database."""
    draw_coefficients(model, rng, values, moments)
    draw_predictors(model, rng, values, moments)


@njit
def draw_coefficients(model, rng, values, moments):
    """Draw beta, and the sd of the errors where it is not known, given the moments of (1, x, y)."""
    draw_beta(model, rng, values, moments, draw_precision(model, rng, values))
    if not model.known[SD]:
        _draw_sd(model, rng, values, moments)


@draw_theta.register
def _draw_theta(model: Moments, rng, theta, records, tally):
    q = len(model.columns)
    moments = np.empty((q + 1, q + 1))
    second_moments(model, records, moments)
    if theta.learnt[0] > 0.0:
        move_along_ridge(model, rng, theta, records, tally, moments, 0)
    draw_line(model, rng, theta.values, moments)
    if theta.learnt[0] > 0.0:
        move_jointly(model, rng, theta, records, records, tally, moments)


@njit
def second_moments(model, records, out):
    """Set `out` (q + 1, q + 1) to the sums of products of (1, x, y), unclamped, over the records.

    Columns of few records at a time are copied side by side, and summed in four parts at once.
    """
    q = len(model.columns)
    block = np.zeros(q * BLOCK)
    out[:] = 0.0
    for first in range(0, len(records), BLOCK):
        count = min(BLOCK, len(records) - first)
        for j in range(q):
            for b in range(count):
                block[j * BLOCK + b] = records[first + b, j]
            for b in range(count, BLOCK):
                block[j * BLOCK + b] = 0.0
        part = (count + 3) // 4
        for j in range(q):
            here = j * BLOCK
            s0 = s1 = s2 = s3 = 0.0
            for b in range(part):
                s0 += block[here + b]
                s1 += block[here + part + b]
                s2 += block[here + 2 * part + b]
                s3 += block[here + 3 * part + b]
            out[0, j + 1] += (s0 + s1) + (s2 + s3)
            for k in range(j, q):
                there = k * BLOCK
                s0 = s1 = s2 = s3 = 0.0
                for b in range(part):
                    s0 += block[here + b] * block[there + b]
                    s1 += block[here + part + b] * block[there + part + b]
                    s2 += block[here + 2 * part + b] * block[there + 2 * part + b]
                    s3 += block[here + 3 * part + b] * block[there + 3 * part + b]
                out[j + 1, k + 1] += (s0 + s1) + (s2 + s3)
    out[0, 0] = len(records)
    for j in range(q + 1):
        for k in range(j):
            out[j, k] = out[k, j]


@njit
def residual_squares(model, values, moments):
    """Return the sum of squares of the residuals of the line of `values`."""
    q = len(model.columns)
    squares = moments[q, q]
    for i in range(q):
        squares -= 2.0 * values[i] * moments[i, q]
        for j in range(q):
            squares += values[i] * values[j] * moments[i, j]
    return max(squares, 0.0)


@njit
def _draw_sd(model, rng, values, moments):
    """Draw the sd of the errors given beta."""
    q, squares = len(model.columns), residual_squares(model, values, moments)
    scale = model.scale
    if model.learned:  # given the sd as it was
        scale = rng.standard_gamma(model.shape + 0.5) / (0.5 / model.scale + 1.0 / (values[q] * values[q]))
    scale += 0.5 * squares
    values[q] = math.sqrt(scale / rng.standard_gamma(model.shape + 0.5 * moments[0, 0]))


@njit
def draw_predictors(model, rng, values, moments):
    """Draw x_mean and x_cov, those of them that are not known."""
    q = len(model.columns)
    p = q - 1
    n = moments[0, 0]
    mean = values[q + 1 : q + 1 + p]
    root = values[q + 1 + p :].reshape(p, p)
    both = not model.known[MEAN]
    total = n + (model.weight if both else 0.0)
    if not model.known[COV]:
        matrix = np.empty((p, p))
        for i in range(p):
            for j in range(p):
                a, b = moments[0, i + 1], moments[0, j + 1]
                if both:  # x_mean integrated out
                    a, b = a - n * model.centre[i], b - n * model.centre[j]
                    value = moments[i + 1, j + 1] - n * model.centre[i] * model.centre[j]
                    value -= model.centre[i] * b + model.centre[j] * a + a * b / total
                else:
                    value = moments[i + 1, j + 1] - mean[i] * b - mean[j] * a + n * mean[i] * mean[j]
                matrix[i, j] = value if model.psi_learned else model.psi[i * p + j] + value
        if model.psi_learned:
            _add_scales(model, rng, root, matrix)
        draw_covariance(rng, model.freedom + n, matrix, root)
    if both:
        noise = np.empty(p)
        for i in range(p):
            noise[i] = rng.standard_normal() / math.sqrt(total)
            mean[i] = (model.weight * model.centre[i] + moments[0, i + 1]) / total
            for j in range(i + 1):
                mean[i] += root[i, j] * noise[j]


@njit
def _add_scales(model, rng, root, matrix):
    """Add a draw of the predictors' scales, given the covariance as it was, to the diagonal of `matrix`."""
    p = len(matrix)
    inverse = np.zeros((p, p))
    invert_lower(root, inverse)
    for i in range(p):
        rate = 0.5 / model.psi[i * p + i] + 0.5 * precision_of(inverse, i)
        matrix[i, i] += rng.standard_gamma(0.5 * (model.freedom + 1.0)) / rate


@njit
def draw_covariance(rng, freedom, matrix, root):
    """Set `root` to the lower factor of a draw from the inverse-Wishart distribution (Bartlett)."""
    p = len(matrix)
    factor, inverse = np.zeros((p, p)), np.zeros((p, p))
    cholesky(matrix, factor)
    for i in range(p):
        for j in range(i):
            root[i, j] = rng.standard_normal()
        root[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (freedom - i)))
    invert_lower(root, inverse)
    spread = product(factor, inverse.T)
    cholesky(product(spread, spread.T), root)
