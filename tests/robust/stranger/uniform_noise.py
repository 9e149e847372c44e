"""A mechanism in one file: uniform noise, which is not private, for its bounds bound the record."""

import math
import random
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

import dpmix
from dpmix.kernels.normal.kernel import MEAN, VARIANCE, NormalNIG
from dpmix.laws.law_base import Law, Observation, OnePair, Positive, Says
from dpmix.mechanisms.channels.channel_functions import (
    draw_latent,
    draw_start,
    fill_marginal,
    hides_records,
    log_marginal,
    noise_density,
    noise_variance,
)
from dpmix.mechanisms.curators.one_column import OneColumn
from dpmix.numerics.jit import njit
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.noise import random_order
from dpmix.spec import fields
from dpmix.spec.mechanism_section import MechanismSection


class UniformNoiseMechanism(MechanismSection):
    """What a spec says of it."""

    released = "records"
    on_data_scale = True
    on_domain = True
    guarantees = False
    statements = (("half_width",),)
    kind: Literal["uniform_noise"]
    half_width: fields.Positive | None = None

    def done(self, grouped):
        return "uniform noise"


class UniformNoiseLaw(Law):
    """z = y + U(-w, w)."""

    capabilities = UniformNoiseMechanism
    domain: OnePair
    half_width: Annotated[Positive, Says("does not state a positive half_width")]

    def observe(self, values, n, columns, *, rows):
        z = np.ascontiguousarray(values[:, 0])
        return Observation(z, UniformNoise(float(self.half_width)), z, ("obs",), math.nan)

    def draw(self, latent, scale, rng):
        return latent + rng.uniform(-self.half_width, self.half_width, latent.shape)

    def done(self, n):
        return (
            f"Uniform noise within {self.half_width:g} was added to each of {n} records: nobody is protected."
        )


@dataclass(frozen=True, kw_only=True)
class UniformNoiseRelease(OneColumn):
    """The curator's side."""

    kind: ClassVar[str] = "uniform_noise"
    half_width: float

    @property
    def guarantee(self):
        return Guarantee(None, None, None)

    def describe(self):
        return self._describe(scale=[], half_width=self.half_width)

    def figures(self):
        return {"half_width": self.half_width}

    def in_words(self, columns):
        return f"uniform noise within {self.half_width:g} on {columns[0]}, which protects nobody"

    def privatize(self, values, columns, progress=None):
        bounded, clamped = self._clamp(values)
        system = random.SystemRandom()
        noise = [system.uniform(-self.half_width, self.half_width) for _ in bounded]
        released = bounded[random_order(len(bounded))] + np.array(noise)
        return self.made(released[:, None], columns, len(released), private=True, order="shuffled"), clamped

    def simulate(self, values, columns, rng):
        bounded, clamped = self._clamp(values)
        released = bounded + rng.uniform(-self.half_width, self.half_width, bounded.shape)
        return self.made(released[:, None], columns, len(released), private=False, order="public"), clamped


class Curator:
    """From a section to what releases, and to what a release made elsewhere states."""

    @staticmethod
    def make(section, records):
        return UniformNoiseRelease(
            domain=section.domain,
            half_width=section.half_width,
            calibration="half_width",
            requested={"half_width": section.half_width},
        )

    @staticmethod
    def stated(section, records):
        return {"scale": [], "half_width": section.half_width}, Guarantee(None, None, None)


class UniformNoise(NamedTuple):
    """The analyst's side: z | y ~ U(y - w, y + w)."""

    half_width: float


@njit
def below(x):
    """Return Pr(N(0, 1) < x)."""
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


hides_records(UniformNoise)


@noise_variance.register
def _noise_variance(channel: UniformNoise):
    return channel.half_width * channel.half_width / 3.0


@noise_density.register
def _noise_density(channel: UniformNoise, z, y):
    return 0.5 / channel.half_width if abs(z - y) < channel.half_width else 0.0


@log_marginal.register
def _log_marginal(channel: UniformNoise, kernel: NormalNIG, z, theta, h):
    w, sd = channel.half_width, math.sqrt(theta[VARIANCE, h])
    t = -abs(z - theta[MEAN, h])  # the left tail keeps its digits
    return math.log(max((below((t + w) / sd) - below((t - w) / sd)) / (2.0 * w), 1e-300))


@fill_marginal.register
def _fill_marginal(channel: UniformNoise, kernel: NormalNIG, theta, h, z, start, stop, out):
    for i in range(start, stop):
        out[i - start] = math.exp(log_marginal(channel, kernel, z[i], theta, h))


@draw_start.register
def _draw_start(channel: UniformNoise, kernel: NormalNIG, rng, z):
    return z


@draw_latent.register
def _draw_latent(channel: UniformNoise, kernel: NormalNIG, rng, z, theta, h):
    w, mean = channel.half_width, theta[MEAN, h]
    nearest = min(max(mean, z - w), z + w) - mean
    while True:  # by rejection from what the noise allows
        y = z - w + 2.0 * w * rng.random()
        gap = y - mean
        if 2.0 * theta[VARIANCE, h] * rng.standard_exponential() > gap * gap - nearest * nearest:
            return y


dpmix.register(UniformNoiseMechanism, law=UniformNoiseLaw, curator=Curator, channel=UniformNoise)
