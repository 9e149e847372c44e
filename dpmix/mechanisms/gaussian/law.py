"""The law of Gaussian noise on each record (methods, section 2)."""

from __future__ import annotations

from dpmix.mechanisms.laws.additive import Additive

__all__ = ["LAW", "GaussianLaw"]


class GaussianLaw(Additive):
    """z_l = y_l + N(0, s_l^2)."""

    noise_name = "Gaussian noise"
    variance_of_unit = 1.0


LAW = GaussianLaw
