"""What a spec says of Gaussian noise on each record, and what the mechanism can do."""

from typing import Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import refusal
from dpmix.spec.mechanism_section import Delta, Epsilon, MechanismSection, Order, Rho, Scale


class GaussianMechanism(MechanismSection):
    """Gaussian noise added to each value."""

    released = "records"
    additive = True
    normal_noise = True
    on_data_scale = True
    countable = True
    transitional = True
    columns_each = True
    on_domain = True
    statements = (("epsilon", "delta"), ("rho",), ("scale",))
    kind: Literal["gaussian"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    calibration: Literal["analytic", "classical"] = Field(
        "analytic",
        description="Under (epsilon, delta): analytic is exact, classical is proved for epsilon <= 1 only.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calibration == "classical":
            if self.epsilon is None:
                raise refusal("calibration", "classical is a way of reaching (epsilon, delta); state those")
            if self.epsilon > 1:
                raise refusal(
                    "calibration",
                    f"classical is proved for epsilon <= 1 only and does not reach delta at epsilon = "
                    f"{self.epsilon:g} (asked for (10, 0.1), it has an actual delta of 0.41); use analytic",
                    privacy=True,
                )
        return self


SECTION = GaussianMechanism
