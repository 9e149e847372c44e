"""Noise as laws state it: what it is called, its variance and draws, and the laws that add it to each record.

Four kinds of noise are added to numbers. Laplace noise of scale s has density exp(-|e|/s)/(2 s), two-sided
geometric noise Pr(e) proportional to exp(-|e|/s); Gaussian noise has standard deviation s, discrete Gaussian
noise Pr(e) proportional to exp(-e^2/(2 s^2)). Records carry Laplace or Gaussian noise (methods,
section 2), counts and sums any of the four.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from dpmix.laws.law_base import (
    EstimatedMoments,
    Floats,
    Law,
    Observation,
    Scales,
    each_of,
    moments_of_records,
    of_scale,
)
from dpmix.laws.transitions import FINE, TableLikelihood, information_of_outputs
from dpmix.numerics import discrete_gaussian

_CELLS = 1_024  # of the public bounds, for likelihoods
_CLOSE = 0.05  # of log densities, how far from exact at worst, at the end of a cell
_MOST_OUTPUTS = 8_192

# Noise by its name

NOISES = ("laplace", "gaussian", "geometric", "discrete_gaussian")
WHOLE = ("geometric", "discrete_gaussian")
"""Noise that keeps counts whole numbers."""
_NAMES = {
    "laplace": "Laplace noise",
    "gaussian": "Gaussian noise",
    "geometric": "two-sided geometric noise",
    "discrete_gaussian": "discrete Gaussian noise",
}


def noise_name(noise: str | None) -> str:
    """Return what a noise is called within a sentence."""
    return _NAMES.get(str(noise), "noise")


def noise_of_scale(noise: str) -> str:
    """Return "Laplace noise of scale", before a number: of Gaussian noise it is a standard deviation."""
    measures = {"gaussian": "standard deviation", "discrete_gaussian": "sigma"}
    return f"{noise_name(noise)} of {measures.get(noise, 'scale')}"


def noise_added(noise: str, scale: Sequence[float]) -> str:
    """Return "Laplace noise of scale 2 was added to", as a sentence begins."""
    name = noise_name(noise)
    return f"{name[0].upper()}{name[1:]}{of_scale(scale)} was added to"


def noise_variance(noise: str, scale: float) -> float:
    """Return the variance of Laplace, Gaussian, two-sided geometric or discrete Gaussian noise of a scale."""
    if noise == "laplace":
        return 2.0 * scale**2
    if noise == "geometric":  # with q = exp(-1/s): 2 q/(1 - q)^2
        half = 0.5 / scale
        return 0.5 / math.sinh(half) ** 2 if half < 350.0 else 0.0  # beyond it is below 1e-303
    return discrete_gaussian.variance(scale) if noise == "discrete_gaussian" else scale**2


def noise_sd(noise: str, scale: float) -> float:
    """Return the standard deviation of noise of a scale; see `noise_variance`."""
    return math.sqrt(noise_variance(noise, scale))


def draw_noise(kind: str, scale: float | Floats, shape: int | tuple[int, ...], rng: Generator) -> Floats:
    """Draw noise of a scale in floating point, for what is never released; discrete Gaussian of a float."""
    if kind == "laplace":
        return np.asarray(scale * (rng.standard_exponential(shape) - rng.standard_exponential(shape)))
    if kind == "gaussian":
        return np.asarray(scale * rng.standard_normal(shape))
    if kind == "geometric":
        up, down = (np.floor(scale * rng.standard_exponential(shape)) for _ in range(2))
        return np.asarray(up - down)
    if kind == "discrete_gaussian":
        return discrete_gaussian.draw(float(scale), shape, rng)
    raise ValueError(f"no noise is called {kind!r}")


def mean_of_laplace(n: int, scale: float, size: int, rng: Generator) -> Floats:
    """Draw means of n independent Laplace variates, shape (size,): differences of gamma variates."""
    return np.asarray(scale * (rng.standard_gamma(n, size) - rng.standard_gamma(n, size)) / n)


# Laws of records that carry noise, or none


class Additive(Law):
    """z_l = y_l + what is added, which may be nothing, in each column l.

    Attributes
    ----------
    noise : str
        ``"laplace"`` or ``"gaussian"``; ``"none"`` where nothing is added.
    """

    noise: ClassVar[str]

    def channel(self, scale: float) -> Any:
        """Return the compiled channel of one column."""
        raise NotImplementedError

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the compiled channel of rows (n, columns)."""
        raise NotImplementedError

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return values, or the numbers of rows; see `Law`."""
        scales = np.array([self.scale[c] for c in columns]) if self.scale else np.zeros(len(columns))
        if rows:
            channel = self.channel_of_rows(values, scales)
            return Observation(
                np.arange(len(values), dtype=np.float64), channel, values, ("obs", "column"), scales
            )
        z = np.ascontiguousarray(values[:, 0])
        scale = float(scales[0])
        return Observation(z, self.channel(scale), z, ("obs",), scale)

    def log_marginal(self, z: Floats, mean: Floats, sd: Floats, scale: float) -> Floats:
        """Return log densities of normal records: here with the variance of normal noise added, if any."""
        wide = np.sqrt(sd**2 + scale**2)
        return np.asarray(-0.5 * ((z - mean) / wide) ** 2 - np.log(wide) - 0.5 * math.log(2.0 * math.pi))

    def variance(self, column: int) -> float:
        """Return the variance of the noise on a column."""
        return 0.0

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return mean and variance; see `Law`."""
        z = values[:, column]
        middle = float(np.mean(z))  # squares of large numbers would lose what is looked for
        return moments_of_records(z - middle, (z - middle) ** 2 - self.variance(column)).moved(middle, 1.0)


