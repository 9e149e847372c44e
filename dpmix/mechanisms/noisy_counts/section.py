"""What a spec says of noisy counts of levels within classes, and what the mechanism can do."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.fields import Integer, Listed, refusal
from dpmix.spec.mechanism_section import (
    Delta,
    Epsilon,
    MechanismSection,
    Rho,
    Scale,
    StatedRecords,
    delta_beside_epsilon,
)

Noise = Literal["laplace", "geometric", "discrete_gaussian"]


class NoisyCountsMechanism(MechanismSection):
    """Noisy counts of every feature's levels within every class."""

    released = "noisy_counts"
    names_columns = False
    trust = "global"
    statistic = True
    grouped = True
    of_known_number = True
    reads = "levels"
    statements = (("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",))
    kind: Literal["noisy_counts"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    levels: Annotated[tuple[Annotated[Integer, Field(ge=2, le=10_000)], ...], Listed, Field(min_length=1)] = (
        Field(description="Number of levels of each feature.")
    )
    classes: Annotated[Integer, Field(ge=1, le=10_000)] = Field(description="Number of classes.")
    noise: Noise = Field("laplace", description="Noise of the counts.")
    n: StatedRecords = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.noise == "discrete_gaussian":
            delta_beside_epsilon(self.noise, self.epsilon, self.delta)
            return self
        for key in ("delta", "rho"):
            if getattr(self, key) is not None:
                more = "has none" if key == "delta" else "takes epsilon or scale"
                raise refusal(
                    key, f"{self.noise} noise {more}; leave it out, or use noise: discrete_gaussian"
                )
        return self

    def bounds_of(self, column: int) -> tuple[float, float] | None:
        """Return 1 and the number of levels of a feature, or of classes of the last column."""
        sizes = (*self.levels, self.classes)
        return (1, sizes[column]) if column < len(sizes) else None

    def cells_of_group(self) -> tuple[str, int]:
        """Return the key of classes, and the number of levels within all of them."""
        return "classes", self.classes * sum(self.levels)

    def columns_stated(self) -> int:
        """Return the number of columns; see `MechanismSection`."""
        return len(self.levels) + 1


SECTION = NoisyCountsMechanism
