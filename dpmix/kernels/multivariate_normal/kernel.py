"""Multivariate normal kernel with a normal-inverse-Wishart base measure.

Theta is the mean, and after it the covariance row by row; a latent value is an array (d,).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.kernel_functions import draw_posterior, draw_prior, draw_record, tally, value
from dpmix.kernels.learned_base import (
    LOCATION,
    SCALE,
    WEIGHT,
    carry,
    component_terms,
    draw_base_given,
    draw_conjugate,
    gap_square,
    gather,
    with_base,
)
from dpmix.numerics.factors import cholesky, solve_lower
from dpmix.numerics.jit import njit


class MultivariateNormal(NamedTuple):
    """Sigma ~ InverseWishart(nu, psi), mu | Sigma ~ N(mu0, Sigma / lam); mu0 (d,), psi (d, d)."""

    mu0: Any
    lam: float
    nu: float
    psi: Any

    @property
    def columns(self) -> int:
        """Length of a latent value."""
        return len(self.mu0)

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a component's parameters."""
        d = len(self.mu0)
        return {"mean": (d,), "covariance": (d, d)}

    @property
    def constants(self) -> dict[str, Any]:
        """What a chains file holds of the base measure."""
        return dict(zip(("base_mu0", "base_lambda", "base_nu", "base_Psi"), self, strict=True))

    @property
    def learned(self) -> tuple[str, str]:
        """Names of the location and the scale that may be learned."""
        return "mu0", "psi"

    @property
    def learned_values(self) -> NDArray[np.float64]:
        """Locations and the diagonal of psi, shape (2, d)."""
        return np.array([self.mu0, np.diagonal(self.psi)], dtype=np.float64)


@njit
def spread_normal(rng, factor, x):
    """Add a normal vector of covariance factor factor' to `x`."""
    d = len(x)
    e = np.empty(d)
    for i in range(d):
        e[i] = rng.standard_normal()
    for i in range(d):
        for r in range(i + 1):
            x[i] += factor[i, r] * e[r]


@njit
def _draw(rng, mu, lam, nu, psi, theta, h):
    """Draw theta[:, h] from the normal-inverse-Wishart distribution with these parameters.

    Bartlett: with psi = L L' and A lower triangular of normals, roots of chi-squares on its diagonal,
    Sigma = M M' for M = L A'^-1.
    """
    d = len(mu)
    low = np.zeros((d, d))
    cholesky(psi, low)
    a = np.zeros((d, d))
    for i in range(d):
        a[i, i] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (nu - i)))
        for j in range(i):
            a[i, j] = rng.standard_normal()
    m = np.zeros((d, d))
    for i in range(d):  # row i of M solves A x = L[i]
        for j in range(d):
            x = low[i, j]
            for r in range(j):
                x -= a[j, r] * m[i, r]
            m[i, j] = x / a[j, j]
    e = np.empty(d)
    for j in range(d):
        e[j] = rng.standard_normal() / math.sqrt(lam)
    for i in range(d):
        shift = 0.0
        for j in range(d):
            shift += m[i, j] * e[j]
            total = 0.0
            for r in range(d):
                total += m[i, r] * m[j, r]
            theta[d + i * d + j, h] = total
        theta[i, h] = mu[i] + shift


@draw_prior.register
def _draw_prior(kernel: MultivariateNormal, rng, theta, h):
    _draw(rng, kernel.mu0, kernel.lam, kernel.nu, kernel.psi, theta, h)


@draw_posterior.register
def _draw_posterior(kernel: MultivariateNormal, rng, count, stats, h, theta, tuning):
    d = len(kernel.mu0)
    lam = kernel.lam + count
    gap = np.empty(d)
    mu = np.empty(d)
    psi = np.empty((d, d))
    for i in range(d):
        gap[i] = theta[i, h] + stats[i, h] / count - kernel.mu0[i]
        mu[i] = kernel.mu0[i] + count / lam * gap[i]
    for i in range(d):
        for j in range(d):
            scatter = stats[d + i * d + j, h] - stats[i, h] * stats[j, h] / count
            psi[i, j] = kernel.psi[i, j] + scatter + kernel.lam * count / lam * gap[i] * gap[j]
    _draw(rng, mu, lam, kernel.nu + count, psi, theta, h)


@tally.register
def _tally(kernel: MultivariateNormal, theta, h, y, stats):
    d = len(kernel.mu0)
    for i in range(d):
        gap = y[i] - theta[i, h]
        stats[i, h] += gap
        for j in range(d):
            stats[d + i * d + j, h] += gap * (y[j] - theta[j, h])


@draw_record.register
def _draw_record(kernel: MultivariateNormal, rng, theta, h):
    d = len(kernel.mu0)
    factor = np.zeros((d, d))
    cholesky(theta[d:, h].copy().reshape(d, d), factor)
    y = theta[:d, h].copy()
    spread_normal(rng, factor, y)
    return y


@value.register
def _value(kernel: MultivariateNormal, y):
    return y


# What is learned of the base measure


@with_base.register
def _with_niw(kernel: MultivariateNormal, values):
    d = values.shape[1]
    if d == 0:
        return kernel
    mu0, psi = np.empty(d), np.zeros((d, d))
    for i in range(d):
        mu0[i] = values[LOCATION, i]
        for j in range(d):  # what is learned is its diagonal
            psi[i, j] = values[SCALE, i] if i == j else kernel.psi[i, j]
    lam = values[WEIGHT, 0] if values.shape[0] > WEIGHT else kernel.lam
    return MultivariateNormal(mu0, lam, kernel.nu, psi)


@gather.register
def _gather_niw(kernel: MultivariateNormal, theta, h, sums):
    d = len(kernel.mu0)
    factor = np.zeros((d, d))
    cholesky(theta[d:, h].copy().reshape(d, d), factor)
    columns = np.zeros((d, d))  # row i solves factor x = unit vector i
    for i in range(d):
        columns[i, i] = 1.0
        solve_lower(factor, columns[i])
    for i in range(d):
        for j in range(d):
            entry = 0.0
            for r in range(d):
                entry += columns[i, r] * columns[j, r]
            sums[i, j] += entry
            sums[d, i] += entry * theta[j, h]


@gap_square.register
def _gap_square_niw(kernel: MultivariateNormal, theta, h):
    d = len(kernel.mu0)
    factor, gap = np.zeros((d, d)), theta[:d, h] - kernel.mu0
    cholesky(theta[d:, h].copy().reshape(d, d), factor)
    return solve_lower(factor, gap)


@carry.register
def _carry_niw(kernel: MultivariateNormal, theta, h, column, shift, factor, values):
    d = len(kernel.mu0)
    centre, root = values[LOCATION, column], math.sqrt(factor)
    theta[column, h] = centre + shift + root * (theta[column, h] - centre)
    for i in range(d):
        theta[d + column * d + i, h] *= root
        theta[d + i * d + column, h] *= root
    return 0.0


@component_terms.register
def _terms_niw(kernel: MultivariateNormal):
    return 0.5 * kernel.nu, 0.5, kernel.lam


draw_base_given.register(draw_conjugate, MultivariateNormal)
