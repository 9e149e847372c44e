"""What a spec says of draws from a smoothed histogram, and what the mechanism can do."""

from typing import Annotated, Literal

from pydantic import Field

from dpmix.spec.capabilities import counted
from dpmix.spec.fields import Number
from dpmix.spec.mechanism_section import Bins, CountedRecords, Epsilon, MechanismSection, Records


class SmoothedHistogramMechanism(MechanismSection):
    """Draws from a histogram of the whole sample mixed with the uniform density."""

    released = "histogram"
    countable = True
    trust = "global"
    row = "draw"
    rows_name = "draws"
    on_data_scale = True
    grouped = True
    on_domain = True
    of_known_number = True
    statements = (("epsilon",), ("weight",))
    kind: Literal["smoothed_histogram"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    weight: Annotated[Number, Field(gt=0, le=1)] | None = Field(
        None, description="Weight of the uniform density, stated instead of epsilon."
    )
    bins: Bins = Field(description="Number of equal bins m.")
    draws: Records = Field(description="Number of released draws k.")
    n: CountedRecords = None

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        return f"{counted(self.draws, 'draw')} from a smoothed histogram of {counted(self.bins, 'bin')}"


SECTION = SmoothedHistogramMechanism
