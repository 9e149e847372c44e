"""What a spec says of no mechanism, and what the mechanism can do."""

from typing import Literal

from pydantic import Field

from dpmix.spec.mechanism_section import MechanismSection


class NoMechanism(MechanismSection):
    """No noise at all: the posterior given the data themselves, for comparison."""

    released = "records"
    additive = True
    on_data_scale = True
    countable = True
    columns_each = True
    protects = False
    guarantees = False

    kind: Literal["none"] = Field(description="The mechanism.")


SECTION = NoMechanism
