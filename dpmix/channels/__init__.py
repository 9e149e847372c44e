"""Mechanisms as seen from a release: density of the noise, marginal kernels, exact draws of latent values."""

from dpmix.channels.base import (
    augment,
    augmented,
    draw_latent,
    draw_start,
    fill_marginal,
    hides,
    log_constant,
    log_marginal,
    noise_density,
    noise_variance,
    settle,
)
from dpmix.channels.gaussian import GaussianNoise
from dpmix.channels.laplace import LaplaceNoise
from dpmix.channels.none import NoNoise
from dpmix.channels.vectors import GaussianRows, LaplaceRows, Rows, laplace_rows

__all__ = [
    "GaussianNoise",
    "GaussianRows",
    "LaplaceNoise",
    "LaplaceRows",
    "NoNoise",
    "Rows",
    "augment",
    "augmented",
    "draw_latent",
    "draw_start",
    "fill_marginal",
    "hides",
    "laplace_rows",
    "log_constant",
    "log_marginal",
    "noise_density",
    "noise_variance",
    "settle",
]