class Noisy(Additive):
    """z_l = y_l + noise of scale s_l in each column l.

    Attributes
    ----------
    variance_of_unit : float
        Variance of the noise of scale 1.
    fourth_of_unit : float
        Fourth moment of the noise of scale 1; NaN where it is not known.
    reach : float
        Scales beyond which hardly any noise lies.
    """

    variance_of_unit: ClassVar[float]
    fourth_of_unit: ClassVar[float] = math.nan
    reach: ClassVar[float]

    scale: Scales

    def log_noise(self, t: Floats, scale: float) -> Floats:
        """Return the log density of noise that is `t` scales from 0."""
        raise NotImplementedError

    def steepness(self, far: float, scale: float) -> float:
        """Return how fast that log density falls at `far` from 0, in the units of the data."""
        raise NotImplementedError

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether there are scales for another number of columns."""
        if len(self.scale) != columns:
            return f"has {len(self.scale)} scales for {columns} columns"
        return None

    def done(self, n: int) -> str:
        """Say which noise was added to n records."""
        return f"{self.noise_name}{of_scale(self.scale)} was added to {each_of(n)} on its own."

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Add noise; see `Law`."""
        return latent + draw_noise(self.noise, scale, latent.shape, rng)

    def hidden_sd(self, records: float, scale: float) -> float:
        """Return the sd up to which a group of so many records is hardly told from records at one value.

        Their variance is then below two standard errors of the estimate that the moments of z give of it,
        which are the root of the variance of the squared noise over the number of records.
        """
        of_square = (self.fourth_of_unit - self.variance_of_unit**2) * scale**4
        return math.sqrt(2.0 * math.sqrt(of_square / records))

    @property
    def blur(self) -> float:
        """Scale of the noise on the first column."""
        return self.scale[0]

    def cell_likelihood(self, values: Floats, scale: float) -> TableLikelihood:
        """Return the densities at the middles of cells; see `Law`."""
        assert self.domain is not None  # of all but some with kernels on the line
        (low, high), z = self.domain[0], values.ravel()
        far = np.abs(np.concatenate([z - low, high - z])).max()
        if self.steepness(far, scale) * (high - low) / (2.0 * _CELLS) > _CLOSE:
            raise ValueError("the noise is too narrow for a sum over cells")
        edges = np.linspace(low, high, _CELLS + 1)
        apart = np.abs(z[:, None] - 0.5 * (edges[1:] + edges[:-1])) / scale
        return TableLikelihood.of_logs(edges[1:-1], self.log_noise(apart, scale))

    def information(self, places: Floats, weights: Floats, shares: Floats, n: int) -> Floats:
        """Return the information of numbers in fine cells; see `Law`."""
        scale, reach = self.scale[0], self.reach * self.scale[0]
        low, high = places.min() - reach, places.max() + reach
        cells = int(min(math.ceil((high - low) / scale * FINE), _MOST_OUTPUTS))
        edges = np.linspace(low, high, cells + 1)[1:-1]
        table = np.zeros((cells, len(places)))
        for k, weight in enumerate(weights):
            below = self.noise_cdf((edges[:, None] - places[None, :, k]) / scale)
            table += weight * np.diff(below, axis=0, prepend=0.0, append=1.0)
        return information_of_outputs(table, shares, n)

    def variance(self, column: int) -> float:
        """Return the variance of the noise on a column."""
        return self.variance_of_unit * self.scale[column] ** 2
