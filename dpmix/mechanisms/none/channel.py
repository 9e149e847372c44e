"""No channel: the records themselves, for the non-private posterior and for latent values held."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmix.kernels.beta.kernel import A, B, Beta, log_sides
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG, fill_normal, log_normal
from dpmix.kernels.normal.truncated_nig import NormalTruncatedNIG
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides_nothing,
    log_marginal,
)
from dpmix.numerics.special import exp, log_beta


class NoNoise(NamedTuple):
    """z = y. The field is there because a NamedTuple without one cannot be compiled."""

    scale: float = 0.0


@log_marginal.register
def _log_marginal(channel: NoNoise, kernel: NormalNIG, z, theta, h):
    return log_normal(z, theta[MEAN, h], theta[VARIANCE, h])


@fill_marginal.register
def _fill_marginal(channel: NoNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    fill_normal(theta[MEAN, h], theta[VARIANCE, h], z, start, stop, out)


@log_marginal.register
def _log_marginal_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, z, theta, h):
    return log_normal(z, theta[MEAN, h], theta[VARIANCE, h] + kernel.floor)


@fill_marginal.register
def _fill_marginal_truncated(channel: NoNoise, kernel: NormalTruncatedNIG, theta, h, z, start, stop, out):
    fill_normal(theta[MEAN, h], theta[VARIANCE, h] + kernel.floor, z, start, stop, out)


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


def _draw_latent(channel, kernel, rng, z, theta, h):
    return z


def _draw_start(channel, kernel, rng, z):
    return z


hides_nothing(NoNoise)
for _kernel in (NormalNIG, NormalTruncatedNIG, Beta):
    draw_latent.register(_draw_latent, NoNoise, _kernel)
    draw_start.register(_draw_start, NoNoise, _kernel)
