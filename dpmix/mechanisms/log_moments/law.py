"""The law of noisy mean logarithms of censored compositions (methods, section 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from dpmix.mechanisms.laws.law_base import Floats, Number, Positive, Says, Scales, Whole, of_scale
from dpmix.mechanisms.laws.sums_of_groups import SumsOfGroups, is_number
from dpmix.mechanisms.log_moments.section import LogMomentsMechanism

__all__ = ["LAW", "LogMomentsLaw"]


class LogMomentsLaw(SumsOfGroups):
    """Means (sums, of groups) of log max(x_j, a) over the records of one or two parts, plus noise."""

    capabilities = LogMomentsMechanism

    components: Annotated[
        Whole, Field(ge=2), Says("does not state its components, a whole number of at least 2")
    ]
    threshold: Annotated[Number, Field(gt=0, lt=1), Says("does not state its threshold, between 0 and 1")]
    parts: Annotated[
        tuple[Annotated[Whole, Field(ge=1)], ...],
        Field(min_length=1, max_length=2),
        Says("does not state the sizes of its parts"),
    ]
    scale: Annotated[Scales, Says("does not list a positive noise scale per part")]
    columns: tuple[str, ...] = ()
    thresholds: tuple[Positive, ...] = ()
    scores: tuple[Number, ...] | None = None
    epsilon1: Number | None = None
    epsilon2: Number | None = None

    @model_validator(mode="after")
    def _noise_of_each(self) -> Self:
        if self.groups is None:
            if len(self.scale) != len(self.parts):
                raise ValueError("does not list a positive noise scale per part")
            return self
        if len(self.parts) != 1:
            raise ValueError("states two parts of a release of groups")
        self._check_kappa()
        least = math.log(self.threshold) - 1e-6
        if not is_number(self.centre) or not least <= self.centre <= 0:
            raise ValueError(
                "does not state its centre, a number between the logarithm of the threshold and 0"
            )
        self._check_two_scales()
        return self

    @property
    def chosen(self) -> str:
        """The threshold, where there were several."""
        return f"the threshold chosen is {self.threshold:g}" if len(self.thresholds) > 1 else ""

    @property
    def entries(self) -> int:
        """Number of logarithms of a record."""
        return self.components

    @property
    def range_of_entry(self) -> tuple[float, float]:
        """Least and most of a censored logarithm."""
        return math.log(self.threshold), 0.0

    def disagreement(self, n: int, columns: int) -> str | None:
        """Say whether the parts are of another number of records."""
        return f"states parts {list(self.parts)}, but n is {n}" if sum(self.parts) != n else None

    def length(self) -> tuple[int, str]:
        """Return the number of means or sums."""
        if self.groups is not None:
            return self._length_of_groups()
        several = " of each of two parts" if len(self.parts) == 2 else ""
        return self.components * len(self.parts), f"{self.components} components{several}"

    def warning(self, values: Floats, n: int) -> str | None:
        """Say that sizes or sums of groups are beyond what n records and their noise can give."""
        return None if self.groups is None else self._warning_of_groups(values, n)

    def told(self) -> Sequence[float]:
        """Return the threshold, and the noisy scores that it was chosen by."""
        return (self.threshold, *(self.scores or ()))

    def done(self, n: int) -> str:
        """Say what was done to n records."""
        at = f", censored at {self.threshold:g}"
        if self.groups is not None:
            return self._done_by_groups(f"sums of logarithms of the compositions{at},", n)
        return (
            f"Laplace noise{of_scale(self.scale)} was added to the mean logarithms of the compositions of "
            f"{n} records{at}, which were released for all of them together."
        )


LAW = LogMomentsLaw
