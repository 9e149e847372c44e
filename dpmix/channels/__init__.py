"""Mechanisms as seen from a release: density of the noise, marginal kernels, exact draws of latent values."""

from dpmix.channels.base import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.channels.gaussian import GaussianNoise
from dpmix.channels.laplace import LaplaceNoise
from dpmix.channels.none import NoNoise

__all__ = [
    "GaussianNoise",
    "LaplaceNoise",
    "NoNoise",
    "draw_latent",
    "draw_start",
    "fill_marginal",
    "hides",
    "log_constant",
    "log_marginal",
    "noise_density",
    "noise_variance",
]
