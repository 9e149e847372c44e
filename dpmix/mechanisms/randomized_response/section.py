"""What a spec says of randomized response, and what the mechanism can do."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import refusal
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Order


class RandomizedResponseMechanism(MechanismSection):
    """The category of each record, or another at random."""

    released = "categories"
    reads = "categories"
    columns_each = True
    statements = (("epsilon",),)
    kind: Literal["randomized_response"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    order: Order = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.domain is not None:
            raise refusal("domain", "is not for categories; leave it out, and list data.categories")
        return self

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        return "randomized response of categories"

    def check_columns(self, data: Any) -> None:
        """Check that every column has public categories, and no bounds."""
        if self.domain is not None:  # that of the data
            raise refusal("data.domain", "is not for randomized_response; list data.categories instead")
        count = len(data.columns or ("",))
        if any(len(data.categories_of(i) or ()) < 2 for i in range(count)):
            raise refusal(
                "data.categories",
                "must list the public categories of every column, two or more, for randomized_response",
            )


SECTION = RandomizedResponseMechanism
