"""What a spec says of naive Bayes classes and features, and what the model goes with."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from dpmix.spec.fields import Positive
from dpmix.spec.model_section import ModelSection, Problem, columns_of_answers


class NaiveBayesModel(ModelSection):
    """Naive Bayes classes and features given noisy counts."""

    takes = ("noisy_counts", "categories")
    samplers = ("data_augmentation", "soma")
    predicts = True

    kind: Literal["naive_bayes"] = Field(description="The model.")
    prior: Positive = Field(2.0, description="Parameter of the symmetric Dirichlet priors.")

    def problem(self, spec: Any) -> Problem | None:
        """Refuse answers of one column, where the spec says of which."""
        columns = columns_of_answers(spec)
        return ("model.kind", of_several_columns(columns)) if len(columns) == 1 else None

    def in_words(self, spec: Any) -> str:
        """Say what is fitted."""
        return "naive Bayes classes and features"


def of_several_columns(columns: Sequence[str]) -> str:
    """Say what to do with answers of one column."""
    return f"naive_bayes is for features and a class, and there is one column, {columns[0]}; use multinomial"


SECTION = NaiveBayesModel
