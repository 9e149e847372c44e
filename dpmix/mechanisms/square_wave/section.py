"""What a spec says of a square wave, and what the mechanism can do."""

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Integer, NonNegative, refusal
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Order


class SquareWaveMechanism(MechanismSection):
    """A cell of a public grid near that of each record, each of these as likely, and all others less."""

    released = "records"
    finite_outputs = True
    countable = True
    transitional = True
    columns_each = True
    on_domain = True
    statements = (("epsilon",),)
    kind: Literal["square_wave"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    order: Order = None
    cells: Annotated[Integer, Field(ge=2, le=100_000)] = Field(
        1024, description="Number of equal cells M of each column's domain."
    )
    width: NonNegative | Literal["auto"] = Field(
        "auto",
        description="How far near outputs are from a record's cell, as a share of the domain; once rounded "
        "to cells below a half. auto: as published, by epsilon.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.width != "auto" and not 2 * round(Fraction(self.width) * self.cells) < self.cells:
            most = (self.cells + 1) // 2 - 1
            raise refusal(
                "width",
                f"{self.width:g} of the domain to both sides is all of its {self.cells} cells; give "
                f"{most / self.cells:g}{' or less' if most else ''}, or leave it out",
            )
        return self

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        return f"a square wave over {self.cells} cells"


SECTION = SquareWaveMechanism
