"""What a spec says of Laplace noise on each record, and what the mechanism can do."""

from typing import Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import refusal
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Order, Rho, Scale


class LaplaceMechanism(MechanismSection):
    """Laplace noise added to each value."""

    released = "records"
    additive = True
    on_data_scale = True
    countable = True
    transitional = True
    columns_each = True
    on_domain = True
    statements = (("epsilon",), ("rho",), ("scale",))
    kind: Literal["laplace"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    calibration: Literal["exact", "paper"] = Field(
        "exact",
        description="Under rho: exact solves rho = eps - 1 + exp(-eps), paper takes eps = sqrt(2 rho).",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calibration == "paper" and self.rho is None:
            raise refusal("calibration", "paper is a way of reaching rho; leave it out, or state rho")
        return self


SECTION = LaplaceMechanism
