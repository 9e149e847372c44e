"""Draws from the smoothed histogram of the whole sample (methods, section 3; Wasserman and Zhou 2010)."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.base import Pairs, Progress
from dpmix.mechanisms.one_column import OneColumn, checked_edges
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.exact import Source, bernoulli, digits, expm1, integers, log1p, round_up
from dpmix.release import Release, cell_of
from dpmix.spec.mechanism import SmoothedHistogramMechanism

_GRID = 2**52


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogram(OneColumn):
    """Release k draws from f(x) = (1-w) m c_j/n + w on bin j of m equal bins of [0, 1], c_j of n records.

    Replacing a record changes the probability of a draw by a factor of at most 1 + (1-w) m/(w n), attained
    by a bin that is empty otherwise: eps = k log(1 + (1-w) m/(w n)), and the smallest weight that gives eps
    is w = m/(m + n (e^(eps/k) - 1)). Each draw costs eps/k, so that rho = eps tanh(eps/(2 k)) is valid.

    The weight is a double, rounded up. A draw is, with probability w exactly, of any bin, and else of the
    bin of any record; its place in the bin is drawn without looking at the data.
    """

    kind: ClassVar[str] = "smoothed_histogram"
    bins: int
    draws: int
    n: int
    weight: float

    @classmethod
    def from_spec(
        cls, spec: SmoothedHistogramMechanism, domain: Pairs, n: int | None = None
    ) -> SmoothedHistogram:
        """Calibrate to a spec's epsilon or weight; the recorded guarantee never exceeds what was asked.

        Parameters
        ----------
        spec : SmoothedHistogramMechanism
            Checked.
        domain : tuple of one (lo, hi)
            Public bounds.
        n : int, optional
            Number of records, in place of ``spec.n``.

        Raises
        ------
        SpecError
            When the number of records is not known.
        """
        weight, requested, records = weight_of(spec, n)
        calibration = "exact" if spec.weight is None else "weight"
        return cls(
            domain=domain,
            calibration=calibration,
            requested=requested,
            bins=spec.bins,
            draws=spec.draws,
            n=records,
            weight=weight,
        )

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the weight that is used, rounded up."""
        return smoothed_guarantee(self.bins, self.draws, self.n, self.weight)

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return self._describe(scale=[], bins=self.bins, draws=self.draws, weight=self.weight)

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return {"weight": self.weight, "bins": self.bins, "draws": self.draws, "n": self.n}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say what is released."""
        drawn = f"{self.draws} draw{'s' * (self.draws > 1)}"
        return (
            f"sampling noise: {drawn} from the histogram of {columns[0]} in {self.bins} bins, smoothed with "
            f"weight {self.weight:.6g}"
        )

    def privatize(
        self, values: NDArray[np.float64], columns: Sequence[str], progress: Progress | None = None
    ) -> tuple[Release, tuple[int, ...]]:
        """Release the values; see `Mechanism`."""
        bounded, clamped = self._clamp(values)
        drawn = self.draw(bounded, os.urandom)
        if progress is not None:
            progress(len(bounded))
        return self._release(drawn, columns, self.n, None), clamped

    def simulate(
        self, values: NDArray[np.float64], columns: Sequence[str], rng: np.random.Generator
    ) -> tuple[Release, tuple[int, ...]]:
        """Release simulated values with seeded noise; see `Mechanism`."""
        bounded, clamped = self._clamp(values)
        return self._release(self.draw(bounded, rng.bytes), columns, self.n, rng), clamped

    def draw(self, values: NDArray[np.float64], source: Source) -> NDArray[np.float64]:
        """Return draws, shape (k, 1), from the smoothed histogram of values in the domain, shape (n,)."""
        if len(values) != self.n:
            raise PrivacyError(f"the guarantee is for {self.n} records, not {len(values)}")
        edges = checked_edges(self.kind, self.domain[0], self.bins)
        chosen = draw_cells(cell_of(values, edges), self.bins, self.weight, self.draws, source)
        left, right = edges[chosen], edges[chosen + 1]
        place = (integers(_GRID, self.draws, source) + 0.5) / _GRID
        inside = np.nextafter(right, -np.inf)
        drawn: NDArray[np.float64] = np.clip(left + place * (right - left), left, inside)
        return drawn[:, None]


def draw_cells(
    cells: NDArray[np.int64], bins: int, weight: float, draws: int, source: Source
) -> NDArray[np.int64]:
    """Draw bins from a smoothed histogram, exactly: any bin with probability `weight`, else a record's.

    Parameters
    ----------
    cells : ndarray of int64, shape (n,)
        Bin of each record.
    bins : int
        Number of bins.
    weight : float
        Probability of a uniform draw.
    draws : int
        Number of draws.
    source : callable
        Gives this many random bytes.

    Returns
    -------
    ndarray of int64, shape (draws,)
    """
    of_records = cells[integers(len(cells), draws, source)]
    uniform = bernoulli(weight.as_integer_ratio(), draws, source)
    return np.where(uniform, integers(bins, draws, source), of_records)


def smoothed_guarantee(bins: int, draws: int, n: int, weight: float) -> Guarantee:
    """Return the guarantee of a smoothing weight, rounded up: eps exactly, and a valid rho."""
    if weight == 1:
        return Guarantee(0.0, 0.0, 0.0, "global")
    with localcontext(digits()):
        each = log1p((1 - Decimal(weight)) * bins / (Decimal(weight) * n))
        epsilon = round_up(draws * each)
        excess = expm1(each)
        half = excess / (excess + 2)  # tanh(each/2)
        return Guarantee(epsilon, 0.0, round_up(draws * each * half), "global")


def weight_of(spec: SmoothedHistogramMechanism, n: int | None) -> tuple[float, dict[str, float], int]:
    """Return the weight of a spec, rounded up, what it asks for, and the number of records.

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
        return spec.weight, {"weight": spec.weight}, records
    assert spec.epsilon is not None  # the spec states one of the two
    with localcontext(digits()):
        each = min(Decimal(spec.epsilon) / spec.draws, Decimal(2000))
        weight = round_up(Decimal(spec.bins) / (spec.bins + records * expm1(each)))
    weight = min(max(weight, 1e-300), 1.0)
    while (smoothed_guarantee(spec.bins, spec.draws, records, weight).epsilon or 0.0) > spec.epsilon:
        weight = math.nextafter(weight, 2.0)
    return weight, {"epsilon": spec.epsilon}, records


def stated(spec: SmoothedHistogramMechanism, n: int | None) -> tuple[dict[str, Any], Guarantee]:
    """Return what is known of a release made elsewhere, and its guarantee by formula.

    Raises
    ------
    SpecError
        When the number of records is not known.
    """
    weight, _, records = weight_of(spec, n)
    own = {"bins": spec.bins, "draws": spec.draws, "weight": weight, "scale": []}
    return own, smoothed_guarantee(spec.bins, spec.draws, records, weight)
