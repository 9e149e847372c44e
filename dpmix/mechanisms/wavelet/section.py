"""What a spec says of noisy wavelet coefficients, and what the mechanism can do."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Integer, refusal
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Order, Rho, Scale


class WaveletMechanism(MechanismSection):
    """Laplace noise added to the Haar wavelet coefficients of each record."""

    released = "records"
    names_columns = False
    on_domain = True
    statements = (("epsilon",), ("rho",), ("scale",))
    assumed = {"levels": 3}
    kind: Literal["wavelet"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    rho: Rho = None
    scale: Scale = None
    order: Order = None
    levels: Annotated[Integer, Field(ge=0, le=12)] = Field(description="Finest level J; levels count from 0.")
    calibration: Literal["exact", "paper"] = Field(
        "exact",
        description="Scale by the exact sensitivity of the Haar coefficients, or by the paper's bound.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calibration == "paper" and self.scale is not None:
            raise refusal(
                "calibration", "paper is a way of reaching epsilon or rho; leave it out, or state those"
            )
        return self

    @property
    def cells(self) -> int:
        """Number of the finest cells."""
        return int(2 ** (self.levels + 1))

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        return f"laplace noise on {self.cells - 1} wavelet coefficients a record"


SECTION = WaveletMechanism
