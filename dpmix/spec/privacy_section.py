"""The section ``privacy``: what the releases of a data set may cost together, and where that is recorded."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from dpmix.spec.fields import Number, Positive, Section, Text, refusal, wrong
from dpmix.spec.table_source import FilePath

LONGEST_NAME = 200


def _name(value: str) -> str:
    if len(value) > LONGEST_NAME or not value.isprintable() or value != value.strip():
        raise wrong(
            f"must be a name of at most {LONGEST_NAME} printable characters, without blanks around it, "
            "not {got}",
            value,
        )
    return value


Cost = Annotated[Positive, Field(le=1e100)]  # dpmix.privacy.budget.LARGEST


class BudgetSpec(Section):
    """What all releases of a data set together may cost: epsilon and delta, or rho."""

    epsilon: Cost | None = Field(None, description="Largest epsilon of all releases together.")
    delta: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        None, description="The delta that goes with epsilon; 0 where it is left out."
    )
    rho: Cost | None = Field(None, description="Largest rho (zCDP) of all releases together.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rho is not None:
            for key in ("epsilon", "delta"):
                if getattr(self, key) is not None:
                    raise refusal(key, "give either epsilon and delta, or rho, not both")
        elif self.epsilon is None:
            raise refusal("epsilon", "missing; say {epsilon: 1.0, delta: 0.0} or {rho: 0.5}")
        elif self.delta is None:
            self.settle(delta=0.0)
        return self


class PrivacySpec(Section):
    """The ledger that releases of the data are entered in, and their budget."""

    ledger: FilePath | None = Field(
        None, description="File that every release is entered in, relative to the folder of the spec."
    )
    dataset: Annotated[Text, AfterValidator(_name)] | None = Field(
        None,
        description="Name of the confidential data in the ledger: one for all about the same records; of a "
        "part, its own. It may be left out where the ledger knows none yet.",
    )
    budget: BudgetSpec | None = Field(
        None, description="What all releases of the data set together may cost; kept in the ledger."
    )
    accountant: Literal["sums", "pld"] | None = Field(
        None,
        description="How releases are added up: sums of epsilon, delta and rho, or privacy loss "
        "distributions where they say less; as in the ledger where it is left out, and sums in a new one.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.accountant == "pld" and self.budget is not None and self.budget.rho is not None:
            raise refusal("accountant", "pld counts epsilon and delta, and the budget is of rho; take sums")
        return self
