"""What a spec says of it, and what it goes with."""

from typing import Any, Literal

from pydantic import Field

from dpmix.spec.fields import Positive
from dpmix.spec.model_section import ModelSection


class ProportionModel(ModelSection):
    """The share of the second of two categories, under a beta law."""

    takes = ("categories",)
    samplers = ("data_augmentation",)

    kind: Literal["proportion"] = Field(description="The model.")
    a: Positive = Field(2.0, description="Of the beta law.")
    b: Positive = Field(3.0, description="Of the beta law.")

    def in_words(self, spec: Any) -> str:
        """Say what is fitted."""
        return f"the share of the second category, Beta({self.a:g}, {self.b:g})"


SECTION = ProportionModel
