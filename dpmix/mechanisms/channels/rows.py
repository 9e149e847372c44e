"""Records of several columns, with Gaussian or Laplace noise on each or none (methods, section 4).

The release of record i is row i of `values`. Under Gaussian noise g is normal. Laplace noise is Gaussian
noise of variance v_l ~ Exponential(rate 1 / (2 s_l^2)) for each record and column; a chain moves these, given
which everything is as under Gaussian noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.multivariate_normal.kernel import MultivariateNormal, spread_normal
from dpmix.mechanisms.channels.channel_functions import (
    augment,
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    hides_nothing,
    hides_records,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
    settle,
)
from dpmix.numerics.factors import cholesky, half_log_determinant, solve_lower, solve_transposed
from dpmix.numerics.jit import njit

_LOG_2PI = math.log(2.0 * math.pi)


class Rows(NamedTuple):
    """The records themselves: values (n, d)."""

    values: Any


class GaussianRows(NamedTuple):
    """z | y ~ N(y, diag(variances)): values (n, d), variances (d,)."""

    values: Any
    variances: Any


class LaplaceRows(NamedTuple):
    """z_l | y_l ~ Laplace(y_l, scales_l): values (n, d), scales (d,), variances (n, d) of the mixture."""

    values: Any
    scales: Any
    variances: Any

    @property
    def augmented(self) -> tuple[str, ...]:
        """Names of the fields that a chain moves."""
        return ("variances",)


def laplace_rows(values: NDArray[np.float64], scales: NDArray[np.float64]) -> LaplaceRows:
    """Return the channel of released `values` (n, d) with Laplace noise of `scales` (d,)."""
    return LaplaceRows(values, scales, np.zeros_like(values))


@njit
def _factor(theta, h, d, variances, factor):
    """Set `factor` to the Cholesky factor of the covariance of z; return half its log determinant."""
    total = theta[d:, h].copy().reshape(d, d)
    for i in range(len(variances)):
        total[i, i] += variances[i]
    cholesky(total, factor)
    return half_log_determinant(factor)


@njit
def _log_density(values, i, theta, h, factor, log_determinant, gap):
    d = len(gap)
    for c in range(d):
        gap[c] = values[i, c] - theta[c, h]
    return -0.5 * (solve_lower(factor, gap) + d * _LOG_2PI) - log_determinant


@njit
def _log_marginal_of(values, variances, z, theta, h):
    d = values.shape[1]
    factor = np.zeros((d, d))
    log_determinant = _factor(theta, h, d, variances, factor)
    return _log_density(values, int(z), theta, h, factor, log_determinant, np.empty(d))


@njit
def _fill_of(values, variances, theta, h, z, start, stop, out):
    d = values.shape[1]
    factor = np.zeros((d, d))
    gap = np.empty(d)
    log_determinant = _factor(theta, h, d, variances, factor)
    for i in range(start, stop):
        out[i - start] = math.exp(_log_density(values, int(z[i]), theta, h, factor, log_determinant, gap))


@njit
def _draw_of(rng, values, variances, z, theta, h):
    """Draw y given z: (y0, z0) from the model, moved by the regression of y on z - z0."""
    d = values.shape[1]
    i = int(z)
    factor = np.zeros((d, d))
    none = variances[:0]
    _factor(theta, h, d, none, factor)
    y = theta[:d, h].copy()
    spread_normal(rng, factor, y)
    gap = np.empty(d)
    for c in range(d):
        gap[c] = values[i, c] - y[c] - math.sqrt(variances[c]) * rng.standard_normal()
    _factor(theta, h, d, variances, factor)
    solve_lower(factor, gap)
    solve_transposed(factor, gap)
    for c in range(d):
        for r in range(d):
            y[c] += theta[d + c * d + r, h] * gap[r]
    return y


@log_marginal.register
def _log_marginal_rows(channel: Rows, kernel: MultivariateNormal, z, theta, h):
    return _log_marginal_of(channel.values, channel.values[0, :0], z, theta, h)


@fill_marginal.register
def _fill_rows(channel: Rows, kernel: MultivariateNormal, theta, h, z, start, stop, out):
    _fill_of(channel.values, channel.values[0, :0], theta, h, z, start, stop, out)


@noise_variance.register
def _gaussian_variance(channel: GaussianRows):
    return np.mean(channel.variances)


@noise_density.register
def _gaussian_density(channel: GaussianRows, z, y):
    total = 0.0
    for c in range(len(y)):
        gap = channel.values[int(z), c] - y[c]
        total -= 0.5 * (gap * gap / channel.variances[c] + math.log(2.0 * math.pi * channel.variances[c]))
    return math.exp(total)


@log_marginal.register
def _log_marginal_gaussian(channel: GaussianRows, kernel: MultivariateNormal, z, theta, h):
    return _log_marginal_of(channel.values, channel.variances, z, theta, h)


@fill_marginal.register
def _fill_gaussian(channel: GaussianRows, kernel: MultivariateNormal, theta, h, z, start, stop, out):
    _fill_of(channel.values, channel.variances, theta, h, z, start, stop, out)


@draw_latent.register
def _draw_gaussian(channel: GaussianRows, kernel: MultivariateNormal, rng, z, theta, h):
    return _draw_of(rng, channel.values, channel.variances, z, theta, h)


@hides.register
def _hides_laplace(channel: LaplaceRows):
    return True


@noise_variance.register
def _laplace_variance(channel: LaplaceRows):
    return 2.0 * np.mean(channel.scales * channel.scales)


@noise_density.register
def _laplace_density(channel: LaplaceRows, z, y):
    total = 0.0
    for c in range(len(y)):
        total -= abs(channel.values[int(z), c] - y[c]) / channel.scales[c] + math.log(2.0 * channel.scales[c])
    return math.exp(total)


@log_constant.register
def _laplace_constant(channel: LaplaceRows):
    """Return NaN: the density of a record has no closed form without the mixture's variances."""
    return math.nan


