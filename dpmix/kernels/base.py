"""What a sampler asks of a kernel; implementations register by the class of their hyperparameters."""

from __future__ import annotations

from typing import Any

from dpmix._jit import dispatch

__all__ = ["draw_posterior", "draw_prior", "draw_record", "log_prior", "parameter_names", "propose", "tally"]


def parameter_names(kernel: Any) -> tuple[str, ...]:
    """Return the names of the rows of theta, as they appear in a chains file."""
    return tuple(kernel.parameters)


@dispatch()
def draw_prior(kernel, rng, theta, h):
    """Draw ``theta[:, h]`` from the base measure."""


@dispatch()
def draw_posterior(kernel, rng, count, stats, h, theta):
    """Draw ``theta[:, h]`` given `count` latent values summed up in ``stats[:, h]`` by `tally`."""


@dispatch()
def tally(kernel, theta, h, y, stats):
    """Add a latent value `y` of component h to ``stats[:, h]``; theta must not change in between."""


@dispatch()
def draw_record(kernel, rng, theta, h):
    """Draw a latent value from f(. | theta[:, h])."""


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
