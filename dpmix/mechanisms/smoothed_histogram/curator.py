"""Draws from the smoothed histogram of the whole sample (methods, section 3; Wasserman and Zhou 2010)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.curators.mechanism import (
    SMALLEST_WEIGHT,
    TWICE_EPSILON,
    Floats,
    Loss,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    smoothing_of_twice_epsilon,
)
from dpmix.mechanisms.curators.one_column import OneColumn, checked_edges
from dpmix.mechanisms.curators.private_groups import by_groups, count_of, groups_stated, with_groups
from dpmix.numerics.equal_cells import cell_of
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import Source, bernoulli, digits, expm1, integers, log1p, round_up, source_of
from dpmix.privacy.near_outputs import near_rho
from dpmix.spec.capabilities import counted

if TYPE_CHECKING:
    from dpmix.mechanisms.smoothed_histogram.section import SmoothedHistogramMechanism

_GRID = 2**52


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogram(OneColumn):
    """Release k draws from f(x) = (1-w) m c_j/n + w on bin j of m equal bins of [0, 1], c_j of n records.

    Replacing a record changes the probability of a draw by a factor of at most 1 + (1-w) m/(w n), attained
    by a bin that is empty otherwise: eps = k log(1 + (1-w) m/(w n)), and the smallest weight that gives eps
    is w = m/(m + n (e^(eps/k) - 1)). rho, of k independent draws, is exact; see `smoothed_guarantee`.

    The weight is a double, rounded up. A draw is, with probability w exactly, of any bin, and else of the
    bin of any record; its place in the bin is drawn without looking at the data.

    With groups whose sizes are private a draw is of one of G m pairs of group and bin, which take the place
    of the m bins above: a record that changes its group moves from one cell to another, too. Draws are then
    released as place and code of group.
    """

    kind: ClassVar[str] = "smoothed_histogram"
    bins: int
    draws: int
    n: int
    weight: float

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the weight that is used, rounded up."""
        found = smoothed_guarantee(self.cells, self.draws, self.n, self.weight)
        return with_groups(found, self.groups)

    @property
    def cells(self) -> int:
        """Number of cells that a draw is of."""
        return self.bins * count_of(self.groups)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return self._describe(scale=[], bins=self.bins, draws=self.draws, weight=self.weight)

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        found: dict[str, Any] = {"weight": self.weight, "bins": self.bins, "draws": self.draws, "n": self.n}
        return found if self.groups is None else found | groups_stated(self.groups) | {"cells": self.cells}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say what is released."""
        bins = f"{counted(self.bins, 'bin')}{by_groups(self.groups)}"
        return (
            f"sampling noise: {counted(self.draws, 'draw')} from the histogram of {columns[0]} in {bins}, "
            f"smoothed with weight {self.weight:.6g}"
        )

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        drawn, clamped = self.draw(values, source_of(rng))
        return self._release(drawn, columns, self.n, rng), clamped

    def names(self, column: str) -> tuple[str, ...]:
        """Return the names of the columns of the release."""
        return (column,) if self.groups is None else (column, self.groups.name)

    def draw(self, values: Floats, source: Source) -> tuple[Floats, tuple[int, ...]]:
        """Return draws, shape (k, 1) or with codes of groups (k, 2), and how many values were clamped."""
        if len(values) != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {len(values)}")
        edges = checked_edges(self.kind, self.domain[0], self.bins)
        cells, clamped = self._cells(values, self.bins)
        group, chosen = np.divmod(draw_cells(cells, self.cells, self.weight, self.draws, source), self.bins)
        left, right = edges[chosen], edges[chosen + 1]
        place = (integers(_GRID, self.draws, source) + 0.5) / _GRID
        inside = np.nextafter(right, -np.inf)
        drawn: Floats = np.clip(left + place * (right - left), left, inside)
        return (drawn[:, None] if self.groups is None else np.column_stack([drawn, group])), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of all draws; see `Mechanism`."""
        logs = [
            np.log(
                (1 - self.weight) * np.bincount(self._cells(x, self.bins)[0], minlength=self.cells) / self.n
                + self.weight / self.cells
            )
            for x in (one, other)
        ]
        each = logs[0] - logs[1]
        edges = checked_edges(self.kind, self.domain[0], self.bins)
        k, width = self.draws, 1 if self.groups is None else 2

        def loss(releases: Floats) -> Floats:
            drawn = releases[:, : k * width].reshape(len(releases), k, width)
            found = cell_of(drawn[:, :, 0], edges)
            if width == 2:
                found = found + self.bins * drawn[:, :, 1].astype(np.int64)
            return np.asarray(each[found].sum(axis=1))

        return loss

    def weakened(self) -> tuple[str, Self] | None:
        """Return it with less smoothing; see `Mechanism`."""
        weight = smoothing_of_twice_epsilon(self.cells, self.n, self.weight)
        return None if weight is None else (TWICE_EPSILON, replace(self, weight=weight))


