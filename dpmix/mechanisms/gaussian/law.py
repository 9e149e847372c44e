"""The law of Gaussian noise on each record (methods, section 2)."""

from __future__ import annotations

from typing import Any

from dpmix.mechanisms.gaussian.section import GaussianMechanism
from dpmix.mechanisms.laws.additive import Noisy
from dpmix.mechanisms.laws.law_base import Floats

__all__ = ["LAW", "GaussianLaw"]


class GaussianLaw(Noisy):
    """z_l = y_l + N(0, s_l^2)."""

    capabilities = GaussianMechanism
    noise = "gaussian"
    noise_name = "Gaussian noise"
    variance_of_unit = 1.0

    def channel(self, scale: float) -> Any:
        """Return the channel of one column."""
        from dpmix.mechanisms.channels.every import GaussianNoise

        return GaussianNoise(scale)

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the channel of rows."""
        from dpmix.mechanisms.channels.every import GaussianRows

        return GaussianRows(values, scales**2)


LAW = GaussianLaw
