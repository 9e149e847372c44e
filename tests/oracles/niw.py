"""Blocks of two-dimensional records: multivariate normal kernel with a normal-inverse-Wishart base measure.

Sigma ~ IW(nu, Psi), mu | Sigma ~ N(mu0, Sigma / lam); `base` is (mu0, lam, nu, Psi), mu0 and Psi nested
tuples. Three routes: closed form (no noise), quadrature over Sigma with mu in closed form (Gaussian noise of
one sd a column), and averages over latent values drawn around the release (Laplace noise).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from tests.oracles.blocks import Table, all_blocks

Array = NDArray[np.float64]
Base = tuple[tuple[float, ...], float, float, tuple[tuple[float, ...], ...]]


def log_normal(x: Array, mean: Array, covariance: Array) -> Array:
    """Log density of normal vectors in two dimensions, broadcast over all but the last axes."""
    s, t, u = covariance[..., 0, 0], covariance[..., 1, 1], covariance[..., 0, 1]
    gap = x - mean
    det = s * t - u * u
    form = t * gap[..., 0] ** 2 + s * gap[..., 1] ** 2 - 2 * u * gap[..., 0] * gap[..., 1]
    return np.asarray(-0.5 * form / det - 0.5 * np.log(det) - np.log(2 * np.pi))


@dataclass(frozen=True)
class MultivariateNormal:
    """N(mean, covariance); parameters are pairs of arrays (..., 2) and (..., 2, 2)."""

    base: Base

    def function(self, y: Array, theta: tuple[Array, Array]) -> Array:
        return np.asarray(np.exp(log_normal(y, *theta)))

    def summaries(self, theta: tuple[Array, Array]) -> Array:
        """Return both means and log det of the covariance."""
        det = theta[1][..., 0, 0] * theta[1][..., 1, 1] - theta[1][..., 0, 1] ** 2
        return np.stack([theta[0][..., 0], theta[0][..., 1], np.log(det)])

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """Return means (..., 2) and covariances (..., 2, 2) of parameters in rows, (6, ...)."""
        theta = np.moveaxis(np.asarray(theta), 0, -1)
        return theta[..., :2], theta[..., 2:].reshape(*theta.shape[:-1], 2, 2)

    def draw_prior(self, rng: np.random.Generator, k: int) -> Array:
        """Draw k means and covariances, (6, k)."""
        mu0, lam, nu, psi = self.base
        covariance = stats.invwishart.rvs(nu, np.array(psi), size=k, random_state=rng).reshape(k, 2, 2)
        root = np.linalg.cholesky(covariance / lam)
        mean = np.array(mu0) + np.einsum("kij,kj->ki", root, rng.standard_normal((k, 2)))
        return np.concatenate([mean, covariance.reshape(k, 4)], axis=1).T

    def draw_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Draw a vector for each column of theta, (k, 2)."""
        mean, covariance = self.unpack(theta)
        root = np.linalg.cholesky(covariance)
        return np.asarray(mean + np.einsum("kij,kj->ki", root, rng.standard_normal(mean.shape)))

    def value(self, latent: Array) -> Array:
        return latent

    def centre(self, theta: Array) -> Array:
        return np.asarray(theta[0])

    def log_spread(self, theta: Array) -> Array:
        return np.asarray(np.log(theta[2]) + np.log(theta[5]))

    def uniforms(self, theta: Array) -> dict[str, float]:
        """Probability transforms of one component's parameters, (6,)."""
        mu0, lam, nu, psi = self.base
        mean, covariance = self.unpack(theta)
        gap = np.linalg.solve(np.linalg.cholesky(covariance / lam), mean - np.array(mu0))
        # the lower factor of the whitened precision has independent entries (Bartlett)
        root = np.linalg.cholesky(np.array(psi))
        white = np.linalg.cholesky(root.T @ np.linalg.inv(covariance) @ root)
        return {
            "u_mean_1": float(special.ndtr(gap[0])),
            "u_mean_2": float(special.ndtr(gap[1])),
            "u_precision_1": float(special.chdtr(nu, white[0, 0] ** 2)),
            "u_precision_2": float(special.chdtr(nu - 1, white[1, 1] ** 2)),
            "u_precision_12": float(special.ndtr(white[1, 0])),
        }