@log_marginal.register
def _log_marginal_laplace(channel: LaplaceRows, kernel: MultivariateNormal, z, theta, h):
    return _log_marginal_of(channel.values, channel.variances[int(z)], z, theta, h)


@fill_marginal.register
def _fill_laplace(channel: LaplaceRows, kernel: MultivariateNormal, theta, h, z, start, stop, out):
    for i in range(start, stop):
        out[i - start] = math.exp(
            _log_marginal_of(channel.values, channel.variances[int(z[i])], z[i], theta, h)
        )


@draw_latent.register
def _draw_laplace(channel: LaplaceRows, kernel: MultivariateNormal, rng, z, theta, h):
    return _draw_of(rng, channel.values, channel.variances[int(z)], z, theta, h)


@njit
def _draw_inverse_gaussian(rng, mean, shape):
    """Draw from the inverse Gaussian distribution (Michael, Schucany and Haas 1976), without cancellation."""
    e = rng.standard_normal()
    a = 0.5 * mean * e * e / shape
    x = mean / (1.0 + a + math.sqrt(a * (a + 2.0)))
    return x if rng.random() * (mean + x) < mean else mean * mean / x


@njit
def _draw_variances(channel, rng, i, y):
    """Draw the mixture's variances of record i: 1 / v_l is inverse Gaussian given the noise z_l - y_l."""
    for c in range(len(y)):
        s = channel.scales[c]
        gap = max(abs(channel.values[i, c] - y[c]), 1e-10 * s)
        channel.variances[i, c] = 1.0 / _draw_inverse_gaussian(rng, 1.0 / (s * gap), 1.0 / (s * s))


@settle.register
def _settle(channel: LaplaceRows, kernel: MultivariateNormal, rng, values):
    for i in range(len(values)):
        _draw_variances(channel, rng, i, values[i])


@augment.register
def _augment(channel: LaplaceRows, kernel: MultivariateNormal, rng, z, theta, labels, order, k):
    for i in range(len(labels)):
        y = draw_latent(channel, kernel, rng, z[i], theta, labels[i])
        _draw_variances(channel, rng, int(z[i]), y)


def _row(channel, kernel, rng, z):
    return channel.values[int(z)].copy()


def _own_row(channel, kernel, rng, z, theta, h):
    return channel.values[int(z)].copy()


hides_nothing(Rows)
hides_records(GaussianRows)
draw_latent.register(_own_row, Rows, MultivariateNormal)
for _channel in (Rows, GaussianRows, LaplaceRows):
    draw_start.register(_row, _channel, MultivariateNormal)
