"""What the laws of additive noise share."""

from __future__ import annotations

from typing import ClassVar

from dpmix.mechanisms.laws.law_base import EstimatedMoments, Floats, Law, Scales, of_scale
from dpmix.mechanisms.none.law import additive_moments

__all__ = ["Additive"]


class Additive(Law):
    """z_l = y_l + noise of scale s_l in each column l."""

    additive = True
    on_data_scale = True
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

    def moments(
        self, values: Floats, column: int, n: int, pair: tuple[float, float] | None
    ) -> EstimatedMoments | None:
        """Return mean and variance; see `Law`."""
        return additive_moments(values[:, column], self.variance_of_unit * self.scale[column] ** 2)
