"""Gaussian noise seen from the release: with a normal kernel everything is normal (methods, section 4)."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG, fill_normal, log_normal
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides_records,
    log_marginal,
    noise_density,
    noise_variance,
)


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
