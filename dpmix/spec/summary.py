"""The section ``summary``: what is reported of a posterior."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from dpmix.spec.fields import Integer, Number, Section, refusal, wrong

LARGEST_GRID = 10_000


def _three(value: object) -> object:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise wrong("must be [lo, hi, points], not {got}", value)
    return value


class SummarySpec(Section):
    """What is reported, and where the density is evaluated."""

    grid: (
        Annotated[
            tuple[Number, Number, Annotated[Integer, Field(ge=2, le=LARGEST_GRID)]], BeforeValidator(_three)
        ]
        | None
    ) = Field(
        None,
        description="Where densities are reported: [lo, hi, points]; found from the domain where left out.",
    )
    level: Annotated[Number, Field(gt=0, lt=1)] = Field(
        0.95, description="Posterior probability of the bands and intervals."
    )
    baseline: Literal["deconvolution_kde"] | None = Field(
        None, description="An estimate without a model to set beside the posterior."
    )

    @model_validator(mode="after")
    def _check(self) -> SummarySpec:
        if self.grid is not None:
            lo, hi, _ = self.grid
            if not lo < hi or not math.isfinite(hi - lo):
                raise refusal("grid", f"[{lo:g}, {hi:g}, ...] must have its lower end below its upper one")
        return self
