"""The law of Laplace noise on each record (methods, section 2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.laws.additive import Noisy
from dpmix.laws.transitions import MatrixTransition, Transition, additive_matrix
from dpmix.mechanisms.laplace.section import LaplaceMechanism

if TYPE_CHECKING:
    from dpmix.laws.law_base import Floats, Ints


class LaplaceLaw(Noisy):
    """z_l = y_l + Laplace(s_l)."""

    capabilities = LaplaceMechanism
    noise = "laplace"
    noise_name = "Laplace noise"
    variance_of_unit = 2.0
    fourth_of_unit = 24.0
    reach = 25.0

    def channel(self, scale: float) -> Any:
        """Return the channel of one column."""
        from dpmix.mechanisms.laplace.channel import LaplaceNoise

        return LaplaceNoise(scale)

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the channel of rows."""
        from dpmix.mechanisms.channels.rows import laplace_rows

        return laplace_rows(values, scales)

    def log_noise(self, t: Floats, scale: float) -> Floats:
        """Return log exp(-|t|)/(2 s)."""
        return np.asarray(-t - math.log(2.0 * scale))

    def steepness(self, far: float, scale: float) -> float:
        """Return 1/s, everywhere."""
        return 1.0 / scale

    def noise_cdf(self, t: Floats) -> Floats:
        """Return Pr(noise < t); see `Law`."""
        tail = 0.5 * np.exp(-np.abs(t))
        return np.asarray(np.where(t < 0.0, tail, 1.0 - tail))

    def log_marginal(self, z: Floats, mean: Floats, sd: Floats, scale: float) -> Floats:
        """Return log densities of normal records: two tilted tails, by the scaled error function."""
        from scipy.special import erfcx  # late: laws start without SciPy

        t, r = np.abs(z - mean) / sd, sd / scale
        gap = r - t
        far, near = erfcx(math.sqrt(0.5) * (r + t)), erfcx(math.sqrt(0.5) * np.abs(gap))
        inside = -0.5 * t * t + np.log(near + far) - math.log(4.0 * scale)
        correction = 0.5 * np.exp(-0.5 * gap * gap) * (far - near)
        beyond = r * (0.5 * r - t) + np.log1p(np.where(gap < 0.0, correction, 0.0)) - math.log(2.0 * scale)
        return np.asarray(np.where(gap >= 0.0, inside, beyond))

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`."""

        def tail(t: Floats) -> Floats:
            return np.asarray(0.5 * scale * np.exp(-np.abs(t) / scale) + np.maximum(-t, 0.0))

        return MatrixTransition(additive_matrix(tail, cells, edges, chosen))

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Whether records stay within the bounds that the noise is for."""
        return on_domain


LAW = LaplaceLaw
