"""The law of Laplace noise on each record (methods, section 2)."""

from __future__ import annotations

from dpmix.mechanisms.laws.additive import Additive

__all__ = ["LAW", "LaplaceLaw"]


class LaplaceLaw(Additive):
    """z_l = y_l + Laplace(s_l)."""

    noise_name = "Laplace noise"
    variance_of_unit = 2.0


LAW = LaplaceLaw
