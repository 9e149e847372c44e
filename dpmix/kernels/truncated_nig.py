"""Normal kernel under Gaussian noise with a base measure that makes the release itself conjugate.

Beraha, Favaro and Rao (2024), section 3.3: with tau2 = sigma2 + eta^2 the variance of a released value within
a component, G0 = N(mu | mu0, tau2 / lam) IG(tau2 | a, b) truncated to tau2 >= eta^2. The release is worked as
if it were the records (`NoNoise`). Theta = (mean, sigma2), the parameters of Y.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from dpmix.kernels.cut_gamma_integrals import NO_INTEGRALS, integrals
from dpmix.kernels.cut_gamma_integrals import log_integral as integral
from dpmix.kernels.kernel_functions import (
    draw_posterior,
    draw_prior,
    draw_record,
    log_factor,
    log_integral,
    tally,
    value,
)
from dpmix.kernels.normal import MEAN, VARIANCE, posterior
from dpmix.numerics.gammainc import draw_gamma_below
from dpmix.numerics.jit import njit

__all__ = ["NormalTruncatedNIG"]

LARGEST = 4096  # values of a component that the table reaches to: 30 MB


class NormalTruncatedNIG(NamedTuple):
    """tau2 ~ InverseGamma(a, b) given tau2 >= floor, mu | tau2 ~ N(mu0, tau2 / lam); floor = eta^2.

    `table` has the shapes a + count / 2 that are to be fast; `prepared` makes it.
    """

    mu0: float
    lam: float
    a: float
    b: float
    floor: float
    table: Any = NO_INTEGRALS

    def prepared(self, n: int) -> NormalTruncatedNIG:
        """Return the kernel with a table for components of up to `n` values, at most 4096."""
        return self._replace(table=integrals(self.a, min(n, LARGEST) + 1))

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of a component's parameters."""
        return {"mean": (), "variance": ()}


@njit
def _draw(kernel, rng, mu, lam, a, b, theta, h):
    total = b / draw_gamma_below(rng, a, b / kernel.floor)
    theta[VARIANCE, h] = max(total - kernel.floor, 1e-12 * kernel.floor)
    theta[MEAN, h] = mu + math.sqrt(total / lam) * rng.standard_normal()


@draw_prior.register
def _draw_prior(kernel: NormalTruncatedNIG, rng, theta, h):
    _draw(kernel, rng, kernel.mu0, kernel.lam, kernel.a, kernel.b, theta, h)


@draw_posterior.register
def _draw_posterior(kernel: NormalTruncatedNIG, rng, count, stats, h, theta, tuning):
    mu, lam, a, b = posterior(kernel, count, stats[0, h], stats[1, h], theta[MEAN, h])
    _draw(kernel, rng, mu, lam, a, b, theta, h)


@tally.register
def _tally(kernel: NormalTruncatedNIG, theta, h, y, stats):
    gap = y - theta[MEAN, h]
    stats[0, h] += gap
    stats[1, h] += gap * gap


@draw_record.register
def _draw_record(kernel: NormalTruncatedNIG, rng, theta, h):
    """Draw a released value: the record that this kernel is the distribution of."""
    return theta[MEAN, h] + math.sqrt(theta[VARIANCE, h] + kernel.floor) * rng.standard_normal()


@value.register
def _value(kernel: NormalTruncatedNIG, y):
    return y


@log_integral.register
def _log_integral(kernel: NormalTruncatedNIG, count, b):
    return integral(kernel.table, count, kernel.a + 0.5 * count, b / kernel.floor)


@log_factor.register
def _log_factor(kernel: NormalTruncatedNIG, count):
    a = kernel.a + 0.5 * count
    return -a * math.log(kernel.floor) - math.log(a)
