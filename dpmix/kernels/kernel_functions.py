"""What a sampler asks of a kernel; implementations register by the class of their hyperparameters.

A latent value stands in the kernel's own coordinate, in which it loses no precision: the data's for normal
kernels, the logit of its place in the domain for the beta kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmix.numerics.jit import dispatch

TUNING = np.dtype([(name, np.float64) for name in ("step", "adapting", "adaptations")])
"""Of kernels that take Metropolis steps: their size, 1 while it may adapt, adaptations done."""


def make_tuning(step: float, adapting: float = 0.0) -> Any:
    """Return the numbers of `TUNING`, by their names, which change in place."""
    return np.array([(step, adapting, 0.0)], TUNING).view(np.recarray)[0]


def parameter_shapes(kernel: Any) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of a component's parameters, as they appear in a chains file.

    Their entries, each parameter's in C order, are the rows of theta.
    """
    return dict(kernel.parameters)


def theta_rows(kernel: Any) -> int:
    """Return the number of rows of theta."""
    return sum(math.prod(shape) for shape in parameter_shapes(kernel).values())


def latent_columns(kernel: Any) -> int:
    """Return the length of a latent value; 0 where it is a number."""
    return int(getattr(kernel, "columns", 0))


@dispatch()
def draw_prior(kernel, rng, theta, h):
    """Draw ``theta[:, h]`` from the base measure."""


@dispatch()
def draw_posterior(kernel, rng, count, stats, h, theta, tuning):
    """Move ``theta[:, h]`` given `count` latent values summed up in ``stats[:, h]`` by `tally`.

    A conjugate kernel draws it anew. Others take Metropolis steps from where it is, by the numbers
    of `TUNING`.
    """


@dispatch()
def tally(kernel, theta, h, y, stats):
    """Add a latent value `y` of component h to ``stats[:, h]``; theta must not change in between."""


@dispatch()
def draw_record(kernel, rng, theta, h):
    """Draw a latent value from f(. | theta[:, h])."""


@dispatch()
def value(kernel, y):
    """Return the latent value `y`, in the kernel's coordinate, in the data's units."""


@dispatch()
def fill_masses(kernel, theta, h, edges, out):
    """Set ``out[c]`` to the mass of f(. | theta[:, h]) between ``edges[c - 1]`` and ``edges[c]``.

    `edges` (C - 1,) increase, in the data's units; the first and the last of the C cells reach to the ends of
    the support.
    """


@dispatch()
def draw_within(kernel, rng, theta, h, low, high):
    """Draw a latent value from f(. | theta[:, h]) truncated to [low, high), bounds in the data's units."""


@dispatch()
def log_integral(kernel, count, b):
    """Return log int v^(-a-1) exp(-b / v) dv over the support of the variance, but for `log_factor`.

    Of a conjugate kernel, a its shape given `count` values.
    """


@dispatch()
def log_factor(kernel, count):
    """Return what that integral owes to the number of values alone."""


@dispatch()
def log_prior(kernel, theta, h):
    """Return the log density of the base measure at theta[:, h], up to a constant.

    In the coordinates that `propose` walks in.
    """


@dispatch()
def propose(kernel, rng, theta, h, count, spread, proposal):
    """Propose parameters for component h in ``proposal[:, h]`` by a random walk scaled to its posterior.

    `count` values seen through noise of variance `spread` inform the component. Return the log of
    (prior x reverse density) at the proposal over (prior x forward density) at ``theta[:, h]``.
    """
