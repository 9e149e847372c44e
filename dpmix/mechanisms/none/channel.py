"""No channel: the records themselves, for the non-private posterior and for latent values held."""

from __future__ import annotations

from typing import NamedTuple

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