def updated(base: Base, y: Array) -> tuple[Array, Array, Array, Array]:
    """Posterior (mu_n, lam_n, nu_n, Psi_n) given records (..., n, 2)."""
    mu0, lam, nu, psi = base
    n = y.shape[-2]
    mean = y.mean(axis=-2) if n else np.zeros((*y.shape[:-2], 2))
    gap, rest = mean - np.array(mu0), y - mean[..., None, :]
    matrix = np.array(psi) + np.einsum("...ni,...nj->...ij", rest, rest)
    matrix = matrix + lam * n / (lam + n) * gap[..., :, None] * gap[..., None, :]
    return (lam * np.array(mu0) + n * mean) / (lam + n), np.array(lam + n), np.array(nu + n), matrix


def log_marginal(base: Base, y: Array) -> Array:
    """Closed form of the marginal likelihood of records (..., n, 2) in one block."""
    _, lam, nu, psi = base
    n = y.shape[-2]
    _, lam_n, nu_n, psi_n = updated(base, y)
    det = psi_n[..., 0, 0] * psi_n[..., 1, 1] - psi_n[..., 0, 1] ** 2
    return np.asarray(
        -n * np.log(np.pi) + special.multigammaln(nu_n / 2, 2) - special.multigammaln(nu / 2, 2)
        + 0.5 * nu * np.log(np.linalg.det(np.array(psi))) - 0.5 * nu_n * np.log(det) + np.log(lam / lam_n)
    )  # fmt: skip


def _latent_averages(base: Base, y: Array, points: Array) -> tuple[Array, Array, Array, Array]:
    """Log marginals, means of f and f^2 at `points` and of the summaries, given latent records (R, n, 2)."""
    log_m = log_marginal(base, y)
    shape = (*y.shape[:-2], 1, 2)
    first, second = [], []
    for point in points:
        copy = np.broadcast_to(point, shape)
        once = np.concatenate([y, copy], axis=-2)
        first.append(np.exp(log_marginal(base, once) - log_m))
        # f(y)^2 is the likelihood of two more records at y
        second.append(np.exp(log_marginal(base, np.concatenate([once, copy], axis=-2)) - log_m))
    mu, _, nu_n, psi_n = updated(base, y)
    det = psi_n[..., 0, 0] * psi_n[..., 1, 1] - psi_n[..., 0, 1] ** 2
    log_det = np.log(det) - special.digamma(nu_n / 2) - special.digamma((nu_n - 1) / 2) - 2 * np.log(2)
    return log_m, np.stack(first, axis=-1), np.stack(second, axis=-1), np.stack(
        [mu[..., 0], mu[..., 1], np.broadcast_to(log_det, mu.shape[:-1])], axis=-1
    )  # fmt: skip


def latent_table(z: Array, base: Base, points: Array, scale: Any, draws: int, seed: int) -> Table:
    """Blocks given Laplace noise of `scale` a column: theta in closed form, latent values by Sobol points.

    Scale 0 is no noise, and one draw is enough. The noise is symmetric, so that the latent values are drawn
    around the release and weigh the same. Nothing is known of the marginal densities of single records.
    """
    rows = []
    for members in all_blocks(len(z)):
        n = len(members)
        if n == 0 or np.all(np.asarray(scale) == 0):
            y, r = np.asarray(z, float)[members].reshape(1, n, 2), 1
        else:
            r = draws
            u = stats.qmc.Sobol(2 * n, seed=np.random.default_rng([seed, n])).random(r)
            y = np.asarray(z)[members] + stats.laplace.ppf(u).reshape(r, n, 2) * scale
        log_m, first, second, theta = _latent_averages(base, y, points)
        top = log_m.max()
        w = np.exp(log_m - top)
        w_sum = w.sum()
        w /= w_sum
        rows.append((top + np.log(w_sum / r), w @ first, w @ second, np.nan, w @ theta))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Table(MultivariateNormal(base), points, len(z), *columns)


