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
        """Refuse answers of several columns, of which one is to be chosen, and a prior of another size."""
        columns = columns_of_answers(spec) if spec.release is not None and spec.release.columns else ()
        if len(columns) > 1:
            return "model.kind", of_one_column(columns)
        wanted = _categories_in(spec)
        if self.prior is None or wanted in (None, len(self.prior)):
            return None
        return (
            "model.prior",
            f"has {len(self.prior)} entries, but the release is of {wanted} categories; give one for each, "
            "or leave it out",
        )


def _categories_in(spec: Any) -> int | None:
    """Return how many categories the one column that is fitted has; None where the spec does not tell."""
    parts = [part for part in (spec.release, spec.data) if part is not None and part.columns]
    if spec.mechanism is None or not parts or len(parts[0].columns) > 1:
        return None
    (name,) = parts[0].columns
    for part in parts:
        known = part.categories_of(part.columns.index(name)) if name in part.columns else None
        if known is not None:
            return len(known)
    return None


def of_one_column(columns: Sequence[str]) -> str:
    """Say what to do with answers of several columns."""
    return (
        f"multinomial is for one column, and there are {', '.join(columns)}; choose one with --set "
        f"release.columns=[{columns[0]}], or use naive_bayes for all"
    )


SECTION = MultinomialModel
