"""Coordinates of a component's two parameters.

Langevin steps walk in coordinates on the whole plane, those of `dpmix.kernels.log_prior`: mean and log
variance of a normal kernel, log a and log b of a beta kernel. Moves of pairs, splits and merges work in the
mean and the log variance of either, in which what a pair has in common is kept
(`dpmix.models.counts_mixture.atom_moves`); `log_prior_moments` has the Jacobian.
"""

from __future__ import annotations

import math

from dpmix.kernels.beta.kernel import A, B, Beta, prior_slopes_of
from dpmix.kernels.kernel_functions import log_prior
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.numerics.jit import dispatch

_FARTHEST = 60.0  # of a logarithm: beyond, nothing can be computed
_SMALLEST, _LARGEST = 1e-100, 1e100


@dispatch()
def walk(kernel, theta, h):
    """Return where theta[:, h] is, in the two coordinates of Langevin steps."""


@dispatch()
def place(kernel, first, second, theta, h):
    """Set theta[:, h] to what is at these coordinates; False where that is too far out."""


@dispatch()
def unit(kernel, theta, h):
    """Return one step of the first coordinate: of a mean the component's sd, of a logarithm 1."""


@dispatch()
def prior_slopes(kernel, theta, h):
    """Return the gradient of `log_prior` at theta[:, h], and a scale of its curvature, by coordinate."""


@dispatch()
def moments(kernel, theta, h):
    """Return mean and variance of f(. | theta[:, h])."""


@dispatch()
def place_moments(kernel, mean, variance, theta, h):
    """Set theta[:, h] to the component of this mean and variance; False where there is none."""


@dispatch()
def log_prior_moments(kernel, theta, h):
    """Return the log density of the base measure in (mean, log variance), with all constants."""


@walk.register
def _walk_normal(kernel: NormalNIG, theta, h):
    return theta[MEAN, h], math.log(theta[VARIANCE, h])


@place.register
def _place_normal(kernel: NormalNIG, first, second, theta, h):
    if not abs(second) < 10.0 * _FARTHEST:
        return False
    theta[MEAN, h] = first
    theta[VARIANCE, h] = math.exp(second)
    return True


@unit.register
def _unit_normal(kernel: NormalNIG, theta, h):
    return math.sqrt(theta[VARIANCE, h])


@unit.register
def _unit_beta(kernel: Beta, theta, h):
    return 1.0


@prior_slopes.register
def _prior_slopes_normal(kernel: NormalNIG, theta, h):
    variance, gap = theta[VARIANCE, h], theta[MEAN, h] - kernel.mu0
    pull = (kernel.b + 0.5 * kernel.lam * gap * gap) / variance
    precision = kernel.lam / variance
    return -precision * gap, pull - (kernel.a + 0.5), precision, 0.5 * (kernel.a + 0.5 + pull)


@moments.register
def _moments_normal(kernel: NormalNIG, theta, h):
    return theta[MEAN, h], theta[VARIANCE, h]


@place_moments.register
def _place_moments_normal(kernel: NormalNIG, mean, variance, theta, h):
    if not variance > 0.0:
        return False
    theta[MEAN, h] = mean
    theta[VARIANCE, h] = variance
    return True


@log_prior_moments.register
def _log_prior_moments_normal(kernel: NormalNIG, theta, h):
    constant = 0.5 * math.log(kernel.lam / (2.0 * math.pi)) + kernel.a * math.log(kernel.b)
    return log_prior(kernel, theta, h) + constant - math.lgamma(kernel.a)


@walk.register
def _walk_beta(kernel: Beta, theta, h):
    return math.log(theta[A, h]), math.log(theta[B, h])


@place.register
def _place_beta(kernel: Beta, first, second, theta, h):
    if not max(abs(first), abs(second)) < _FARTHEST:
        return False
    theta[A, h] = math.exp(first)
    theta[B, h] = math.exp(second)
    return True


@prior_slopes.register
def _prior_slopes_beta(kernel: Beta, theta, h):
    slope_a, slope_b, aa, _, bb = prior_slopes_of(kernel, theta[A, h], theta[B, h])
    return slope_a, slope_b, aa, bb


@moments.register
def _moments_beta(kernel: Beta, theta, h):
    a, b = theta[A, h], theta[B, h]
    share = a / (a + b)
    rest = b / (a + b)
    return kernel.lo + kernel.width * share, kernel.width * kernel.width * share * rest / (a + b + 1.0)


@place_moments.register
def _place_moments_beta(kernel: Beta, mean, variance, theta, h):
    """With m the mean's place in the interval and v the variance there, a + b = m (1 - m) / v - 1."""
    share = (mean - kernel.lo) / kernel.width
    rest = (kernel.lo + kernel.width - mean) / kernel.width
    spread = variance / (kernel.width * kernel.width)
    if not (share > 0.0 and rest > 0.0 and 0.0 < spread < share * rest):
        return False
    total = share * rest / spread - 1.0
    a, b = share * total, rest * total
    if not (_SMALLEST < a < _LARGEST and _SMALLEST < b < _LARGEST):
        return False
    theta[A, h] = a
    theta[B, h] = b
    return True


@log_prior_moments.register
def _log_prior_moments_beta(kernel: Beta, theta, h):
    """|d(log a, log b) / d(m, log v)| = (t + 1) / (t m (1 - m)), t = a + b; a mean is m times the width."""
    a, b = theta[A, h], theta[B, h]
    total = a + b
    jacobian = math.log((total + 1.0) / total) + 2.0 * math.log(total) - math.log(a) - math.log(b)
    constant = kernel.a_shape * math.log(kernel.a_rate) - math.lgamma(kernel.a_shape)
    constant += kernel.b_shape * math.log(kernel.b_rate) - math.lgamma(kernel.b_shape)
    return log_prior(kernel, theta, h) + constant + jacobian - math.log(kernel.width)
