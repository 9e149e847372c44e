"""Laplace noise seen from the release (methods, section 4).

With a normal kernel, t = |z - mu| / sd and r = sd / s, the marginal is the sum of two tilted normal tails,
``g = exp(-t^2/2) (erfcx((r - t)/sqrt 2) + erfcx((r + t)/sqrt 2)) / (4 s)``: y on the near side of z (towards
mu, the first term) and beyond it. For t > r, ``erfcx(-x) = 2 exp(x^2) - erfcx(x)`` avoids the overflow.

With a beta kernel, which has no `draw_latent`, densities are integrals of
`dpmix.mechanisms.channels.additive_beta`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmix.kernels.beta.kernel import A, B, Beta
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.mechanisms.channels.additive_beta import (
    FEW,
    below_and_above,
    can_fill,
    fill_laplace,
    fill_one_by_one,
    laplace_panels,
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
from dpmix.numerics.jit import njit
from dpmix.numerics.special import erfcx, exp, log_beta

_HALF = math.sqrt(0.5)


class LaplaceNoise(NamedTuple):
    """z | y ~ Laplace(y, scale)."""

    scale: float


@noise_density.register
def _noise_density(channel: LaplaceNoise, z, y):
    return math.exp(-abs(z - y) / channel.scale) / (2.0 * channel.scale)


@log_marginal.register
def _log_marginal(channel: LaplaceNoise, kernel: NormalNIG, z, theta, h):
    sd = math.sqrt(theta[VARIANCE, h])
    t = abs(z - theta[MEAN, h]) / sd
    r = sd / channel.scale
    far = erfcx(_HALF * (r + t))
    near = erfcx(_HALF * abs(r - t))
    if t <= r:
        return -0.5 * t * t + math.log(near + far) - math.log(4.0 * channel.scale)
    correction = 0.5 * math.exp(-0.5 * (t - r) * (t - r)) * (far - near)
    return r * (0.5 * r - t) + math.log1p(correction) - math.log(2.0 * channel.scale)


@fill_marginal.register
def _fill_marginal(channel: LaplaceNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    mean = theta[MEAN, h]
    sd = math.sqrt(theta[VARIANCE, h])
    inverse = 1.0 / sd
    r = sd / channel.scale
    height = 0.25 / channel.scale
    for i in range(start, stop):
        t = abs(z[i] - mean) * inverse
        gap = r - t
        bell = exp(-0.5 * t * t)
        near = erfcx(_HALF * abs(gap))
        far = erfcx(_HALF * (r + t))
        tail = 2.0 * exp(r * (0.5 * r - t))
        out[i - start] = height * (bell * (far + near) if gap >= 0.0 else tail + bell * (far - near))


@njit
def _probability_beyond(t, r):
    """Return the probability that y lies beyond z as seen from the mean."""
    gap = r - t
    far = erfcx(_HALF * (r + t))
    near = erfcx(_HALF * abs(gap))
    ratio = 2.0 * exp(0.5 * gap * gap)
    return far / (far + near) if gap >= 0.0 else far / (ratio + (far - near))


@njit
def _truncated_normal(rng, bound):
    """Draw a standard normal given that it exceeds `bound` (Robert 1995 in the tail, rejection elsewhere)."""
    if bound < 0.5:
        while True:
            x = rng.standard_normal()
            if x > bound:
                return x
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    while True:
        step = rng.standard_exponential() / rate
        gap = bound + step - rate
        if rng.standard_exponential() > 0.5 * gap * gap:
            return bound + step


@njit
def _draw(rng, z, mean, sd, scale, beyond):
    """Draw y given that with probability `beyond` it lies beyond z as seen from the mean."""
    side = 1.0 if z >= mean else -1.0  # measure along the direction from the mean to z
    t = side * (z - mean) / sd
    r = sd / scale
    if rng.random() < beyond:
        return mean + side * sd * (_truncated_normal(rng, t + r) - r)
    return mean + side * sd * (r - _truncated_normal(rng, r - t))


@draw_latent.register
def _draw_latent(channel: LaplaceNoise, kernel: NormalNIG, rng, z, theta, h):
    mean = theta[MEAN, h]
    sd = math.sqrt(theta[VARIANCE, h])
    beyond = _probability_beyond(abs(z - mean) / sd, sd / channel.scale)
    return _draw(rng, z, mean, sd, channel.scale, beyond)


@noise_variance.register
def _noise_variance(channel: LaplaceNoise):
    return 2.0 * channel.scale * channel.scale


hides_records(LaplaceNoise)


@draw_start.register
def _draw_start(channel: LaplaceNoise, kernel: NormalNIG, rng, z):
    return z


# With a beta kernel


@log_marginal.register
def _log_marginal_beta(channel: LaplaceNoise, kernel: Beta, z, theta, h):
    a, b = theta[A, h], theta[B, h]
    below, above = below_and_above(kernel, z)
    found = log_integral(True, a, b, below, above, channel.scale / kernel.width)
    return found - log_beta(a, b) - math.log(2.0 * channel.scale)


@fill_marginal.register
def _fill_marginal_beta(channel: LaplaceNoise, kernel: Beta, theta, h, z, start, stop, out):
    a, b = theta[A, h], theta[B, h]
    scale = channel.scale / kernel.width
    panels = laplace_panels(a, b, scale) if stop - start > FEW else np.empty(0)
    if can_fill(panels):
        fill_laplace(a, b, kernel.lo, kernel.width, scale, panels, z, start, stop, out)
    else:
        fill_one_by_one(channel, kernel, theta, h, z, start, stop, out)


@draw_start.register
def _draw_start_beta(channel: LaplaceNoise, kernel: Beta, rng, z):
    return uniform_logit(rng)
