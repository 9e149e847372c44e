"""What samplers ask of channels, and those channels that several modules register pairs for.

Others are where their mechanisms are, and a law imports its own.
"""

import dpmix.kernels.intervals  # registers the masses of cells, and draws within them
import dpmix.mechanisms.channels.additive_beta  # noqa: F401 - registers the pairs with a beta kernel
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
    sum_logs,
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

__all__ = [
    "GaussianNoise",
    "GaussianRows",
    "LaplaceNoise",
    "LaplaceRows",
    "NoNoise",
    "PerturbedBins",
    "Rows",
    "SmoothedBins",
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
    "sum_logs",
]
