"""Kernels f(y | theta) with their base measures: densities, masses, draws, quadrature.

A kernel is named by a string and its base measure by a tuple (`kernel`). Latent values stand in the kernel's
own coordinate: y itself for normal kernels, the logit of (y - lo) / width for the beta kernel. Arrays of
parameters have the parameter first, ``theta[p]``, and broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Array = NDArray[np.float64]


class Kernel(Protocol):
    """What enumeration and joint-distribution tests need of a kernel."""

    names: tuple[str, ...]

    def pdf(self, y: Array | float, theta: Any) -> Array:
        """Density of Y in the data's units."""

    def masses(self, theta: Array, edges: Array) -> Array:
        """Masses of the cells that `edges` cut the support into, (cells, ...)."""

    def nodes(self, n: int, resolution: float) -> tuple[Array, Array]:
        """Nodes (P, G) and log weights (G,) of a rule for integrals over the base measure."""

    def summaries(self, theta: Any) -> Array:
        """Return functions of theta to compare the posterior means of, (S, ...)."""

    def function(self, y: Array | float, theta: Any) -> Array:
        """Return the function of theta that stands for the random measure at y: the density or the cdf."""

    def draw_prior(self, rng: np.random.Generator, k: int) -> Array:
        """Draw k parameters, (P, k)."""

    def draw_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        """Draw one latent value for each column of theta, in the kernel's coordinate."""

    def value(self, latent: Array) -> Array:
        """Return the data's value of a latent one."""

    def uniforms(self, theta: Array) -> dict[str, float]:
        """Return what is uniform when theta (P,) is a draw from the base measure."""

    def centre(self, theta: Array) -> Array:
        """Mean of Y, or something near it."""

    def log_spread(self, theta: Array) -> Array:
        """Log of the scale of Y, or something that grows with it."""


@dataclass(frozen=True)
class Normal:
    """N(mean, variance) with NIG(mu0, lam, a, b)."""

    base: tuple[float, ...]
    names: tuple[str, ...] = ("mean", "variance")

    def pdf(self, y: Array | float, theta: Any) -> Array:
        return np.asarray(np.exp(-0.5 * (y - theta[0]) ** 2 / theta[1]) / np.sqrt(2 * np.pi * theta[1]))

    function = pdf

    def masses(self, theta: Array, edges: Array) -> Array:
        t = (edges.reshape(-1, *[1] * (theta.ndim - 1)) - theta[0]) / np.sqrt(theta[1])
        t = np.concatenate([np.full_like(t[:1], -np.inf), t, np.full_like(t[:1], np.inf)])
        # differences of the smaller tail keep their digits
        low, high = t[:-1], t[1:]
        flip = low > 0
        return np.asarray(special.ndtr(np.where(flip, -low, high)) - special.ndtr(np.where(flip, -high, low)))

    def nodes(self, n: int, resolution: float) -> tuple[Array, Array]:
        mu0, lam, a, b = self.base
        step_x = 0.45 * np.sqrt(lam / (n + 2)) / resolution
        step_t = 0.08 / resolution
        reach = 9.5
        x = np.arange(-reach, reach + step_x, step_x)
        t = np.arange(np.log(b) - 4.5, np.log(b) + 36.0 / a, step_t)
        var = np.exp(t)[:, None]
        mu = mu0 + x[None, :] * np.sqrt(var / lam)
        log_prior = (
            a * np.log(b) - special.gammaln(a) - a * t[:, None] - b / var
            - 0.5 * x[None, :] ** 2 - 0.5 * np.log(2 * np.pi) + np.log(step_x * step_t)
        )  # fmt: skip
        return np.stack([mu.ravel(), np.broadcast_to(var, mu.shape).ravel()]), log_prior.ravel()

    def summaries(self, theta: Any) -> Array:
        return np.stack([theta[0], np.log(theta[1])])

    def draw_prior(self, rng: np.random.Generator, k: int) -> Array:
        mu0, lam, a, b = self.base
        var = b / rng.standard_gamma(a, k)
        return np.stack([mu0 + np.sqrt(var / lam) * rng.standard_normal(k), var])

    def draw_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        return np.asarray(theta[0] + np.sqrt(theta[1]) * rng.standard_normal(theta.shape[1:]))

    def value(self, latent: Array) -> Array:
        return latent

    def uniforms(self, theta: Array) -> dict[str, float]:
        mu0, lam, a, b = self.base
        return {
            "u_variance": float(special.gammaincc(a, b / theta[1])),
            "u_mean": float(special.ndtr((theta[0] - mu0) * np.sqrt(lam / theta[1]))),
        }

    def centre(self, theta: Array) -> Array:
        return np.asarray(theta[0])

    def log_spread(self, theta: Array) -> Array:
        return np.asarray(np.log(theta[1]))


