"""What a spec says of naive Bayes classes and features, and what the model goes with."""

from typing import Any, Literal

from pydantic import Field

from dpmix.spec.fields import Positive
from dpmix.spec.model_section import ModelSection

__all__ = ["SECTION", "NaiveBayesModel"]


class NaiveBayesModel(ModelSection):
    """Naive Bayes classes and features given noisy counts."""

    takes = ("noisy_counts", "categories")
    samplers = ("data_augmentation", "soma")
    predicts = True

    kind: Literal["naive_bayes"] = Field(description="The model.")
    prior: Positive = Field(2.0, description="Parameter of the symmetric Dirichlet priors.")

    def in_words(self, spec: Any) -> str:
        """Say what is fitted."""
        return "naive Bayes classes and features"


SECTION = NaiveBayesModel
