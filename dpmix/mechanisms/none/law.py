"""The law of no mechanism: values as they are."""

from __future__ import annotations

import numpy as np

from dpmix.mechanisms.laws.law_base import EstimatedMoments, Floats, Law, moments_of_records

__all__ = ["LAW", "NoLaw", "additive_moments"]


class NoLaw(Law):
    """z = y."""

    additive = True
    on_data_scale = True

    def done(self, n: int) -> str:
        """Say that nothing was done."""
        return f"No noise was added: this is a fit to the {n} values themselves, and it is not private."

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return mean and variance; see `Law`."""
        return additive_moments(values[:, column], 0.0)


def additive_moments(z: Floats, noise: float) -> EstimatedMoments:
    """Return the moments of y given z = y + noise of this variance."""
    middle = float(np.mean(z))  # squares of large numbers would lose what is looked for
    return moments_of_records(z - middle, (z - middle) ** 2 - noise).moved(middle, 1.0)


LAW = NoLaw
