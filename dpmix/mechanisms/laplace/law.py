"""The law of Laplace noise on each record (methods, section 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmix.mechanisms.laplace.section import LaplaceMechanism
from dpmix.mechanisms.laws.additive import Noisy
from dpmix.mechanisms.laws.law_base import Floats, Ints
from dpmix.mechanisms.laws.transitions import MatrixTransition, Transition, additive_matrix

__all__ = ["LAW", "LaplaceLaw"]


class LaplaceLaw(Noisy):
    """z_l = y_l + Laplace(s_l)."""

    capabilities = LaplaceMechanism
    noise = "laplace"
    noise_name = "Laplace noise"
    variance_of_unit = 2.0

    def channel(self, scale: float) -> Any:
        """Return the channel of one column."""
        from dpmix.mechanisms.channels.all_channels import LaplaceNoise

        return LaplaceNoise(scale)

    def channel_of_rows(self, values: Floats, scales: Floats) -> Any:
        """Return the channel of rows."""
        from dpmix.mechanisms.channels.all_channels import laplace_rows

        return laplace_rows(values, scales)

    def transition(self, cells: Floats, edges: Floats, chosen: Ints, scale: float) -> Transition:
        """Return the transition of cells; see `Law`."""

        def tail(t: Floats) -> Floats:
            return np.asarray(0.5 * scale * np.exp(-np.abs(t) / scale) + np.maximum(-t, 0.0))

        return MatrixTransition(additive_matrix(tail, cells, edges, chosen))

    def bounds_acceptance(self, on_domain: bool) -> bool:
        """Whether records stay within the bounds that the noise is for."""
        return on_domain


LAW = LaplaceLaw
