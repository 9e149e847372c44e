"""Posteriors of a regression on one predictor given noisy moments, where nothing is clamped: weighed sums.

Without clamping the sums T of a database are sufficient, so that of the database only they matter: with S the
centred second moments of (x, y), T has the density |S|^((n - 4) / 2) Z(T) up to a constant, Z the marginal
likelihood of data with these sums. Draws of T given the release alone, under a flat prior, are weighed by it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from tests.oracles.databases import Array

__all__ = ["log_fixed", "log_learned", "log_scale_fixed", "log_scale_learned", "slopes"]

Prior = Callable[[Array], Array]
"""The log density of log sigma2, given sigma2."""
_WIDTHS = np.linspace(-8.0, 8.0, 41)
"""Points at which sigma2 is summed, in standard deviations of its log given the sums."""


def log_fixed(a: float, b: float) -> Prior:
    """Return that of sigma2 ~ IG(a, b)."""
    return lambda s2: a * np.log(b / s2) - b / s2 - special.gammaln(a)


def log_learned(a: float, b: float) -> Prior:
    """Return that of IG(a, s), s ~ Gamma(1/2) of mean b: sigma2 / (2 b) ~ Beta'(1/2, a)."""
    return lambda s2: 0.5 * np.log(0.5 * s2 / b) - (a + 0.5) * np.log1p(0.5 * s2 / b) - special.betaln(0.5, a)


def log_scale_fixed(squares: Array, n: int) -> Array:
    """Return the log density of n predictors of variance IG(3, 0.08), but for a constant, by `squares`.

    These are the sum of squares about their mean and about the prior's, with the prior's weight.
    """
    return np.asarray(-(3.0 + 0.5 * n) * np.log(0.08 + 0.5 * squares))


def log_scale_learned(squares: Array, n: int) -> Array:
    """Return the same of variance IG(3, psi / 2), psi ~ Gamma(1/2) of mean 0.16, summed over log psi."""
    total = np.full(squares.shape, -np.inf)
    for log_psi in np.arange(-18.0, 4.0, 0.1):
        psi = math.exp(log_psi)
        height = 3.5 * log_psi - psi / 0.32 - (3.0 + 0.5 * n) * np.log(psi + squares)
        total = np.logaddexp(total, height)
    return total


def slopes(
    released: Array,
    n: int,
    scale: float,
    rng: np.random.Generator,
    size: int,
    log_prior: Prior,
    log_scale: Callable[[Array, int], Array],
    cauchy: bool,
) -> tuple[Array, Array, Array]:
    """Return draws of T's slope and log sigma2, rescaled, with their weights (size,), which add up to 1.

    released (5,): the sums of y, x y, y y, x, x x of variables rescaled to [-1, 1], with Laplace noise of a
    scale. The prior of the coefficients is N(0, 1) or, where Cauchy(0, 1), N(0, 1 / t^2) of a normal t that
    is drawn with T; of the predictor's variance that of `log_scale`, of its mean N(0, variance / 0.16).
    log_prior: of log sigma2, which given sums varies by some sqrt(2 / n), so that it is summed over points of
    its own for each draw, about the mode.
    """
    y, xy, yy, x, xx = (released - rng.laplace(0.0, scale, (size, 5))).T
    cxx, cxy, cyy = xx - x * x / n, xy - x * y / n, yy - y * y / n
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = cyy - cxy * cxy / cxx
        log_w = 0.5 * (n - 4) * (np.log(cxx) + np.log(rest))
        log_w += log_scale(cxx + 0.16 * n / (0.16 + n) * (x / n) ** 2, n)
    good = (cxx > 0.0) & (rest > 0.0)
    # the coefficients in units of their prior sds
    units = 1.0 / np.abs(rng.standard_normal((good.sum(), 2))) if cauchy else np.ones((good.sum(), 2))
    table = np.stack([[np.full(size, float(n)), x], [x, xx]]).transpose(2, 0, 1)[good]
    values, vectors = np.linalg.eigh(units[:, :, None] * table * units[:, None])
    z = np.einsum("nij,ni->nj", vectors, units * np.column_stack([y, xy])[good])

    def log_height(variance: Array) -> Array:  # of y given x, the coefficients integrated out
        squares = rest[good] / variance
        shares = 0.0
        for j in range(2):
            squares = squares + z[:, j] ** 2 / (values[:, j] * (variance + values[:, j]))
            shares = shares + np.log(variance + values[:, j])
        return np.asarray(log_prior(variance) - 0.5 * ((n - 2) * np.log(variance) + shares + squares))

    middle = np.log(rest[good] / n)
    for spread in (4.0, 1.0, 0.25, 0.0625, 0.015625):  # the mode, as the density of log sigma2 has but one
        heights = np.stack([log_height(np.exp(middle + spread * step)) for step in range(-4, 5)])
        middle = middle + spread * (heights.argmax(axis=0) - 4)
    grid = np.exp(middle[:, None] + math.sqrt(2.0 / n) * _WIDTHS)
    log_l = np.stack([log_height(variance) for variance in grid.T], axis=1)
    log_z = special.logsumexp(log_l, axis=1)
    w = special.softmax(log_w[good] + log_z)
    below = np.exp(log_l - log_z[:, None]).cumsum(axis=1)
    place = (rng.random((len(below), 1)) > below).sum(axis=1).clip(max=len(_WIDTHS) - 1)
    variance = grid[np.arange(len(grid)), place]
    mean = np.einsum("nij,nj->ni", vectors, z / (values + variance[:, None]))
    noise = np.sqrt(variance[:, None] / (values + variance[:, None])) * rng.standard_normal(z.shape)
    slope = units[:, 1] * (mean[:, 1] + np.einsum("nj,nj->n", vectors[:, 1], noise))
    return slope, np.log(variance), w
