"""Noisy second moments of clamped predictors and response (methods, section 7; linear regression)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmix.errors import PrivacyError, SpecError
from dpmix.mechanisms.base import Pairs, clamp, width
from dpmix.mechanisms.statistic import ROUNDED_UP, Floats, NoisyStatistic, calibrated_scale
from dpmix.privacy.accounting import Guarantee
from dpmix.privacy.conversions import laplace_rho
from dpmix.spec.mechanism import ClampedMomentsMechanism

__all__ = ["ClampedMoments", "exact_sensitivity", "factors", "paper_sensitivity", "stated"]

_BITS = 20  # values in [-1, 1] are moved to multiples of 2^-20, so that sums of products are exact
_MOST = 2**31


@dataclass(frozen=True, kw_only=True)
class ClampedMoments(NoisyStatistic):
    """Release sums of products of values that are clamped to public bounds and rescaled to [-1, 1].

    With x~ = (1, x~_1, .., x~_p) and y~ the rescaled predictors and response, the entries are x~'y~,
    intercept first, y~'y~, and the upper triangle of x~'x~ by rows without its constant first entry. With
    q = p + 1 replacing a record moves them by at most D1 = q + q/(2 (q + 1)) + q (q + 1)/2 in L1 norm, the
    largest over pairs of records jointly; the paper's p^2 + 3 p + 3 bounds the entries one by one. Laplace
    noise of scale D1/eps is eps-DP.

    Parameters
    ----------
    domain : tuple of (lo, hi)
        Public bounds, one pair per predictor and the response's last.
    """

    kind: ClassVar[str] = "clamped_moments"

    @classmethod
    def from_spec(cls, spec: ClampedMomentsMechanism, columns: Sequence[str], n: int) -> ClampedMoments:
        """Calibrate to a spec's epsilon or scale; the recorded guarantee never exceeds what was asked.

        Raises
        ------
        SpecError
            When the bounds do not go with the columns.
        PrivacyError
            When the guarantee cannot be met.
        """
        bounds = bounds_of(spec)
        if len(bounds) != len(columns) or len(columns) < 2:
            raise SpecError(
                f"mechanism.bounds: {len(bounds)} pairs for {len(columns)} columns; give one for each "
                "predictor and the response's last"
            )
        if n >= _MOST:
            raise PrivacyError(f"clamped_moments takes fewer than {_MOST} records, not {n}")

        def make(scale: float) -> ClampedMoments:
            return cls(
                columns=tuple(columns),
                s=scale,
                calibration="scale" if spec.scale is not None else spec.calibration,
                requested={k: v for k in ("epsilon", "scale") if (v := getattr(spec, k)) is not None},
                n=n,
                domain=bounds,
            )

        if spec.scale is not None:
            return make(spec.scale)
        assert spec.epsilon is not None  # the spec states one of the two
        if spec.calibration == "paper":
            return make(paper_sensitivity(len(columns) - 1) / spec.epsilon)
        made: ClampedMoments = calibrated_scale(make, make(1.0).sensitivity, spec.epsilon)
        return made

    @property
    def sensitivity(self) -> float:
        """The exact one, and what rounding sums to doubles may add."""
        p = len(self.domain) - 1
        return exact_sensitivity(p) * ROUNDED_UP + 2 * self.size * self.n * 2.0**-52

    @property
    def rho(self) -> float:
        """That of the whole sensitivity on one entry, which no other division of it exceeds."""
        return laplace_rho((self.sensitivity + self.size * 2.0**-40) / self.s) * ROUNDED_UP

    @property
    def size(self) -> int:
        """Number of entries: p + 1, 1 and (p + 1) (p + 2)/2 - 1."""
        q = len(self.domain)
        return q + 1 + q * (q + 1) // 2 - 1

    def statistic(self, values: Floats) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Return the entries, shape (size,), summed exactly."""
        bounded, clamped = clamp(self.kind, self.domain, values)
        low, high = np.array(self.domain).T
        unit = np.clip(2 * (bounded - low) / (high - low) - 1, -1, 1)
        whole = np.rint(unit * 2**_BITS).astype(np.int64)
        ones = np.full((len(whole), 1), 2**_BITS, dtype=np.int64)
        table = np.hstack([ones, whole])
        pairs = factors(len(self.domain))
        sums = np.array([float(_exact_sum(table[:, i] * table[:, j])) for i, j in pairs])
        return sums * 2.0 ** (-2 * _BITS), clamped

    def own(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"bounds": [list(pair) for pair in self.domain]}

    def figures(self) -> dict[str, Any]:
        """Return what `dpmix calibrate` prints beside the guarantee, the paper's sensitivity too."""
        return super().figures() | {"sensitivity_paper": paper_sensitivity(len(self.domain) - 1)}

    def in_words(self, columns: Sequence[str]) -> str:
        """Say which noise goes where."""
        return (
            f"Laplace noise of scale {self.s:.6g} on {self.size} second moments of "
            f"{', '.join(self.columns)}, clamped to their bounds and rescaled to [-1, 1]"
        )


def factors(q: int) -> list[tuple[int, int]]:
    """Return the factors of each entry as columns of (1, x~_1, .., x~_p, y~), p = q - 1."""
    moments = [(i, j) for i in range(q) for j in range(i, q) if j > 0]
    return [*((i, q) for i in range(q + 1)), *moments]


def exact_sensitivity(p: int) -> float:
    """Return the L1 sensitivity of the moments of p predictors, jointly: 16/3, 75/8, 72/5 for p = 1, 2, 3."""
    q = p + 1
    return q + q / (2 * (q + 1)) + q * (q + 1) / 2


def paper_sensitivity(p: int) -> float:
    """Return p^2 + 3 p + 3, valid and larger (Ju, Awan, Gong and Rao 2022, section 5)."""
    return float(p * p + 3 * p + 3)


def bounds_of(spec: ClampedMomentsMechanism) -> Pairs:
    """Return the public bounds of a spec.

    Raises
    ------
    SpecError
        When there are none, or two that differ.
    """
    bounds = spec.bounds or spec.domain
    if bounds is None:
        raise SpecError("mechanism.bounds: missing; give one pair per predictor, and the response's last")
    if spec.bounds is not None and spec.domain is not None and spec.bounds != spec.domain:
        raise SpecError("mechanism.bounds: differ from the domain; give the public bounds once")
    for pair in bounds:
        width(pair)
    return bounds


def stated(spec: ClampedMomentsMechanism) -> tuple[dict[str, Any], Guarantee]:
    """Return what is known of a release made elsewhere, and its guarantee by formula."""
    bounds = bounds_of(spec)
    p = len(bounds) - 1
    if p < 1:
        raise SpecError("mechanism.bounds: one pair; give one per predictor, and the response's last")
    exact = exact_sensitivity(p)
    if spec.scale is not None:
        scale = spec.scale
    else:
        assert spec.epsilon is not None  # the spec states one of the two
        scale = (paper_sensitivity(p) if spec.calibration == "paper" else exact) / spec.epsilon
    own = {"bounds": [list(pair) for pair in bounds], "noise": "laplace", "scale": [scale]}
    return own | {"sensitivity": [exact]}, Guarantee(exact / scale, 0.0, laplace_rho(exact / scale), "global")


def _exact_sum(values: NDArray[np.int64]) -> int:
    """Return the sum of whole numbers of up to 2^40, in chunks that 64 bits hold."""
    step = 1 << 22
    return sum(int(values[start : start + step].sum()) for start in range(0, len(values), step))
