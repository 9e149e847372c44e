"""The square wave on a public grid (methods, section 13; Li, Wang, Lopuhaa-Zwakenberg, Skoric, Li 2020)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError
from dpmix.mechanisms.curators.mechanism import (
    Floats,
    Loss,
    NearAnswers,
    Pairs,
    Progress,
    PublicRecords,
    Released,
    Seeded,
    Stated,
    clamp,
    loss_of_near_outputs,
    order_in_words,
)
from dpmix.mechanisms.curators.one_column import check_bounds, checked_edges
from dpmix.numerics.equal_cells import cell_of
from dpmix.privacy.exact import digits
from dpmix.privacy.near_outputs import NearOutputs, ratio_below

if TYPE_CHECKING:
    from dpmix.mechanisms.square_wave.section import SquareWaveMechanism
    from dpmix.privacy.accounting import Guarantee


@dataclass(frozen=True, kw_only=True)
class SquareWave(NearAnswers):
    """Release for each number of a record an output 0, .., M + 2k - 1 near its cell i of M: i, .., i + 2k.

    Each of these 2k + 1 outputs has the weight u, each of the other M - 1 the weight v, and r = u/v is just
    below e^eps: two records have the ratio r, 1/r or 1 at any output, so that a column costs log(r) exactly.
    Epsilon is shared equally among the columns. Where two records' cells are far apart,
    m = min(2k + 1, M - 1) outputs are near for one alone, and the Renyi divergence of order alpha is
    log(1 + m/W (r^(alpha - 1) - 1)(r - r^(1 - alpha)))/(alpha - 1), W = (2k + 1) r + M - 1. A column's rho is
    the largest of it over alpha.

    Parameters
    ----------
    domain : tuple of (lo, hi)
        Public bounds, one pair per column, to which values are clamped.
    cells : int
        M, of each column.
    reach : int
        k.
    """

    kind: ClassVar[str] = "square_wave"
    domain: Pairs
    cells: int
    reach: int

    def __post_init__(self) -> None:
        """Check bounds and cells."""
        check_bounds(self.domain)
        if not (self.domain and self.cells >= 2 and 0 <= 2 * self.reach < self.cells):
            raise PrivacyError("a square wave has two cells or more, and reaches over less than half of them")

    @property
    def response(self) -> NearOutputs:
        """The response to a record's cell."""
        return response_of(self.cells, self.reach, self.ratio)

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        """Total over a record's columns of the ratio that is used, rounded up."""
        return self.response.guarantee(len(self.domain))

    def describe(self) -> dict[str, Any]:
        """Return everything public about the mechanism, for JSON."""
        return {
            "kind": self.kind,
            "domain": [list(pair) for pair in self.domain],
            "calibration": "exact",
            "requested": dict(self.requested),
            "scale": [],
        } | described(self.cells, self.reach, self.ratio)

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee."""
        return described(self.cells, self.reach, self.ratio) | {"width": self.reach / self.cells}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say what is released of a record."""
        near = f"one of the {2 * self.reach + 1} near" if self.reach else "the record's own"
        return (
            f"square wave: for {', '.join(columns)} an output of {self.cells + 2 * self.reach}, {near} "
            f"{float(self.ratio):.6g} times as likely {'each ' * bool(self.reach)}as any other, "
            f"{order_in_words(self.order)}"
        )

    def inputs(self, values: Floats) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """Return the cell of each number, shape (n, d), and how many of each column were outside."""
        bounded, outside = clamp(self.kind, self.domain, values)
        found = np.empty(bounded.shape, dtype=np.int64)
        for column, pair in enumerate(self.domain):
            edges = checked_edges(self.kind, pair, self.cells)
            found[:, column] = cell_of(np.ascontiguousarray(bounded[:, column]), edges)
        return found, outside

    def _released(
        self, values: Floats, columns: Sequence[str], rng: Seeded, progress: Progress | None
    ) -> Released:
        cells, clamped = self.inputs(values)
        responses = (self.response,) * len(self.domain)
        return self._released_near(responses, cells, columns, rng, progress), clamped

    def loss(self, one: Floats, other: Floats) -> Loss | None:
        """Return the loss of the first record's outputs; see `Mechanism`."""
        first, second = (self.inputs(x)[0][0].astype(np.float64) for x in (one, other))
        return loss_of_near_outputs(first, second, self.response)


def described(cells: int, reach: int, ratio: Fraction) -> dict[str, Any]:
    """Return the numbers that a release states, for JSON; the ratio in lowest terms."""
    return {"cells": cells, "reach": reach, "ratio": f"{ratio.numerator}/{ratio.denominator}"}


def response_of(cells: int, reach: int, ratio: Fraction) -> NearOutputs:
    """Return the response to a cell: outputs i .. i + 2k are near cell i."""
    near = 2 * reach + 1
    return NearOutputs(near, cells - 1, ratio, min(near, cells - 1))


def ratio_and_reach(spec: SquareWaveMechanism, columns: int) -> tuple[Fraction, int]:
    """Return r and k of a spec for as many columns.

    Raises
    ------
    PrivacyError
        Where epsilon is too small or too large.
    """
    assert spec.epsilon is not None  # checked
    each = Fraction(spec.epsilon) / columns
    ratio = ratio_below(each)
    return ratio, best_reach(each, spec.cells) if spec.width == "auto" else reach_of(spec.width, spec.cells)


def best_reach(epsilon: Fraction, cells: int) -> int:
    """Return the reach of `width: auto`: of the half-width that is best for mutual information, as published.

    That is b = (eps - 1 + e^-eps)/(2 (e^eps - 1 - eps)) of the domain, 1/2 - eps/3 + .. for small eps.
    """
    with localcontext(digits()):
        eps = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
        half = (eps - 1 + (-eps).exp()) / (2 * (eps.exp() - 1 - eps))
        return min(round(half * cells), (cells + 1) // 2 - 1)


def reach_of(width: float, cells: int) -> int:
    """Return the reach of a half-width stated as a share of the domain."""
    return round(Fraction(width) * cells)


def make(spec: SquareWaveMechanism, records: PublicRecords) -> SquareWave:
    """Calibrate to a spec's epsilon; the recorded guarantee never exceeds it.

    Raises
    ------
    PrivacyError
        When it cannot be met.
    """
    assert spec.domain is not None and spec.epsilon is not None  # checked
    ratio, reach = ratio_and_reach(spec, len(spec.domain))
    asked = spec.requested()
    return SquareWave(domain=spec.domain, cells=spec.cells, reach=reach, ratio=ratio, requested=asked)


def stated(spec: SquareWaveMechanism, records: PublicRecords) -> Stated:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    ratio, reach = ratio_and_reach(spec, records.columns)
    guarantee = response_of(spec.cells, reach, ratio).guarantee(records.columns)
    return {"scale": []} | described(spec.cells, reach, ratio), guarantee
