"""What the laws of noisy sums of groups share: sizes beside centred sums (methods, section 16)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmix.mechanisms.laws.law_base import Floats, counted
from dpmix.mechanisms.laws.statistic_laws import Statistic, far_beyond

__all__ = ["SumsOfGroups", "is_number"]


class SumsOfGroups(Statistic):
    """A statistic of means, or of noisy sizes and sums of groups.

    With groups, the G - 1 first numbers are sizes, with noise of scale s/kappa, and the others sums of
    numbers less their centre, with noise of scale s.
    """

    kappa: Any = None
    centre: Any = None

    @property
    def entries(self) -> int:
        """Number of entries of a record's statistic."""
        raise NotImplementedError

    @property
    def range_of_entry(self) -> tuple[float, float]:
        """Least and most of each entry of a record."""
        raise NotImplementedError

    def _length_of_groups(self) -> tuple[int, str]:
        count = len(self.group_names)
        why = f"the sizes of {count} groups but the last, and {counted(self.entries, 'sum')} of each,"
        return count - 1 + count * self.entries, why

    def _warning_of_groups(self, values: Floats, n: int) -> str | None:
        count = len(self.group_names)
        centre = np.broadcast_to(np.asarray(self.centre, dtype=np.float64), (self.entries,))
        low, high = self.range_of_entry
        least = np.concatenate([np.zeros(count - 1), np.tile(np.minimum(n * (low - centre), 0.0), count)])
        most = np.concatenate(
            [np.full(count - 1, float(n)), np.tile(np.maximum(n * (high - centre), 0.0), count)]
        )
        scale = np.repeat(np.asarray(self.scale, dtype=np.float64), (count - 1, count * self.entries))
        return far_beyond(values, n, least[:, None], most[:, None], scale[:, None])

    def _check_kappa(self) -> None:
        if not is_number(self.kappa) or not self.kappa > 0:
            raise ValueError("does not state its kappa, a positive number")

    def _check_two_scales(self) -> None:
        if len(self.scale) != 2:
            raise ValueError("does not state two noise scales, of the groups' sizes and of their sums")
        if not math.isclose(self.kappa * self.scale[0], self.scale[1], rel_tol=1e-9):
            raise ValueError("states a kappa that is not the noise scale of the sums by that of the sizes")

    def _done_by_groups(self, sums: str, n: int) -> str:
        assert self.groups is not None
        column, names = next(iter(self.groups.items()))
        of_sizes, of_sums = self.scale
        return (
            f"Laplace noise of scale {of_sums:.4g} was added to the {sums} of {n} records by {column} "
            f"({', '.join(names)}), and of scale {of_sizes:.4g} to the sizes of these groups, which were "
            "released for all of them together; how many records a group has is private."
        )


def is_number(value: Any) -> bool:
    """Whether JSON's value is a number that a double can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 10**300
