"""What a spec says of noisy log moments, and what the mechanism can do."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, Tag, model_validator

from dpmix.spec.capabilities import counted
from dpmix.spec.fields import Integer, Listed, Number, Positive, number_or_list, refusal, wrong
from dpmix.spec.mechanism_section import Epsilon, MechanismSection, Records, StatedRecords


def _two(value: tuple[int, ...]) -> tuple[int, ...]:
    if len(value) != 2:
        raise wrong("must be the share of the first part, or the sizes [n1, n2] of two, not {got}", value)
    return value


Sizes = Annotated[tuple[Records, ...], Listed, AfterValidator(_two)]


class LogMomentsMechanism(MechanismSection):
    """Noisy means of the logarithms of censored compositions."""

    released = "log_moments"
    names_columns = False
    reads = "compositions"
    trust = "global"
    statistic = True
    grouped = True
    of_known_number = True
    statements = (("epsilon",), ("epsilon1",), ("epsilon1", "epsilon2"))
    kind: Literal["log_moments"] = Field(description="The mechanism.")
    epsilon: Epsilon = None
    epsilon1: Positive | None = Field(None, description="Part of epsilon for the means.")
    epsilon2: Positive | None = Field(None, description="Part of epsilon for choosing the threshold.")
    threshold: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        None, description="The censoring threshold."
    )
    thresholds: (
        Annotated[tuple[Annotated[Number, Field(gt=0, lt=1)], ...], Listed, Field(min_length=1)] | None
    ) = Field(None, description="Candidate thresholds, of which one is chosen privately.")
    split: (
        Annotated[
            Annotated[Number, Field(gt=0, lt=1), Tag("share")] | Annotated[Sizes, Tag("sizes")],
            number_or_list("share", "sizes"),
        ]
        | None
    ) = Field(
        None, description="Share of the records in the first of two parts, or the sizes [n1, n2] of both."
    )
    components: Annotated[Integer, Field(ge=2, le=1000)] | None = Field(
        None, description="Number of parts of a composition, for a release without its file."
    )
    n: StatedRecords = None
    calibration: Literal["exact", "paper"] = Field(
        "exact", description="Scale by the exact sensitivity, or by the paper's bound."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.threshold is None) == (self.thresholds is None):
            raise refusal("threshold", "give exactly one of threshold and thresholds")
        several = self.thresholds or ()
        if any(not a > b for a, b in zip(several, several[1:], strict=False)):
            raise refusal("thresholds", "must decrease, from the largest candidate to the smallest")
        if len(several) > 1 and self.epsilon1 is not None and self.epsilon2 is None:
            raise refusal("epsilon2", "missing beside epsilon1; choosing among thresholds costs it")
        if any(pair != (0.0, 1.0) for pair in self.domain or ()):
            raise refusal("domain", "must be [0, 1] of every share of a composition; leave it out")
        if isinstance(self.split, tuple) and self.n is not None and sum(self.split) != self.n:
            raise refusal(
                "split", f"{list(self.split)} has {sum(self.split)} records, but mechanism.n is {self.n}"
            )
        return self

    def done(self, grouped: bool) -> str:
        """Say what is released."""
        at = (
            f"{self.threshold:g}"
            if self.thresholds is None
            else f"one of {counted(len(self.thresholds), 'threshold')}"
        )
        if grouped:
            return f"laplace noise on sums of logarithms and on sizes of groups, censored at {at},"
        parts = " of two parts" if self.split is not None else ""
        return f"laplace noise on the mean logarithms{parts}, censored at {at},"

    def check_missing(self, data: Any) -> None:
        """Refuse what is no whole composition."""
        own = [data.missing.get(name) for name in data.columns or ()]
        shares = [float(value) for value in own if isinstance(value, int | float)]
        if shares and (len(shares) < len(own) or abs(sum(shares) - 1.0) > 1e-6 or min(shares) < 0):
            raise refusal(
                "data.missing",
                "for log_moments must give a whole composition, one share for every column and 1 in all: "
                "it stands for each incomplete record",
            )

    def columns_stated(self) -> int | None:
        """Return the number of columns; see `MechanismSection`."""
        return self.components


SECTION = LogMomentsMechanism
