"""What a spec says of noisy counts of bins, and what the mechanism can do."""

from typing import Literal, Self

from pydantic import Field, model_validator

from dpmix.spec.capabilities import counted
from dpmix.spec.fields import refusal
from dpmix.spec.mechanism_section import (
    Bins,
    CountedRecords,
    Delta,
    Epsilon,
    MechanismSection,
    Rho,
    Scale,
    delta_beside_epsilon,
)

Noise = Literal["laplace", "gaussian", "geometric", "discrete_gaussian"]


class PerturbedHistogramMechanism(MechanismSection):
    """Noisy counts of equal bins."""

    released = "histogram"
    counts_bins = True
    countable = True
    trust = "global"
    row = "bin"
    rows_name = "noisy counts"
    grouped = True
    on_domain = True
    statements = (("epsilon",), ("epsilon", "delta"), ("rho",), ("scale",))
    assumed = {"bins": 32}
    kind: Literal["perturbed_histogram"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    delta: Delta = None
    rho: Rho = None
    scale: Scale = None
    bins: Bins = Field(description="Number of equal bins m.")
    noise: Noise = Field("laplace", description="Noise of the counts.")
    n: CountedRecords = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.noise in ("gaussian", "discrete_gaussian"):
            delta_beside_epsilon(self.noise, self.epsilon, self.delta)
        elif self.delta is not None:
            raise refusal("delta", f"{self.noise} noise has none; leave it out, or use noise: gaussian")
        return self

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        noise = self.noise.replace("_gaussian", " Gaussian")
        return f"{noise} noise on the counts of {counted(self.bins, 'bin')}"


SECTION = PerturbedHistogramMechanism
