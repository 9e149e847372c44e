"""Mechanisms as seen from a release: density of the noise, marginal kernels, exact draws of latent values."""

import dpmix.channels.additive_beta  # noqa: F401 - registers the pairs with a beta kernel
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
from dpmix.channels.binomial import BinomialNoise
from dpmix.channels.cells import Cells, wavelet_cells
from dpmix.channels.gaussian import GaussianNoise
from dpmix.channels.histogram import (
    PerturbedHistogram,
    SmoothedHistogram,
    perturbed_histogram,
    smoothed_histogram,
)
from dpmix.channels.laplace import LaplaceNoise
from dpmix.channels.none import NoNoise
from dpmix.channels.vectors import GaussianRows, LaplaceRows, Rows, laplace_rows

__all__ = [
    "BinomialNoise",
    "Cells",
    "GaussianNoise",
    "GaussianRows",
    "LaplaceNoise",
    "LaplaceRows",
    "NoNoise",
    "PerturbedHistogram",
    "Rows",
    "SmoothedHistogram",
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
    "perturbed_histogram",
    "settle",
    "smoothed_histogram",
    "wavelet_cells",
]