def sigma_nodes(base: Base, resolution: float) -> tuple[Array, Array]:
    """Covariances (G, 2, 2) and log weights of a rule over IW(nu, Psi): trapezoidal in Bartlett's factor.

    Sigma^-1 = R^-T T T' R^-1 with Psi = R R', T lower triangular, T_11^2 ~ chi2(nu), T_22^2 ~ chi2(nu - 1),
    T_21 ~ N(0, 1).
    """
    _, _, nu, psi = base
    logs, weights = [], []
    for freedom in (nu, nu - 1):
        step = 0.17 / resolution
        t = np.arange(-26.0 / freedom, 0.5 * np.log(70.0 + 4 * freedom), step)
        logs.append(t)
        log_pdf = stats.chi2.logpdf(np.exp(2 * t), freedom) + np.log(2.0) + 2 * t
        weights.append(log_pdf + np.log(step))
    step = 0.36 / resolution
    x = np.arange(-7.5, 7.5 + step, step)
    weights.insert(1, stats.norm.logpdf(x) + np.log(step))
    p, q, r = (a.ravel() for a in np.meshgrid(np.exp(logs[0]), x, np.exp(logs[1]), indexing="ij"))
    log_w = sum(np.meshgrid(*weights, indexing="ij")).ravel()
    inverse = np.zeros((len(p), 2, 2))  # of T
    inverse[:, 0, 0], inverse[:, 1, 1], inverse[:, 1, 0] = 1 / p, 1 / r, -q / (p * r)
    factor = np.einsum("ij,gkj->gik", np.linalg.cholesky(np.array(psi)), inverse)
    return np.einsum("gij,gkj->gik", factor, factor), log_w


def gaussian_table(z: Array, base: Base, points: Array, sd: Any, resolution: float = 1.0) -> Table:
    """Blocks given Gaussian noise of `sd` a column: quadrature over Sigma, mu in closed form."""
    mu0, lam = np.array(base[0]), base[1]
    sigma, log_prior = sigma_nodes(base, resolution)
    seen = sigma + np.diag(np.broadcast_to(np.asarray(sd, float) ** 2, 2))
    precision, noise = np.linalg.inv(sigma), np.linalg.inv(seen)
    log_det = np.log(np.linalg.det(sigma))
    height = -np.log(4 * np.pi) - 0.5 * log_det
    rows = []
    for members in all_blocks(len(z)):
        block = np.asarray(z, float)[members]
        n = len(block)
        mean = block.mean(axis=0) if n else mu0
        scatter = (block - mean).T @ (block - mean) if n else np.zeros((2, 2))
        spread = np.linalg.inv(lam * precision + n * noise)
        centre = mu0 + n * np.einsum("gij,gjk,k->gi", spread, noise, mean - mu0)
        log_m = np.zeros(len(sigma))
        log_lik = np.zeros(len(sigma))
        if n:
            log_m = (
                -0.5 * np.einsum("gij,ij->g", noise, scatter)
                - (n - 1) * (np.log(2 * np.pi) + 0.5 * np.log(np.linalg.det(seen))) - np.log(n)
                + log_normal(mean, mu0, sigma / lam + seen / n)
            )  # fmt: skip
            gap = mean - centre
            squares = scatter + n * (gap[:, :, None] * gap[:, None, :] + spread)
            log_lik = -0.5 * np.einsum("gij,gij->g", noise, squares) - 0.5 * n * np.log(np.linalg.det(seen))
            log_lik -= n * np.log(2 * np.pi)
        log_w = log_m + log_prior
        top = log_w.max()
        w = np.exp(log_w - top)
        total = w.sum()
        w /= total
        first = [np.exp(log_normal(y, centre, spread + sigma)) @ w for y in points]
        second = [np.exp(height + log_normal(y, centre, spread + sigma / 2)) @ w for y in points]
        theta = [centre[:, 0] @ w, centre[:, 1] @ w, log_det @ w]
        rows.append((top + np.log(total), first, second, log_lik @ w, theta))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Table(MultivariateNormal(base), points, len(z), *columns)


def log_with_learned_scales(covariance: np.ndarray, freedom: float, means: np.ndarray) -> float:
    """Return the log density of an inverse-Wishart matrix, its scales, gamma of shape 1/2, summed over."""
    precisions = np.linalg.inv(covariance).diagonal()
    found = float(stats.invwishart.logpdf(covariance, freedom, np.eye(len(means))))
    logs = np.linspace(-40.0, 10.0, 5001)
    for mean, precision in zip(means, precisions, strict=True):
        law = stats.gamma.logpdf(np.exp(logs), 0.5, scale=2.0 * mean) + logs
        heights = law + 0.5 * freedom * logs - 0.5 * np.expm1(logs) * precision
        found += float(special.logsumexp(heights)) + np.log(0.01)
    return found
