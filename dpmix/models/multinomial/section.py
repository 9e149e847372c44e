"""What a spec says of shares of categories, and what the model goes with."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from dpmix.spec.fields import Listed, Positive
from dpmix.spec.model_section import ModelSection, Problem, columns_of_answers


class MultinomialModel(ModelSection):
    """Category probabilities given a released posterior."""

    takes = ("posterior", "categories")
    samplers = ("data_augmentation",)
    draws_records = True

    kind: Literal["multinomial"] = Field(description="The model.")
    prior: Annotated[tuple[Positive, ...], Listed, Field(min_length=2)] | None = Field(
        None, description="Parameters of the beta or Dirichlet prior."
    )

    def problem(self, spec: Any) -> Problem | None:
        """Refuse answers of several columns that are all to be fitted: one of them is to be chosen."""
        columns = columns_of_answers(spec) if spec.release is not None and spec.release.columns else ()
        return ("model.kind", of_one_column(columns)) if len(columns) > 1 else None


def of_one_column(columns: Sequence[str]) -> str:
    """Say what to do with answers of several columns."""
    return (
        f"multinomial is for one column, and there are {', '.join(columns)}; choose one with --set "
        f"release.columns=[{columns[0]}], or use naive_bayes for all"
    )


SECTION = MultinomialModel
