"""Gaussian noise seen from the release (methods, section 4).

With a normal kernel everything is normal. With a beta kernel, which has no `draw_latent`, densities are
integrals of `dpmix.mechanisms.channels.additive_beta`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG, fill_normal, log_normal
from dpmix.mechanisms.channels.additive_beta import (
    FEW,
    bell_panels,
    below_and_above,
    can_fill,
    fill_bell,
    fill_one_by_one,
    log_integral,
    uniform_logit,
)
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides_records,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.numerics.special import log_beta

_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class GaussianNoise(NamedTuple):
    """z | y ~ N(y, sd^2)."""

    sd: float


@noise_density.register
def _noise_density(channel: GaussianNoise, z, y):
    t = (z - y) / channel.sd
    return math.exp(-0.5 * t * t) / (channel.sd * math.sqrt(2.0 * math.pi))


@log_marginal.register
def _log_marginal(channel: GaussianNoise, kernel: NormalNIG, z, theta, h):
    return log_normal(z, theta[MEAN, h], theta[VARIANCE, h] + channel.sd * channel.sd)


@fill_marginal.register
def _fill_marginal(channel: GaussianNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    fill_normal(theta[MEAN, h], theta[VARIANCE, h] + channel.sd * channel.sd, z, start, stop, out)


@draw_latent.register
def _draw_latent(channel: GaussianNoise, kernel: NormalNIG, rng, z, theta, h):
    noise = channel.sd * channel.sd
    share = theta[VARIANCE, h] / (theta[VARIANCE, h] + noise)
    mean = theta[MEAN, h] + share * (z - theta[MEAN, h])
    return mean + math.sqrt(share * noise) * rng.standard_normal()


@noise_variance.register
def _noise_variance(channel: GaussianNoise):
    return channel.sd * channel.sd


hides_records(GaussianNoise)


@draw_start.register
def _draw_start(channel: GaussianNoise, kernel: NormalNIG, rng, z):
    return z


# With a beta kernel


@log_marginal.register
def _log_marginal_beta(channel: GaussianNoise, kernel: Beta, z, theta, h):
    a, b = theta[A, h], theta[B, h]
    below, above = below_and_above(kernel, z)
    found = log_integral(False, a, b, below, above, channel.sd / kernel.width)
    return found - log_beta(a, b) - math.log(channel.sd) - _HALF_LOG_2PI


@fill_marginal.register
def _fill_marginal_beta(channel: GaussianNoise, kernel: Beta, theta, h, z, start, stop, out):
    a, b = theta[A, h], theta[B, h]
    scale = channel.sd / kernel.width
    panels = np.empty(0)
    if stop - start > FEW:
        below_low, above_low = below_and_above(kernel, np.min(z[start:stop]))
        below_high, above_high = below_and_above(kernel, np.max(z[start:stop]))
        panels = bell_panels(a, b, below_low, above_low, below_high, above_high, scale)
    if can_fill(panels):
        fill_bell(a, b, kernel.lo, kernel.width, scale, panels, z, start, stop, out)
    else:
        fill_one_by_one(channel, kernel, theta, h, z, start, stop, out)


@draw_start.register
def _draw_start_beta(channel: GaussianNoise, kernel: Beta, rng, z):
    return uniform_logit(rng)
