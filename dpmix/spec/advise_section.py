"""The section ``advise``: what releases are judged for before there is one."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, Tag, model_validator

from dpmix.spec.fields import ChosenBy, HistogramBase, Listed, Number, Positive, Section, Text, refusal


class BetaPopulation(Section):
    """A beta distribution, stretched over the public bounds."""

    kind: Literal["beta"] = Field(description="The distribution of a record.")
    a: Positive = Field(description="First parameter.")
    b: Positive = Field(description="Second parameter.")


class NormalPopulation(Section):
    """A normal distribution, cut to the public bounds as records are."""

    kind: Literal["normal"] = Field(description="The distribution of a record.")
    mean: Number = Field(description="Mean, in the units of the data.")
    sd: Positive = Field(description="Standard deviation, in the units of the data.")


class LognormalPopulation(Section):
    """A lognormal distribution, cut to the public bounds as records are."""

    kind: Literal["lognormal"] = Field(description="The distribution of a record.")
    mean: Positive | None = Field(None, description="Mean, in the units of the data; with sd.")
    sd: Positive | None = Field(None, description="Standard deviation, in the units of the data; with mean.")
    median: Positive | None = Field(None, description="Median, in the units of the data; with sigma.")
    mu: Number | None = Field(None, description="Mean of the logarithm; with sigma.")
    sigma: Positive | None = Field(None, description="Standard deviation of the logarithm.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        names = ("mean", "sd", "median", "mu", "sigma")
        given = {name for name in names if getattr(self, name) is not None}
        if given not in ({"mean", "sd"}, {"median", "sigma"}, {"mu", "sigma"}):
            raise refusal("", "takes mean and sd, or median and sigma, or mu and sigma of the logarithm")
        return self

    @property
    def logarithm(self) -> tuple[float, float]:
        """Mean and standard deviation of the logarithm of a record."""
        if self.mean is not None and self.sd is not None:
            square = math.log1p((self.sd / self.mean) ** 2)
            return math.log(self.mean) - 0.5 * square, math.sqrt(square)
        assert self.sigma is not None  # checked
        return (math.log(self.median) if self.median is not None else float(self.mu or 0.0)), self.sigma


class HistogramPopulation(HistogramBase):
    """A public histogram: pieces with a uniform distribution each."""

    kind: Literal["histogram"] = Field(description="The distribution of a record.")
    edges: Annotated[tuple[Number, ...], Listed, Field(min_length=2)] = Field(
        description="Edges of the pieces, increasing, in the units of the data."
    )


Population = Annotated[
    Annotated[BetaPopulation, Tag("beta")]
    | Annotated[NormalPopulation, Tag("normal")]
    | Annotated[LognormalPopulation, Tag("lognormal")]
    | Annotated[HistogramPopulation, Tag("histogram")],
    ChosenBy("kind"),
]


class AdviseSpec(Section):
    """A public population to judge releases by, and the precision that is wanted of them."""

    population: Population | None = Field(
        None,
        description="Distribution of a record that nothing confidential went into; where left out the "
        "model's prior predictive within the public bounds, of synthesis a skewed one.",
    )
    target: dict[Text, Positive] | None = Field(
        None,
        description="Wanted posterior standard deviations, or errors of synthetic records, by quantity, such "
        "as {median: 500}, in the units of the data.",
        min_length=1,
    )
