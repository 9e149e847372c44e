"""What a spec says of noisy moments, and what the mechanism can do."""

from typing import Literal

from pydantic import Field

from dpmix.spec.fields import Domain
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Scale, StatedRecords


class ClampedMomentsMechanism(MechanismSection):
    """Noisy second moments of clamped predictors and response."""

    released = "clamped_moments"
    names_columns = False
    trust = "global"
    statistic = True
    grouped = True
    of_known_number = True
    statements = (("epsilon",), ("scale",))
    kind: Literal["clamped_moments"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    scale: Scale = None
    bounds: Domain | None = Field(
        None, description="Public bounds, one pair per predictor and the response's last."
    )
    n: StatedRecords = None
    calibration: Literal["exact", "paper"] = Field(
        "exact", description="Scale by the exact joint sensitivity, or by the paper's bound."
    )

    def columns_stated(self) -> int:
        """Return the number of columns; see `MechanismSection`."""
        return len(self.bounds or self.domain or ((),))


SECTION = ClampedMomentsMechanism
