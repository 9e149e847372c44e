"""The section ``synthesis``: release of synthetic records."""

from __future__ import annotations

import numbers
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Tag

from dpmix.spec.fields import Integer, Number, Positive, Section, chosen_by, wrong


def _auto_or_integer(value: object) -> object:
    if value == "auto" and isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong("must be auto or a whole number, not {got}", value)
    if not 1 <= int(value) <= 100_000_000:
        raise wrong("{got} must be from 1 to 100000000", value)
    return int(value)


RecordCount = Annotated[Literal["auto"] | int, BeforeValidator(_auto_or_integer)]


class SynthesisSection(Section):
    """What every kind of synthesis has."""

    kind: Any
    records: RecordCount = Field(
        "auto", description="Number of synthetic records; auto is the largest that is private."
    )
    epsilon: Positive | None = Field(None, description="Privacy loss epsilon of the synthetic records.")
    delta: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="Probability delta that goes with epsilon."
    )


class PitmanYorSynthesis(SynthesisSection):
    """Sequential draws from the predictive of a Pitman-Yor process."""

    kind: Literal["pitman_yor"] = Field(description="The generator.")
    discount: Annotated[Number, Field(lt=1)] = Field(0.0, description="Discount of the process.")
    concentration: Number = Field(1.0, description="Concentration of the process.")


class DirichletMultinomialSynthesis(SynthesisSection):
    """Draws from the predictive of a Dirichlet-multinomial over public categories."""

    kind: Literal["dirichlet_multinomial"] = Field(description="The generator.")
    concentration: Positive | None = Field(
        None, description="Prior count of each category; the least private one where left out."
    )


class PerturbedHistogramSynthesis(SynthesisSection):
    """Draws from a histogram with noisy counts."""

    kind: Literal["perturbed_histogram"] = Field(description="The generator.")
    bins: Annotated[Integer, Field(ge=1, le=1_000_000)] | None = Field(None, description="Number of bins.")
    noise: Literal["laplace", "gaussian", "geometric"] = Field("laplace", description="Noise of the counts.")


class SmoothedHistogramSynthesis(SynthesisSection):
    """Draws from a histogram mixed with the uniform density."""

    kind: Literal["smoothed_histogram"] = Field(description="The generator.")
    bins: Annotated[Integer, Field(ge=1, le=1_000_000)] | None = Field(None, description="Number of bins.")


SynthesisSpec = Annotated[
    Annotated[PitmanYorSynthesis, Tag("pitman_yor")]
    | Annotated[DirichletMultinomialSynthesis, Tag("dirichlet_multinomial")]
    | Annotated[PerturbedHistogramSynthesis, Tag("perturbed_histogram")]
    | Annotated[SmoothedHistogramSynthesis, Tag("smoothed_histogram")],
    chosen_by("kind"),
]
