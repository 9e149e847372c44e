"""What a spec says of shares of categories, and what the model goes with."""

from typing import Annotated, Literal

from pydantic import Field

from dpmix.spec.fields import Listed, Positive
from dpmix.spec.model_section import ModelSection

__all__ = ["SECTION", "MultinomialModel"]


class MultinomialModel(ModelSection):
    """Category probabilities given a released posterior."""

    takes = ("posterior", "categories")
    samplers = ("data_augmentation",)

    kind: Literal["multinomial"] = Field(description="The model.")
    prior: Annotated[tuple[Positive, ...], Listed, Field(min_length=2)] | None = Field(
        None, description="Parameters of the beta or Dirichlet prior."
    )


SECTION = MultinomialModel
