"""Mixture kernels with their base measures, one file a kernel.

A kernel is a NamedTuple of its base measure's hyperparameters. Component h has parameters ``theta[:, h]`` and
running sums ``stats[:, h]`` of its members' latent values; both arrays are (rows, capacity).
"""

import dpmix.kernels.intervals  # noqa: F401 - registers masses and draws of intervals
from dpmix.kernels.beta import Beta
from dpmix.kernels.kernel_functions import (
    TUNING,
    draw_posterior,
    draw_prior,
    draw_record,
    draw_within,
    fill_masses,
    latent_columns,
    log_factor,
    log_integral,
    log_prior,
    make_tuning,
    parameter_shapes,
    propose,
    tally,
    theta_rows,
    value,
)
from dpmix.kernels.multivariate import MultivariateNormal
from dpmix.kernels.normal import NormalNIG
from dpmix.kernels.truncated_nig import NormalTruncatedNIG

__all__ = [
    "TUNING",
    "Beta",
    "MultivariateNormal",
    "NormalNIG",
    "NormalTruncatedNIG",
    "draw_posterior",
    "draw_prior",
    "draw_record",
    "draw_within",
    "fill_masses",
    "latent_columns",
    "log_prior",
    "log_factor",
    "log_integral",
    "make_tuning",
    "parameter_shapes",
    "propose",
    "tally",
    "theta_rows",
    "value",
]
