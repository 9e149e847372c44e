"""Mechanisms as seen from a release: density of the noise, marginal kernels, exact draws of latent values."""

import dpmix.kernels.intervals
import dpmix.mechanisms.channels.additive_beta  # noqa: F401 - registers the pairs with a beta kernel
from dpmix.mechanisms.binomial.channel import BinomialNoise
from dpmix.mechanisms.channels.channel_functions import (
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
from dpmix.mechanisms.channels.histograms import (
    PerturbedBins,
    SmoothedBins,
    perturbed_histogram,
    smoothed_histogram,
)
from dpmix.mechanisms.channels.rows import GaussianRows, LaplaceRows, Rows, laplace_rows
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.mechanisms.laplace.channel import LaplaceNoise
from dpmix.mechanisms.none.channel import NoNoise
from dpmix.mechanisms.square_wave.channel import SquareWaveNoise, square_wave
from dpmix.mechanisms.wavelet.channel import WaveletCells, wavelet_cells

__all__ = [
    "BinomialNoise",
    "WaveletCells",
    "GaussianNoise",
    "GaussianRows",
    "LaplaceNoise",
    "LaplaceRows",
    "NoNoise",
    "PerturbedBins",
    "Rows",
    "SmoothedBins",
    "SquareWaveNoise",
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
    "square_wave",
    "wavelet_cells",
]
