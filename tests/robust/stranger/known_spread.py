"""A kernel in one file: normal distributions of one known standard deviation, whose means are normal."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import special, stats

import dpmix
from dpmix.kernels.kernel_functions import (
    draw_posterior,
    draw_prior,
    draw_record,
    log_prior,
    propose,
    tally,
    value,
)
from dpmix.kernels.layout import Layout
from dpmix.kernels.normal.family import NormalKernel, levels_of_nodes
from dpmix.mechanisms.channels.channel_functions import draw_latent, draw_start, fill_marginal, log_marginal
from dpmix.mechanisms.gaussian.channel import GaussianNoise
from dpmix.spec.fields import Number, Positive, Section
from dpmix.spec.model_section import MixtureSection


class Means(Section):
    """Normal base measure of a cluster's mean."""

    mu0: Number
    sd: Positive


class KnownSpreadMixture(MixtureSection):
    """What a spec says of it."""

    plural = "normals of one known spread"
    kernel: Literal["known_spread"]
    within: Positive
    base: Means

    def base_in_words(self, bounds):
        return f"means N({self.base.mu0:g}, {self.base.sd:g}^2)"


class KnownSpread(NamedTuple):
    """y ~ N(mean, within^2), mean ~ N(mu0, sd^2)."""

    mu0: float
    sd: float
    within: float

    @property
    def parameters(self):
        return {"mean": ()}

    @property
    def constants(self):
        return {"base_mu0": self.mu0, "base_sd": self.sd, "base_within": self.within}

    @classmethod
    def of_spec(cls, section, bounds):
        return cls(float(section.base.mu0), float(section.base.sd), float(section.within))


@draw_prior.register
def _draw_prior(kernel: KnownSpread, rng, theta, h):
    theta[0, h] = kernel.mu0 + kernel.sd * rng.standard_normal()


@draw_posterior.register
def _draw_posterior(kernel: KnownSpread, rng, count, stats, h, theta, tuning):
    precision = 1.0 / kernel.sd**2 + count / kernel.within**2
    centre = (kernel.mu0 / kernel.sd**2 + stats[0, h] / kernel.within**2) / precision
    theta[0, h] = centre + rng.standard_normal() / math.sqrt(precision)


@tally.register
def _tally(kernel: KnownSpread, theta, h, y, stats):
    stats[0, h] += y


@draw_record.register
def _draw_record(kernel: KnownSpread, rng, theta, h):
    return theta[0, h] + kernel.within * rng.standard_normal()


@value.register
def _value(kernel: KnownSpread, y):
    return y


@log_prior.register
def _log_prior(kernel: KnownSpread, theta, h):
    return -0.5 * ((theta[0, h] - kernel.mu0) / kernel.sd) ** 2


@propose.register
def _propose(kernel: KnownSpread, rng, theta, h, count, spread, proposal):
    step = 1.0 / math.sqrt(1.0 / kernel.sd**2 + count / (kernel.within**2 + spread))
    proposal[0, h] = theta[0, h] + step * rng.standard_normal()
    return log_prior(kernel, proposal, h) - log_prior(kernel, theta, h)


# with Gaussian noise


@log_marginal.register
def _log_marginal(channel: GaussianNoise, kernel: KnownSpread, z, theta, h):
    variance = kernel.within**2 + channel.sd**2
    return -0.5 * ((z - theta[0, h]) ** 2 / variance + math.log(2.0 * math.pi * variance))


@fill_marginal.register
def _fill_marginal(channel: GaussianNoise, kernel: KnownSpread, theta, h, z, start, stop, out):
    for i in range(start, stop):
        out[i - start] = math.exp(log_marginal(channel, kernel, z[i], theta, h))


@draw_start.register
def _draw_start(channel: GaussianNoise, kernel: KnownSpread, rng, z):
    return z


@draw_latent.register
def _draw_latent(channel: GaussianNoise, kernel: KnownSpread, rng, z, theta, h):
    share = kernel.within**2 / (kernel.within**2 + channel.sd**2)
    sd = channel.sd * math.sqrt(share)
    return theta[0, h] + share * (z - theta[0, h]) + sd * rng.standard_normal()


@dataclass(frozen=True)
class KnownSpreadFamily(NormalKernel):
    """The same as summaries see it."""

    mu0: float
    sd: float
    within: float

    @classmethod
    def of_constants(cls, constants):
        return cls(constants["base_mu0"], constants["base_sd"], constants["base_within"])

    @property
    def _one(self):
        return stats.norm(self.mu0, math.hypot(self.sd, self.within))

    def atoms(self, parameters):
        mean = parameters["mean"]
        return np.stack([mean, np.full_like(mean, self.within)])

    def theta(self, atoms):
        return atoms[:1]

    def draw(self, rng, size):
        return self.atoms({"mean": rng.normal(self.mu0, self.sd, size)})

    def predictive(self, y):
        return self._one.pdf(y)

    def predictive_cdf(self, y):
        return special.ndtr((y - self.mu0) / math.hypot(self.sd, self.within))

    def predictive_moments(self):
        return self.mu0, self.sd**2 + self.within**2

    def nodes(self):
        return self._one.ppf(levels_of_nodes(1e9, 2001))

    def for_distance(self):
        return self


dpmix.register(
    KnownSpreadMixture,
    kernel=KnownSpread,
    family=KnownSpreadFamily.of_constants,
    layout=Layout("known_spread", "normal", ("mean",), (), ("base_mu0", "base_sd", "base_within")),
)
