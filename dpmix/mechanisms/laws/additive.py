"""What the laws of additive noise share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from dpmix.mechanisms.laws.law_base import (
    EstimatedMoments,
    Floats,
    Law,
    Observation,
    Scales,
    moments_of_records,
    of_scale,
)
from dpmix.mechanisms.laws.noise_laws import draw_noise

__all__ = ["Additive", "Noisy"]


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

    def scales_of(self, columns: Sequence[int]) -> Floats:
        """Return the scales of the noise on some columns; zeros where there is none."""
        return np.array([self.scale[c] for c in columns]) if self.scale else np.zeros(len(columns))

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return values, or the numbers of rows; see `Law`."""
        scales = self.scales_of(columns)
        if rows:
            channel = self.channel_of_rows(values, scales)
            return Observation(
                np.arange(len(values), dtype=np.float64), channel, values, ("obs", "column"), scales
            )
        z = np.ascontiguousarray(values[:, 0])
        scale = float(scales[0])
        return Observation(z, self.channel(scale), z, ("obs",), scale)

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
    """z_l = y_l + noise of scale s_l in each column l."""

    noise_name: ClassVar[str]
    variance_of_unit: ClassVar[float]

    scale: Scales

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether there are scales for another number of columns."""
        if len(self.scale) != columns:
            return f"has {len(self.scale)} scales for {columns} columns"
        return None

    def done(self, n: int) -> str:
        """Say which noise was added to n records."""
        return f"{self.noise_name}{of_scale(self.scale)} was added to each of {n} records on its own."

    def draw(self, latent: Floats, scale: float | Floats, rng: Generator) -> Floats:
        """Add noise; see `Law`."""
        return latent + draw_noise(self.noise, scale, latent.shape, rng)

    def variance(self, column: int) -> float:
        """Return the variance of the noise on a column."""
        return self.variance_of_unit * self.scale[column] ** 2
