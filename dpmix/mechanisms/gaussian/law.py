"""The law of Gaussian noise on each record (methods, section 2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmix.laws.additive import Noisy
from dpmix.laws.transitions import MatrixTransition, Transition, additive_matrix
from dpmix.mechanisms.gaussian.section import GaussianMechanism

if TYPE_CHECKING:
    from dpmix.laws.law_base import Floats, Ints

_TOP = 1.0 / math.sqrt(2.0 * math.pi)
_FAR = 40.0  # standard deviations beyond which nothing is left


class GaussianLaw(Noisy):
    """z_l = y_l + N(0, s_l^2)."""

    capabilities = GaussianMechanism
    noise = "gaussian"
    noise_name = "Gaussian noise"
    variance_of_unit = 1.0
    fourth_of_unit = 3.0
    reach = 8.0

    def channel(self, scale: float) -> Any:
        """Return the channel of one column."""
        from dpmix.mechanisms.gaussian.channel import GaussianNoise

        return GaussianNoise(scale)

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the channel of rows."""
        from dpmix.mechanisms.channels.rows import GaussianRows

        return GaussianRows(values, scales**2)

    def log_noise(self, t: Floats, scale: float) -> Floats:
        """Return log exp(-t^2/2)/(s sqrt(2 pi))."""
        return np.asarray(-0.5 * t**2 - 0.5 * math.log(2.0 * math.pi) - math.log(scale))

    def steepness(self, far: float, scale: float) -> float:
        """Return far/s^2."""
        return far / scale**2

    def noise_cdf(self, t: Floats) -> Floats:
        """Return Pr(noise < t); see `Law`."""
        from scipy.special import ndtr  # late: laws start without SciPy

        return np.asarray(ndtr(t))

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`."""
        from scipy.special import ndtr  # late: laws start without SciPy

        def tail(t: Floats) -> Floats:
            u = np.minimum(t / scale, _FAR)
            return np.asarray(scale * (_TOP * np.exp(-0.5 * u * u) - u * ndtr(-u)))

        return MatrixTransition(additive_matrix(tail, cells, edges, chosen))


LAW = GaussianLaw