@dataclass(frozen=True)
class TruncatedNormal(Normal):
    """N(mean, variance), where variance + floor = tau2 >= floor and (mean, tau2) ~ NIG truncated to that.

    `base` is (mu0, lam, a, b, floor). The density at a point has no fourth moment here, for the variance
    comes near zero, so that the distribution function stands for the random measure.
    """

    def function(self, y: Array | float, theta: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(special.ndtr((y - theta[0]) / np.sqrt(theta[1])))

    def nodes(self, n: int, resolution: float) -> tuple[Array, Array]:
        """Trapezoidal in log(variance) and standardised mean."""
        mu0, lam, a, b, floor = self.base
        step_x = 0.45 * np.sqrt(lam / (n + 2)) / resolution
        step_t = 0.16 / resolution
        x = np.arange(-9.5, 9.5 + step_x, step_x)
        t = np.arange(np.log(floor) - 32.0, np.log(b + floor) + 36.0 / a, step_t)
        tau2 = floor + np.exp(t)[:, None]
        mu = mu0 + x * np.sqrt(tau2 / lam)
        log_prior = (
            a * np.log(b) - special.gammaln(a) - (a + 1) * np.log(tau2) + t[:, None] - b / tau2
            - np.log(special.gammainc(a, b / floor))
            - 0.5 * x**2 - 0.5 * np.log(2 * np.pi) + np.log(step_x * step_t)
        )  # fmt: skip
        return np.stack([mu.ravel(), np.broadcast_to(tau2 - floor, mu.shape).ravel()]), log_prior.ravel()

    def draw_prior(self, rng: np.random.Generator, k: int) -> Array:
        mu0, lam, a, b, floor = self.base
        # 1 / tau2 ~ Gamma(a, b) below 1 / floor, by inversion
        tau2 = b / special.gammaincinv(a, special.gammainc(a, b / floor) * rng.random(k))
        mean = mu0 + np.sqrt(tau2 / lam) * rng.standard_normal(k)
        return np.stack([mean, np.maximum(tau2 - floor, 0.0)])

    def uniforms(self, theta: Array) -> dict[str, float]:
        mu0, lam, a, b, floor = self.base
        tau2 = theta[1] + floor
        return {
            "u_variance": float(special.gammainc(a, b / tau2) / special.gammainc(a, b / floor)),
            "u_mean": float(special.ndtr((theta[0] - mu0) * np.sqrt(lam / tau2))),
        }


@dataclass(frozen=True)
class Beta:
    """Beta(a, b) on [lo, lo + width], a ~ Gamma and b ~ Gamma independently.

    `base` is (shape and rate of a, shape and rate of b, lo, width), and for one around a place (of which
    there are no nodes) its weight and logit besides.
    """

    base: tuple[float, ...]
    names: tuple[str, ...] = ("a", "b")

    def pdf(self, y: Array | float, theta: Any) -> Array:
        lo, width = self.base[4:6]
        u = (np.asarray(y, dtype=float) - lo) / width
        a, b = theta[0], theta[1]
        log_f = special.xlogy(a - 1, u) + special.xlog1py(b - 1, -u) - special.betaln(a, b)
        return np.asarray(np.exp(log_f) / width)

    function = pdf

    def log_pdf_of_latent(self, logit: float, theta: Array) -> Array:
        """Log density, in the data's units, at the value whose logit this is."""
        a, b = theta
        log_f = -(a - 1) * np.logaddexp(0, -logit) - (b - 1) * np.logaddexp(0, logit)
        return np.asarray(log_f - special.betaln(a, b) - np.log(self.base[5]))

    def masses(self, theta: Array, edges: Array) -> Array:
        lo, width = self.base[4:6]
        u = ((edges - lo) / width).reshape(-1, *[1] * (theta.ndim - 1))
        below, above = special.betainc(theta[0], theta[1], u), special.betaincc(theta[0], theta[1], u)
        zero, one = np.zeros_like(below[:1]), np.ones_like(below[:1])
        below, above = np.concatenate([zero, below, one]), np.concatenate([one, above, zero])
        return np.asarray(np.where(below[:-1] > 0.5, above[:-1] - above[1:], below[1:] - below[:-1]))

    def nodes(self, n: int, resolution: float) -> tuple[Array, Array]:
        grids, weights = [], []
        for shape, rate in (self.base[:2], self.base[2:4]):
            step = 0.6 / np.sqrt(n + 10) / resolution
            t = np.arange(-26.0 / shape, np.log(40.0 + 4 * shape), step) - np.log(rate)
            grids.append(np.exp(t))
            log_w = shape * (np.log(rate) + t) - rate * np.exp(t) - special.gammaln(shape)
            weights.append(log_w + np.log(step))
        a, b = np.meshgrid(*grids, indexing="ij")
        return np.stack([a.ravel(), b.ravel()]), np.add.outer(*weights).ravel()

    def summaries(self, theta: Any) -> Array:
        return np.stack([np.log(theta[0]), np.log(theta[1])])

    def draw_prior(self, rng: np.random.Generator, k: int) -> Array:
        shape_a, rate_a, shape_b, rate_b = self.base[:4]
        if len(self.base) > 6:
            total = rng.standard_gamma(shape_a + shape_b, k) / rate_a
            share = rng.beta(*self.around(total))
            return np.stack([total * share, total * (1.0 - share)])
        return np.stack([rng.standard_gamma(shape_a, k) / rate_a, rng.standard_gamma(shape_b, k) / rate_b])

    def around(self, total: Array | float) -> tuple[Array, Array]:
        """Return the shapes of a / (a + b) given a + b."""
        lam, place = self.base[6:]
        along = lam * np.asarray(total)
        return self.base[0] + along * special.expit(place), self.base[2] + along * special.expit(-place)

    def draw_latent(self, rng: np.random.Generator, theta: Array) -> Array:
        # log of a Gamma(a) variable: that of Gamma(a + 1) plus log(uniform) / a
        logs = [np.log(rng.standard_gamma(p + 1)) - rng.standard_exponential(p.shape) / p for p in theta]
        return np.asarray(logs[0] - logs[1])

    def value(self, latent: Array) -> Array:
        lo, width = self.base[4:6]
        return np.asarray(lo + width * special.expit(latent))

    def uniforms(self, theta: Array) -> dict[str, float]:
        shape_a, rate_a, shape_b, rate_b = self.base[:4]
        return {
            "u_a": float(special.gammainc(shape_a, rate_a * theta[0])),
            "u_b": float(special.gammainc(shape_b, rate_b * theta[1])),
        }

    def centre(self, theta: Array) -> Array:
        return np.asarray(theta[0] / (theta[0] + theta[1]) - 0.5)

    def log_spread(self, theta: Array) -> Array:
        return np.asarray(-np.log(theta[0] + theta[1]))


def kernel(kind: str, base: tuple[float, ...]) -> Any:
    """Return the kernel of this name."""
    return {"normal": Normal, "truncated": TruncatedNormal, "beta": Beta}[kind](base)


def prior_predictive_pdf(base: tuple[float, ...], y: Array | float) -> Array:
    """Density of one Y drawn from the base measure of the normal kernel: Student t."""
    mu0, lam, a, b = base
    return np.asarray(stats.t.pdf(y, 2 * a, mu0, np.sqrt(b * (1 + lam) / (a * lam))))


def log_marginal_nig(base: tuple[float, ...], y: Array) -> float:
    """Closed form of the marginal likelihood of noise-free values `y` in one block, NIG base measure."""
    mu0, lam, a, b = base[:4]
    n, mean = len(y), float(np.mean(y))
    lam_n, a_n = lam + n, a + n / 2
    b_n = b + 0.5 * float(np.sum((y - mean) ** 2)) + 0.5 * lam * n / lam_n * (mean - mu0) ** 2
    return float(
        a * np.log(b) - a_n * np.log(b_n) + special.gammaln(a_n) - special.gammaln(a)
        + 0.5 * np.log(lam / lam_n) - 0.5 * n * np.log(2 * np.pi)
    )  # fmt: skip


def log_marginal_truncated(base: tuple[float, ...], z: Array) -> float:
    """Closed form of the marginal likelihood of `z` in one block under the truncated NIG base measure.

    The values are N(mean, tau2) with tau2 >= floor: the usual marginal times R(a_n, b_n) / R(a, b), R(a, b) =
    P(a, b / floor) (methods.md section 4).
    """
    mu0, lam, a, b, floor = base
    n, mean = len(z), float(np.mean(z))
    a_n = a + n / 2
    b_n = b + 0.5 * float(np.sum((z - mean) ** 2)) + 0.5 * lam * n / (lam + n) * (mean - mu0) ** 2
    ratio = np.log(special.gammainc(a_n, b_n / floor)) - np.log(special.gammainc(a, b / floor))
    return log_marginal_nig(base, z) + float(ratio)
