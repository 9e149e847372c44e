"""Laws of noisy statistics of all records together.

With groups whose sizes are private a statistic holds sizes beside centred sums (methods, section 16).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpmix.laws.law_base import (
    Floats,
    Labels,
    Law,
    is_number,
)
from dpmix.numerics.in_words import brief
from dpmix.spec.capabilities import counted

_FAR = 30  # scales of noise: Laplace noise goes further with probability 1e-13

# Statistics with noise on each number


class Statistic(Law):
    """One column of numbers: a statistic of the sample, of several columns together, with noise on each."""

    def length(self) -> tuple[int, str]:
        """Return how many numbers a release has, and what gives that many."""
        raise NotImplementedError

    def problem(self, values: Floats, labels: Labels = ()) -> str | None:
        """Say whether the statistic has another length than its description gives."""
        rows, columns = values.shape
        if columns != 1:
            return f"has {columns} columns, but a {self.kind} release has one, of the whole statistic"
        wanted, why = self.length()
        return None if rows == wanted else f"has {counted(rows, 'number')}, but {why} give {wanted}"


def far_beyond(
    values: Floats, n: int, least: Floats | float, most: Floats | float, scale: Floats | float
) -> str | None:
    """Say how many values (rows, 1) n records and their noise cannot reach: a wrong n, order or scale.

    `least` and `most` are what records alone give, numbers or arrays (rows, 1) as is the `scale` of the
    noise.
    """
    beyond = np.maximum(values - most, least - values) > _FAR * scale
    if not beyond.any():
        return None
    verb = "is" if beyond.sum() == 1 else "are"
    return (
        f"{int(beyond.sum())} of {counted(values.size, 'number')} {verb} more than {_FAR} noise scales "
        f"beyond what {counted(n, 'record')} can give: check n, the order, and the scale or epsilon"
    )


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
        (of_sizes, of_sums), (by, private) = self.scale, self.by_groups
        return (
            f"Laplace noise of scale {brief(of_sums, 4)} was added to the {sums} of {n} records{by}, and of "
            f"scale {brief(of_sizes, 4)} to the sizes of these groups, which were released for all of them "
            f"together{private}."
        )
