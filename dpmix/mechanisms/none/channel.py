"""No channel: the records themselves, for the non-private posterior and for latent values held."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmix.kernels.beta import A, B, Beta, log_sides
from dpmix.kernels.normal import MEAN, VARIANCE, NormalNIG, fill_normal, log_normal
from dpmix.kernels.truncated_nig import NormalTruncatedNIG
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_variance,
)
from dpmix.numerics.special import exp, log_beta

__all__ = ["NoNoise"]


class NoNoise(NamedTuple):
    """z = y. The field is there because a NamedTuple without one cannot be compiled."""

    scale: float = 0.0


@log_marginal.register
def _log_marginal(channel: NoNoise, kernel: NormalNIG, z, theta, h):
    return log_normal(z, theta[MEAN, h], theta[VARIANCE, h])


@fill_marginal.register
def _fill_marginal(channel: NoNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    fill_normal(theta[MEAN, h], theta[VARIANCE, h], z, start, stop, out)


@draw_latent.register
def _draw_latent(channel: NoNoise, kernel: NormalNIG, rng, z, theta, h):
    return z


@noise_variance.register
def _noise_variance(channel: NoNoise):
    return 0.0


@hides.register
def _hides(channel: NoNoise):
    return False


@log_constant.register
def _log_constant(channel: NoNoise):
    return 0.0


@draw_start.register
def _draw_start(channel: NoNoise, kernel: NormalNIG, rng, z):
    return z


@log_marginal.register
def _log_marginal_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, z, theta, h):
    return log_normal(z, theta[MEAN, h], theta[VARIANCE, h] + kernel.floor)


@fill_marginal.register
def _fill_marginal_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, theta, h, z, start, stop, out):
    fill_normal(theta[MEAN, h], theta[VARIANCE, h] + kernel.floor, z, start, stop, out)


@draw_latent.register
def _draw_latent_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, rng, z, theta, h):
    return z


@draw_start.register
def _draw_start_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, rng, z):
    return z


@log_marginal.register
def _log_marginal_beta(channel: NoNoise, kernel: Beta, z, theta, h):
    """`z` is a logit; the density is that of y."""
    a, b = theta[A, h], theta[B, h]
    left, right = log_sides(z)
    return (a - 1.0) * left + (b - 1.0) * right - log_beta(a, b) - math.log(kernel.width)


@fill_marginal.register
def _fill_marginal_beta(channel: NoNoise, kernel: Beta, theta, h, z, start, stop, out):
    """Infinite where the density overflows, at logits beyond some hundreds under parameters below 1."""
    a, b = theta[A, h], theta[B, h]
    constant = log_beta(a, b) + math.log(kernel.width)
    for i in range(start, stop):
        left, right = log_sides(z[i])
        height = (a - 1.0) * left + (b - 1.0) * right - constant
        out[i - start] = exp(height) if height < 709.0 else math.inf


@draw_latent.register
def _draw_latent_beta(channel: NoNoise, kernel: Beta, rng, z, theta, h):
    return z


@draw_start.register
def _draw_start_beta(channel: NoNoise, kernel: Beta, rng, z):
    return z
