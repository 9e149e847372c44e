"""What a sampler asks of a channel; implementations register by the classes of channel and kernel."""

from __future__ import annotations

from dpmix._jit import dispatch

__all__ = ["draw_latent", "fill_marginal", "hides", "log_marginal", "noise_density", "noise_variance"]


@dispatch()
def noise_density(channel, z, y):
    """Return q(z | y)."""


@dispatch()
def noise_variance(channel):
    """Return the variance of the noise, a scale for proposals."""


@dispatch()
def hides(channel):
    """Return whether the release differs from the records."""


@dispatch(on=2)
def log_marginal(channel, kernel, z, theta, h):
    """Return log g(z | theta[:, h]), the kernel convolved with the channel's noise."""


@dispatch(on=2)
def fill_marginal(channel, kernel, theta, h, z, start, stop, out):
    """Set ``out[i - start]`` to g(z[i] | theta[:, h]) for start <= i < stop.

    Values too small for a double are replaced by tiny ones; `log_marginal` serves where all are tiny.
    """


@dispatch(on=2)
def draw_latent(channel, kernel, rng, z, theta, h):
    """Draw y from p(y | z, theta[:, h]), exactly."""