def draw_cells(
    cells: NDArray[np.int64], bins: int, weight: float, draws: int, source: Source
) -> NDArray[np.int64]:
    """Draw bins (draws,) of a smoothed histogram, exactly: any with probability `weight`, else a record's.

    `cells` (n,) are the bins of the records.
    """
    of_records = cells[integers(len(cells), draws, source)]
    uniform = bernoulli(weight.as_integer_ratio(), draws, source)
    return np.where(uniform, integers(bins, draws, source), of_records)


def smoothed_guarantee(
    bins: int, draws: int, n: int, weight: float, possible: int | None = None
) -> Guarantee:
    """Return the guarantee of a smoothing weight: eps and rho exactly, rounded up.

    A record that moves changes the probabilities of two cells, p to p - (1 - w)/n and q to q + (1 - w)/n. Of
    p^a (p - h)^(1 - a), less its tangent at h = 0, the most is where p is least (a convex f has
    f(t) - (t - 1) f'(t) <= f(1)), and of the other, too: a record that is alone in its cell goes to an empty
    one, w/m to w/m + (1 - w)/n and back, which `near_rho` is of.

    Where draws are given that they fall into some `possible` of the cells, the two probabilities are larger
    the fewer records lie in these: the most is where the record is alone there, b/(1 + m' b) to
    (1 + b)/(1 + m' b) and back, b = w n/((1 - w) m). One that leaves the possible cells changes the law to
    the mean of the laws with the record in each of them, weighed by itself, which is no farther than the
    farthest of these (divergences are quasi-convex).
    """
    if weight == 1:
        return Guarantee(0.0, 0.0, 0.0, "global")
    with localcontext(digits()):
        each = log1p((1 - Decimal(weight)) * bins / (Decimal(weight) * n))
        epsilon = round_up(draws * each)
        loss = round_up(each)
        share = math.nextafter(weight / bins, 1.0)
        if possible is not None and possible < bins:
            b = Decimal(weight) * n / ((1 - Decimal(weight)) * bins)
            share = round_up(b / (1 + max(possible, 2) * b))
    rho = near_rho(loss, share)
    return Guarantee(epsilon, 0.0, math.nextafter(draws * rho, math.inf), "global")


def weight_of(spec: SmoothedHistogramMechanism, n: int | None, groups: int = 1) -> tuple[float, int]:
    """Return the weight of a spec, rounded up, and the number of records.

    Each group has ``spec.bins`` cells; `n` is in place of ``spec.n``.

    Raises
    ------
    SpecError
        When the number of records is not known.
    """
    records = spec.n if n is None else n
    if records is None:
        raise SpecError(
            "mechanism.n: missing; the guarantee of a smoothed_histogram depends on the number of records"
        )
    if spec.weight is not None:
        return spec.weight, records
    assert spec.epsilon is not None  # the spec states one of the two
    cells = groups * spec.bins
    with localcontext(digits()):
        each = min(Decimal(spec.epsilon) / spec.draws, Decimal(2000))
        weight = round_up(Decimal(cells) / (cells + records * expm1(each)))
    weight = min(max(weight, SMALLEST_WEIGHT), 1.0)
    while (smoothed_guarantee(cells, spec.draws, records, weight).epsilon or 0.0) > spec.epsilon:
        weight = math.nextafter(weight, 2.0)
    return weight, records


def make(spec: SmoothedHistogramMechanism, records: PublicRecords) -> SmoothedHistogram:
    """Calibrate to a spec's epsilon or weight; the recorded guarantee never exceeds what was asked.

    Raises
    ------
    SpecError
        When the number of records is not known.
    """
    groups = records.groups
    assert spec.domain is not None  # checked
    weight, n = weight_of(spec, records.n, count_of(groups))
    return SmoothedHistogram(
        domain=spec.domain,
        calibration="exact" if spec.weight is None else "weight",
        requested=spec.requested(),
        bins=spec.bins,
        draws=spec.draws,
        n=n,
        weight=weight,
        groups=groups,
    )


def stated(spec: SmoothedHistogramMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula.

    Raises
    ------
    SpecError
        When the number of records is not known.
    """
    groups = records.groups
    count = count_of(groups)
    weight, n = weight_of(spec, records.n, count)
    own = {"bins": spec.bins, "draws": spec.draws, "weight": weight, "scale": []} | groups_stated(groups)
    return own, with_groups(smoothed_guarantee(count * spec.bins, spec.draws, n, weight), groups)
