"""Normal kernel with a normal-inverse-gamma base measure; theta = (mean, variance)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmix.kernels.kernel_functions import (
    draw_posterior,
    draw_prior,
    draw_record,
    log_factor,
    log_integral,
    log_prior,
    propose,
    tally,
    value,
)
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
from dpmix.numerics.jit import njit
from dpmix.numerics.special import exp

MEAN, VARIANCE = 0, 1


class NormalNIG(NamedTuple):
    """sigma2 ~ InverseGamma(a, b), mu | sigma2 ~ N(mu0, sigma2 / lam) (methods, section 0)."""

    mu0: float
    lam: float
    a: float
    b: float

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a component's parameters."""
        return {"mean": (), "variance": ()}

    @property
    def constants(self) -> dict[str, float]:
        """What a chains file holds of the base measure."""
        return dict(zip(("base_mu0", "base_lambda", "base_a", "base_b"), self[:4], strict=True))

    @property
    def learned(self) -> tuple[str, str]:
        """Names of the location and the scale that may be learned."""
        return "mu0", "b"

    @property
    def learned_values(self) -> NDArray[np.float64]:
        """Location and scale, shape (2, 1)."""
        return np.array([[float(self.mu0)], [float(self.b)]])


@njit
def posterior(kernel, count, first, second, reference):
    """Return (mu_n, lambda_n, a_n, b_n) given sums of (y - reference) and its square over `count` values."""
    if count <= 0:
        return kernel.mu0, kernel.lam, kernel.a, kernel.b
    shift = first / count
    mean = reference + shift
    scatter = max(second - first * shift, 0.0)
    lam = kernel.lam + count
    mu = (kernel.lam * kernel.mu0 + count * mean) / lam
    gap = mean - kernel.mu0
    return (
        mu,
        lam,
        kernel.a + 0.5 * count,
        kernel.b + 0.5 * scatter + 0.5 * kernel.lam * count / lam * gap * gap,
    )


@njit
def _draw(rng, mu, lam, a, b, theta, h):
    variance = b / rng.standard_gamma(a)
    theta[VARIANCE, h] = variance
    theta[MEAN, h] = mu + math.sqrt(variance / lam) * rng.standard_normal()


@draw_prior.register
def _draw_prior(kernel: NormalNIG, rng, theta, h):
    _draw(rng, kernel.mu0, kernel.lam, kernel.a, kernel.b, theta, h)


@draw_posterior.register
def _draw_posterior(kernel: NormalNIG, rng, count, stats, h, theta, tuning):
    mu, lam, a, b = posterior(kernel, count, stats[0, h], stats[1, h], theta[MEAN, h])
    _draw(rng, mu, lam, a, b, theta, h)


def add_gap(kernel, theta, h, y, stats):
    """Add a normal record to sums of gaps from the component's mean, and of their squares: `tally`."""
    gap = y - theta[MEAN, h]
    stats[0, h] += gap
    stats[1, h] += gap * gap


tally.register(add_gap, NormalNIG)


@draw_record.register
def _draw_record(kernel: NormalNIG, rng, theta, h):
    return theta[MEAN, h] + math.sqrt(theta[VARIANCE, h]) * rng.standard_normal()


@value.register
def _value(kernel: NormalNIG, y):
    return y


@log_prior.register
def _log_prior(kernel: NormalNIG, theta, h):
    """Coordinates (mu, log sigma2): sigma2's Jacobian turns a + 3/2 into a + 1/2."""
    variance = theta[VARIANCE, h]
    gap = theta[MEAN, h] - kernel.mu0
    return -(kernel.a + 0.5) * math.log(variance) - (kernel.b + 0.5 * kernel.lam * gap * gap) / variance


@log_integral.register
def _log_integral(kernel: NormalNIG, count, b):
    return -(kernel.a + 0.5 * count) * math.log(b)


@log_factor.register
def _log_factor(kernel: NormalNIG, count):
    return math.lgamma(kernel.a + 0.5 * count)


@njit
def _steps(kernel, variance, count, spread):
    """Return the approximate posterior sds of mu and log sigma2 given `count` values with noise on top."""
    seen = variance + spread
    share = variance / seen
    return (
        1.0 / math.sqrt(count / seen + kernel.lam / variance),
        1.0 / math.sqrt(0.5 * count * share * share + kernel.a),
    )


@propose.register
def _propose(kernel: NormalNIG, rng, theta, h, count, spread, proposal):
    factor = 1.7 * math.exp(1.4 * (rng.random() - 0.5))
    mean_step, log_step = _steps(kernel, theta[VARIANCE, h], count, spread)
    e = rng.standard_normal()
    f = rng.standard_normal()
    proposal[MEAN, h] = theta[MEAN, h] + factor * mean_step * e
    proposal[VARIANCE, h] = theta[VARIANCE, h] * math.exp(factor * log_step * f)
    mean_back, log_back = _steps(kernel, proposal[VARIANCE, h], count, spread)
    e_back = e * mean_step / mean_back
    f_back = f * log_step / log_back
    ratio = math.log(mean_step * log_step / (mean_back * log_back))
    ratio += 0.5 * (e * e + f * f - e_back * e_back - f_back * f_back)
    return ratio + log_prior(kernel, proposal, h) - log_prior(kernel, theta, h)


@njit
def log_normal(z, mean, variance):
    """Return log N(z | mean, variance)."""
    gap = z - mean
    return -0.5 * (gap * gap / variance + math.log(2.0 * math.pi * variance))


@njit
def fill_normal(mean, variance, z, start, stop, out):
    """Set ``out[i - start]`` to N(z[i] | mean, variance)."""
    inverse = 1.0 / math.sqrt(variance)
    height = inverse / math.sqrt(2.0 * math.pi)
    for i in range(start, stop):
        t = (z[i] - mean) * inverse
        out[i - start] = height * exp(-0.5 * t * t)


# What is learned of the base measure


@with_base.register
def _with_nig(kernel: NormalNIG, values):
    if values.shape[1] == 0:
        return kernel
    lam = values[WEIGHT, 0] if values.shape[0] > WEIGHT else kernel.lam
    return NormalNIG(values[LOCATION, 0], lam, kernel.a, values[SCALE, 0])


@gather.register
def _gather_nig(kernel: NormalNIG, theta, h, sums):
    precision = 1.0 / theta[VARIANCE, h]
    sums[0, 0] += precision
    sums[1, 0] += precision * theta[MEAN, h]


@gap_square.register
def _gap_square_nig(kernel: NormalNIG, theta, h):
    gap = theta[MEAN, h] - kernel.mu0
    return gap * gap / theta[VARIANCE, h]


@carry.register
def _carry_nig(kernel: NormalNIG, theta, h, column, shift, factor, values):
    centre = values[LOCATION, 0]
    theta[VARIANCE, h] *= factor
    theta[MEAN, h] = centre + shift + math.sqrt(factor) * (theta[MEAN, h] - centre)
    return 0.0


@component_terms.register
def _terms_nig(kernel: NormalNIG):
    return kernel.a, 1.0, kernel.lam


draw_base_given.register(draw_conjugate, NormalNIG)
