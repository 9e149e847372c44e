"""A mechanism and a kernel of strangers go together by what one more file registers for the two."""

import math

from dpmix.mechanisms.channels.channel_functions import draw_latent, draw_start, fill_marginal, log_marginal
from tests.robust.stranger.known_spread import KnownSpread
from tests.robust.stranger.uniform_noise import UniformNoise, below


@log_marginal.register
def _log_marginal(channel: UniformNoise, kernel: KnownSpread, z, theta, h):
    w, sd = channel.half_width, kernel.within
    t = -abs(z - theta[0, h])
    return math.log(max((below((t + w) / sd) - below((t - w) / sd)) / (2.0 * w), 1e-300))


@fill_marginal.register
def _fill_marginal(channel: UniformNoise, kernel: KnownSpread, theta, h, z, start, stop, out):
    for i in range(start, stop):
        out[i - start] = math.exp(log_marginal(channel, kernel, z[i], theta, h))


@draw_start.register
def _draw_start(channel: UniformNoise, kernel: KnownSpread, rng, z):
    return z


@draw_latent.register
def _draw_latent(channel: UniformNoise, kernel: KnownSpread, rng, z, theta, h):
    w, mean = channel.half_width, theta[0, h]
    nearest = min(max(mean, z - w), z + w) - mean
    while True:  # by rejection from what the noise allows
        y = z - w + 2.0 * w * rng.random()
        gap = y - mean
        if 2.0 * kernel.within**2 * rng.standard_exponential() > gap * gap - nearest * nearest:
            return y
