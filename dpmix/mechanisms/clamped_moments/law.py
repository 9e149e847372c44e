"""The law of noisy second moments of clamped and rescaled values (methods, section 8)."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpmix.laws.law_base import Floats, Pair, Says, Scales, is_number, of_scale
from dpmix.laws.statistic_laws import SumsOfGroups, far_beyond
from dpmix.mechanisms.clamped_moments.section import ClampedMomentsMechanism
from dpmix.spec.capabilities import counted


class ClampedMomentsLaw(SumsOfGroups):
    """Means (sums, of groups) of products of predictors and response, rescaled to [-1, 1], plus noise."""

    capabilities = ClampedMomentsMechanism

    bounds: Annotated[
        tuple[Pair, ...],
        Field(min_length=2),
        Says("does not state its bounds, one pair per predictor and the response's last"),
    ]
    noise: Annotated[Literal["laplace", "geometric"], Says("does not state its noise, laplace or geometric")]
    scale: Scales
    columns: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _noise_of_each(self) -> Self:
        if self.groups is None:
            if len(self.scale) != 1:
                raise ValueError("does not state one noise scale")
            return self
        self._check_kappa()
        known = self.centre
        if not (
            isinstance(known, list | tuple)
            and len(known) == self.entries
            and all(is_number(c) and abs(c) <= 1 for c in known)
        ):
            raise ValueError(
                f"does not state its centre, a number from -1 to 1 for each of {self.entries} entries"
            )
        self._check_two_scales()
        return self

    @property
    def entries(self) -> int:
        """Number of products of a record: all but that of 1 with itself."""
        q = len(self.bounds)
        return q + 1 + q * (q + 1) // 2 - 1

    @property
    def range_of_entry(self) -> tuple[float, float]:
        """Least and most of a product of numbers in [-1, 1]."""
        return -1.0, 1.0

    @property
    def public_bounds(self) -> tuple[tuple[float, float], ...] | None:
        """The public bounds of predictors and response."""
        return self.bounds

    @property
    def predictors(self) -> tuple[str, ...]:
        """What coefficients are called after: their columns; numbers where not all are told and differ."""
        p = len(self.bounds) - 1
        names = self.columns[:p]
        told = len(self.columns) == p + 1 and len(set(names)) == p and "intercept" not in names
        return names if told else tuple(str(i + 1) for i in range(p))

    def length(self) -> tuple[int, str]:
        """Return the number of moments."""
        if self.groups is not None:
            return self._length_of_groups()
        return self.entries, f"{counted(len(self.bounds) - 1, 'predictor')} and a response"

    def warning(self, values: Floats, n: int) -> str | None:
        """Say that sums are beyond what n records and their noise can give."""
        if self.groups is not None:
            return self._warning_of_groups(values, n)
        return far_beyond(values, n, -float(n), float(n), self.scale[0])

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        sums = "sums of products of the clamped and rescaled values"
        if self.groups is not None:
            return self._done_by_groups(sums, n)
        return (
            f"Laplace noise{of_scale(self.scale)} was added to {sums} of {counted(n, 'record')}, "
            "which were released for all of them together."
        )


LAW = ClampedMomentsLaw
