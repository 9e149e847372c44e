"""Laws of releases that are of all records together: noisy statistics, and histograms.

A statistic has noise on each of its numbers. With groups whose sizes are private it holds sizes beside
centred sums (methods, section 16). A histogram has its counts with noise, or numbers of draws made of them
(methods, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.random import Generator
from pydantic import Field, Strict

from dpmix.laws.law_base import (
    Floats,
    Labels,
    Law,
    Observation,
    OnePair,
    Says,
    Whole,
    is_number,
)
from dpmix.numerics.equal_cells import equal_edges, halfway
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


# Histograms of the records


class HistogramLaw(Law):
    """A release that depends on the records through their counts in equal bins, in each group if any.

    Where the values of the column are `whole_numbers`, as its curator says beforehand, a bin is what it holds
    of them.
    """

    clamps = True
    bins: Annotated[Whole, Field(ge=1), Says("does not state its bins, a whole number of at least 1")]
    domain: OnePair
    whole_numbers: Annotated[
        bool, Strict(), Says("does not state whether values are whole numbers, true or false")
    ] = False

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on counts; NaN where draws are released."""
        raise NotImplementedError

    def likelihood(self, values: Floats, n: int) -> Any:
        """Return the log-likelihoods of the numbers of n records in the bins, given what was released.

        With m bins in each of G groups there are G m cells, that of bin j in group g being g m + j
        (`dpmix.mechanisms.channels.count_likelihoods`).
        """
        raise NotImplementedError

    def channel(self, values: Floats, n: int) -> Any:
        """Return the compiled channel of released values (rows, 1) of n records, of one group."""
        raise NotImplementedError

    def draw_from_counts(self, counts: Floats, rng: Generator) -> Floats:
        """Draw what is released of counts (bins,), in floating point: noisy counts, or numbers of draws."""
        raise NotImplementedError

    def covariance(self, shares: Floats, n: int) -> tuple[float, Floats]:
        """Return what the bins' shares are multiplied by in what is released, and its covariance."""
        raise NotImplementedError

    def bin_edges(self) -> Floats:
        """Return the edges of the bins, in the units of the data."""
        return equal_edges(self.domain[0], self.bins)

    def edges(self) -> Floats:
        """Return the edges between which a fit takes the records of a bin to lie.

        These are the bins' own. Whole numbers stand for all that rounds to them, so that inner edges are
        halfway between the last one of a bin and the first of the next: of bins of 1.25 from 0 on, 1.5, 2.5,
        3.5, 4.5, 6.5. Where a bin holds none they are the bins' own all the same (`uneven`).
        """
        return self._halfway() if self.whole_numbers and not self.uneven else self.bin_edges()

    @property
    def uneven(self) -> bool:
        """Whether values are whole numbers, and a bin holds none of them."""
        return self.whole_numbers and not (np.diff(self._halfway()) > 0.0).all()

    def _halfway(self) -> Floats:
        return halfway(self.bin_edges())

    def observe(self, values: Floats, n: int, columns: Sequence[int], *, rows: bool) -> Observation:
        """Return the numbers of the records; see `Law`."""
        channel, column = self.channel(values, n), values[:, 0]
        return Observation(np.arange(n, dtype=np.float64), channel, column, ("released",), self.noise_scale)
