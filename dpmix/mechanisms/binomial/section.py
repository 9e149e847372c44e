"""What a spec says of binomial counts, and what the mechanism can do."""

from typing import Annotated, Literal

from pydantic import Field

from dpmix.spec.capabilities import counted
from dpmix.spec.fields import Integer, Number
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Order


class BinomialMechanism(MechanismSection):
    """A binomial count whose probability moves with the record."""

    released = "records"
    finite_outputs = True
    countable = True
    transitional = True
    on_domain = True
    statements = (("epsilon",), ("weight",))
    assumed = {"trials": 12}
    kind: Literal["binomial"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    weight: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="How far the probability moves, stated instead of epsilon."
    )
    order: Order = None
    trials: Annotated[Integer, Field(ge=1, le=100_000)] = Field(description="Number of trials M per record.")

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        return f"a binomial count of {counted(self.trials, 'trial')} a record"


SECTION = BinomialMechanism
