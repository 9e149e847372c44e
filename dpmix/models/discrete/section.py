"""What a spec says of a process on discrete values, and what the model goes with."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, model_validator

from dpmix.numerics.in_words import stated as exact
from dpmix.spec.fields import Listed, NonNegative, Number, Text, number_or_mapping, refusal
from dpmix.spec.model_section import ModelSection
from dpmix.spec.synthesis_section import Bases

Probabilities = Annotated[tuple[NonNegative, ...], Listed, Field(min_length=2)]
Thresholds = Annotated[tuple[Number, ...], Listed, Field(min_length=1)]


class DiscreteModel(ModelSection):
    """A Dirichlet or Pitman-Yor process on discrete values, given a synthetic or histogram release."""

    takes = ("synthetic", "histogram")
    samplers = ("data_augmentation",)
    draws_records = True

    kind: Literal["discrete"] = Field(description="The model.")
    concentration: Number | None = Field(
        None, description="Concentration of the process; the release's own, or 1, where left out."
    )
    discount: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        None, description="Discount of the process; the release's own, or 0, where left out."
    )
    base: (
        Annotated[
            Annotated[Probabilities, Tag("vector")] | Annotated[Bases, Tag("bases")],
            number_or_mapping("vector", "bases"),
        ]
        | None
    ) = Field(
        None,
        description="Base measure: probabilities of the cells or categories, or a distribution of numeric "
        "columns; the release's own, or uniform, where left out.",
    )
    tail: (
        Annotated[
            Annotated[Thresholds, Tag("list")] | Annotated[dict[Text, Thresholds], Tag("named")],
            number_or_mapping("list", "named"),
        ]
        | None
    ) = Field(
        None,
        description="Thresholds t of the tail probabilities Pr(X > t), or by name of column; the quarters of "
        "the bounds where left out.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        discount = self.discount or 0.0
        if self.concentration is not None and not self.concentration > -discount:
            bound = f"-model.discount ({-discount:g})" if discount > 0 else "0"
            raise refusal("concentration", f"{self.concentration:g} must be greater than {bound}")
        return self

    def in_words(self, spec: Any) -> str:
        """Say what is fitted."""
        given = {"discount": self.discount, "concentration": self.concentration}
        stated = ", ".join(f"{key} {exact(value)}" for key, value in given.items() if value is not None)
        return f"discrete values of a Dirichlet or Pitman-Yor process, {stated or 'prior of the release'}"


SECTION = DiscreteModel
